"""How fast, and when: known only from what is done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.text.eta import expected_end, per_second

T = datetime(2026, 11, 21, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return T + timedelta(seconds=seconds)


@pytest.mark.parametrize(("number", "seconds", "rate"), [(50, 10, 5.0), (0, 10, None), (50, 0, None), (50, -1, None)])
def test_a_rate_needs_something_done_in_some_time(number: int, seconds: float, rate: float | None) -> None:
    assert per_second(number, T, after(seconds)) == rate


@pytest.mark.parametrize(
    ("done", "total", "end"),
    [(1, 4, after(40)), (4, 4, after(10)), (0, 4, None), (0, 0, None), (5, 4, None), (1, 10**11, None)],
)
def test_the_rest_takes_as_long_for_each_as_what_is_done(done: int, total: int, end: datetime | None) -> None:
    assert expected_end(done, total, T, after(10)) == end
