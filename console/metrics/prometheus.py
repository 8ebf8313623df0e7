"""Figures for Prometheus, read from the database at each scrape: the number of queries doesn't grow with what there is.

What nobody knows has no sample. No commit is explained here, as the pages do it: that would take too long for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Max, Min, Q
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from console import exports_summary
from console.jobs.listing import duties_of, others_of
from console.metrics import alerts, audit, holds, rules, sweeps
from core.bringing import ObjectReplication
from core.mirroring.rpo import lag
from db import clock
from installations import contact
from jobs.models import Duty
from jobs.querysets import DutyQuerySet
from mirrors.models import Mirror, MirrorDuty
from mirrors.queries.branch_positions import branch_lags
from mirrors.queries.missing_counts import waiting_at
from mirrors.services.rights import require_sight, sees_every_mirror
from mirrors.status.outages import unreached
from mirrors.transitions.rpo_breaches import is_seen, unchecked_since
from web.prometheus import CONTENT_TYPE, Gauge, labelled

MIRROR = ("mirror", "region", "source", "source_region")
BRANCH = ("mirror", "branch")
STATES = ("creating", "active", "stopped", "frozen")


class Metrics(APIView):
    """All figures. By the access key of somebody who may list repositories, as the API."""

    def get(self, request: Request) -> HttpResponse:
        """Prometheus's text form: of what the user may see. Needs fs:ListRepositories on `*`, or fs:ReadRepository on
        single mirrors."""
        require_sight(request.user)
        return HttpResponse("".join(gauge.text() for gauge in gauges(request.user)), content_type=CONTENT_TYPE)


def gauges(user: Any) -> Iterator[Gauge]:
    """What the tables tell at this moment: of mirrors, branches, duties, outages, exports, rules, alerts and the audit.
    For who may see some mirrors only, of these and what is theirs; then nothing of the audit."""
    now, visible, all_seen = clock.now(), Mirror.objects.visible_to(user), sees_every_mirror(user)
    mirrors = list(visible.select_related("source").order_by("name"))
    duties = Duty.objects.all() if all_seen else duties_of(visible, others_of(user))
    regions = None if all_seen else {region for one in mirrors for region in (one.region, one.source.region)}
    yield from _of_mirrors(mirrors)
    yield from _of_branches(mirrors, now)
    yield from holds.gauges(mirrors)
    yield from sweeps.gauges(mirrors, now)
    yield from _of_duties(duties, now)
    yield _of_outages(regions, now)
    yield from exports_summary.gauges(user, now)
    yield from rules.gauges(user, now)
    yield alerts.open_alerts(user, now)
    if all_seen:
        yield from audit.gauges()


def _of_mirrors(mirrors: Sequence[Mirror]) -> Iterator[Gauge]:
    paused = Gauge("mirror_paused", "1 while the mirror is paused")
    state = Gauge("mirror_state", "1 for the state that the mirror is in, 0 for the others")
    blocked = Gauge("mirror_blocked_things", "records, metaranges, ranges and objects that are waited for")
    success = Gauge("mirror_last_success_timestamp_seconds", "when the last round of promotion succeeded")
    copied = Gauge("mirror_copied_objects_total", "objects that LakeMirror has copied for the mirror")
    copied_bytes = Gauge("mirror_copied_bytes_total", "bytes of the objects that LakeMirror has copied for the mirror")
    waiting = waiting_at(mirrors)
    rounds = dict(Duty.objects.filter(kind=MirrorDuty.PROMOTE).values_list("subject", "succeeded_at"))
    for mirror in mirrors:
        names = (mirror.name, mirror.region, mirror.source.name, mirror.source.region)
        labels = labelled(MIRROR, names)
        paused.add(labels, mirror.paused)
        if mirror.copied or mirror.object_replication == ObjectReplication.MANAGED:
            copied.add(labels, mirror.copied)
            copied_bytes.add(labels, mirror.copied_bytes)
        blocked.add(labels, waiting[mirror.pk].number if mirror.pk in waiting else 0)
        now = "frozen" if mirror.source.frozen_reason else mirror.state
        for value in STATES:
            state.add(labelled((*MIRROR, "state"), (*names, value)), value == now)
        if succeeded := rounds.get(mirror.pk):
            success.add(labels, succeeded.timestamp())
    yield from (paused, state, blocked, success, copied, copied_bytes)


def _of_branches(mirrors: Sequence[Mirror], now: datetime) -> Iterator[Gauge]:
    late = Gauge("branch_lag_seconds", "age of the oldest commit that the mirror's branch has not reached")
    pending = Gauge("branch_pending_commits", "commits that the mirror's branch has not reached")
    success = Gauge("branch_last_success_timestamp_seconds", "when the mirror's branch was last moved")
    names = {mirror.pk: mirror.name for mirror in mirrors}
    known = {mirror.pk for mirror in mirrors if is_seen(mirror, now)} - unchecked_since(mirrors, now).keys()
    known -= unreached(mirrors, now)
    for branch_lag in branch_lags(mirrors):
        labels, first = labelled(BRANCH, (names[branch_lag.mirror], branch_lag.branch)), branch_lag.first
        pending.add(labels, first.number if first else 0)
        if first or (branch_lag.proven and branch_lag.mirror in known):
            late.add(labels, lag(first.seen_at, now) if first else 0)
        if branch_lag.advanced_at:
            success.add(labels, branch_lag.advanced_at.timestamp())
    yield from (late, pending, success)


def _of_duties(duties: DutyQuerySet, now: datetime) -> Iterator[Gauge]:
    age = Gauge("duty_last_success_age_seconds", "since the oldest last success of a duty of this kind")
    failures = Gauge("duty_failures_in_a_row", "of the duty of this kind that fails the most")
    overdue = Gauge("duty_overdue_seconds", "how long the most overdue task has waited to run")
    free = Q(until=None) | Q(until__lt=now)
    rows = (
        duties.order_by()
        .values("kind")
        .annotate(oldest=Min("succeeded_at"), most=Max("failures"), due=Min("due_at", filter=free))
    )
    for row in rows:
        labels = labelled(("kind",), (row["kind"],))
        failures.add(labels, row["most"])
        overdue.add(labels, lag(row["due"], now))
        if row["oldest"]:
            age.add(labels, lag(row["oldest"], now))
    yield from (age, failures, overdue)


def _of_outages(regions: set[str] | None, now: datetime) -> Gauge:
    """Of these regions; None for all."""
    failing = Gauge(
        "outage_seconds", "how long a region's lakeFS or store has not answered or has refused the access key"
    )
    for outage in contact.outages(now):
        if regions is not None and outage.region not in regions:
            continue
        labels = labelled(("region", "service", "status"), (outage.region, outage.service, outage.kind))
        failing.add(labels, lag(outage.since, now))
    return failing
