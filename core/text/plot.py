"""How a picture of values over time is drawn: lines, scales, marks on the axis of time; pure.

Values come in steps of equal length. A step is a level as wide as itself; where nobody knows one, the line ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

WIDTH, HEIGHT = 1000, 100
"""Of the box that paths are drawn in; y grows downwards."""
MOST_MARKS = 6
EDGE = 0.04
"""Nearer to an end of the axis no mark has room for its word."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SECONDS = (2, 10, 20, _MINUTE, 120, 240, 600, 1200, 1800, _HOUR, 2 * _HOUR, 4 * _HOUR, 8 * _HOUR, 12 * _HOUR, _DAY)
_BETWEEN_MARKS = (600, 1800, _HOUR, 2 * _HOUR, 4 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY)


@dataclass(frozen=True, slots=True)
class Shape:
    """Paths of SVG: the line, and the area below it; and where nothing is known, as (x, width)."""

    line: str
    area: str
    gaps: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment on the axis of time: its share of the way, 0 to 1, and whether the `day` or the `hour` is said of it."""

    share: float
    at: datetime
    form: str


def draw(values: Sequence[float | None], top: float) -> Shape:
    """Steps as lines between 0 and `top`."""
    wide = WIDTH / len(values) if values else 0.0
    lines, areas, gaps = [], [], []
    for known, group in groupby(enumerate(values), key=lambda pair: pair[1] is not None):
        pairs = list(group)
        start, end = pairs[0][0] * wide, (pairs[-1][0] + 1) * wide
        if not known:
            gaps.append((round(start, 2), round(end - start, 2)))
            continue
        line = "".join(_levels([(place, value or 0.0) for place, value in pairs], wide, top))
        lines.append(f"M{start:.6g} {line[1:]}")
        areas.append(f"M{start:.6g} {HEIGHT}{line}V{HEIGHT}Z")
    return Shape(" ".join(lines), " ".join(areas), gaps)


def _levels(pairs: Iterable[tuple[int, float]], wide: float, top: float) -> Iterator[str]:
    for place, value in pairs:
        yield f"V{HEIGHT - HEIGHT * min(1.0, value / top):.6g}H{(place + 1) * wide:.6g}"


def top_of_seconds(most: float) -> float:
    """A length of time that is not below `most`, and has a half that people say."""
    days = next((number for number in _round_numbers() if number * _DAY >= most), 0.0)
    return next((float(length) for length in _SECONDS if length >= most), days * _DAY)


def top_of_counts(most: float) -> float:
    """A whole number with a whole half that is not below `most`."""
    return next(number for number in _round_numbers() if number >= most)


def top_of_bytes(most: float) -> float:
    """The same in bytes, KB, MB … of 1,024 each."""
    unit = 1.0
    while most > 1000 * unit:
        unit *= 1024
    return unit * next(number for number in _round_numbers() if number * unit >= most)


def _round_numbers() -> Iterator[float]:
    """2, 4, 6, 8, 10, 20, 40 …"""
    power = 1.0
    while True:
        yield from (digit * power for digit in (2, 4, 6, 8))
        power *= 10
        yield power


def marks(began: datetime, until: datetime) -> list[Mark]:
    """Whole moments between two, few enough to be read."""
    length = (until - began).total_seconds()
    between = next((step for step in _BETWEEN_MARKS if length / step <= MOST_MARKS), _BETWEEN_MARKS[-1])
    first = began.timestamp() // between * between + between
    moments = [first + n * between for n in range(int(length // between) + 1)]
    placed = [((at - began.timestamp()) / length, at) for at in moments]
    form = "day" if between >= _DAY else "hour"
    return [
        Mark(round(share, 4), datetime.fromtimestamp(at, UTC), form)
        for share, at in placed
        if EDGE <= share <= 1 - EDGE
    ]
