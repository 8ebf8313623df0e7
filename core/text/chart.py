"""A picture of some series over a period: what is drawn, and what each place says to who points at it; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from core.text.plot import Mark, Shape, draw, marks

TALL = 130
"""Pixels from the top of a picture to its axis of time."""
MOST_POINTS = 96
"""More places than that can't be told apart by a pointer: steps share one."""
Values = Sequence[float | None]
Word = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Axis:
    """The steps of a picture: when the first one began, how long each is, and how many there are."""

    began: datetime
    step: timedelta
    steps: int

    @property
    def until(self) -> datetime:
        """When the last step ends."""
        return self.began + self.steps * self.step

    def share(self, at: datetime) -> float:
        """Where a moment is on the way, 0 to 1."""
        return (at - self.began) / (self.until - self.began)


@dataclass(frozen=True, slots=True)
class Series:
    """Values of equal steps under one name; None is what nobody knows."""

    key: str
    name: str
    values: Values


@dataclass(frozen=True, slots=True)
class Line:
    """A series as it is drawn."""

    key: str
    name: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Level:
    """A line across a picture: so many pixels from its top, and where its word stands."""

    y: float
    word_y: float
    word: str


@dataclass(frozen=True, slots=True)
class Point:
    """What is known of a time, from `at` until `until`: its place as shares of the way, the heights of its values in
    pixels from the top, and all of it in words."""

    share: float
    width: float
    heights: Sequence[float]
    word: str
    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture: its lines, its scale from `top` by `half` to 0, the marks of its axis, what it says where.

    `told` is its summary in words, of which `told_at` is the moment, if it has one, and `told_after` what follows.
    """

    key: str
    title: str
    told: str
    told_at: datetime | None
    told_after: str
    lines: Sequence[Line]
    top: str
    half: str
    marks: Sequence[Mark]
    points: Sequence[Point]
    level: Level | None = None

    @property
    def gaps(self) -> Sequence[tuple[float, float]]:
        """Where nothing is known of the first line."""
        return self.lines[0].shape.gaps


@dataclass(frozen=True, slots=True)
class Told:
    """The summary of a picture: words, a moment, words."""

    before: str
    at: datetime | None = None
    after: str = "."


def chart(
    key: str,
    title: str,
    axis: Axis,
    series: Sequence[Series],
    top: float,
    word: Word,
    told: Told,
    *,
    scale: Word | None = None,
    level: float = 0,
) -> Chart:
    """A picture of some series on one scale. `word` says values, `scale` those of the axis, if shorter; `level` is one
    at which a line goes across, 0 for none."""
    scale = scale or word
    return Chart(
        key=key,
        title=title,
        told=told.before,
        told_at=told.at,
        told_after=told.after,
        lines=[Line(one.key, one.name, draw(one.values, top)) for one in series],
        top=scale(top),
        half=scale(top / 2),
        marks=marks(axis.began, axis.until),
        points=points(axis, series, top, word),
        level=_level(level, top, word) if level else None,
    )


def _level(value: float, top: float, word: Word) -> Level:
    y = TALL - TALL * value / top
    return Level(y, y - 5 if y > 16 else y + 13, f"target {word(value)}")


def points(axis: Axis, series: Sequence[Series], top: float, word: Word) -> list[Point]:
    """Each place of which something is known, with the most of its steps."""
    each = ceil(axis.steps / MOST_POINTS)
    return [
        point
        for first in range(0, axis.steps, each)
        if (point := _point(axis, series, range(first, min(first + each, axis.steps)), top, word))
    ]


def _point(axis: Axis, series: Sequence[Series], steps: range, top: float, word: Word) -> Point | None:
    known = [(one.name, most) for one in series if (most := _most(one.values, steps)) is not None]
    if not known:
        return None
    words = [f"{word(value)} {name}".rstrip() for name, value in known]
    heights = [TALL - TALL * min(1.0, value / top) for _, value in known]
    at, until = axis.began + steps.start * axis.step, axis.began + steps.stop * axis.step
    return Point(steps.start / axis.steps, len(steps) / axis.steps, heights, ", ".join(words), at, until)


def _most(values: Values, steps: range) -> float | None:
    return max((value for n in steps if (value := values[n]) is not None), default=None)
