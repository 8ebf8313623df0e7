"""The replication API: how all mirrors are doing, and what needs somebody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console import exports_summary, rules_summary
from console.deployment_status import disagreements_seen_by, outages_seen_by, queues_seen_by, workers_seen_by
from console.exports_summary import Summary
from console.jobs.workers import WorkerReading
from console.overview.recent_events import Happening, latest
from console.overview.summary import is_within, matrix, oldest_unchecked, spark_reached, tell
from core.installations.outages import OutageKind, Service
from core.mirroring.rpo import worst_lag
from db import clock
from jobs.queue_status import QueueReading, troubles
from mirrors.models import Mirror
from mirrors.services.rights import require_sight
from mirrors.status.fleet import fleet_statuses
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import REPLICATION, RootCause, needing_by_themselves
from web.openapi import answers
from web.schemas import many_texts, number_or_null, text_or_null, time_or_null
from web.serializers import rfc3339

NEEDING = 100
"""So many mirrors are named that need somebody."""


class TilesAnswer(serializers.Serializer):
    """Figures over all mirrors. `waiting` counts a thing once for each mirror; more of them with `waiting_at_least`."""

    mirrors = serializers.IntegerField()
    within_target = serializers.IntegerField()
    worst_lag_seconds = number_or_null()
    waiting = serializers.IntegerField()
    waiting_at_least = serializers.BooleanField()
    waiting_since = time_or_null()
    queues = serializers.IntegerField()
    queues_heard = serializers.IntegerField(help_text="those of which a worker was heard in the last minute")
    messages = serializers.IntegerField()
    workers_alive = serializers.IntegerField()
    workers_lost = serializers.IntegerField(help_text="of the last day: they stopped reporting")
    spark_reached = serializers.BooleanField(
        allow_null=True, help_text="by all workers that use Spark; null where none does"
    )
    oldest_unchecked_seen_at = time_or_null()


class NeedingAnswer(serializers.Serializer):
    """A mirror that needs somebody."""

    mirror = serializers.CharField()
    source_repository = serializers.CharField()
    source_region = serializers.CharField()
    region = serializers.CharField()
    status = serializers.CharField()
    reason_code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()
    lag_seconds = number_or_null()
    as_of = serializers.DateTimeField()


class OutageAnswer(serializers.Serializer):
    """A region's lakeFS or store that does not answer, or the replication of objects into it that has stopped, and the
    mirrors that wait for it. `source_region`: from where nothing arrives; null for lakeFS and store."""

    region = serializers.CharField()
    source_region = text_or_null()
    service = serializers.ChoiceField([*(service.value for service in Service), REPLICATION])
    status = serializers.ChoiceField([*(kind.value for kind in OutageKind), "stopped"])
    since = serializers.DateTimeField()
    reason = serializers.CharField()
    problem = serializers.CharField(allow_blank=True, help_text="the result of the last call")
    mirrors = many_texts()


class NeedingExportAnswer(serializers.Serializer):
    """An export that needs somebody."""

    repository = serializers.CharField()
    branch = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    region = serializers.CharField()
    status = serializers.CharField()
    reason = serializers.CharField()


class ExportsAnswer(serializers.Serializer):
    """How all exports are doing that the caller may see, and those that need somebody."""

    total = serializers.IntegerField()
    reason = serializers.CharField()
    needs_attention = NeedingExportAnswer(many=True)
    needs_attention_total = serializers.IntegerField()


class NeedingRuleAnswer(serializers.Serializer):
    """A replication rule that needs somebody."""

    name = serializers.CharField()
    status = serializers.CharField()
    reason = serializers.CharField()


class RulesAnswer(serializers.Serializer):
    """How all replication rules are doing that the caller may read, and those that need somebody."""

    total = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    needs_attention = NeedingRuleAnswer(many=True)
    needs_attention_total = serializers.IntegerField()


class PairAnswer(serializers.Serializer):
    """The mirrors from one region in another: the worst lag among them, and whether one needs somebody."""

    source_region = serializers.CharField()
    region = serializers.CharField()
    mirrors = serializers.IntegerField()
    worst_lag_seconds = number_or_null()
    needs_attention = serializers.BooleanField()


class HappeningAnswer(serializers.Serializer):
    """One thing that happened, in words."""

    at = serializers.DateTimeField()
    message = serializers.CharField()
    failed = serializers.BooleanField()


class OverviewAnswer(serializers.Serializer):
    """How all mirrors are doing. `reason`: that in one sentence; null without mirrors."""

    as_of = serializers.DateTimeField()
    reason = text_or_null()
    tiles = TilesAnswer()
    outages = OutageAnswer(many=True)
    needs_attention = NeedingAnswer(many=True)
    needs_attention_total = serializers.IntegerField()
    exports = ExportsAnswer()
    rules = RulesAnswer()
    troubles = many_texts()
    matrix = PairAnswer(many=True)
    latest = HappeningAnswer(many=True)


class Overview(APIView):
    """The first page as JSON."""

    tag = "overview"

    @answers("Get the overview", 200, OverviewAnswer)
    def get(self, request: Request) -> Response:
        """Figures, what needs somebody, the worst lag between regions, what happened last. Needs
        fs:ListRepositories on `*`, or fs:ReadRepository on single mirrors."""
        require_sight(request.user)
        now, visible = clock.now(), Mirror.objects.visible_to(request.user)
        user, readings = request.user, fleet_statuses(visible, now)
        queues = queues_seen_by(user, visible, now)
        workers = workers_seen_by(user, visible, queues, now)
        causes, silent = outages_seen_by(user, readings, now), troubles(queues)
        differing = disagreements_seen_by(user)
        urgent, exports = needing_by_themselves(readings, causes), exports_summary.summary(user, now, NEEDING)
        rules = rules_summary.summary(user, now, NEEDING)
        others = exports.needing + exports.unsettled + rules.needing + rules.unsettled
        told = tell(readings, causes, silent, differing, others_need=others)
        return Response(
            {
                "as_of": rfc3339(min((reading.as_of for reading in readings), default=now)),
                "reason": str(told) if readings else None,
                "tiles": _tiles(readings, queues, oldest_unchecked(visible)) | _workers_json(workers),
                "outages": [_outage_json(cause) for cause in causes],
                "needs_attention": [_needing_json(reading) for reading in urgent[:NEEDING]],
                "needs_attention_total": len(urgent),
                "exports": _exports_json(exports),
                "rules": _rules_json(rules),
                "troubles": [*silent, *differing],
                "matrix": _matrix_json(readings),
                "latest": [_happening_json(event) for event in latest(visible, now, user)],
            }
        )


def _tiles(readings: Sequence[MirrorStatus], queues: Sequence[QueueReading], oldest: datetime | None) -> dict[str, Any]:
    since = [reading.waiting_since for reading in readings if reading.waiting_since]
    return {
        "mirrors": len(readings),
        "within_target": sum(is_within(reading) for reading in readings),
        "worst_lag_seconds": _rounded(worst_lag([reading.lag for reading in readings])),
        "waiting": sum(reading.waiting for reading in readings),
        "waiting_at_least": any("+" in reading.waiting_words for reading in readings),
        "waiting_since": rfc3339(min(since, default=None)),
        "queues": len(queues),
        "queues_heard": sum(queue.heard for queue in queues),
        "messages": sum(queue.messages for queue in queues),
        "oldest_unchecked_seen_at": rfc3339(oldest),
    }


def _workers_json(workers: Sequence[WorkerReading]) -> dict[str, Any]:
    lost = sum(worker.lost for worker in workers)
    return {
        "workers_alive": len(workers) - lost,
        "workers_lost": lost,
        "spark_reached": spark_reached(workers),
    }


def _rules_json(summary: rules_summary.Summary) -> dict[str, Any]:
    return {
        "total": summary.total,
        "reason": str(summary.phrase),
        "needs_attention": [
            {"name": one.rule.name, "status": one.told.state.value, "reason": str(one.told.sentence)}
            for one in summary.some
        ],
        "needs_attention_total": summary.needing,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _needing_json(reading: MirrorStatus) -> dict[str, Any]:
    mirror = reading.mirror
    return {
        "mirror": mirror.name,
        "source_repository": mirror.source.name,
        "source_region": mirror.source.region,
        "region": mirror.region,
        "status": reading.state.word,
        "reason_code": reading.reason_code,
        "reason": reading.sentence,
        "lag_seconds": _rounded(reading.lag),
        "as_of": rfc3339(reading.as_of),
    }


def _outage_json(cause: RootCause) -> dict[str, Any]:
    return {
        "region": cause.region,
        "source_region": cause.source_region or None,
        "service": cause.service,
        "status": cause.status,
        "since": rfc3339(cause.since),
        "reason": str(cause.phrase),
        "problem": cause.problem,
        "mirrors": list(cause.mirrors),
    }


def _exports_json(summary: Summary) -> dict[str, Any]:
    return {
        "total": summary.total,
        "reason": str(summary.phrase),
        "needs_attention": [
            {
                "repository": need.export.repository,
                "branch": need.export.branch,
                "name": need.export.name,
                "region": need.export.region,
                "status": need.told.state.value,
                "reason": str(need.told.sentence),
            }
            for need in summary.some
        ],
        "needs_attention_total": summary.needing,
    }


def _matrix_json(readings: Sequence[MirrorStatus]) -> list[dict[str, Any]]:
    return [
        {
            "source_region": origin,
            "region": region,
            "mirrors": pair.number,
            "worst_lag_seconds": _rounded(pair.lag),
            "needs_attention": pair.bad,
        }
        for origin, pairs in matrix(readings).rows
        for region, pair in pairs
        if pair is not None
    ]


def _happening_json(event: Happening) -> dict[str, Any]:
    return {"at": rfc3339(event.at), "message": str(event.phrase), "failed": event.bad}
