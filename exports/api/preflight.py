"""What would keep an export from working, what its expressions match, what the next run would copy: asked before."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import LakeMirrorError
from exports.api.exports import OF_BRANCH, OfBranch, region_of
from exports.api.serializers import ExportConfiguration
from exports.models import Export
from exports.preflight.branch_sample import branch_of, first_files
from exports.preflight.change_effects import changes_of
from exports.preflight.checks import Plan, check_plan, require_reading
from exports.preflight.next_run import Planned, planned_run
from exports.preflight.pattern_trial import Trial, named, try_patterns
from web.openapi import answers
from web.schemas import CheckAnswer, check_json, count_or_null, many_texts, number_or_null, text_or_null
from web.serializers import rfc3339

SHOWN = 100


class ExportCheckAnswer(CheckAnswer):
    """One check; `policy` is a statement of JSON that puts it right, or ''."""

    policy = serializers.CharField(allow_blank=True)


class ExpressionAnswer(serializers.Serializer):
    """What one expression matches, of what was tried."""

    pattern = serializers.CharField(allow_blank=True)
    directories = serializers.IntegerField()
    last_keys = serializers.IntegerField()


class TrialAnswer(serializers.Serializer):
    """The expressions, tried on the first directories and files of the branch; `whole`: these are all of them."""

    directories = serializers.IntegerField(help_text="how many were tried")
    keys = serializers.IntegerField(help_text="how many were tried")
    whole = serializers.BooleanField()
    marked = serializers.IntegerField(help_text="how many directories would get a _lakefs_success")
    marked_first = many_texts()
    last_keys = serializers.IntegerField(help_text="how many files would come last in their directory")
    last_keys_first = many_texts()
    expressions = ExpressionAnswer(many=True)


class NextRunAnswer(serializers.Serializer):
    """What the next run would copy; null where nobody can tell. `full`: everything, else what changed since `base`."""

    commit = serializers.CharField()
    base = text_or_null()
    full = serializers.BooleanField()
    copy = count_or_null()
    copy_bytes = count_or_null()
    delete = count_or_null()
    estimated = serializers.BooleanField(help_text="not all ranges that differ were read")
    ranges = serializers.IntegerField()
    requests = count_or_null()
    seconds = number_or_null()
    seconds_measured = serializers.BooleanField(help_text="by the last runs to the same bucket; else assumed")


class CheckedAnswer(serializers.Serializer):
    """Every check; `ok`: nothing failed, and what decides is known. `unknown` says why something is null."""

    ok = serializers.BooleanField()
    checks = ExportCheckAnswer(many=True)
    patterns = TrialAnswer(allow_null=True)
    next_run = NextRunAnswer(allow_null=True)
    changes = many_texts()
    unknown = many_texts()
    as_of = serializers.DateTimeField()


class Check(OfBranch):
    """Check a configuration."""

    tag = "check"

    @answers(
        "Check an export configuration", 200, CheckedAnswer, body=ExportConfiguration, query=OF_BRANCH, fails=[503]
    )
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """The body of PUT; nothing is stored. Below each path an object is written, read and removed again. Needs
        fs:ExportConfig on the branch; what its files tell (`patterns`, `next_run`) is null without fs:ReadBranch."""
        branch, name = self.permitted(request, "fs:ExportConfig", repository, branch)
        body = ExportConfiguration(data=request.data)
        body.is_valid(raise_exception=True)
        region = region_of(request)
        export = Export.objects.named(region, repository, branch, name).filter(deleting=False).first()
        return Response(checked_json(request.user, Plan(region, repository, branch, body.wish(), export, name)))


def checked_json(actor: Any, plan: Plan) -> dict[str, Any]:
    """All that can be said of a plan."""
    preflight = check_plan(actor=actor, plan=plan, writing=True)
    unknown: list[str] = []
    trial, planned = None, None
    try:
        require_reading(actor, plan)
        branch = branch_of(plan.region, plan.repository, plan.branch)
        trial = try_patterns(plan.wish.patterns, first_files(branch, actions=plan.actions))
    except LakeMirrorError as error:
        unknown.append(f"patterns: {error}")
    try:
        require_reading(actor, plan)
        planned = planned_run(plan)
    except LakeMirrorError as error:
        unknown.append(f"next_run: {error}")
    return {
        "ok": preflight.ok,
        "checks": [check_json(check) | {"policy": check.policy} for check in preflight.checks],
        "patterns": trial and trial_json(trial),
        "next_run": planned and planned_json(planned),
        "changes": changes_of(plan),
        "unknown": unknown,
        "as_of": rfc3339(preflight.as_of),
    }


def trial_json(trial: Trial) -> dict[str, Any]:
    """What the expressions match; of names the first ones."""
    return {
        "directories": len(trial.files.directories),
        "keys": len(trial.files.keys),
        "whole": not trial.bounded,
        "marked": len(trial.marked),
        "marked_first": named(trial.marked[:SHOWN]),
        "last_keys": len(trial.last_keys),
        "last_keys_first": named(trial.last_keys[:SHOWN]),
        "expressions": [
            {"pattern": expression.pattern, "directories": expression.directories, "last_keys": expression.last_keys}
            for expression in trial.each
        ],
    }


def planned_json(planned: Planned) -> dict[str, Any]:
    """What the next run would copy."""
    cost = planned.cost
    return {
        "commit": planned.commit,
        "base": planned.base or None,
        "full": planned.full,
        "copy": planned.copies,
        "copy_bytes": planned.bytes,
        "delete": planned.removals,
        "estimated": planned.estimated or planned.bytes_estimated,
        "ranges": planned.ranges,
        "requests": cost and cost.requests,
        "seconds": cost and cost.seconds,
        "seconds_measured": planned.pace.measured,
    }
