"""Pictures of values over time: levels, gaps, scales, marks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.text.plot import Shape, draw, marks, top_of_bytes, top_of_counts, top_of_seconds

NOON = datetime(2026, 11, 21, 12, 7, tzinfo=UTC)


def test_each_step_is_a_level() -> None:
    assert draw([0, 5, 10, 10], 10) == Shape(
        "M0 100H250V50H500V0H750V0H1000", "M0 100V100H250V50H500V0H750V0H1000V100Z", []
    )


def test_where_nobody_knows_the_line_ends_and_a_step_alone_is_seen() -> None:
    shape = draw([None, 4, None, 2], 4)
    assert shape.line == "M250 0H500 M750 50H1000"
    assert shape.area == "M250 100V0H500V100Z M750 100V50H1000V100Z"
    assert shape.gaps == [(0, 250), (500, 250)]


@given(some.lists(some.none() | some.floats(0, 1e12), min_size=1, max_size=50))
def test_whatever_is_known_is_drawn_and_the_rest_is_gap(values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    shape = draw(values, top_of_counts(max(known, default=0)))
    gaps = sum(width for _, width in shape.gaps)
    assert gaps == pytest.approx(1000 * (len(values) - len(known)) / len(values), abs=1)
    assert shape.line.count("H") == len(known)
    assert shape.area.count("Z") == shape.line.count("M")


@given(some.floats(0, 1e15))
def test_a_top_is_not_below_what_is_drawn(most: float) -> None:
    assert top_of_counts(most) >= most
    assert top_of_bytes(most) >= most
    assert top_of_seconds(most) >= most


@pytest.mark.parametrize(
    ("most", "top"), [(0, 2), (2, 2), (41, 60), (61, 80), (99, 100), (101, 200), (217_000, 400_000)]
)
def test_counts_have_whole_halves(most: float, top: float) -> None:
    assert top_of_counts(most) == top


@pytest.mark.parametrize(("most", "top"), [(0, 2), (3.2, 10), (300, 600), (301, 600), (4000, 7200), (100_000, 172_800)])
def test_times_have_halves_that_people_say(most: float, top: float) -> None:
    assert top_of_seconds(most) == top


def test_bytes_go_by_1024() -> None:
    assert (top_of_bytes(0), top_of_bytes(700), top_of_bytes(1500), top_of_bytes(3 * 1024**3)) == (
        2,
        800,
        2 * 1024,
        4 * 1024**3,
    )


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(hours=1), ["12:10", "12:20", "12:30", "12:40", "12:50", "13:00"]),
        (timedelta(hours=24), ["16:00", "20:00", "00:00", "04:00", "08:00"]),
        (timedelta(days=7), ["23 Nov", "25 Nov", "27 Nov"]),
        (timedelta(days=30), ["26 Nov", "3 Dec", "10 Dec", "17 Dec"]),
    ],
)
def test_marks_stand_at_whole_moments_and_are_few(length: timedelta, words: list[str]) -> None:
    found = marks(NOON, NOON + length)
    assert [f"{mark.at:%H:%M}" if mark.form == "hour" else f"{mark.at.day} {mark.at:%b}" for mark in found] == words
    assert all(0.04 <= mark.share <= 0.96 for mark in found)


def test_ninety_days_have_room_for_their_marks() -> None:
    assert 3 <= len(marks(NOON, NOON + timedelta(days=90))) <= 7
