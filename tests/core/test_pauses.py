"""What is said of a pause, and what may be said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.errors import Invalid
from core.pauses import ENDED, LONGEST, Pause, columns_of, of_json, of_pause, recorded, to_json

NOW = datetime(2026, 1, 31, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("pause", "told"),
    [
        (Pause(), "paused"),
        (Pause(by="olga", at=NOW), "paused"),
        (Pause(by="olga", reason="new disks."), "paused by olga (new disks)"),
        (Pause(by="olga", until=NOW + HOUR), "paused by olga, meant to end at 2026-01-31 23:00 UTC"),
        (Pause("new disks", NOW - HOUR), "paused (new disks), meant to end at 2026-01-31 21:00 UTC, 1 h ago"),
    ],
)
def test_a_pause_says_who_why_and_until_when(pause: Pause, told: str) -> None:
    assert str(pause.told(NOW)) == told


def test_it_is_overdue_from_its_end_on() -> None:
    ends = Pause(until=NOW)
    assert [ends.is_overdue(NOW + timedelta(seconds=by)) for by in (-1, 0, 1)] == [False, True, True]
    assert not Pause().is_overdue(NOW)
    told = str(Pause("new disks", NOW - HOUR, by="olga").overdue("lake-eu", NOW))
    assert told.startswith(
        "lake-eu was paused by olga (new disks), meant to end at 2026-01-31 21:00 UTC, 1 h ago, and still is. "
    )


def test_what_is_not_said_of_one_that_goes_on_stays() -> None:
    begun = columns_of(None, {"pause_reason": "x"}, by="olga", now=NOW)
    assert begun == {
        "paused": True,
        "pause_reason": "x",
        "paused_until": None,
        "paused_at": NOW,
        "paused_by": "olga",
    }
    assert columns_of(Pause("x"), {"paused_until": NOW + HOUR}, by="tom", now=NOW) == {
        "paused": True,
        "paused_until": NOW + HOUR,
    }


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"pause_reason": "x" * 201}, "reason"),
        ({"pause_reason": "a\nb"}, "reason"),
        ({"paused_until": NOW}, "until"),
        ({"paused_until": NOW + LONGEST + HOUR}, "until"),
    ],
)
def test_what_can_not_be_is_refused_by_its_field(stated: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        columns_of(None, stated, by="olga", now=NOW)
    assert refused.value.field == field


def test_the_record_has_the_end_as_text() -> None:
    assert recorded({"paused": True, "paused_until": NOW, "paused_at": NOW, "paused_by": "olga"}) == {
        "paused": True,
        "paused_until": "2026-01-31 22:00:00 UTC",
    }


@pytest.mark.parametrize("pause", [Pause(), Pause("new disks"), Pause("new disks", NOW + HOUR, NOW, "olga")])
def test_a_file_holds_what_was_said_of_a_pause_and_no_more(pause: Pause) -> None:
    held = to_json(pause)
    assert of_json(held) == pause and len(held) == sum(map(bool, (pause.reason, pause.until, pause.at, pause.by)))
    assert of_pause(pause).keys() == ENDED.keys() and of_pause(pause)["paused"] and of_pause(None) == ENDED


@pytest.mark.parametrize("held", [{"reason": 1}, {"reason": "x" * 201}, {"until": "soon"}, {"at": None}, {"by": []}])
def test_a_damaged_file_is_told_so(held: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=f"'{next(iter(held))}'"):
        of_json(held)
