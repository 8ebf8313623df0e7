"""The replication API: passes of rules, their reports, and what a rule would cost."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.replicating.passes import Action, PassKind, PassState, What
from db import clock
from replication.api.bodies import RuleCreation
from replication.api.fields import Text, WholeNumber
from replication.api.rules import permitted, readable
from replication.api.serializers import RulePlaceAnswer, checked
from replication.models import Pass
from replication.queries.pass_reports import COLUMNS, first_rows, parquet, report_rows
from replication.services import passes
from replication.services.passes import Asked, find_pass, links_of
from replication.services.rules import OPERATE
from replication.status.passes import PassReading, pass_reading
from web.csv_export import FORMATS, TableView, csv_answer
from web.openapi import PARQUET, answers
from web.paging import PAGE, newest_first, one_of
from web.schemas import number_or_null, page_answer, text_or_null, time_or_null
from web.serializers import Body, rfc3339

REPORTS = (*FORMATS, "parquet")
REPORT = OpenApiParameter("format", str, enum=REPORTS, description="json, unless told: the first 1,000 rows")


class PassBody(Body):
    """Which objects a pass is of. What is left out is all of them."""

    prefix = Text(required=False, allow_blank=True, max_length=1024, help_text="only keys that begin with this")
    older_than = serializers.DateTimeField(
        required=False, allow_null=True, default_timezone=None, help_text="only objects last written before this moment"
    )
    what = serializers.ChoiceField(
        [what.value for what in What],
        required=False,
        help_text="missing (unless told): what a target lacks or has otherwise; all: also what is equal, again",
    )

    def asked(self) -> Asked:
        """What the service takes."""
        given = self.validated_data
        return Asked(**{name: given[name] for name in ("prefix", "older_than", "what") if name in given})


class DryRunBody(PassBody):
    """The same of a dry run."""

    link = WholeNumber(required=False, min_value=1, max_value=10**9, help_text="only to this target; all unless told")


# --- answers ----------------------------------------------------------------------------------------------------------


class PassMadeAnswer(serializers.Serializer):
    """The pass that was begun."""

    id = serializers.IntegerField()


class PassActionAnswer(serializers.Serializer):
    """How many objects are to be treated so at a target."""

    link = serializers.IntegerField()
    action = serializers.ChoiceField([action.value for action in Action])
    code = text_or_null()
    words = serializers.CharField()
    objects = serializers.IntegerField()
    bytes = serializers.IntegerField()


class PassTargetAnswer(RulePlaceAnswer):
    """A target of a pass."""

    link = serializers.IntegerField()


class PassAnswer(serializers.Serializer):
    """A pass: what was asked for, how far it is, how it ended."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField([kind.value for kind in PassKind])
    rule = serializers.CharField()
    targets = PassTargetAnswer(many=True)
    prefix = serializers.CharField(allow_blank=True)
    older_than = time_or_null()
    what = serializers.ChoiceField([what.value for what in What])
    who = serializers.CharField()
    state = serializers.ChoiceField([state.value for state in PassState])
    word = serializers.CharField(help_text="the state as the pages say it")
    message = text_or_null()
    total_objects = serializers.IntegerField(allow_null=True, help_text="null while nobody knows")
    total_is_estimate = serializers.BooleanField()
    done_objects = serializers.IntegerField(help_text="as they should be, or failed for this pass")
    objects_per_second = number_or_null()
    eta_seconds = number_or_null()
    copied_objects = serializers.IntegerField()
    copied_bytes = serializers.IntegerField()
    waiting_objects = serializers.IntegerField(help_text="noted to be copied, and not at an end yet")
    gone_objects = serializers.IntegerField(help_text="gone at the source by the time their turn came")
    failed_objects = serializers.IntegerField()
    actions = PassActionAnswer(many=True)
    report_rows = serializers.IntegerField()
    report_is_whole = serializers.BooleanField(help_text="false: there was more than a report holds")
    began_at = serializers.DateTimeField()
    ended_at = time_or_null()
    as_of = serializers.DateTimeField()


class ReportRowAnswer(serializers.Serializer):
    """An object in the report of a pass."""

    link = serializers.IntegerField()
    key = serializers.CharField(help_text="relative to the rule's places")
    action = serializers.ChoiceField([action.value for action in Action])
    size = serializers.IntegerField(help_text="at the source; -1: nobody could ask")
    code = serializers.CharField(allow_blank=True, help_text="why it is skipped, or has failed")
    message = serializers.CharField(allow_blank=True)


class PassReportAnswer(serializers.Serializer):
    """The first rows of a report. `is_whole`: false, there was more than a report holds."""

    results = ReportRowAnswer(many=True)
    rows = serializers.IntegerField()
    is_whole = serializers.BooleanField()
    as_of = serializers.DateTimeField()


def pass_json(reading: PassReading) -> dict[str, Any]:
    """A pass as it stands."""
    made, progress = reading.made, reading.progress
    rate = progress.per_second
    return {
        "id": made.pk,
        "kind": made.kind,
        "rule": reading.name,
        "targets": [{"link": number, "region": region, "uri": uri} for number, region, uri in links_of(made)],
        "prefix": made.prefix,
        "older_than": rfc3339(made.older_than),
        "what": made.what,
        "who": made.who,
        "state": made.state,
        "word": reading.word,
        "message": made.message or None,
        "total_objects": progress.total,
        "total_is_estimate": progress.estimate,
        "done_objects": progress.done,
        "objects_per_second": None if rate is None else round(rate, 3),
        "eta_seconds": None if progress.eta is None else round(progress.eta, 1),
        "copied_objects": made.copied,
        "copied_bytes": made.copied_bytes,
        "waiting_objects": made.waiting,
        "gone_objects": made.gone,
        "failed_objects": made.failed,
        "actions": [
            {
                "link": one.link,
                "action": one.action,
                "code": one.why or None,
                "words": one.words,
                "objects": one.objects,
                "bytes": one.bytes,
            }
            for one in reading.actions
        ],
        "report_rows": made.rows,
        "report_is_whole": not made.more_rows,
        "began_at": rfc3339(made.began_at),
        "ended_at": rfc3339(made.ended_at),
        "as_of": rfc3339(reading.as_of),
    }


