"""How fast, and when: known only from what is done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.text.eta import caught_up_at, expected_end, per_second

T = datetime(2026, 11, 21, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return T + timedelta(seconds=seconds)


@pytest.mark.parametrize(("number", "seconds", "rate"), [(50, 10, 5.0), (0, 10, None), (50, 0, None), (50, -1, None)])
def test_a_rate_needs_something_done_in_some_time(number: int, seconds: float, rate: float | None) -> None:
    assert per_second(number, T, after(seconds)) == rate


@pytest.mark.parametrize(
    ("done", "total", "end"),
    [
        (4, 16, after(40)),
        (4, 4, after(10)),
        (1, 1, after(10)),
        (1, 2099, None),  # one sample: the next may take a hundredth of its time
        (2, 4, None),
        (20, 2099, None),
        (21, 2099, after(999.52)),
        (0, 4, None),
        (0, 0, None),
        (5, 4, None),
        (3, 10**11, None),
    ],
)
def test_the_rest_takes_as_long_for_each_as_what_is_done(done: int, total: int, end: datetime | None) -> None:
    found = expected_end(done, total, T, after(10))
    assert (found and round((found - T).total_seconds(), 2)) == (end and (end - T).total_seconds())


@pytest.mark.parametrize(
    ("backlog", "end"),
    [
        ([100, 80, 60], after(150)),  # 20 each 30 s: 60 more take 90 s
        ([100, 101, 60, 40], after(144)),
        ([100, 60], None),
        ([60, 80, 100], None),
        ([50, 50, 50], None),
        ([40, 20, 0], None),
        ([1_000_000, 999_999, 999_999], None),  # in a year
    ],
)
def test_a_backlog_is_gone_when_the_line_through_its_samples_says_so(backlog: list[int], end: datetime | None) -> None:
    samples = [(after(30 * n), number) for n, number in enumerate(backlog)]
    found = caught_up_at(samples, after(60))
    assert (found and round((found - T).total_seconds())) == (end and (end - T).total_seconds())


def test_an_estimate_is_never_before_now_and_one_moment_is_no_pace() -> None:
    assert caught_up_at([(T, 30), (after(30), 20), (after(60), 10)], after(500)) == after(500)
    assert caught_up_at([(T, 30), (T, 20), (T, 10)], T) is None
