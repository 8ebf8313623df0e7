"""From when on the end of a key is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.notifications.expiry import told_from, urgent_from

MADE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "told", "urgent"),
    [(90, 76, 87), (30, 16, 27), (14, 7, 11), (7, 3.5, 4), (6.9, None, None), (0.5, None, None)],
)
def test_two_weeks_and_three_days_before_and_never_in_the_first_half_of_its_life(
    days: float, told: float | None, urgent: float | None
) -> None:
    ends = MADE + timedelta(days=days)
    assert told_from(MADE, ends) == (None if told is None else MADE + timedelta(days=told))
    assert urgent_from(MADE, ends) == (None if urgent is None else MADE + timedelta(days=urgent))
