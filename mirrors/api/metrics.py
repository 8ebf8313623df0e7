"""The replication API: lag, backlog and throughput of a mirror over time."""

from __future__ import annotations

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from db import clock
from mirrors.api.mirrors import find_visible
from mirrors.status.series import DEFAULT, PERIODS, check_branch, measured, step_json, with_branch
from mirrors.transitions.rpo_breaches import target_of
from web.csv_export import FORMATS, TableView, csv_answer, wants_csv
from web.openapi import answers
from web.paging import one_of
from web.schemas import count_or_null, time_or_null
from web.serializers import rfc3339

PERIOD = OpenApiParameter("period", str, enum=list(PERIODS), default=DEFAULT, description="how far back")
BRANCH = OpenApiParameter("branch", str, description="also the lag of this branch")
FORMAT = OpenApiParameter("format", str, enum=FORMATS, description="csv: the steps as a file")


MetricsStepAnswer = type(
    "MetricsStepAnswer",
    (serializers.Serializer,),
    {
        "__doc__": "What was measured between two moments; null where nothing is known.",
        "from": serializers.DateTimeField(),
        "until": serializers.DateTimeField(),
        "lag_seconds": serializers.FloatField(allow_null=True, help_text="the worst of any branch"),
        "branch_lag_seconds": serializers.FloatField(allow_null=True, help_text="the worst of the branch asked for"),
        "backlog_commits": serializers.IntegerField(allow_null=True, help_text="the most that branches lacked"),
        "backlog_commits_last": serializers.IntegerField(allow_null=True, help_text="at the last reading"),
        "missing": serializers.IntegerField(allow_null=True, help_text="the most files that were waited for"),
        "promoted_commits": count_or_null(),
        "checks": serializers.IntegerField(allow_null=True, help_text="runs that started"),
        "objects_checked": count_or_null(),
        "bytes_checked": count_or_null(),
        "seen_commits": serializers.IntegerField(allow_null=True, help_text="commits first seen at the source"),
        "mirrored_commits": serializers.IntegerField(allow_null=True, help_text="commits that branches reached"),
        "new_objects": serializers.IntegerField(allow_null=True, help_text="objects that no earlier check covered"),
        "new_bytes": serializers.IntegerField(allow_null=True, help_text="the size of these"),
    },
)
COLUMNS = tuple(MetricsStepAnswer().fields)


class MetricsAnswer(serializers.Serializer):
    """A mirror over a period, in steps of equal length, the oldest first; the last one goes on."""

    as_of = serializers.DateTimeField()
    read_at = time_or_null()
    period = serializers.ChoiceField(list(PERIODS))
    step_seconds = serializers.IntegerField()
    target_seconds = serializers.IntegerField(help_text="the mirror's target for lag, now")
    results = MetricsStepAnswer(many=True)


class Metrics(TableView):
    """A mirror over time."""

    tag = "metrics"

    @answers("Get metrics", 200, MetricsAnswer, query=[PERIOD, BRANCH, FORMAT], csv=True)
    def get(self, request: Request, repository: str, mirror_id: str) -> HttpResponseBase:
        """Lag, backlog and throughput, step by step. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the
        mirror."""
        mirror, now = find_visible(request, repository, mirror_id), clock.now()
        period = one_of(request, "period", PERIODS) or DEFAULT
        series = measured(mirror, PERIODS[period], now)
        if branch := request.query_params.get("branch", ""):
            check_branch(mirror, branch)
            series = with_branch(series, mirror, branch, now)
        if wants_csv(request):
            return csv_answer(f"{mirror.name}-metrics-{period}", COLUMNS, map(step_json, series.steps))
        return Response(
            {
                "as_of": rfc3339(now),
                "read_at": rfc3339(series.read_at),
                "period": period,
                "step_seconds": series.period.step * 60,
                "target_seconds": round(target_of(mirror).total_seconds()),
                "results": [step_json(step) for step in series.steps],
            }
        )
