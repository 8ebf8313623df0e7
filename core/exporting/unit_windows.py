"""Stretches of the key line that are treated apart: units cut to what lies in them, or to what does not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from core.exporting.unit_planning import Unit, plan_units
from graveler.metarange import RangeRef


@dataclass(frozen=True, slots=True)
class Window:
    """The keys from `low` to before `high` (None: to the end)."""

    low: bytes
    high: bytes | None

    def overlaps(self, ref: RangeRef) -> bool:
        """May a range hold keys of it?"""
        return ref.max_key >= self.low and (self.high is None or ref.min_key < self.high)


ACTIONS = Window(b"_lakefs_actions/", b"_lakefs_actions0")
"""What lakeFS reads its hooks from; no data, so exports leave it out unless they are told not to."""
EVERYTHING = Window(b"", None)


def within(units: Iterable[Unit], window: Window) -> Iterator[Unit]:
    """What of these units lies in a window."""
    for unit in units:
        low, high = max(unit.low, window.low), _earlier(unit.high, window.high)
        if high is None or low < high:
            yield replace(unit, low=low, high=high)


def outside(units: Iterable[Unit], window: Window) -> Iterator[Unit]:
    """What of these units lies before a window, or after it; in the order of their keys."""
    for unit in units:
        yield from within([unit], Window(b"", window.low))
        if window.high is not None:
            yield from within([unit], Window(window.high, None))


def plan_without_actions(
    target: Sequence[RangeRef], others: Sequence[Sequence[RangeRef]], *, anew: bool
) -> Iterator[Unit]:
    """As `plan_units`, but the target counts as having no file below `_lakefs_actions/`. `anew`: the others may have
    some there, which are to go; else nothing is planned there."""
    yield from outside(plan_units(target, others), ACTIONS)
    if anew:
        yield from within(plan_units([], [_overlapping(refs, ACTIONS) for refs in others]), ACTIONS)


def plan_with_actions_anew(target: Sequence[RangeRef], others: Sequence[Sequence[RangeRef]]) -> Iterator[Unit]:
    """As `plan_units`, but every file below `_lakefs_actions/` is planned: the others' may not be there, though their
    commits have them."""
    yield from outside(plan_units(target, others), ACTIONS)
    held = [_overlapping(refs, ACTIONS) for refs in others]
    yield from within(plan_units(_overlapping(target, ACTIONS), [*held, []]), ACTIONS)


def narrowed(units: Iterable[Unit], keys: Sequence[bytes]) -> Iterator[Unit]:
    """The units that hold one of these keys (ascending), each cut to the stretch from its first to its last one."""
    at = 0
    for unit in units:
        while at < len(keys) and keys[at] < unit.low:
            at += 1
        first = at
        while at < len(keys) and unit.holds(keys[at]):
            at += 1
        if at > first:
            yield replace(unit, low=keys[first], high=keys[at - 1] + b"\0")


def _overlapping(refs: Sequence[RangeRef], window: Window) -> list[RangeRef]:
    return [ref for ref in refs if window.overlaps(ref)]


def _earlier(high: bytes | None, other: bytes | None) -> bytes | None:
    return min((bound for bound in (high, other) if bound is not None), default=None)
