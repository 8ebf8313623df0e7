"""How late, and in which words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.mirroring.rpo import Targets, attainment, breached_at, in_words, is_stale, lag

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)


def test_lag_is_zero_when_nothing_waits() -> None:
    assert lag(None, NOW) == 0


def test_lag_runs_from_the_first_sight_of_the_oldest_waiting_commit() -> None:
    assert lag(NOW - timedelta(minutes=14), NOW) == 840


def test_a_breach_begins_when_the_target_was_passed() -> None:
    target = timedelta(minutes=5)
    assert breached_at(NOW - timedelta(minutes=12), NOW, target) == NOW - timedelta(minutes=7)
    assert breached_at(NOW - target, NOW, target) is None
    assert breached_at(None, NOW, target) is None


def test_attainment_is_the_share_of_the_measured_time_without_a_breach() -> None:
    assert attainment(timedelta(hours=6), timedelta(days=1)) == 0.75
    assert attainment(timedelta(days=2), timedelta(days=1)) == 0
    assert attainment(timedelta(), timedelta()) is None


def test_a_sight_from_the_future_of_another_clock_is_no_negative_lag() -> None:
    assert lag(NOW + timedelta(seconds=3), NOW) == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "—"),
        (0, "0"),
        (0.4, "< 1 s"),
        (1, "1 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (14 * 60 + 59, "14 min"),
        (3600, "1 h"),
        (86_399, "23 h"),
        (86_400, "1 day"),
        (3 * 86_400, "3 days"),
    ],
)
def test_lengths_of_time_are_said_as_people_say_them(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words


def test_a_status_is_stale_after_three_intervals() -> None:
    targets = Targets(look_interval=timedelta(seconds=20))
    assert not is_stale(NOW - timedelta(seconds=60), NOW, targets)
    assert is_stale(NOW - timedelta(seconds=61), NOW, targets)


def test_what_was_never_looked_at_is_not_stale() -> None:
    assert not is_stale(None, NOW, Targets())
