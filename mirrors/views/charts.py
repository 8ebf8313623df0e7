"""The charts of a mirror over time: what is drawn, and what each says in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.template.defaultfilters import filesizeformat

from core.mirroring.rpo import in_words
from core.text.chart import Axis, Chart, Series, Told, Values, Word, chart
from core.text.phrases import count
from core.text.plot import top_of_bytes, top_of_counts, top_of_seconds
from mirrors.status.series import Measured


def charts(measures: Measured, target: timedelta, branch: str) -> list[Chart]:
    """Lag of all branches and of one, backlog, and what came and went an hour: commits, objects, bytes."""
    hours = measures.period.step / 60
    objects = [_an_hour(step.new_objects, hours) for step in measures.steps]
    size = [_an_hour(step.new_bytes, hours) for step in measures.steps]
    return [
        _lag(measures, "lag", "Worst lag", [step.lag_seconds for step in measures.steps], target),
        _lag(measures, "branch-lag", f"Lag of {branch}", [step.branch_lag for step in measures.steps], target),
        _backlog(measures),
        _commits_an_hour(measures, hours),
        _new(measures, "objects", "New objects validated an hour", objects, "object"),
        _new(measures, "bytes", "New bytes validated an hour", size, ""),
    ]


def axis_of(measures: Measured) -> Axis:
    """All of the period that was asked for, measured or not."""
    return Axis(measures.steps[0].at, timedelta(minutes=measures.period.step), len(measures.steps))


def unmeasured(measures: Measured) -> timedelta:
    """How much of the period nobody measured, from the first measure on."""
    first = next((n for n, step in enumerate(measures.steps) if step.known), len(measures.steps))
    return timedelta(minutes=measures.period.step) * sum(not step.known for step in measures.steps[first:])


def _lag(measures: Measured, key: str, title: str, values: Values, target: timedelta) -> Chart:
    axis, seconds = axis_of(measures), target.total_seconds()
    top = top_of_seconds(max(seconds, *(value or 0 for value in values)))
    told = _most(axis, values, in_words, "Never behind", "Worst ", f"; target {in_words(seconds)}.")
    return chart(key, title, axis, [Series(key, "", values)], top, in_words, told, level=seconds)


def _backlog(measures: Measured) -> Chart:
    values = [step.backlog for step in measures.steps]
    last = next((step.backlog_last for step in reversed(measures.steps) if step.backlog_last is not None), None)
    after = f"; {last:,} at the last reading." if last is not None and any(values) else "."
    told = _most(axis_of(measures), values, _commits, "No branch was behind", "Most ", after)
    top, series = top_of_counts(max(value or 0 for value in values)), [Series("backlog", "", values)]
    return chart("backlog", "Backlog", axis_of(measures), series, top, _commits, told, scale=_counted)


def _commits_an_hour(measures: Measured, hours: float) -> Chart:
    """Two lines: what was seen at the source, what the mirror's branches reached."""
    seen = [_an_hour(step.seen, hours) for step in measures.steps]
    mirrored = [_an_hour(step.mirrored, hours) for step in measures.steps]
    came, went = (_total([getattr(step, name) for step in measures.steps]) for name in ("seen", "mirrored"))
    told = Told("Not measured" if came is None else f"{_commits(came)} seen, {went or 0:,} mirrored")
    top = top_of_counts(max([value for value in (*seen, *mirrored) if value], default=0))
    series = [Series("seen", "seen at the source", seen), Series("mirrored", "mirrored", mirrored)]
    return chart("commits", "Commits an hour", axis_of(measures), series, top, _counted, told)


def _new(measures: Measured, key: str, title: str, values: Values, noun: str) -> Chart:
    """What no earlier check had covered: repeated checks don't count. `noun`: what is counted, "" for bytes."""
    total = _total([getattr(step, f"new_{key}") for step in measures.steps]) or 0
    word: Word = _counted if noun else filesizeformat
    before = f"{count(total, noun) if noun else word(total)} in total; peak "
    told = _most(axis_of(measures), values, lambda most: f"{word(most)} an hour", "Nothing new was validated", before)
    top = (top_of_counts if noun else top_of_bytes)(max(value or 0 for value in values))
    return chart(key, title, axis_of(measures), [Series(key, "", values)], top, word, told)


def _most(axis: Axis, values: Values, word: Word, nothing: str, before: str, after: str = ".") -> Told:
    """The highest value and when that was."""
    known = [(value, n) for n, value in enumerate(values) if value is not None]
    if not known:
        return Told("Not measured", None, after)
    most, n = max(known, key=lambda pair: (pair[0], -pair[1]))
    return Told(f"{before}{word(most)}", axis.began + n * axis.step, after) if most else Told(nothing, None, after)


def _total(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _an_hour(number: int | None, hours: float) -> float | None:
    return None if number is None else number / hours


def _counted(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:,.1f}"


def _commits(number: float) -> str:
    return count(round(number), "commit")
