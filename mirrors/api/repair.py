"""The replication API: repairing a commit at a mirror."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.mirroring.repair_plan import Plan, Way
from core.text.phrases import count
from db import clock
from mirrors.api.mirrors import find_mirror
from mirrors.queries.find_commit import find_commit
from mirrors.services.copy_commands import FileCommand, copy_commands
from mirrors.services.repair import commit_repair, offer_of, repair_plan
from mirrors.services.rights import require_sight_of
from web.openapi import answers
from web.schemas import count_or_null, text_or_null
from web.serializers import Body, rfc3339


class RepairAsked(Body):
    """The body: whether only the plan is wanted."""

    dry_run = serializers.BooleanField(default=False)


class RepairStepAnswer(serializers.Serializer):
    """Things of one kind and reason, and who brings them: we (copied), the bucket's replication (awaited), people
    (mended), or nobody (gone)."""

    way = serializers.ChoiceField([way.value for way in Way])
    kind = serializers.CharField()
    reason = serializers.CharField()
    number = serializers.IntegerField()
    bytes = count_or_null()
    message = serializers.CharField()
    fix = serializers.CharField(allow_blank=True)
    cause = text_or_null()


class RepairRequestsAnswer(serializers.Serializer):
    """What a retry asks: HEADs at the destination's store, and so many at the source's at most; objects that are
    read; records that are sent to the destination's lakeFS."""

    head = serializers.IntegerField()
    head_at_source_at_most = serializers.IntegerField()
    get = serializers.IntegerField()
    records = serializers.IntegerField()


class CopyCommandAnswer(serializers.Serializer):
    """A missing or wrong file, and the command of the AWS CLI, quoted for a shell, that copies it again from the
    source. `hint`: what to mind."""

    path = serializers.CharField(allow_blank=True)
    address = serializers.CharField()
    command = serializers.CharField()
    hint = serializers.CharField(allow_blank=True)


class RepairOfferAnswer(serializers.Serializer):
    """What LakeMirror would copy once in place of the stores (`POST .../bring`): so many files that are `missing`, and
    with `replace` those that are `wrong`, by ids of blockers. `held`: what keeps it from that, "" if nothing does."""

    missing = serializers.IntegerField()
    wrong = serializers.ListField(child=serializers.IntegerField())
    held = serializers.CharField(allow_blank=True)


class RepairPlanAnswer(serializers.Serializer):
    """What would be done, and what people can do for the first ten files. With `at_least` the commit lacks more than
    is noted by name."""

    commit = serializers.CharField()
    steps = RepairStepAnswer(many=True)
    bring = RepairOfferAnswer(allow_null=True)
    commands = CopyCommandAnswer(many=True)
    requests = RepairRequestsAnswer()
    at_least = serializers.BooleanField()
    as_of = serializers.DateTimeField()


class RepairedAnswer(serializers.Serializer):
    """So many things are looked for now; `prioritised` if anything is left to do for the commit."""

    message = serializers.CharField()
    commit = serializers.CharField()
    blockers = serializers.IntegerField()
    prioritised = serializers.BooleanField()


class CommitRepair(APIView):
    """What a commit lacks is looked for now, before all else; or what that would be."""

    tag = "repair"

    @answers("Repair a commit", 202, RepairedAnswer, body=RepairAsked, also=(200, RepairPlanAnswer))
    def post(self, request: Request, repository: str, mirror_id: str, commit: str) -> Response:
        """202, or with `dry_run` 200 and the plan. Needs the right to see the mirror; for 202 to run it, too."""
        require_sight_of(request.user, mirror_id)
        body = RepairAsked(data=request.data)
        body.is_valid(raise_exception=True)
        mirror = find_mirror(repository, mirror_id)
        commit_row = find_commit(mirror, commit)
        if body.validated_data["dry_run"]:
            offer = offer_of(mirror, commit_row)
            plan = _plan_json(repair_plan(mirror, commit_row), copy_commands(mirror, commit_row.sha))
            told = {"bring": offer and asdict(offer), "commit": commit_row.sha, "as_of": rfc3339(clock.now())}
            return Response(plan | told)
        done = commit_repair(actor=request.user, mirror=mirror, commit=commit_row)
        message = f"checking {count(done.blockers, 'problem')} now"
        return Response(
            {"message": message, "commit": commit_row.sha, "blockers": done.blockers, "prioritised": done.first},
            status=202,
        )


def _plan_json(plan: Plan, files: Sequence[FileCommand]) -> dict[str, Any]:
    steps = [
        {
            "way": step.way.value,
            "kind": step.kind,
            "reason": step.reason,
            "number": step.number,
            "bytes": step.bytes,
            "message": step.told,
            "fix": step.advice,
            "cause": step.cause or None,
        }
        for step in plan.steps
    ]
    requests = {"head": plan.looks, "head_at_source_at_most": plan.looks, "get": plan.reads, "records": plan.records}
    commands = [
        {"path": file.path, "address": file.address, "command": file.copy.command, "hint": file.copy.hint}
        for file in files
    ]
    return {"steps": steps, "commands": commands, "requests": requests, "at_least": plan.more}
