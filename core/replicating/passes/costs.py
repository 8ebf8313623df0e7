"""What a rule would cost until its targets have everything: requests, bytes and time, from a sample. Pure.

Everything here is an estimate, with the least and the most that it may be, unless all was looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PAGE = 1000
"""Objects in a page of a listing."""
PUT_WHOLE = 64 << 20
PART_BYTES = 16 << 20
GB = 10**9
MONTH = 30 * 86_400
SURE = 2.0
"""So many standard errors to either side of what a sample says."""


class Looked(NamedTuple):
    """A page of a sample: objects of the source that the rule wants and all their bytes; of these how many one target
    lacks or has otherwise, their bytes, and those of what it has in their place; in how many parts and more requests
    large ones go."""

    objects: int
    bytes: int
    lacking: int
    lacking_bytes: int
    replaced_bytes: int
    extra_puts: int


class Span(NamedTuple):
    """An estimate: the least, the likely and the most. The most is None where nobody knows how much there is."""

    least: int
    likely: int
    most: int | None

    def plus(self, other: Span) -> Span:
        """Both together."""
        most = None if self.most is None or other.most is None else self.most + other.most
        return Span(self.least + other.least, self.likely + other.likely, most)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one target takes. `list_month`: the listings of a month of comparisons; seconds None: no pace is known."""

    objects: Span
    bytes: Span
    put: Span
    get: Span
    list: Span
    head: Span
    egress: Span
    storage: Span
    list_month: Span
    seconds: Span | None

    @property
    def amounts(self) -> Mapping[str, Span]:
        """What prices are for, by their names."""
        names = ("put", "get", "list", "head", "egress", "storage", "list_month")
        return {name: getattr(self, name) for name in names}


UNITS: Mapping[str, int] = {
    "put": 1000,
    "get": 1000,
    "list": 1000,
    "head": 1000,
    "egress": GB,
    "storage": GB,
    "list_month": 1000,
}
"""So many of each have a price."""


class Pace(NamedTuple):
    """How fast a link brings objects: what was measured, or its limit. None: nobody knows."""

    objects: float | None = None
    bytes: float | None = None


def puts_of(size: int) -> int:
    """Requests that write an object of this size beyond the first one."""
    return 0 if size <= PUT_WHOLE else math.ceil(size / PART_BYTES) + 1


def estimate(
    pages: Sequence[Looked], total: int | None, *, whole: bool, within: bool, scan_every: int, pace: Pace
) -> Estimate:
    """Of one target. `total`: objects at the source as far as is known; `whole`: the pages are all of it; `within`: one
    store copies by itself. Of a place of unknown size that was not read whole all is `at least`."""
    scale = _scale(pages, total, whole)
    objects = _spread([page.lacking for page in pages], scale)
    size = _spread([page.lacking_bytes for page in pages], scale)
    extra = _spread([page.extra_puts for page in pages], scale)
    seen = _spread([page.objects for page in pages], scale)
    grown = _spread([page.lacking_bytes - page.replaced_bytes for page in pages], scale)
    listed = _each(seen, lambda number: 2 * max(1, math.ceil(number / PAGE)))
    nothing = Span(0, 0, 0)
    return Estimate(
        objects=objects,
        bytes=size,
        put=objects.plus(extra),
        get=nothing if within else objects.plus(extra),
        list=listed,
        head=objects,
        egress=nothing if within else size,
        storage=grown,
        list_month=_each(listed, lambda number: number * MONTH // scan_every),
        seconds=_seconds(objects, size, pace),
    )


class _Scale(NamedTuple):
    factor: float
    exact: bool
    open: bool


def _scale(pages: Sequence[Looked], total: int | None, whole: bool) -> _Scale:
    seen = sum(page.objects for page in pages)
    if whole or not seen:
        return _Scale(1.0, whole, not whole)
    if total is None:
        return _Scale(1.0, False, True)
    return _Scale(max(1.0, total / seen), False, False)


def _spread(values: Sequence[int], scale: _Scale) -> Span:
    """A sum over all, from that over some pages: these differ, and by so much the whole may be otherwise."""
    found = sum(values)
    if scale.exact:
        return Span(found, found, found)
    if scale.open:
        return Span(found, found, None)
    likely = round(found * scale.factor)
    mean = found / len(values)
    varies = sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    unseen = len(values) * (scale.factor - 1)
    error = math.sqrt(varies / len(values)) * unseen if len(values) > 1 else mean * unseen
    return Span(max(found, round(likely - SURE * error)), likely, round(likely + SURE * error))


def _each(span: Span, change: object) -> Span:
    assert callable(change)
    return Span(change(span.least), change(span.likely), None if span.most is None else change(span.most))


def _seconds(objects: Span, size: Span, pace: Pace) -> Span | None:
    if not pace.objects and not pace.bytes:
        return None

    def takes(number: int, total: int) -> int:
        by_number = number / pace.objects if pace.objects else 0.0
        return math.ceil(max(by_number, total / pace.bytes if pace.bytes else 0.0))

    most = None if objects.most is None or size.most is None else takes(objects.most, size.most)
    return Span(takes(objects.least, size.least), takes(objects.likely, size.likely), most)


class Priced(NamedTuple):
    """What an amount costs, in the currency of the prices."""

    least: float
    likely: float
    most: float | None


def priced(amounts: Mapping[str, Span], prices: Mapping[str, float]) -> dict[str, Priced]:
    """What each amount costs that has a price. The listings of a month have that of a listing."""
    found = {}
    for name, span in amounts.items():
        price = prices.get("list" if name == "list_month" else name)
        if price is not None:
            one = price / UNITS[name]
            found[name] = Priced(span.least * one, span.likely * one, None if span.most is None else span.most * one)
    return found
