"""Stretches of a rule's keys, read and judged by several threads at a time, handed on in the order of their keys.

The threads know no database: what they found is written down by the one that takes it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from core.errors import LakeMirrorError
from core.replicating.ahead import Ahead
from core.replicating.merging import Listed, Read, Window
from spark_jobs.replicate.looking import Lacks, Looker

SPANS = 8
"""So many spans are read at a time."""
WINDOWS = 8
"""A span is handed on after so many pages of the source; the rest of it is another one."""
FAILURES = 2
"""After so many spans in which a target could not be listed it is left out for the rest of the round."""


class Stretch(Protocol):
    """A stretch of keys."""

    @property
    def pk(self) -> int: ...


class Span(NamedTuple):
    """Keys of a stretch: after one, up to another, with it (None: to the end). `last`: the stretch ends there. `fresh`:
    links that had nothing open in the stretch before anything of it was read."""

    shard: Any
    low: str
    high: str | None
    last: bool
    fresh: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Judged:
    """A window, which of its objects the rule wants, and what each target lacks of these."""

    window: Window
    items: list[Listed]
    lacks: Lacks

    @property
    def keys(self) -> int:
        """How many the source has there."""
        return len(self.window.items)

    @property
    def objects(self) -> int:
        """How many of these the rule wants."""
        return len(self.items)

    @property
    def bytes(self) -> int:
        """So large they are together."""
        return sum(item.size for item in self.items)


@dataclass(frozen=True, slots=True)
class SpanRead:
    """What was read of a span. `left`: what is still to be read of it. `error`: why the source could not be, after
    these."""

    span: Span
    judged: Sequence[Any]
    left: Span | None = None
    error: LakeMirrorError | None = None


@dataclass
class Reading:
    """The reading of one round. Close it."""

    looker: Looker
    stopped: Callable[[], bool]
    _failures: Counter[int] = field(default_factory=Counter)
    _errors: dict[int, LakeMirrorError] = field(default_factory=dict)
    _dropped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._spans = ThreadPoolExecutor(SPANS)
        self._pages = ThreadPoolExecutor(SPANS * (1 + len(self.looker.places)))

    def close(self) -> None:
        """Let the threads go; what they read yet is lost."""
        self._spans.shutdown(cancel_futures=True)
        self._pages.shutdown(cancel_futures=True)

    def drop(self, shard: Stretch) -> None:
        """Nothing more of a stretch is wanted."""
        self._dropped.add(shard.pk)

    def in_order(self, next_span: Callable[[], Span | None]) -> Iterator[SpanRead]:
        """What was read of each span, one after the other, while others are read already, until there is no other one.
        Ends with the first whose source could not be read."""
        reading: deque[Future[SpanRead]] = deque()
        while True:
            while len(reading) < SPANS and (span := next_span()) is not None:
                reading.append(self._spans.submit(self._read, span))
            if not reading:
                return
            read = reading.popleft().result()
            if read.span.shard.pk in self._dropped:
                continue
            if read.left is not None:
                reading.appendleft(self._spans.submit(self._read, read.left))
            yield read
            if read.error is not None:
                return

    def _read(self, span: Span) -> SpanRead:
        judged: list[Judged] = []
        if span.shard.pk in self._dropped:
            return SpanRead(span, judged)
        try:
            for window in self._windows(span):
                judged.append(self._judged(window, span.fresh))
                if window.end:
                    break
                if len(judged) >= WINDOWS or self.stopped():
                    return SpanRead(span, judged, span._replace(low=window.last))
        except LakeMirrorError as error:
            return SpanRead(span, judged, error=error)
        return SpanRead(span, judged)

    def _windows(self, span: Span) -> Iterator[Window]:
        left_out = dict(self._errors)
        known: set[int] = set()
        for window in self.looker.windows(span.low, span.high, left_out, partial(self._ahead, span)):
            for pk in window.failed.keys() - known:
                self._note_failure(pk, window.failed[pk])
            known |= window.failed.keys()
            yield with_failed(window, left_out)

    def _ahead(self, span: Span, read: Read) -> Read:
        return Ahead(read, span.low, span.high, self._pages.submit)

    def _note_failure(self, link_id: int, error: LakeMirrorError) -> None:
        self._failures[link_id] += 1
        if self._failures[link_id] >= FAILURES:
            self._errors[link_id] = error

    def _judged(self, window: Window, fresh: frozenset[int]) -> Judged:
        items = [item for item in window.items if self.looker.wants(item)]
        return Judged(window, items, self.looker.lacking(window, items, fresh))


def with_failed(window: Window, left_out: Mapping[int, LakeMirrorError]) -> Window:
    """A window of which some targets were not even asked."""
    if not left_out:
        return window
    return Window(window.items, window.there, window.last, window.end, {**left_out, **window.failed})
