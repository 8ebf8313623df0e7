"""A rule that was deleted, or a link that was removed, goes with its rows, so many at a time; what it has copied stays
where it is."""

from __future__ import annotations

import time
from collections.abc import Iterable

from django.db.models import QuerySet

from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from replication.engine.round import seconds_of_writes
from replication.models import (
    Arrived,
    Link,
    OpenObject,
    Pass,
    PassRows,
    PassStretch,
    Rule,
    Shard,
    ShardManifest,
    Touched,
)
from replication.transitions import duties, ledger

BATCH = 5000
SLICE_SECONDS = 10.0


def advance(rule: Rule, lease: Lease) -> DutyOutcome:
    """Remove some of it, and in the end the rule itself with its duties; nothing while somebody may write, who may have
    begun before he could know."""
    began = time.monotonic()
    while time.monotonic() - began < SLICE_SECONDS:
        with lease.transaction():
            links = list(rule.links.select_for_update().order_by("pk"))
            waiting = max((seconds_of_writes(link) for link in links), default=0.0)
            if waiting > 0:
                return DutyOutcome("waiting for its last writes", min(waiting, 5.0))
            rows = (
                OpenObject.objects.filter(link__in=links),
                Arrived.objects.filter(link__in=links),
                ShardManifest.objects.filter(link__in=links),
                Touched.objects.filter(rule=rule.pk),
                Shard.objects.filter(rule=rule.pk),
                PassRows.objects.filter(of__rule=rule.pk),
                PassStretch.objects.filter(of__rule=rule.pk),
                Pass.objects.filter(rule=rule.pk),
            )
            if not _remove_some(rows):
                for link in links:
                    duties.end_link(link.pk)
                rule.delete()
                Duty.objects.filter(pk=lease.duty.pk).delete()
                return DutyOutcome("deleted")
    return DutyOutcome("being deleted", 0.0)


def advance_link(link: Link, lease: Lease) -> DutyOutcome:
    """The same of one link: its number is never given again, its place is free once the link is gone."""
    began = time.monotonic()
    while time.monotonic() - began < SLICE_SECONDS:
        with lease.transaction():
            held = ledger.hold(link.pk)
            waiting = seconds_of_writes(held) if held is not None else 0.0
            if waiting > 0:
                return DutyOutcome("waiting for its last writes", min(waiting, 5.0))
            passes = Pass.objects.filter(link=link.pk)
            of_passes = (kind.objects.filter(of__link=link.pk) for kind in (PassRows, PassStretch))
            own = (kind.objects.filter(link=link.pk) for kind in (OpenObject, Arrived, ShardManifest))
            if not _remove_some([*own, *of_passes, passes]):
                Link.objects.filter(pk=link.pk).delete()
                Duty.objects.filter(pk=lease.duty.pk).delete()
                return DutyOutcome("removed")
    return DutyOutcome("being removed", 0.0)


def _remove_some(kinds: Iterable[QuerySet]) -> bool:
    """Whether there was anything left."""
    for rows in kinds:
        pks = list(rows.order_by().values_list("pk", flat=True)[:BATCH])
        if pks:
            rows.model.objects.filter(pk__in=pks)._raw_delete(rows.db)
            return True
    return False
