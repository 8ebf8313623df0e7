"""A rule that was deleted goes with its rows, so many at a time; what it has copied stays where it is."""

from __future__ import annotations

import time

from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from replication.engine.round import seconds_of_writes
from replication.models import OpenObject, Rule, Shard, Touched
from replication.transitions import duties

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
            if not _remove_some(rule, [link.pk for link in links]):
                for link in links:
                    duties.end_link(link.pk)
                rule.delete()
                Duty.objects.filter(pk=lease.duty.pk).delete()
                return DutyOutcome("deleted")
    return DutyOutcome("being deleted", 0.0)


def _remove_some(rule: Rule, link_ids: list[int]) -> bool:
    """Whether there was anything left."""
    for rows in (
        OpenObject.objects.filter(link__in=link_ids),
        Touched.objects.filter(rule=rule.pk),
        Shard.objects.filter(rule=rule.pk),
    ):
        pks = list(rows.order_by().values_list("pk", flat=True)[:BATCH])
        if pks:
            rows.model.objects.filter(pk__in=pks)._raw_delete(rows.db)
            return True
    return False
