"""The replication API: what is missing or wrong at a mirror."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import Invalid
from core.installations.s3_events import LONGEST_KEY
from core.replication.causes import Cause
from core.text.phrases import count
from db.chunks import rows_in_chunks
from jobs.job_ids import accepted, duty_url
from mirrors.api.mirrors import find_mirror, find_visible
from mirrors.api.schemas import ThingAnswer
from mirrors.models import Blocker, Mirror, MirrorDuty
from mirrors.queries.missing import blockers_of, thing_of
from mirrors.queries.missing_counts import is_cut_short
from mirrors.services.backlog import Group, Lacking, Looked, blockers_retry, bringing_stop, files_bring
from mirrors.services.rights import require_operation_of
from mirrors.status.mirror import thing_json
from web.csv_export import FORMATS, TableView, csv_answer, wants_csv
from web.openapi import answers
from web.paging import PAGE, a_page, by_number, number_of, one_of, page_of
from web.schemas import LOCATION, JobTakenAnswer, page_with, text_or_null
from web.serializers import Body, TrueOrFalse, rfc3339

MOST_IDS = 1000
GROUPS = ("reason", "cause", "prefix", "object")
NAMED = 20
"""So many of the commits that lack an object are named with it."""
COLUMNS = tuple(ThingAnswer().fields)


class ReasonGroupAnswer(serializers.Serializer):
    """Things with one reason: how many, and when the first of them was seen."""

    reason = serializers.CharField()
    blockers = serializers.IntegerField()
    oldest = serializers.DateTimeField()


class CauseGroupAnswer(serializers.Serializer):
    """Things that the stores' replication has not brought for one cause; null: it is not known, or nothing of that."""

    cause = text_or_null()
    blockers = serializers.IntegerField()
    oldest = serializers.DateTimeField()


class PrefixGroupAnswer(serializers.Serializer):
    """Things whose paths begin alike."""

    prefix = text_or_null()
    blockers = serializers.IntegerField()
    oldest = serializers.DateTimeField()


class HeldAnswer(serializers.Serializer):
    """A commit that lacks an object: how its data stands at the mirror, and whether the commit itself is waived."""

    id = serializers.CharField()
    data = serializers.CharField()
    waived = serializers.BooleanField()


class ObjectGroupAnswer(ThingAnswer):
    """A thing once, however many ranges need it, and the commits that lack it, the newest first: some by name."""

    holders = serializers.IntegerField(help_text="ranges that name it")
    commits_total = serializers.IntegerField(help_text="of the last 5,000 commits that lack something")
    commits = HeldAnswer(many=True)


class BlockerPageAnswer(page_with(ThingAnswer)):  # type: ignore[misc]
    """A page of things, or of their groups. With `all_named` false, there are more things than have names here.

    Groups are of the things that were missed first; with `all_counted` false, there are more than were counted.
    """

    results = PolymorphicProxySerializer(
        component_name="BlockerOrGroup",
        serializers=[ThingAnswer, ReasonGroupAnswer, CauseGroupAnswer, PrefixGroupAnswer, ObjectGroupAnswer],
        resource_type_field_name=None,
        many=True,
    )
    all_named = serializers.BooleanField()
    all_counted = serializers.BooleanField(required=False)


class RetriedAnswer(JobTakenAnswer):
    """What is done now, and for how many things."""

    blockers = serializers.IntegerField()


WHICH = (
    OpenApiParameter("commit", str, description="only what keeps this commit from being promoted; six digits or more"),
    OpenApiParameter("branch", str, description="the same of the newest commit of this branch of the source"),
    OpenApiParameter("reason", str, description="only those of this reason"),
    OpenApiParameter("cause", str, enum=[*Cause], description="only what replication has not brought for this cause"),
    OpenApiParameter("prefix", str, description="only those whose path begins with this"),
    OpenApiParameter("address", str, description="only the object at this address, whichever ranges need it"),
    OpenApiParameter("kind", str, enum=Blocker.Kind.values, description="only those of this kind"),
)
GROUP_BY = OpenApiParameter(
    "group_by",
    str,
    enum=GROUPS,
    description="groups instead of single files, the largest first; `object`: each file once, the longest known first, "
    "with the commits that lack it",
)
FORMAT = OpenApiParameter("format", str, enum=FORMATS, description="csv: all of them as a file, not a page")


