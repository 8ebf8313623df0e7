"""Whether a commit can be read somewhere: yes and no only where that is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.facts import CommitFacts
from core.readable import at_mirror, at_source

T = datetime(2026, 11, 21, tzinfo=UTC)


def commit(**more: Any) -> CommitFacts:
    """One that is complete, recorded at T and validated a second later."""
    known = {"record": "accepted", "data": "complete", "history": True, "recorded_at": T}
    return CommitFacts(commit_id="c", **({**known, "validated_at": T + timedelta(seconds=1)} | more))


@pytest.mark.parametrize(
    ("found", "answer", "told"),
    [
        (commit(), True, ""),
        (commit(record="pending"), False, "record is pending"),
        (commit(data="waiting"), False, "data is waiting"),
        (commit(data="gone"), False, "data is gone"),
        (commit(history=False), False, "descends from"),
        (commit(data="unknown"), None, "not checked"),
        (commit(data="unchecked"), None, "not checked"),
        (None, None, "not mirrored"),
    ],
)
def test_a_mirror_answers_by_what_has_arrived_and_was_checked(
    found: CommitFacts | None, answer: bool | None, told: str
) -> None:
    readable = at_mirror(found, state="active", damaged=False)
    assert (readable.answer, told in readable.reason) == (answer, True)


@pytest.mark.parametrize("state", ["creating", "stopped"])
def test_a_mirror_that_is_not_at_work_is_not_known(state: str) -> None:
    assert at_mirror(commit(), state=state, damaged=False).answer is None


@pytest.mark.parametrize(("damaged", "answer"), [(True, False), (None, None), (False, True)])
def test_damage_takes_it_back(damaged: bool | None, answer: bool | None) -> None:
    assert at_mirror(commit(), state="active", damaged=damaged).answer is answer


def test_it_is_readable_since_a_branch_showed_it_else_since_it_was_complete() -> None:
    later = T + timedelta(hours=1)
    assert at_mirror(commit(), state="active", damaged=False).since == T + timedelta(seconds=1)
    assert at_mirror(commit(promoted_at=later), state="active", damaged=False).since == later
    assert at_mirror(commit(superseded_at=later), state="active", damaged=False).since == later
    assert at_mirror(commit(recorded_at=None, validated_at=None), state="active", damaged=False).since is None


@pytest.mark.parametrize(
    ("given", "answer"),
    [({}, True), ({"frozen": True}, None), ({"looked_at": None}, None), ({"gone": True}, False)],
)
def test_the_source_answers_by_its_record_and_by_what_mirrors_found(given: dict[str, Any], answer: bool | None) -> None:
    known: dict[str, Any] = {"seen_at": T, "looked_at": T, "frozen": False, "gone": False}
    readable = at_source(**(known | given))
    assert readable.answer is answer
    assert readable.since == (T if answer else None)
