"""The pictures of a mirror over time: what is drawn, and what each says in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.template.defaultfilters import filesizeformat

from core.mirroring.rpo import in_words
from core.text.phrases import count
from core.text.plot import Mark, Shape, draw, marks, top_of_bytes, top_of_counts, top_of_seconds
from mirrors.status.series import Measured, MeasuredStep

FEWEST = 12
"""So many steps are drawn, although less was measured: a line needs some room to begin in."""
TALL = 130
"""Pixels."""
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Level:
    """A line across a picture: so many pixels from its top, and where its word stands."""

    y: float
    word_y: float
    word: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture: its shape, its scale from `top` by `half` to 0, its marks; `description` says it in words."""

    key: str
    title: str
    description: str
    shape: Shape
    top: str
    half: str
    marks: Sequence[Mark]
    level: Level | None = None


def drawn_steps(measures: Measured) -> Sequence[MeasuredStep]:
    """From the first one of which something is known."""
    first = next((n for n, step in enumerate(measures.steps) if step.known), 0)
    return measures.steps[min(first, len(measures.steps) - FEWEST) :]


def plots(measures: Measured, target: timedelta, now: datetime) -> list[Plot]:
    """Lag, backlog, and what was checked, objects and bytes an hour."""
    steps, hours = drawn_steps(measures), measures.period.step / 60
    objects = [_an_hour(step.objects, hours) for step in steps]
    size = [_an_hour(step.bytes, hours) for step in steps]
    return [
        _lag(steps, target, now),
        _backlog(steps, now),
        _checked(steps, objects, "objects", "Objects checked an hour", top_of_counts, _counted, now),
        _checked(steps, size, "bytes", "Bytes checked an hour", top_of_bytes, filesizeformat, now),
    ]


def unmeasured(measures: Measured) -> timedelta:
    """How much of what is drawn nobody measured, from the first measure on."""
    steps = drawn_steps(measures)
    first = next((n for n, step in enumerate(steps) if step.known), len(steps))
    return timedelta(minutes=measures.period.step) * sum(not step.known for step in steps[first:])


def _lag(steps: Sequence[MeasuredStep], target: timedelta, now: datetime) -> Plot:
    values = [step.lag_seconds for step in steps]
    seconds = target.total_seconds()
    top = top_of_seconds(max(seconds, *(value or 0 for value in values)))
    description = _most(steps, values, in_words, "Never behind", "Worst ", now)
    y = TALL - TALL * seconds / top
    word = f"target {in_words(seconds)}"
    level = Level(y, y - 5 if y > 16 else y + 13, word)
    return _plot("lag", "Worst lag", f"{description}; {word}.", steps, values, top, in_words, level)


def _backlog(steps: Sequence[MeasuredStep], now: datetime) -> Plot:
    values = [step.backlog for step in steps]
    last = next((step.backlog_last for step in reversed(steps) if step.backlog_last is not None), None)
    at_last = f"; {last:,} at the last reading" if last is not None and any(values) else ""
    description = _most(steps, values, _commits, "No branch lacked a commit", "Most ", now)
    top = top_of_counts(max(value or 0 for value in values))
    return _plot("backlog", "Backlog, commits", f"{description}{at_last}.", steps, values, top, _counted)


def _checked(
    steps: Sequence[MeasuredStep],
    values: Values,
    key: str,
    title: str,
    top_of: Callable[[float], float],
    word: Callable[[float], str],
    now: datetime,
) -> Plot:
    total = sum(getattr(step, key) or 0 for step in steps)
    in_all = f"{count(total, 'object')} in all; most " if key == "objects" else f"{word(total)} in all; most "
    description = _most(steps, values, lambda most: f"{word(most)} an hour", "Nothing was checked", in_all, now)
    return _plot(key, title, f"{description}.", steps, values, top_of(max(value or 0 for value in values)), word)


def _plot(
    key: str,
    title: str,
    description: str,
    steps: Sequence[MeasuredStep],
    values: Values,
    top: float,
    word: Callable[[float], str],
    level: Level | None = None,
) -> Plot:
    axis = marks(steps[0].at, steps[-1].until)
    return Plot(key, title, description, draw(values, top), word(top), word(top / 2), axis, level)


def _most(
    steps: Sequence[MeasuredStep],
    values: Values,
    word: Callable[[float], str],
    nothing: str,
    before: str,
    now: datetime,
) -> str:
    """The highest value and when that was."""
    known = [(value, step) for value, step in zip(values, steps, strict=True) if value is not None]
    if not known:
        return "Nobody knows"
    most, step = max(known, key=lambda pair: pair[0])
    return f"{before}{word(most)} at {_when(step.at, now)}" if most else nothing


def _when(at: datetime, now: datetime) -> str:
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%H:%M} on {at.day} {at:%b}"


def _an_hour(number: int | None, hours: float) -> float | None:
    return None if number is None else number / hours


def _counted(number: float) -> str:
    return f"{number:,.0f}"


def _commits(number: float) -> str:
    return count(round(number), "commit")