class Blockers(TableView):
    """Every thing that is missing or wrong at a mirror."""

    tag = "blockers"

    @answers("List blockers", 200, BlockerPageAnswer, query=[*PAGE, *WHICH, GROUP_BY, FORMAT], fails=[409], csv=True)
    def get(self, request: Request, repository: str, mirror_id: str) -> HttpResponseBase:
        """A page of them, the longest known first; groups; or all as CSV. Needs fs:ListRepositories on `*`, or
        fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        given = request.query_params
        named = {name: given.get(name, "") for name in ("commit", "branch", "reason", "prefix", "address")}
        cause = one_of(request, "cause", [*Cause])
        rows = blockers_of(mirror, kind=one_of(request, "kind", Blocker.Kind.values), cause=cause, **named)
        group_by = one_of(request, "group_by", GROUPS)
        if wants_csv(request):
            if group_by:
                raise Invalid("groups are not given as CSV", field="group_by")
            return csv_answer(f"{mirror.name}-blockers", COLUMNS, map(blocker_json, rows_in_chunks(rows)))
        if group_by:
            looked = Looked(rows)
            if group_by == "object":
                return Response(_by_object(request, mirror, looked, rows) | {"all_counted": not looked.more})
            return Response(
                _groups(request, _grouped(looked, group_by, named["prefix"]), group_by)
                | _all_named_json(mirror)
                | {"all_counted": not looked.more}
            )
        return Response(by_number(request, rows, blocker_json, "pk", newest=False) | _all_named_json(mirror))


class BlockersRetried(Body):
    """The body of POST: which ones, by id or by reason; neither: all."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), allow_empty=False, max_length=MOST_IDS
    )
    reason = serializers.CharField(max_length=32)

    def __init__(self, **given: Any) -> None:
        super().__init__(partial=True, **given)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        super().validate(attrs)
        if len(attrs) > 1:
            raise serializers.ValidationError({"ids": "give ids or a reason, not both"})
        return attrs


