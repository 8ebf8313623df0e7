"""Which keys are copied."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.replicating.eligible import fits, in_time, is_copied

MADE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("key", ["a", "a/", "..", "a/../b", " ", "é" * 512, "a_lakemirror/x", "_lakemirrors"])
def test_keys_of_people_are_copied(key: str) -> None:
    assert is_copied(key)


@pytest.mark.parametrize(
    "key", ["", "_lakemirror/", "_lakemirror/x", "ns/_lakemirror/mirror.json", "a/_lakemirror_probe_1f"]
)
def test_what_lakemirror_keeps_or_tries_is_not(key: str) -> None:
    assert not is_copied(key)


def test_how_long_a_key_may_be_is_counted_in_bytes_at_the_target() -> None:
    assert fits("", "é" * 512)
    assert not fits("p/", "é" * 512)
    assert fits("p/", "k" * 1022)


@pytest.mark.parametrize(
    ("existing", "new", "before", "after", "unknown"),
    [
        (True, True, True, True, True),
        (True, False, True, False, True),
        (False, True, False, True, True),
        (False, False, False, False, False),
    ],
)
def test_objects_from_before_and_after_the_rule(
    existing: bool, new: bool, before: bool, after: bool, unknown: bool
) -> None:
    def wanted(modified: datetime | None) -> bool:
        return in_time(modified, MADE, existing=existing, new=new)

    assert wanted(MADE - timedelta(seconds=1)) is before
    assert wanted(MADE + timedelta(seconds=1)) is after
    assert wanted(MADE) is unknown
    assert wanted(None) is unknown
