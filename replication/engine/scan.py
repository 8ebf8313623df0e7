"""The duty of a rule: keys that somebody named, then a piece of the look through the whole source.

A look through all stretches is a cycle. A stretch is read a page of the source at a time, side by side with what the
targets list; what was seen and where the look goes on are written in one transaction. So whoever is killed leaves at
most one page to be read again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db.models import F, Q, Sum

from core.errors import LakeMirrorError
from core.replicating.merging import Window, windows
from core.text.phrases import count
from db import clock
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from replication.engine import looking, removal, touched
from replication.engine.looking import Looker
from replication.models import Rule, Shard
from replication.transitions import duties, ledger, shards

SLICE_SECONDS = 20.0
"""So long one rule is looked at; then others have their turn."""


def advance(lease: Lease) -> DutyOutcome:
    """One round for one rule."""
    rule = Rule.objects.filter(pk=-lease.duty.subject).first()
    if rule is None:
        Duty.objects.filter(pk=lease.duty.pk).delete()
        return DutyOutcome("deleted")
    if rule.deleting:
        return removal.advance(rule, lease)
    if rule.paused:
        return DutyOutcome("paused")
    with lease.keep_alive():
        return _look(rule, lease)


def _look(rule: Rule, lease: Lease) -> DutyOutcome:
    looker = None
    try:
        looker = Looker(rule, list(rule.links.all()))
        piece = Piece(rule, lease, looker)
        touched.look(piece.rule, looker, lease, lambda: piece.over)
        _begin_cycle(rule, lease)
        piece.carry()
    except LakeMirrorError as error:
        _note_error(rule, str(error))
        raise
    finally:
        if looker is not None:
            looker.close()
    _note_error(rule, "")
    return _told(rule, piece)


def _note_error(rule: Rule, error: str) -> None:
    """Why the source can't be listed, and since when; "" once it can."""
    if error == rule.error:
        return
    since = None if not error else (rule.error_since or clock.now())
    Rule.objects.filter(pk=rule.pk).update(error=error, error_since=since)


# --- cycles -----------------------------------------------------------------------------------------------------------


def cycle_due_at(rule: Rule) -> datetime | None:
    """When the next look through the whole place begins, if none goes on; None: at once, as after one of a clock that
    was ahead."""
    if rule.full_began_at is None or rule.full_began_at > clock.now() or rule.scan_wanted:
        return None
    return rule.full_began_at + timedelta(seconds=rule.scan_every)


def _begin_cycle(rule: Rule, lease: Lease) -> None:
    now, due_at = clock.now(), cycle_due_at(rule)
    if rule.cycle_began_at is not None:
        if rule.cycle_began_at <= now:
            return
    elif due_at is not None and due_at > now:
        return
    with lease.transaction():
        values = {"cycle_began_at": now, "cycle_objects": 0, "cycle_bytes": 0, "scan_wanted": False}
        ledger.hold_all(rule.pk)
        rule.links.update(uncompared=False)
        Rule.objects.filter(pk=rule.pk).update(**values)
        rule.refresh_from_db()  # what somebody has changed since is what it looks for
        shards.look_at_all(rule.pk, now)


def _end_cycle(rule: Rule, lease: Lease) -> bool:
    """Whether every stretch has been looked through since the cycle began: then it is over."""
    if rule.cycle_began_at is None:
        return False
    left = Q(ended_at=None) | Q(began_at__lt=rule.cycle_began_at) | Q(after__isnull=False)
    if Shard.objects.filter(left, rule=rule.pk).exists():
        return False
    sums = Shard.objects.filter(rule=rule.pk).aggregate(objects=Sum("objects_last"), bytes=Sum("bytes_last"))
    now = clock.now()
    with lease.transaction():
        ledger.hold_all(rule.pk)
        rule.links.filter(uncompared=False).update(compared_at=now, overflowed=False)
        Rule.objects.filter(pk=rule.pk).update(
            cycle=F("cycle") + 1,
            cycle_began_at=None,
            full_began_at=rule.cycle_began_at,
            full_ended_at=now,
            full_objects=sums["objects"] or 0,
            full_bytes=sums["bytes"] or 0,
        )
    return True


# --- a piece of it ----------------------------------------------------------------------------------------------------


