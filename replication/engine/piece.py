"""What one round looks through of a rule's place: stretches that are due, read by several threads, written down by one.

What was seen and where the look goes on are written in one transaction. So whoever is killed leaves at most some pages
to be read again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Exists, F, OuterRef

from db import clock
from jobs.lease import Lease
from replication.engine import looking
from replication.engine.deletes.following import Following
from replication.engine.deletes.version_following import VersionFollowing
from replication.models import Link, OpenObject, Rule, Shard
from replication.transitions import duties, ledger, shards
from replication.transitions.ledger import Lack
from spark_jobs.replicate.looking import Looker
from spark_jobs.replicate.reading import Judged, Reading, Span, SpanRead

SLICE_SECONDS = 20.0
"""So long one rule is looked at; then others have their turn."""
MARK_EVERY = 1000
"""A stretch is marked after so many keys, a long one, of more than MARKS such, after MARKED_WIDE: at most some seventy
times."""
MARKS = 16
MARKED_WIDE = 4000


@dataclass
class Piece:
    """What one round looks through, until a time of the clock that only goes on."""

    rule: Rule
    lease: Lease
    looker: Looker
    until: float
    seen: int = 0
    noted: int = 0
    _stopped: bool = False
    _begun: set[int] = field(default_factory=set)
    _spans: Iterator[Span] = field(default_factory=lambda: iter(()))
    _unmarked: int = 0

    def __post_init__(self) -> None:
        kind = VersionFollowing if self.rule.all_versions else Following
        self._following: Any = kind(self.rule, self.lease, self.looker)

    @property
    def over(self) -> bool:
        """Is the time up?"""
        return time.monotonic() >= self.until

    def carry(self) -> None:
        """Look through what is due, stretch by stretch, until the time is up. Raises what the source answers."""
        reading = Reading(self.looker, lambda: self._stopped or self.over)
        read: SpanRead | None = None
        try:
            for read in reading.in_order(self._next_span):
                if self._take(read):
                    reading.drop(read.span.shard)
                if read.error is not None or self.over or is_stopped(self.rule):
                    break
            self._following.leave(ended=False)
            if read is not None and read.error is not None:
                raise read.error
        finally:
            self._stopped = True
            reading.close()

    # --- which spans --------------------------------------------------------------------------------------------------

    def _next_span(self) -> Span | None:
        """The next one of the stretches that are due, one stretch after the other; None: there is none now."""
        if (span := next(self._spans, None)) is not None or self.over:
            return span
        due = Shard.objects.filter(rule=self.rule.pk).exclude(pk__in=self._begun).due(clock.now())
        if (shard := due.first()) is None:
            return None
        self._begin(shard)
        self._begun.add(shard.pk)
        self._spans = spans_of(shard, self._fresh(shard))
        return next(self._spans)

    def _begin(self, shard: Shard) -> None:
        """The look through a stretch begins now, unless it goes on."""
        now = clock.now()
        if shard.after is not None and shard.began_at is not None and shard.began_at <= now:
            return
        with self.lease.transaction():
            Shard.objects.filter(pk=shard.pk).update(
                after=bytes(shard.low), began_at=now, objects_seen=0, bytes_seen=0, missed=False
            )
        shard.after, shard.began_at, shard.objects_seen, shard.bytes_seen = bytes(shard.low), now, 0, 0

    def _fresh(self, shard: Shard) -> frozenset[int]:
        """The links that have nothing open in what is left of a stretch: what lacks there now was never tried."""
        rows = OpenObject.objects.filter(link=OuterRef("pk"), key__gt=bytes(shard.after or shard.low))
        rows = rows if shard.high is None else rows.filter(key__lte=bytes(shard.high))
        fresh = Link.objects.filter(~Exists(rows), rule=self.rule.pk)
        return frozenset(fresh.values_list("pk", flat=True))

    # --- what they showed ---------------------------------------------------------------------------------------------

    def _take(self, read: SpanRead) -> bool:
        """Write down what was read of a span; whether the stretch was cut before its end."""
        shard = read.span.shard
        if not read.judged:
            return False
        self._following.enter(shard)
        judged = self._up_to_a_cut(read.span, read.judged)
        found = [self._following.merge(one.window, ends=read.span.last and one.window.end) for one in judged]
        judged = [
            replace(one, lacks=self._following.allowed(one.window, one.lacks, some))
            for one, some in zip(judged, found, strict=True)
        ]
        last = judged[-1].window
        cuts = len(judged) < len(read.judged) or self._is_full(shard, last.last)
        ends = read.span.last and last.end
        cuts = cuts and not ends
        with self.lease.transaction():
            self._note(shard, judged)
            self._following.note(found)
            if cuts:
                shards.cut(shard, last.last.encode(), clock.now())
            if ends or cuts:
                self._end(shard)
            else:
                going_on = ("after", "marks", "objects_seen", "bytes_seen")
                Shard.objects.filter(pk=shard.pk).update(**{name: getattr(shard, name) for name in going_on})
        if ends or cuts:
            self._following.leave(ended=True)
        return cuts

    def _up_to_a_cut(self, span: Span, judged: Sequence[Judged]) -> Sequence[Judged]:
        """Those that still belong to the stretch; they count as seen."""
        shard = span.shard
        for at, one in enumerate(judged, 1):
            shard.objects_seen += one.objects
            shard.bytes_seen += one.bytes
            ends = span.last and one.window.end
            self._mark(shard, one.window.last, one.keys, ends=ends)
            if self._is_full(shard, one.window.last):
                return judged[:at]
        return judged

    def _is_full(self, shard: Shard, last: str) -> bool:
        return shard.objects_seen >= shards.SPLIT_AT and (shard.high is None or last.encode() < bytes(shard.high))

    def _mark(self, shard: Shard, last: str, keys: int, *, ends: bool) -> None:
        """Where the stretch may be read from next time: this look's marks up to where it was, older ones behind."""
        was = bytes(shard.after or shard.low).decode()
        self._unmarked += keys
        wide = shard.objects_seen > MARKS * MARK_EVERY
        here = self._unmarked >= (MARKED_WIDE if wide else MARK_EVERY) and not ends
        self._unmarked = 0 if here or ends else self._unmarked
        passed, ahead = [mark for mark in shard.marks if mark <= was], [mark for mark in shard.marks if mark > last]
        shard.marks = [*passed, *([last] if here else []), *ahead]
        shard.after = last.encode()

    def _note(self, shard: Shard, judged: Sequence[Judged]) -> None:
        """What lacks, and what could not be read. Inside of the transaction."""
        lacks: dict[int, list[Lack]] = {}
        for one in judged:
            for link_id, some in one.lacks.items():
                lacks.setdefault(link_id, []).extend(some)
        noted = looking.note(self.rule, lacks)
        unread = set(self.looker.unasked)
        for one in judged:
            looking.note_unlisted(one.window.failed, one.window.there)
            unread |= one.window.failed.keys()
        if unread:
            Shard.objects.filter(pk=shard.pk).update(missed=True, dirty=True)
            self.rule.links.filter(pk__in=unread).update(uncompared=True)
        items, size = sum(one.objects for one in judged), sum(one.bytes for one in judged)
        counted = {"cycle_objects": F("cycle_objects") + items, "cycle_bytes": F("cycle_bytes") + size}
        Rule.objects.filter(pk=self.rule.pk, cycle_began_at__isnull=False).update(**counted)
        duties.wake_links(noted)
        self.seen += items
        self.noted += sum(map(len, lacks.values()))

    def _end(self, shard: Shard) -> None:
        now, every = clock.now(), timedelta(seconds=self.rule.scan_every)
        cycle = self.rule.cycle_began_at
        assert shard.began_at is not None
        again = cycle is not None and shard.began_at < cycle
        large = shards.are_many(self.rule.pk)
        wait = every * shards.PARTS if large else every
        shards.ended(
            shard,
            objects=shard.objects_seen,
            size=shard.bytes_seen,
            began=shard.began_at,
            now=now,
            due_at=now if again else now + wait,
            marks=shard.marks,
        )
        if large:
            shards.hasten_dirty(self.rule.pk, now + every)
            ledger.all_noted(self.rule.pk)


def spans_of(shard: Shard, fresh: frozenset[int] = frozenset()) -> Iterator[Span]:
    """What is left of a stretch, from mark to mark."""
    low = bytes(shard.after if shard.after is not None else shard.low).decode()
    high = None if shard.high is None else bytes(shard.high).decode()
    inside = [mark for mark in shard.marks if mark > low and (high is None or mark < high)]
    for one, following in pairwise([low, *inside]):
        yield Span(shard, one, following, False, fresh)
    yield Span(shard, inside[-1] if inside else low, high, True, fresh)


def is_stopped(rule: Rule) -> bool:
    """Whether somebody paused or deleted it."""
    return not Rule.objects.filter(pk=rule.pk, paused=False, deleting=False).exists()
