"""Figures for Prometheus, read from the database at each scrape: the number of queries doesn't grow with what there is.

What nobody knows has no sample. No commit is explained here, as the pages do it: that would take too long for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Max, Min, Q
from django.http import HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from rest_framework.request import Request
from rest_framework.views import APIView

from core.lag import is_stale, lag
from mirrors import clock
from mirrors.gathering import Pending, Place, stand
from mirrors.lacking import waiting_at
from mirrors.models import Duty, Mirror
from mirrors.readings import targets
from rbac import services as rbac

MIRROR = ("mirror", "region", "source", "source_region")
BRANCH = ("mirror", "branch")
STATES = ("creating", "active", "stopped", "frozen")


class Metrics(APIView):
    """All figures. By the access key of somebody who may list repositories, as the API."""

    def get(self, request: Request) -> HttpResponse:
        """Prometheus's text form. Needs fs:ListRepositories on `*`."""
        rbac.require(request.user, ("fs:ListRepositories", "*"))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(FromDatabase())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class FromDatabase(Collector):
    """What the tables tell at this moment."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Mirrors, their branches, then the duties."""
        now = clock.now()
        mirrors = list(Mirror.objects.live().select_related("source").order_by("name"))
        places = stand(mirrors)
        yield from _of_mirrors(mirrors)
        yield from _of_branches({mirror.pk: mirror for mirror in mirrors}, places, now)
        yield from _of_duties(now)


def _gauge(name: str, told: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"lakemirror_{name}", told, labels=labels)


def _of_mirrors(mirrors: list[Mirror]) -> Iterator[GaugeMetricFamily]:
    paused = _gauge("mirror_paused", "1 while nothing of the mirror is moved because somebody paused it", MIRROR)
    state = _gauge("mirror_state", "1 for the state that the mirror is in, 0 for the others", (*MIRROR, "state"))
    blocked = _gauge("mirror_blocked_things", "records, metaranges, ranges and objects that are waited for", MIRROR)
    success = _gauge("mirror_last_success_timestamp_seconds", "when the last round of promotion succeeded", MIRROR)
    waiting = waiting_at(mirrors)
    rounds = dict(Duty.objects.filter(kind=Duty.Kind.PROMOTE).values_list("subject", "succeeded_at"))
    for mirror in mirrors:
        labels = [mirror.name, mirror.region, mirror.source.name, mirror.source.region]
        paused.add_metric(labels, mirror.paused)
        blocked.add_metric(labels, waiting[mirror.pk].number if mirror.pk in waiting else 0)
        now = "frozen" if mirror.source.frozen_reason else mirror.state
        for one in STATES:
            state.add_metric([*labels, one], one == now)
        if succeeded := rounds.get(mirror.pk):
            success.add_metric(labels, succeeded.timestamp())
    yield from (paused, state, blocked, success)


def _of_branches(
    mirrors: dict[int, Mirror], places: list[tuple[Place, Pending | None]], now: datetime
) -> Iterator[GaugeMetricFamily]:
    late = _gauge("branch_lag_seconds", "age of the oldest commit that the mirror's branch has not reached", BRANCH)
    pending = _gauge("branch_pending_commits", "commits that the mirror's branch has not reached", BRANCH)
    success = _gauge("branch_last_success_timestamp_seconds", "when the mirror's branch was last moved", BRANCH)
    for place, first in places:
        labels = [mirrors[place.key[0]].name, place.key[1]]
        pending.add_metric(labels, first.number if first else 0)
        if first or (place.mirror and _is_known(mirrors[place.key[0]], now)):
            late.add_metric(labels, lag(first.seen_at if first else None, now))
        if place.mirror and place.mirror.advanced_at:
            success.add_metric(labels, place.mirror.advanced_at.timestamp())
    yield from (late, pending, success)


def _is_known(mirror: Mirror, now: datetime) -> bool:
    """Whether the source was looked at lately enough to say that nothing is new there."""
    looked_at = mirror.source.looked_at
    return looked_at is not None and not is_stale(looked_at, now, targets(mirror))


def _of_duties(now: datetime) -> Iterator[GaugeMetricFamily]:
    age = _gauge("duty_last_success_age_seconds", "since the oldest last success of a duty of this kind", ("kind",))
    failures = _gauge("duty_failures_in_a_row", "of the duty of this kind that fails the most", ("kind",))
    overdue = _gauge("duty_overdue_seconds", "how long the most overdue one has waited to be taken up", ("kind",))
    free = Q(until=None) | Q(until__lt=now)
    rows = (
        Duty.objects.order_by()
        .values("kind")
        .annotate(oldest=Min("succeeded_at"), most=Max("failures"), due=Min("due_at", filter=free))
    )
    for row in rows:
        failures.add_metric([row["kind"]], row["most"])
        overdue.add_metric([row["kind"]], lag(row["due"], now))
        if row["oldest"]:
            age.add_metric([row["kind"]], lag(row["oldest"], now))
    yield from (age, failures, overdue)
