"""What holds for every choice. The numbered scenarios are in test_promotion_scenarios.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mirroring.promotion import (
    UNKNOWN,
    Action,
    CandidateCommit,
    Decision,
    OwnMove,
    PromotionFacts,
    Whose,
    Why,
    choose_promotion,
    own_move,
    whose_move,
)


def facts(seen: str, *, head: str = "", position: int | None = None, moves: str = "", **more: bool) -> PromotionFacts:
    """`seen`: candidates in order, a letter each; `moves`: letters that were no fast-forward."""
    candidates = [CandidateCommit(letter, n, letter not in moves) for n, letter in enumerate(seen)]
    where = position if position is not None else (seen.index(head) if head in seen and head else -1)
    noted = seen[where] if where >= 0 else ""
    return PromotionFacts([c for c in candidates if c.position >= where], head, noted, where, **more)


def choose(seen: str, arrived: str, **more: object) -> Decision:
    return choose_promotion(facts(seen, **more), lambda commit: commit in arrived)  # type: ignore[arg-type]


def test_a_branch_of_unknown_position_is_found_by_its_head() -> None:
    assert choose("ABC", "AB", head="B", position=-1) == Decision(Action.NOTHING, Why.WAITING, "B", 1)


def test_a_branch_of_unknown_position_that_we_know_as_ours_does_not_go_back() -> None:
    facts = PromotionFacts([CandidateCommit("A", 0), CandidateCommit("B", 1)], head="B", noted="B")
    assert choose_promotion(facts, "A".__contains__) == Decision(Action.NOTHING, Why.WAITING, "B", 1)


@pytest.mark.parametrize("head", ["", "B"])
def test_a_crash_before_the_source_made_a_branch_anew_blames_nobody(head: str) -> None:
    """We deleted it, or moved it to B, and wrote no more down than that we would; its former candidates are gone."""
    put = [CandidateCommit("A", 1), CandidateCommit("X", 3)]
    facts = PromotionFacts(put, head=head, noted="A", position=1, intended=frozenset({head}), anew=True)
    assert whose_move(facts) is Whose.OURS
    assert own_move(facts, 2 if head else UNKNOWN) is (OwnMove.MOVED if head else OwnMove.DELETED)
    assert choose_promotion(facts, "X".__contains__).commit_id == "X"


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
