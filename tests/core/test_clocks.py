"""What the Date of an answer tells of the other clock."""

from __future__ import annotations

import pytest

from core.clocks import seconds_ahead

NOON = "Sat, 21 Nov 2026 12:00:00 GMT"
AT = 1_795_262_400.0


@pytest.mark.parametrize(
    ("asked", "answered", "ahead"),
    [
        (AT + 0.2, AT + 0.4, 0.0),  # within the second that the header names
        (AT - 0.5, AT + 0.1, 0.0),
        (AT + 0.9, AT + 1.5, 0.0),
        (AT - 40, AT - 30, 30.0),
        (AT + 61, AT + 62, -60.0),
    ],
)
def test_only_what_the_way_there_and_back_can_not_explain_is_a_difference(
    asked: float, answered: float, ahead: float
) -> None:
    assert seconds_ahead(NOON, asked, answered) == ahead


@pytest.mark.parametrize("date", ["", "yesterday", "21 Foo 2026"])
def test_what_is_no_date_tells_nothing(date: str) -> None:
    assert seconds_ahead(date, AT, AT) is None