@dataclass
class Piece:
    """What one round looks through."""

    rule: Rule
    lease: Lease
    looker: Looker
    seconds: float = SLICE_SECONDS
    seen: int = 0
    noted: int = 0

    def __post_init__(self) -> None:
        self._began = time.monotonic()

    @property
    def over(self) -> bool:
        """Is the time up?"""
        return time.monotonic() - self._began >= self.seconds

    def carry(self) -> None:
        """Look through what is due, stretch by stretch, until the time is up. Raises what the source answers."""
        while not self.over and not _is_stopped(self.rule):
            shard = Shard.objects.filter(rule=self.rule.pk).due(clock.now()).first()
            if shard is None:
                return
            self._look_through(shard)

    def _look_through(self, shard: Shard) -> None:
        began = self._begin(shard)
        low = bytes(shard.after if shard.after is not None else shard.low).decode()
        high = None if shard.high is None else bytes(shard.high).decode()
        dated = not (self.rule.existing and self.rule.new)
        source = partial(self.looker.source.listing, dated=dated)
        targets = {pk: place.listing for pk, place in self.looker.places.items()}
        for window in windows(source, targets, low, high, self.looker.pool.map):
            ended = self._note(shard, window, began)
            if ended or self.over or _is_stopped(self.rule):
                return

    def _begin(self, shard: Shard) -> datetime:
        """When the look through a stretch began: now, unless it goes on."""
        now = clock.now()
        if shard.after is not None and shard.began_at is not None and shard.began_at <= now:
            return shard.began_at
        with self.lease.transaction():
            Shard.objects.filter(pk=shard.pk).update(
                after=bytes(shard.low), began_at=now, objects_seen=0, bytes_seen=0, missed=False
            )
        shard.after, shard.began_at, shard.objects_seen, shard.bytes_seen = bytes(shard.low), now, 0, 0
        return now

    def _note(self, shard: Shard, window: Window, began: datetime) -> bool:
        """Write down what a window has shown; whether the stretch ends with it."""
        lacks = self.looker.lacking(window)
        items = [item for item in window.items if self.looker.wants(item)]
        size = sum(item.size for item in items)
        shard.objects_seen, shard.bytes_seen = shard.objects_seen + len(items), shard.bytes_seen + size
        cuts = not window.end and shard.objects_seen >= shards.SPLIT_AT
        with self.lease.transaction():
            noted = looking.note(self.rule, lacks)
            looking.note_unlisted(window.failed, window.there)
            if unread := self.looker.unasked | window.failed.keys():
                Shard.objects.filter(pk=shard.pk).update(missed=True, dirty=True)
                self.rule.links.filter(pk__in=unread).update(uncompared=True)
            if cuts:
                shards.cut(shard, window.last.encode(), clock.now())
            if window.end or cuts:
                self._end(shard, began)
            else:
                Shard.objects.filter(pk=shard.pk).update(
                    after=window.last.encode(), objects_seen=shard.objects_seen, bytes_seen=shard.bytes_seen
                )
            counted = {"cycle_objects": F("cycle_objects") + len(items), "cycle_bytes": F("cycle_bytes") + size}
            Rule.objects.filter(pk=self.rule.pk, cycle_began_at__isnull=False).update(**counted)
            duties.wake_links(noted)
        self.seen += len(items)
        self.noted += sum(map(len, lacks.values()))
        return window.end or cuts

    def _end(self, shard: Shard, began: datetime) -> None:
        now = clock.now()
        cycle = self.rule.cycle_began_at
        again = cycle is not None and began < cycle
        due_at = now if again else now + timedelta(seconds=self.rule.scan_every)
        shards.ended(shard, objects=shard.objects_seen, size=shard.bytes_seen, began=began, now=now, due_at=due_at)


def _is_stopped(rule: Rule) -> bool:
    return not Rule.objects.filter(pk=rule.pk, paused=False, deleting=False).exists()


def _told(rule: Rule, piece: Piece) -> DutyOutcome:
    rule.refresh_from_db()
    if _end_cycle(rule, piece.lease):
        rule.refresh_from_db()
    summary = f"{count(piece.seen, 'object')} seen, {piece.noted:,} to copy"
    due = [cycle_due_at(rule)] if rule.cycle_began_at is None else []
    due += Shard.objects.filter(rule=rule.pk).order_by("due_at").values_list("due_at", flat=True)[:1]
    if rule.touched.exists() or None in due:
        return DutyOutcome(summary, 0.0)
    first = min(at for at in due if at is not None)
    return DutyOutcome(summary, max(0.0, (first - clock.now()).total_seconds()))
