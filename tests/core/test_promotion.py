"""The promotion scenarios as pure cases: what the branch should point at, and why. Numbers are the scenarios'."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.promotion import Action, BranchFacts, CandidateCommit, Decision, Why, choose_promotion, superseded


def facts(seen: str, *, head: str = "", position: int | None = None, moves: str = "", **more: bool) -> BranchFacts:
    """`seen`: candidates in order, a letter each; `moves`: letters that were no fast-forward."""
    candidates = [CandidateCommit(letter, n, letter not in moves) for n, letter in enumerate(seen)]
    where = position if position is not None else (seen.index(head) if head in seen and head else -1)
    noted = seen[where] if where >= 0 else ""
    return BranchFacts([c for c in candidates if c.position >= where], head, noted, where, **more)


def choose(seen: str, arrived: str, **more: object) -> Decision:
    return choose_promotion(facts(seen, **more), lambda commit: commit in arrived)  # type: ignore[arg-type]


def test_1_the_newest_complete_candidate_wins_while_the_head_waits() -> None:
    assert choose("ABC", "AB", head="A") == Decision(Action.RESET, Why.ADVANCED, "B", 1)


def test_2_the_head_follows_when_it_is_complete() -> None:
    assert choose("ABC", "ABC", head="B") == Decision(Action.RESET, Why.ADVANCED, "C", 2)


def test_3_intermediate_commits_are_superseded() -> None:
    decision = choose("ABC", "ABC", head="A")
    assert (decision.commit_id, decision.action) == ("C", Action.RESET)
    assert superseded(facts("ABC", head="A").candidates, after=0, before=2) == ["B"]


def test_4_nothing_moves_while_nothing_newer_is_complete() -> None:
    assert choose("ABC", "A", head="A") == Decision(Action.NOTHING, Why.WAITING, "A", 0)


def test_10_a_force_push_is_followed_and_recorded_as_such() -> None:
    assert choose("ACB", "ACB", head="C", moves="B") == Decision(Action.RESET, Why.REWOUND, "B", 2)


def test_11_a_rewind_that_is_not_complete_leaves_the_branch_where_it_is() -> None:
    assert choose("ACB", "AC", head="C", moves="B") == Decision(Action.NOTHING, Why.WAITING, "C", 1)


def test_12_the_branch_goes_back_when_the_source_did() -> None:
    seen = [CandidateCommit("A", 0), CandidateCommit("B", 1), CandidateCommit("C", 2), CandidateCommit("A", 3, False)]
    decision = choose_promotion(BranchFacts(seen[2:], "C", "C", 2), lambda _: True)
    assert decision == Decision(Action.RESET, Why.REWOUND, "A", 3)


def test_14_a_candidate_before_an_incomplete_move_is_still_promoted() -> None:
    assert choose("BCX", "BC", head="B", moves="X").commit_id == "C"


def test_16_a_branch_that_is_gone_is_deleted_but_never_the_default_one() -> None:
    assert choose("AC", "AC", head="C", gone=True).action is Action.DELETE
    assert choose("AC", "AC", head="C", gone=True, default=True) == Decision(Action.NOTHING, Why.DEFAULT_STAYS, "C", 1)


def test_16_a_branch_that_is_gone_at_both_sides_needs_nothing() -> None:
    assert choose("AC", "AC", gone=True).action is Action.NOTHING


def test_18_a_new_branch_at_a_complete_commit_is_created_at_once() -> None:
    assert choose("C", "C") == Decision(Action.CREATE, Why.FIRST, "C", 0)


def test_19_and_20_a_new_branch_waits_for_the_head_that_was_seen() -> None:
    assert choose("X", "") == Decision(Action.NOTHING, Why.WAITING, "", -1)


def test_23_a_branch_that_somebody_moved_is_put_back() -> None:
    assert choose("AB", "AB", head="Z", position=1) == Decision(Action.RESET, Why.REPAIRED, "B", 1)


def test_28_after_a_pause_the_newest_complete_one_is_chosen() -> None:
    assert choose("ABCDEFGHIJ", "ABCDEFGHI", head="A").commit_id == "I"


def test_31_a_move_that_took_place_is_only_remembered() -> None:
    assert choose("ABC", "ABC", head="C", position=0) == Decision(Action.NOTHING, Why.UP_TO_DATE, "C", 2)


def test_a_branch_of_unknown_position_is_found_by_its_head() -> None:
    assert choose("ABC", "AB", head="B", position=-1) == Decision(Action.NOTHING, Why.WAITING, "B", 1)


letters = st.text("ABCDEFGH", min_size=1, max_size=12)


@given(seen=letters, arrived=st.sets(st.sampled_from("ABCDEFGH")), at=st.integers(-1, 11))
def test_a_branch_never_points_at_what_is_not_promotable_or_older(seen: str, arrived: set[str], at: int) -> None:
    position = min(at, len(seen) - 1)
    head = seen[position] if position >= 0 else ""
    decision = choose(seen, "".join(arrived), head=head, position=position)
    if decision.action in (Action.CREATE, Action.RESET):
        assert decision.commit_id in arrived
        assert seen[decision.position] == decision.commit_id
        assert decision.position > position
        assert not any(letter in arrived for letter in seen[decision.position + 1 :])


@given(seen=letters, arrived=st.sets(st.sampled_from("ABCDEFGH")))
def test_a_second_round_finds_nothing_to_do(seen: str, arrived: set[str]) -> None:
    first = choose(seen, "".join(arrived))
    if first.position >= 0:
        second = choose(seen, "".join(arrived), head=first.commit_id, position=first.position)
        assert second.action is Action.NOTHING


@pytest.mark.parametrize("arrived", ["", "A", "AB"])
def test_a_waiting_branch_says_so(arrived: str) -> None:
    assert choose("ABC", arrived, head=arrived[-1:] or "").why in (Why.WAITING, Why.FIRST)
