"""Stretches of a rule's keys: the first one, those that are cut off it, and which have to be looked through again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime

from django.db.models import F

from replication.models import Rule, Shard

SPLIT_AT = 250_000
"""A stretch of more keys is cut there."""


def begin(rule: Rule, now: datetime) -> None:
    """A rule that has just been made has one stretch, of all keys, due at once. Inside of its transaction."""
    Shard.objects.create(rule=rule, low=b"", high=None, due_at=now)


def cut(shard: Shard, at: bytes, now: datetime) -> None:
    """End a stretch at this key; the rest is one of its own, due at once. Inside of a transaction."""
    rest = Shard(rule_id=shard.rule_id, low=at, high=shard.high, due_at=now, dirty=shard.dirty)
    Shard.objects.filter(pk=shard.pk).update(high=at)
    shard.high = at
    rest.save()


def mark_dirty(rule_id: int, keys: Iterable[bytes]) -> None:
    """Something lacks at these keys that is no row: whatever look goes on there, another one is needed."""
    lows = [(bytes(low), pk) for low, pk in Shard.objects.filter(rule=rule_id).order_by("low").values_list("low", "pk")]
    names = [low for low, _ in lows]
    found = {lows[max(0, bisect_left(names, key) - 1)][1] for key in keys} if lows else set()
    Shard.objects.filter(pk__in=found).update(dirty=True, missed=True)


def look_at_dirty_ones(rule_id: int, now: datetime) -> int:
    """What could not be noted may be now: its stretches are due. Gives how many there are."""
    dirty = Shard.objects.filter(rule=rule_id, dirty=True)
    dirty.filter(due_at__gt=now).update(due_at=now)
    return dirty.count()


def look_at_all(rule_id: int, now: datetime) -> None:
    """Every stretch is due, those that are being looked through as soon as that has ended; none has been looked through
    by now, whatever clock its last look went by."""
    Shard.objects.filter(rule=rule_id).update(ended_at=None)
    Shard.objects.filter(rule=rule_id, due_at__gt=now).update(due_at=now)


def ended(shard: Shard, *, objects: int, size: int, began: datetime, now: datetime, due_at: datetime) -> None:
    """A look through a stretch came to its end. It is dirty if something could not be noted since it began."""
    Shard.objects.filter(pk=shard.pk).update(
        after=None,
        dirty=F("missed"),
        missed=False,
        due_at=due_at,
        objects_seen=0,
        bytes_seen=0,
        objects_last=objects,
        bytes_last=size,
        began_at=began,
        ended_at=now,
    )