# --- calls ------------------------------------------------------------------------------------------------------------


class LinkResync(APIView):
    """Bring what a link lacks."""

    tag = "rules"

    @answers("Resync a link of a replication rule", 202, PassMadeAnswer, body=PassBody)
    def post(self, request: Request, rule: str, number: int) -> Response:
        """202 with the pass that looks through all of it now, and copies what lacks, or everything, within the link's
        limits. 409 while one of this link goes on. Needs fs:OperateReplicationRule on the rule."""
        permitted(request, OPERATE, rule)
        body = PassBody(data=request.data)
        checked(body)
        made = passes.pass_resync(actor=request.user, name=rule, number=number, asked=body.asked())
        return Response({"id": made.pk}, status=202)


class RuleDryRun(APIView):
    """Tell what a rule would do."""

    tag = "rules"

    @answers("Dry run a replication rule", 202, PassMadeAnswer, body=DryRunBody)
    def post(self, request: Request, rule: str) -> Response:
        """202 with a pass that writes nothing, and tells what a resync would do. 409 while one of this rule goes on.
        Needs fs:OperateReplicationRule on it."""
        permitted(request, OPERATE, rule)
        body = DryRunBody(data=request.data)
        number = checked(body).get("link")
        made = passes.pass_dry_run(actor=request.user, name=rule, number=number, asked=body.asked())
        return Response({"id": made.pk}, status=202)


class RuleDryRunOfWish(APIView):
    """Tell what a rule would do that somebody thinks of."""

    tag = "rules"

    @answers("Dry run a new replication rule", 202, PassMadeAnswer, body=RuleCreation)
    def post(self, request: Request) -> Response:
        """The body of POST `/rules`; no rule is stored, and nothing written at its places. 202 with a pass that tells
        what the rule would copy now. Needs what creating needs."""
        body = RuleCreation(data=request.data)
        checked(body)
        made = passes.pass_dry_run_of_wish(actor=request.user, wish=body.wish(), asked=Asked())
        return Response({"id": made.pk}, status=202)


class RulePasses(APIView):
    """Passes of a rule."""

    tag = "rules"

    @answers("List passes of a replication rule", 200, page_answer(PassAnswer), query=PAGE)
    def get(self, request: Request, rule: str) -> Response:
        """A page of resyncs and dry runs, the newest first. They are kept for 30 days. Needs fs:ReadReplicationRule on
        it."""
        found, now = readable(request, rule), clock.now()
        rows = Pass.objects.filter(rule=found.pk).select_related("rule", "link")
        return Response(newest_first(request, rows, lambda made: pass_json(pass_reading(made, now))))


class PassDetail(APIView):
    """One pass: see it, cancel it."""

    tag = "rules"

    @answers("Get a pass", 200, PassAnswer)
    def get(self, request: Request, number: int) -> Response:
        """How far it is, or how it ended. Needs fs:ReadReplicationRule on its rule, or what creating the rule needs
        that it is a dry run of; it is not found without."""
        return Response(pass_json(pass_reading(find_pass(request.user, number), clock.now())))

    @answers("Cancel a pass", 204, fails=[409])
    def delete(self, request: Request, number: int) -> Response:
        """It ends, and keeps its counts. What it found lacking is still copied. 409 for one that has ended. Needs
        fs:OperateReplicationRule on its rule besides."""
        passes.pass_cancel(actor=request.user, number=number)
        return Response(status=204)


class ParquetRenderer(BaseRenderer):
    """Makes `?format=parquet` known; the view itself sends the file."""

    format = "parquet"
    media_type = PARQUET

    def render(self, data: Any, *args: Any, **more: Any) -> bytes:
        raise AssertionError("the view sends the file")


class PassReport(TableView):
    """The report of a pass."""

    tag = "rules"
    renderer_classes = [*TableView.renderer_classes, ParquetRenderer]

    @answers("Get the report of a pass", 200, PassReportAnswer, query=[REPORT], csv=True, parquet=True)
    def get(self, request: Request, number: int) -> HttpResponseBase:
        """A row for each object that a dry run would copy, overwrite or skip, or that a resync could not copy: the
        first 1,000, or all as CSV or Parquet. Needs what reading the pass needs."""
        made, kind = find_pass(request.user, number), request.accepted_renderer.format
        one_of(request, "format", REPORTS)
        if kind == "parquet":
            answer = StreamingHttpResponse(parquet(made), content_type=PARQUET)
            answer["Content-Disposition"] = f'attachment; filename="pass-{made.pk}.parquet"'
            return answer
        if kind == "csv":
            return csv_answer(f"pass-{made.pk}", COLUMNS, (row._asdict() for row in report_rows(made)))
        results = [row._asdict() for row in first_rows(made)]
        told = {"rows": made.rows, "is_whole": not made.more_rows, "as_of": rfc3339(clock.now())}
        return Response({"results": results, **told})
