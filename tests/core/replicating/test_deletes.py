"""Whether deletions need an approval."""

from __future__ import annotations

import pytest

from core.replicating.deletes import needs_approval, of_last_day


@pytest.mark.parametrize(
    ("number", "of", "lately", "needed"),
    [
        (10, 100, 0, False),
        (11, 100, 0, True),
        (5, 95, 5, False),
        (6, 95, 5, True),
        (1, 90, 10, True),
        (1, 0, 0, True),
        (50, 10**6, 0, False),
        (51, 10**6, 0, True),
        (11, 10**6, 40, True),
    ],
)
def test_what_went_lately_is_counted_along(number: int, of: int, lately: int, needed: bool) -> None:
    assert needs_approval(number, of, 10, 50, lately) is needed


def test_only_the_last_day_is_kept() -> None:
    assert of_last_day({"75": 1, "76": 2, "100": 3}, 100) == {"76": 2, "100": 3}


def test_what_a_clock_noted_that_was_ahead_counts_from_now_on() -> None:
    assert of_last_day({"99": 1, "100": 2, "5000": 3}, 100) == {"99": 1, "100": 5}