class BlockersRetry(APIView):
    """Look for what is missing now, not when its turn comes."""

    tag = "blockers"

    @answers("Retry blockers", 202, RetriedAnswer, body=BlockersRetried, query=[LOCATION])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202 with how many. Needs fs:OperateMirror on the source or the mirror."""
        require_operation_of(request.user, repository, mirror_id)
        body = BlockersRetried(data=request.data)
        body.is_valid(raise_exception=True)
        mirror = find_mirror(repository, mirror_id)
        number = blockers_retry(actor=request.user, mirror=mirror, **body.validated_data)
        answer = {"message": f"checking {count(number, 'problem')} now", "blockers": number}
        return accepted(answer, duty_url(MirrorDuty.VALIDATE, mirror.pk))


class BringAsked(Body):
    """The body of POST: which files, by the ids of blockers or by addresses below the namespace; or all. `replace`: not
    what is missing, but what is there and wrong."""

    blockers = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), allow_empty=False, max_length=MOST_IDS
    )
    addresses = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_KEY), allow_empty=False, max_length=MOST_IDS
    )
    all = TrueOrFalse()
    replace = TrueOrFalse()

    def __init__(self, **given: Any) -> None:
        super().__init__(partial=True, **given)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        super().validate(attrs)
        if len(attrs.keys() - {"replace"}) != 1 or attrs.get("all") is False:
            raise serializers.ValidationError({"blockers": 'give one of blockers, addresses and "all": true'})
        return attrs


class Bring(APIView):
    """Have LakeMirror copy what the stores' replication has not brought."""

    tag = "blockers"

    @answers("Bring missing files", 202, RetriedAnswer, body=BringAsked, query=[LOCATION], fails=[409])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202 with how many files are copied. LakeMirror copies, once, what is missing now. That ends as soon as all of
        it is there, at the latest after 24 hours. What is missing later is left to the stores' replication, and shown
        as missing.
        With `replace` the source's bytes are written over files with other content, where the source has them as the
        commit says; nothing is replaced otherwise.
        409 for a managed mirror, one that is paused or stopped, and a store that takes nothing. Needs fs:OperateMirror
        on the source or the mirror."""
        require_operation_of(request.user, repository, mirror_id)
        body = BringAsked(data=request.data)
        body.is_valid(raise_exception=True)
        mirror = find_mirror(repository, mirror_id)
        given = body.validated_data
        which = {"ids": given.get("blockers"), "addresses": given.get("addresses")}
        replace = bool(given.get("replace"))
        number = files_bring(actor=request.user, mirror=mirror, replace=replace, **which)
        answer = {"message": _copying(number, replace=replace), "blockers": number}
        return accepted(answer, duty_url(MirrorDuty.VALIDATE, mirror.pk))


class BringStoppedAnswer(serializers.Serializer):
    """Of how many objects nothing more is copied."""

    message = serializers.CharField()
    blockers = serializers.IntegerField()


class BringStop(APIView):
    """Have LakeMirror copy no more of what somebody had it copy in place of the stores."""

    tag = "blockers"

    @answers("Stop bringing missing files", 200, BringStoppedAnswer)
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """How many objects were still to be copied or replaced: they are left to the stores' replication. What is in
        flight is copied to its end; nothing more begins within two seconds. 0 if nothing was asked for. Needs
        fs:OperateMirror on the source or the mirror."""
        require_operation_of(request.user, repository, mirror_id)
        number = bringing_stop(actor=request.user, mirror=find_mirror(repository, mirror_id))
        left = (
            f"{count(number, 'object is', 'objects are')} left to the stores" if number else "nothing was left to copy"
        )
        return Response({"message": f"copying is stopped: {left}", "blockers": number})


def _copying(number: int, *, replace: bool) -> str:
    if number:
        return f"{'replacing' if replace else 'copying'} {count(number, 'object')} now"
    if replace:
        return "nothing to replace: only objects that arrived with other content are replaced"
    told = (
        "nothing to copy: only objects that are missing are copied; one that arrived with other content stays as it is"
    )
    return f'{told}, unless you ask with "replace": true'


def blocker_json(row: Blocker) -> dict[str, Any]:
    """One thing that is missing or wrong."""
    return thing_json(thing_of(row))


def _grouped(looked: Looked, group_by: str, prefix: str) -> Sequence[Group]:
    if group_by == "prefix":
        return looked.by_prefix(prefix)
    return looked.by_reason() if group_by == "reason" else looked.by_cause()


def _groups(request: Request, groups: Sequence[Group], name: str) -> dict[str, Any]:
    """A page of groups; its offset is how many larger ones were given before."""
    amount, after = page_of(request)
    start = number_of(after, "after") if after else 0
    page, pagination = a_page(groups[start : start + amount + 1], amount, lambda row: start + amount)
    results = [{name: row.group, "blockers": row.blockers, "oldest": rfc3339(row.oldest)} for row in page]
    return pagination | {"results": results}


def _by_object(request: Request, mirror: Mirror, looked: Looked, rows: QuerySet[Blocker]) -> dict[str, Any]:
    """A page of things, each once."""
    lacking = Lacking(mirror)

    def one(row: Blocker) -> dict[str, Any]:
        holders = looked.holders_of(row)
        commits = lacking.commits(holders)
        named = [{"id": held.commit, "data": held.data, "waived": held.waived} for held in commits[:NAMED]]
        return blocker_json(row) | {"holders": len(holders), "commits_total": len(commits), "commits": named}

    rows = rows.exclude(pk__in=looked.repeated)
    return by_number(request, rows, one, "pk", newest=False) | _all_named_json(mirror)


def _all_named_json(mirror: Mirror) -> dict[str, Any]:
    """Of a range that lacks very many things, only the first are kept by name."""
    return {"all_named": not is_cut_short(mirror)}
