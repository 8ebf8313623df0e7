"""Whether a commit can be read somewhere: yes and no only where that is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.mirroring.facts import CommitFacts
from core.mirroring.judgement import CommitProof, judge_commit
from core.mirroring.readable_regions import Readable, at_mirror, at_source

T = datetime(2026, 11, 21, tzinfo=UTC)


Found = tuple[CommitFacts, CommitProof]


def commit(**more: Any) -> Found:
    """One that is complete, recorded at T and validated a second later, and what is proven of it."""
    known = {"record": "accepted", "data": "complete", "history": True, "recorded_at": T}
    known |= {"validated_at": T + timedelta(seconds=1), "metarange": "complete", "ranges": 1, "proven": 1}
    told = known | {"problems": 0, "gone": 0} | more
    proof = {name: told.pop(name) for name in ("metarange", "ranges", "proven", "problems", "gone")}
    proven = CommitProof(record=told["record"], history=told["history"], waived=False, **proof)
    return CommitFacts(commit_id="c", **told), proven


def read(found: Found | None, state: str = "active") -> Readable:
    """What is told of it."""
    facts, proof = found or (None, None)
    return at_mirror(facts, judge_commit(proof), state=state)


@pytest.mark.parametrize(
    ("found", "answer", "told"),
    [
        (commit(), True, ""),
        (commit(record="pending"), False, "record is pending"),
        (commit(data="waiting", problems=2), False, "2 objects of it are missing or wrong"),
        (commit(data="gone", problems=1, gone=1), False, "missing on both sides"),
        (commit(history=False), False, "descends from"),
        (commit(data="unknown", proven=0), None, "not been checked"),
        (commit(data="unchecked", proven=0), None, "not been checked"),
        (commit(metarange="waiting"), None, "its metarange is waiting"),
        (commit(ranges=None), None, "has not been read"),
        (None, None, "not mirrored"),
    ],
)
def test_a_mirror_answers_by_what_the_judge_finds(found: Found | None, answer: bool | None, told: str) -> None:
    readable = read(found)
    assert (readable.answer, told in readable.reason) == (answer, True)


@pytest.mark.parametrize("state", ["creating", "stopped"])
def test_a_mirror_that_is_not_at_work_is_not_known(state: str) -> None:
    assert read(commit(), state).answer is None


def test_damage_takes_it_back() -> None:
    readable = read(commit(problems=1))
    assert (readable.answer, "damaged now" in readable.reason) == (False, True)


def test_it_is_readable_since_a_branch_showed_it_else_since_it_was_complete() -> None:
    later = T + timedelta(hours=1)
    assert read(commit()).since == T + timedelta(seconds=1)
    assert read(commit(promoted_at=later)).since == later
    assert read(commit(superseded_at=later)).since == later
    assert read(commit(recorded_at=None, validated_at=None)).since is None


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({}, True),
        ({"frozen": True}, None),
        ({"looked_at": None}, None),
        ({"gone": True}, False),
        ({"gone": None}, None),
    ],
)
def test_the_source_answers_by_its_record_and_by_what_mirrors_found(given: dict[str, Any], answer: bool | None) -> None:
    known: dict[str, Any] = {"seen_at": T, "looked_at": T, "frozen": False, "gone": False}
    readable = at_source(**(known | given))
    assert readable.answer is answer
    assert readable.since == (T if answer else None)
