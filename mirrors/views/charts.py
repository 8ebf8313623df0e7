"""The pictures of a mirror over time: what is drawn, and what each says in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.template.defaultfilters import filesizeformat

from core.mirroring.rpo import in_words
from core.text.chart import Axis, Chart, Series, Told, Values, Word, chart
from core.text.phrases import count
from core.text.plot import top_of_bytes, top_of_counts, top_of_seconds
from mirrors.status.series import Measured


def axis_of(measures: Measured) -> Axis:
    """All of the period that was asked for, measured or not."""
    return Axis(measures.steps[0].at, timedelta(minutes=measures.period.step), len(measures.steps))


def charts(measures: Measured, target: timedelta) -> list[Chart]:
    """Lag, backlog, and what was checked, objects and bytes an hour."""
    hours = measures.period.step / 60
    objects = [_an_hour(step.objects, hours) for step in measures.steps]
    size = [_an_hour(step.bytes, hours) for step in measures.steps]
    return [
        _lag(measures, target),
        _backlog(measures),
        _checked(measures, "objects", "Objects checked an hour", objects, top_of_counts, _counted),
        _checked(measures, "bytes", "Bytes checked an hour", size, top_of_bytes, filesizeformat),
    ]


def unmeasured(measures: Measured) -> timedelta:
    """How much of the period nobody measured, from the first measure on."""
    first = next((n for n, step in enumerate(measures.steps) if step.known), len(measures.steps))
    return timedelta(minutes=measures.period.step) * sum(not step.known for step in measures.steps[first:])


def _lag(measures: Measured, target: timedelta) -> Chart:
    values, seconds = [step.lag_seconds for step in measures.steps], target.total_seconds()
    top = top_of_seconds(max(seconds, *(value or 0 for value in values)))
    told = _most(axis_of(measures), values, in_words, "Never behind", "Worst ", f"; target {in_words(seconds)}.")
    series = [Series("lag", "", values)]
    return chart("lag", "Worst lag", axis_of(measures), series, top, in_words, told, level=seconds)


def _backlog(measures: Measured) -> Chart:
    values = [step.backlog for step in measures.steps]
    last = next((step.backlog_last for step in reversed(measures.steps) if step.backlog_last is not None), None)
    after = f"; {last:,} at the last reading." if last is not None and any(values) else "."
    told = _most(axis_of(measures), values, _commits, "No branch lacked a commit", "Most ", after)
    top = top_of_counts(max(value or 0 for value in values))
    return chart(
        "backlog", "Backlog", axis_of(measures), [Series("backlog", "", values)], top, _commits, told, scale=_counted
    )


def _checked(
    measures: Measured, key: str, title: str, values: Values, top_of: Callable[[float], float], word: Word
) -> Chart:
    total = sum(getattr(step, key) or 0 for step in measures.steps)
    before = f"{count(total, 'object')} in total; peak " if key == "objects" else f"{word(total)} in total; peak "
    told = _most(axis_of(measures), values, lambda most: f"{word(most)} an hour", "Nothing was checked", before)
    top = top_of(max(value or 0 for value in values))
    return chart(key, title, axis_of(measures), [Series(key, "", values)], top, word, told)


def _most(axis: Axis, values: Values, word: Word, nothing: str, before: str, after: str = ".") -> Told:
    """The highest value and when that was."""
    known = [(value, n) for n, value in enumerate(values) if value is not None]
    if not known:
        return Told("Nobody knows", None, after)
    most, n = max(known, key=lambda pair: (pair[0], -pair[1]))
    return Told(f"{before}{word(most)}", axis.began + n * axis.step, after) if most else Told(nothing, None, after)


def _an_hour(number: int | None, hours: float) -> float | None:
    return None if number is None else number / hours


def _counted(number: float) -> str:
    return f"{number:,.0f}"


def _commits(number: float) -> str:
    return count(round(number), "commit")
