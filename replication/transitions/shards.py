"""Stretches of a rule's keys: the first one, those that are cut off it or joined, and which have to be looked through
again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import F

from db.chunks import chunks
from replication.models import Rule, Shard, ShardManifest
from replication.transitions import manifests

SPLIT_AT = 250_000
"""A stretch of more keys is cut there."""
JOIN_BELOW = 50_000
"""One of fewer is joined with its neighbour, as long as both together are far from being cut again."""
JOINED_AT_MOST = 200_000
PARTS = 16
"""A place of more stretches than that is large: so many turns a look through all of it takes."""


def begin(rule: Rule, now: datetime) -> None:
    """A rule that has just been made has one stretch, of all keys, due at once. Inside of its transaction."""
    Shard.objects.create(rule=rule, low=b"", high=None, due_at=now)


def cut(shard: Shard, at: bytes, now: datetime) -> None:
    """End a stretch at this key; the rest is one of its own, due at once. Inside of a transaction."""
    marks = [mark for mark in shard.marks if mark.encode() > at]
    rest = Shard(rule_id=shard.rule_id, low=at, high=shard.high, due_at=now, dirty=shard.dirty, marks=marks)
    Shard.objects.filter(pk=shard.pk).update(high=at)
    shard.high = at
    rest.save()
    manifests.cut(shard, rest)


def mark_dirty(rule_id: int, keys: Iterable[bytes]) -> None:
    """Something lacks at these keys that is no row: whatever look goes on there, another one is needed."""
    lows = [(bytes(low), pk) for low, pk in Shard.objects.filter(rule=rule_id).order_by("low").values_list("low", "pk")]
    names = [low for low, _ in lows]
    found = {lows[max(0, bisect_left(names, key) - 1)][1] for key in keys} if lows else set()
    Shard.objects.filter(pk__in=found).update(dirty=True, missed=True)


def look_at_dirty_ones(rule_id: int, now: datetime) -> int:
    """What could not be noted may be now: its stretches are due. Gives how many there are."""
    hasten_dirty(rule_id, now)
    return Shard.objects.filter(rule=rule_id, dirty=True).count()


def hasten_dirty(rule_id: int, at: datetime) -> bool:
    """Stretches where something lacks that is no row are looked through then, at the latest; whether any was due
    later."""
    return bool(Shard.objects.filter(rule=rule_id, dirty=True, due_at__gt=at).update(due_at=at))


def look_at_all(rule_id: int, now: datetime) -> None:
    """Every stretch is due, those that are being looked through as soon as that has ended; none has been looked through
    by now, whatever clock its last look went by."""
    Shard.objects.filter(rule=rule_id).update(ended_at=None)
    Shard.objects.filter(rule=rule_id, due_at__gt=now).update(due_at=now)


def are_many(rule_id: int) -> bool:
    """Whether the rule's place is large."""
    return Shard.objects.filter(rule=rule_id).count() > PARTS


def look_at_all_by_turns(rule_id: int, now: datetime, every: timedelta) -> None:
    """As `look_at_all`, one part of the stretches after the other; first those of which something is known to lack."""
    ordered = Shard.objects.filter(rule=rule_id).order_by("-dirty", "low").values_list("pk", flat=True)
    pks = list(ordered)
    Shard.objects.filter(rule=rule_id).update(ended_at=None)
    for part in range(PARTS):
        turn = pks[len(pks) * part // PARTS : len(pks) * (part + 1) // PARTS]
        for some in chunks(turn):
            Shard.objects.filter(pk__in=some).update(due_at=now + part * every)


def rest(rule_id: int, until: datetime) -> None:
    """Stretches where nothing is known to lack are not looked through again before the next look through all."""
    Shard.objects.filter(rule=rule_id, dirty=False, due_at__lt=until).update(due_at=until)


def join(rule_id: int) -> int:
    """Join stretches of few keys with the next one, none of which is being looked through; gives how many went. Inside
    of a transaction. Those of which a manifest lists what is a link's own stay as they are."""
    if ShardManifest.objects.filter(shard__rule=rule_id).exclude(file="", writing="").exists():
        return 0
    gone, last = 0, None
    for shard in Shard.objects.filter(rule=rule_id).order_by("low"):
        if last is not None and _may_join(last, shard):
            _append(last, shard)
            gone += 1
        else:
            last = shard
    return gone


def _may_join(one: Shard, following: Shard) -> bool:
    idle = all(shard.after is None and shard.ended_at is not None for shard in (one, following))
    small = min(one.objects_last, following.objects_last) < JOIN_BELOW
    return idle and small and one.objects_last + following.objects_last <= JOINED_AT_MOST


def _append(one: Shard, following: Shard) -> None:
    one.marks = [*one.marks, bytes(following.low).decode(), *following.marks]
    one.high = following.high
    one.dirty, one.missed = one.dirty or following.dirty, one.missed or following.missed
    one.due_at = min(one.due_at, following.due_at)
    one.objects_last += following.objects_last
    one.bytes_last += following.bytes_last
    following.delete()
    one.save(update_fields=["marks", "high", "dirty", "missed", "due_at", "objects_last", "bytes_last"])


def ended(
    shard: Shard,
    *,
    objects: int,
    size: int,
    began: datetime,
    now: datetime,
    due_at: datetime,
    marks: Sequence[str] = (),
) -> None:
    """A look through a stretch came to its end. It is dirty if something could not be noted since it began."""
    Shard.objects.filter(pk=shard.pk).update(
        marks=list(marks),
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
