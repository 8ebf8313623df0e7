"""A commit's life as five steps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from core.mirroring.explain.commit_steps import CommitStep, Rung, climb
from core.mirroring.facts import CommitFacts, Thing
from core.mirroring.states import Stage

SEEN = datetime(2026, 11, 21, 9, 2, 7, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return SEEN + timedelta(seconds=seconds)


def ladder(stage: Stage, **facts: Any) -> tuple[CommitStep, ...]:
    commit = CommitFacts(commit_id="a1b2c3d4" * 8, **facts)
    return climb(commit, seen_at=SEEN, stage=stage, region="eu-west-1", source_region="us-east-1")


def rungs(steps: tuple[CommitStep, ...]) -> list[Rung]:
    return [step.rung for step in steps]


def test_a_commit_that_was_just_seen_has_four_steps_before_it() -> None:
    steps = climb(None, seen_at=SEEN, stage=Stage.WAITING, region="eu-west-1", source_region="us-east-1")
    assert rungs(steps) == [Rung.DONE, Rung.NOW, Rung.TODO, Rung.TODO, Rung.TODO]


def test_times_count_from_the_first_sight() -> None:
    steps = ladder(Stage.CHECKING, record="accepted", recorded_at=after(1.2), metadata_at=after(3.8))
    assert [step.after for step in steps] == [0, 1.2, 3.8, None, None]
    assert str(steps[3].note) == "being validated"


def test_a_blocked_commit_says_at_its_step_what_it_lacks() -> None:
    thing = Thing(kind="object", holder_id="r", address="x", reason="missing", first_seen=SEEN)
    steps = ladder(
        Stage.BLOCKED,
        record="accepted",
        data="waiting",
        recorded_at=after(1),
        metadata_at=after(2),
        things=(thing,),
        lacking=3,
    )
    assert steps[3].rung is Rung.BLOCKED
    assert str(steps[3].note) == "3 objects missing for a1b2c3d4"


def test_a_complete_commit_with_an_incomplete_ancestor_waits_for_it() -> None:
    steps = ladder(Stage.WAITING, record="accepted", data="complete", recorded_at=after(1), metadata_at=after(2))
    assert str(steps[3].note) == "waits for its ancestors"


def test_a_promoted_commit_is_at_the_top() -> None:
    steps = ladder(Stage.HEAD, recorded_at=after(1), metadata_at=after(2), validated_at=after(3), promoted_at=after(4))
    assert rungs(steps) == [Rung.DONE] * 5
    assert steps[4].name == "Promoted"


def test_a_commit_that_was_passed_ends_superseded() -> None:
    steps = ladder(
        Stage.PAST, recorded_at=after(1), metadata_at=after(2), validated_at=after(3), superseded_at=after(4)
    )
    assert (steps[4].name, steps[4].after) == ("Superseded", 4)


def test_history_that_was_copied_before_the_branch_pointed_to_it_has_no_negative_times() -> None:
    assert ladder(Stage.PAST, recorded_at=after(-600))[1].after is None
