"""A picture over a period: its places, what each says, and the line of a target."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.text.chart import MOST_POINTS, Axis, Series, Told, chart, points

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def word(value: float) -> str:
    return f"{value:g} s"


def test_a_place_is_where_something_is_known() -> None:
    made = points(Axis(NOON, MINUTE, 4), [Series("lag", "", [None, 5, 10, None])], 10, word)
    assert [(point.share, point.width, point.heights, point.word) for point in made] == [
        (0.25, 0.25, [65], "5 s"),
        (0.5, 0.25, [0], "10 s"),
    ]
    assert (made[0].at, made[0].until) == (NOON + MINUTE, NOON + 2 * MINUTE)


def test_two_lines_are_told_together_each_with_its_name() -> None:
    series = [Series("in", "seen", [3, None]), Series("out", "mirrored", [1, 2])]
    assert [point.word for point in points(Axis(NOON, MINUTE, 2), series, 4, word)] == [
        "3 s seen, 1 s mirrored",
        "2 s mirrored",
    ]


@pytest.mark.parametrize(("steps", "number"), [(96, 96), (97, 49), (288, 96), (289, 73)])
def test_many_steps_share_places_and_the_last_one_ends_with_the_axis(steps: int, number: int) -> None:
    made = points(Axis(NOON, MINUTE, steps), [Series("lag", "", list(range(steps)))], steps, word)
    assert len(made) == number <= MOST_POINTS
    assert made[-1].share + made[-1].width == pytest.approx(1)
    assert made[-1].word == f"{steps - 1:g} s"


def test_a_target_near_the_top_has_its_word_below() -> None:
    axis, values = Axis(NOON, MINUTE, 2), [Series("lag", "", [1.0, 2.0])]
    near = chart("lag", "Lag", axis, values, 10, word, Told("Worst"), level=10).level
    far = chart("lag", "Lag", axis, values, 10, word, Told("Worst"), level=5).level
    assert near and far
    assert near.word_y > near.y and far.word_y < far.y and far.word == "target 5 s"
    assert chart("lag", "Lag", axis, values, 10, word, Told("Worst")).level is None
