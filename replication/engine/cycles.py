"""Looks through the whole place of a rule. One through a place of few stretches takes all of them at once; one through
a large place takes its time: a part of the stretches every `scan_every`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q, Sum

from core.replicating.states import Code
from db import clock
from jobs.lease import Lease
from replication.models import Link, Rule, Shard
from replication.transitions import deletions, duties, freezing, ledger, manifests, shards, tombstones


def due_at(rule: Rule) -> datetime | None:
    """When the next look through the whole place begins, if none goes on; None: at once, as after one of a clock that
    was ahead."""
    if _at_once(rule):
        return None
    assert rule.full_began_at is not None
    parts = shards.PARTS if shards.are_many(rule.pk) else 1
    return rule.full_began_at + timedelta(seconds=rule.scan_every * parts)


def _at_once(rule: Rule) -> bool:
    return rule.full_began_at is None or rule.full_began_at > clock.now() or rule.scan_wanted


def begin(rule: Rule, lease: Lease, links: Sequence[Link]) -> None:
    """Begin one if it is time. Somebody who wants one at once does not wait for one that takes its time. It compares
    these links, which are all of the rule's: one that comes later is `uncompared` until the next one begins."""
    now = clock.now()
    if rule.cycle_began_at is not None and rule.cycle_began_at <= now:
        if not (rule.spread and rule.scan_wanted):
            return
    elif rule.cycle_began_at is None and (at := due_at(rule)) is not None and at > now:
        return
    with lease.transaction():
        ledger.hold_all(rule.pk)
        if set(rule.links.kept().values_list("pk", flat=True)) != {link.pk for link in links}:
            return  # a target came or went since this round began: the next one begins at once
        rule.links.update(uncompared=False)
        deletions.begin_look(rule.pk)
        if rule.judges:
            deletions.doubt_clocks(rule.pk, now)
        shards.join(rule.pk)
        spread = not _at_once(rule) and shards.are_many(rule.pk)
        values = {"cycle_began_at": now, "cycle_objects": 0, "cycle_bytes": 0, "scan_wanted": False, "spread": spread}
        values["cycle_shown"] = 0
        Rule.objects.filter(pk=rule.pk).update(**values)
        rule.refresh_from_db()  # what somebody has changed since is what it looks for
        if spread:
            shards.look_at_all_by_turns(rule.pk, now, timedelta(seconds=rule.scan_every))
        else:
            shards.look_at_all(rule.pk, now)


def end(rule: Rule, lease: Lease) -> bool:
    """Whether every stretch has been looked through since the look began: then it is over."""
    if rule.cycle_began_at is None:
        return False
    left = Q(ended_at=None) | Q(began_at__lt=rule.cycle_began_at) | Q(after__isnull=False)
    if Shard.objects.filter(left, rule=rule.pk).exists():
        return False
    sums = Shard.objects.filter(rule=rule.pk).aggregate(objects=Sum("objects_last"), bytes=Sum("bytes_last"))
    now = clock.now()
    with lease.transaction():
        ledger.hold_all(rule.pk)
        links = compared(rule.pk)
        links.update(overflowed=False)
        # Where nobody knew what is the link's own, or could note it all, it is not known what is to be deleted.
        known = links.filter(unsure_deletes=False, unnoted_deletes=False) if rule.judges else links
        if not rule.scan_wanted:  # else this look may not have known what is theirs
            manifests.tell_foreign(rule.pk, list(known.values_list("pk", flat=True)) if rule.knows_own else ())
        emptied = rule.full_objects and not sums["objects"]
        if rule.judges and (emptied or (rule.full_shown and not rule.cycle_shown)):
            freezing.freeze(rule.pk, Code.SOURCE_EMPTY, freezing.EMPTY if emptied else freezing.HIDDEN, now)
        duties.wake_links(deletions.end_look(rule, now))
        known.update(compared_at=now)
        if rule.markers and rule.both_ways:
            tombstones.purge(now)
        Rule.objects.filter(pk=rule.pk).update(
            cycle=F("cycle") + 1,
            cycle_began_at=None,
            full_began_at=rule.cycle_began_at,
            full_ended_at=now,
            full_objects=sums["objects"] or 0,
            full_bytes=sums["bytes"] or 0,
            full_shown=F("cycle_shown"),
        )
        if shards.are_many(rule.pk):
            shards.rest(rule.pk, rule.cycle_began_at + timedelta(seconds=rule.scan_every * shards.PARTS))
    return True


def compared(rule_id: int) -> models.QuerySet[Link]:
    """The links that the look that ends has compared with all of the source: those that could be read everywhere, and
    where no stretch is left to be looked through again, those that were compared before, too: what could not be read
    of them has been looked at since. Not so where another look is wanted: the rule may copy more by now."""
    links = Link.objects.filter(rule=rule_id)
    again = Rule.objects.filter(pk=rule_id, scan_wanted=True)
    if again.exists() or Shard.objects.filter(rule=rule_id, dirty=True).exists():
        return links.filter(uncompared=False)
    return links.filter(Q(uncompared=False) | Q(compared_at__isnull=False))
