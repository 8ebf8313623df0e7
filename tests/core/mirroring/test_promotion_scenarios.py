"""The scenarios of docs/promotion.md as pure cases: what was seen at the source, what is there, what to do.

Commits are letters. A scenario that is about data, calls or several loops is in tests/mirroring/test_scenarios.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from core.mirroring.promotion import (
    Action,
    CandidateCommit,
    Decision,
    PromotionFacts,
    Whose,
    Why,
    choose_promotion,
    superseded,
    whose_move,
    without_branch,
)
from core.mirroring.source_moves import changed_branches, describe_move, is_gone, is_valid_look

LINE = {"A": "", "B": "A", "C": "B"}
FORK = LINE | {"b": "A"}
MERGE = {"A": "", "F": "A", "G": "F", "M": "AG"}
ROOT = Path(__file__).resolve().parents[3]


class Branch:
    """A branch of the source as the sensor saw it: a head at each look. `parents`: of each commit, the main one first.

    `there`: commits of which record, metadata and objects are at the destination and checked; `gone`: those that lack
    something which neither side has.
    """

    def __init__(self, parents: dict[str, str], looks: str) -> None:
        self.parents = parents
        self.candidates: list[CandidateCommit] = []
        last = ""
        for head in looks:
            for name in changed_branches({"main": head}, {"main": last}):
                self._move(name, head, last)
            last = head

    def _move(self, name: str, head: str, last: str) -> None:
        move = describe_move(name, head, last, lambda commit: self.parents.get(commit, "")[:1])
        for commit, forward in move.candidates:
            self.candidates.append(CandidateCommit(commit, len(self.candidates), forward))

    def choose(
        self, there: str, *, at: str = "", head: str | None = None, gone: str = "", deleted: bool = False, **more: bool
    ) -> Decision:
        """`at`: where we moved the mirror's branch to last; `head`: what the destination says, if not that."""
        position = max((c.position for c in self.candidates if c.commit_id == at), default=-1)
        facts = PromotionFacts(
            candidates=[c for c in self.candidates if c.position >= position],
            head=at if head is None else head,
            noted=at,
            position=position,
            gone=deleted,
            **more,
        )
        return choose_promotion(facts, lambda commit: commit in there and self._is_sound(commit, there + gone))

    def _is_sound(self, commit: str, known: str) -> bool:
        return all(parent in known and self._is_sound(parent, known) for parent in self.parents.get(commit, ""))


def told(decision: Decision) -> tuple[Action, Why, str]:
    return decision.action, decision.why, decision.commit_id


def test_1_the_newest_complete_candidate_wins_while_the_head_waits() -> None:
    assert told(Branch(LINE, "AC").choose("AB", at="A")) == (Action.RESET, Why.ADVANCED, "B")


def test_2_the_head_follows_when_it_is_complete() -> None:
    assert told(Branch(LINE, "AC").choose("ABC", at="B")) == (Action.RESET, Why.ADVANCED, "C")


def test_3_what_is_passed_over_is_superseded() -> None:
    branch = Branch(LINE, "AC")
    decision = branch.choose("ABC", at="A")
    assert told(decision) == (Action.RESET, Why.ADVANCED, "C")
    assert superseded(branch.candidates, after=0, before=decision.position) == ["B"]


def test_4_a_complete_head_waits_for_an_ancestor_that_is_not() -> None:
    assert told(Branch(LINE, "AC").choose("AC", at="A")) == (Action.NOTHING, Why.WAITING, "A")


def test_5_an_ancestor_that_is_gone_at_both_sides_holds_nobody() -> None:
    assert told(Branch(LINE, "AC").choose("AC", at="A", gone="B")) == (Action.RESET, Why.ADVANCED, "C")


def test_6_and_38_a_head_that_needs_what_is_gone_is_never_chosen() -> None:
    assert told(Branch(LINE, "AC").choose("AB", at="B", gone="C")) == (Action.NOTHING, Why.WAITING, "B")


def test_7_a_merge_is_promoted_and_the_merged_commits_are_no_candidates() -> None:
    branch = Branch(MERGE, "AM")
    assert [c.commit_id for c in branch.candidates] == ["A", "M"]
    assert told(branch.choose("AFGM", at="A")) == (Action.RESET, Why.ADVANCED, "M")


def test_8_and_9_a_merge_waits_for_the_merged_commits_whether_their_branch_is_mirrored_or_not() -> None:
    assert told(Branch(MERGE, "AM").choose("AGM", at="A")) == (Action.NOTHING, Why.WAITING, "A")


def test_10_a_rewind_is_followed_and_recorded_as_such() -> None:
    assert told(Branch(FORK, "ACb").choose("ABCb", at="C")) == (Action.RESET, Why.REWOUND, "b")


def test_11_a_rewind_that_is_not_complete_leaves_the_branch_where_it_is() -> None:
    assert told(Branch(FORK, "ACb").choose("ABC", at="C")) == (Action.NOTHING, Why.WAITING, "C")


def test_12_the_branch_goes_back_when_the_source_did() -> None:
    assert told(Branch(LINE, "ACA").choose("ABC", at="C")) == (Action.RESET, Why.REWOUND, "A")


def test_13_a_move_there_and_back_between_two_looks_is_none() -> None:
    assert told(Branch(LINE, "ACC").choose("ABC", at="C")) == (Action.NOTHING, Why.UP_TO_DATE, "C")


def test_14_what_was_seen_before_an_incomplete_move_is_still_promoted() -> None:
    branch = Branch(LINE | {"X": ""}, "BCX")
    assert told(branch.choose("ABC", at="B")) == (Action.RESET, Why.ADVANCED, "C")
    assert told(branch.choose("ABC", at="C")) == (Action.NOTHING, Why.WAITING, "C")
    assert told(branch.choose("ABCX", at="C")) == (Action.RESET, Why.REWOUND, "X")


@pytest.mark.parametrize(("looks", "seconds", "gone"), [(1, 0, False), (2, 59, False), (2, 60, True), (1, 99, False)])
def test_15_a_branch_is_gone_after_two_looks_a_minute_apart(looks: int, seconds: float, gone: bool) -> None:
    assert is_gone(looks=looks, seconds=seconds) is gone


def test_16_a_branch_that_is_gone_is_deleted_but_never_the_default_one() -> None:
    branch = Branch(LINE, "AC")
    assert branch.choose("ABC", at="C", deleted=True).action is Action.DELETE
    assert told(branch.choose("ABC", at="C", deleted=True, default=True)) == (Action.NOTHING, Why.DEFAULT_STAYS, "C")
    assert branch.choose("ABC", at="C", head="", deleted=True).action is Action.NOTHING


def test_17_a_branch_that_is_back_elsewhere_was_moved() -> None:
    """One look without it changes no head: the next one finds a move from the last head that was seen."""
    assert told(Branch(FORK, "ACb").choose("ABCb", at="C")) == (Action.RESET, Why.REWOUND, "b")


def test_18_and_42_a_new_name_for_a_complete_commit_is_created_at_once() -> None:
    assert told(Branch(LINE, "C").choose("ABC")) == (Action.CREATE, Why.FIRST, "C")


def test_19_a_new_branch_has_pointed_to_what_was_seen_and_nothing_else() -> None:
    branch = Branch(LINE | {"X": "B", "Y": "X"}, "Y")
    assert told(branch.choose("ABX")) == (Action.NOTHING, Why.WAITING, "")


def test_20_a_first_sync_waits_for_the_head_as_first_seen_while_newer_ones_come() -> None:
    branch = Branch(LINE | {"D": "C"}, "BD")
    assert told(branch.choose("A")) == (Action.NOTHING, Why.WAITING, "")
    assert told(branch.choose("AB")) == (Action.CREATE, Why.FIRST, "B")


def test_20_an_inferred_candidate_is_shown_until_a_commit_that_was_seen_is_complete() -> None:
    """Below position -1, and only where the mirror may show them."""
    branch = Branch(LINE | {"D": "C"}, "CD")
    seen, a, b = branch.candidates, CandidateCommit("A", -3), CandidateCommit("B", -2)

    def choose(there: str, inferred: list[CandidateCommit], at: CandidateCommit | None = None) -> Decision:
        facts = PromotionFacts([*inferred, *seen])
        if at is not None:
            facts = replace(facts, head=at.commit_id, noted=at.commit_id, position=at.position)
        return choose_promotion(facts, there.__contains__)

    assert told(choose("A", [a])) == (Action.CREATE, Why.INFERRED, "A")
    assert told(choose("AB", [a, b], at=a)) == (Action.RESET, Why.INFERRED, "B")
    assert told(choose("AB", [a, b], at=b)) == (Action.NOTHING, Why.WAITING, "B")
    assert told(choose("A", [a, b], at=b)) == (Action.NOTHING, Why.WAITING, "B"), "never back"
    decision = choose("ABCD", [a, b], at=a)
    assert told(decision) == (Action.RESET, Why.ADVANCED, "D")
    assert superseded([a, b, *seen], after=-3, before=decision.position) == ["C"]


def test_20_an_inferred_candidate_is_put_back_where_somebody_moved_the_branch() -> None:
    facts = PromotionFacts([CandidateCommit("A", -2), CandidateCommit("B", 0)], head="Z", noted="A", position=-2)
    assert told(choose_promotion(facts, "A".__contains__)) == (Action.RESET, Why.REPAIRED, "A")


@pytest.mark.parametrize(("head", "condemned"), [("Z", False), ("B", True)])
def test_23_a_branch_that_somebody_moved_is_put_back(head: str, condemned: bool) -> None:
    """Elsewhere, or ahead of its data."""
    decision = Branch(LINE, "AC").choose("A", at="A", head=head, condemned=condemned)
    assert told(decision) == (Action.RESET, Why.REPAIRED, "A")


def test_23_where_our_books_may_have_lost_a_move_the_branch_is_not_put_back() -> None:
    """It stands where the source had it later, and nothing is known against that yet."""
    assert told(Branch(LINE, "AC").choose("A", at="A", head="B")) == (Action.NOTHING, Why.WAITING, "B")


def test_23_a_branch_that_somebody_deleted_is_made_again() -> None:
    assert told(Branch(LINE, "AC").choose("A", at="A", head="")) == (Action.CREATE, Why.REPAIRED, "A")


def test_23_a_branch_that_was_noted_as_gone_is_put_back_in_a_later_round_too() -> None:
    facts = PromotionFacts(candidates=Branch(LINE, "AC").candidates, position=0, misplaced=True)
    assert told(choose_promotion(facts, "A".__contains__)) == (Action.CREATE, Why.REPAIRED, "A")
    assert told(choose_promotion(facts, "AB".__contains__)) == (Action.CREATE, Why.ADVANCED, "B")
    assert told(choose_promotion(replace(facts, misplaced=False), "A".__contains__)) == (Action.CREATE, Why.FIRST, "A")


def test_23_a_branch_that_somebody_made_binds_us_to_nothing_and_is_not_deleted() -> None:
    branch = Branch(LINE, "AC")
    assert told(branch.choose("AB", head="C")) == (Action.NOTHING, Why.WAITING, "C"), "it may have been us"
    assert told(branch.choose("AB", head="C", condemned=True)) == (Action.RESET, Why.FIRST, "B")
    assert told(branch.choose("A", head="Z", deleted=True)) == (Action.NOTHING, Why.NOT_OURS, "")
    assert told(branch.choose("ABC", at="C", deleted=True, stray=True)) == (Action.NOTHING, Why.NOT_OURS, "")


def test_27_a_head_that_was_damaged_after_its_promotion_stays() -> None:
    assert told(Branch(LINE, "AC").choose("AB", at="C")) == (Action.NOTHING, Why.WAITING, "C")


def test_28_after_a_pause_the_newest_complete_one_is_chosen() -> None:
    letters = "ABCDEFGHIJ"
    branch = Branch(dict(zip(letters, ["", *letters], strict=False)), letters)
    assert told(branch.choose("ABCDEFGHI", at="A")) == (Action.RESET, Why.ADVANCED, "I")


def test_31_a_move_that_took_place_is_only_remembered() -> None:
    assert told(Branch(LINE, "AC").choose("ABC", at="A", head="C")) == (Action.NOTHING, Why.UP_TO_DATE, "C")


def test_32_after_two_workers_have_acted_the_newest_is_chosen_again() -> None:
    """The slower one moved the branch to B after the other had moved it to C and noted that."""
    assert told(Branch(LINE, "AC").choose("ABC", at="C", head="B")) == (Action.RESET, Why.REPAIRED, "C")


@pytest.mark.parametrize("heads", [{}, {"dev": "A"}])
def test_36_a_look_without_the_default_branch_is_none(heads: dict[str, str]) -> None:
    assert not is_valid_look(heads, "main")


def test_39_a_branch_that_was_made_from_another_begins_where_it_was_first_seen() -> None:
    branch = Branch({"A": "", "Y": "A", "Z": "Y"}, "Z")
    assert told(branch.choose("AY")) == (Action.NOTHING, Why.WAITING, "")
    assert told(branch.choose("AYZ")) == (Action.CREATE, Why.FIRST, "Z")


# --- the table --------------------------------------------------------------------------------------------------------

FILES = {
    "core": "tests/core/mirroring/test_promotion_scenarios.py",
    "loops": "tests/mirroring/test_scenarios.py",
    "selection": "tests/mirrors/transitions/test_selection.py",
    "tags": "tests/mirroring/test_tags.py",
    "sandbox": "tests/e2e/test_scenarios.py",
    "damage": "tests/mirroring/test_promise_scenarios.py",
    "cases": "tests/mirroring/test_promise_findings.py",
    "rebuild": "tests/mirrors/services/test_rebuild.py",
    "breaking": "tests/mirroring/test_found_by_breaking.py",
    "records": "tests/mirroring/test_lost_records.py",
    "recreated": "tests/mirroring/test_recreated_source.py",
    "unread": "tests/mirrors/status/test_unread_heads.py",
    "looks": "tests/mirroring/test_looks_again.py",
    "adopted": "tests/mirroring/test_adopted_heads.py",
    "answers": "tests/contract/test_lakefs_unheard.py",
    "anew": "tests/mirroring/test_recreated_unread.py",
    "unseen": "tests/mirroring/test_tags_unseen.py",
    "deletions": "tests/mirroring/test_deletions.py",
    "known": "tests/mirroring/test_known_wrong.py",
    "kept": "tests/mirroring/test_known_wrong_kept.py",
    "pieces": "tests/mirroring/test_read_in_pieces.py",
    "loss": "tests/mirrors/queries/test_loss.py",
    "key": "tests/mirroring/test_one_key.py",
    "regions": "tests/mirrors/status/test_readable_regions.py",
    "demand": "tests/mirroring/test_validations.py",
    "database": "tests/mirroring/test_promise_database.py",
    "servers": "tests/e2e/test_promise.py",
    "told": "tests/mirrors/status/test_told_no_better.py",
    "blind": "tests/mirrors/status/test_destination_unseen.py",
    "unchecked": "tests/mirrors/status/test_unchecked.py",
    "cached": "tests/mirroring/test_cached_answers.py",
    "restored": "tests/mirroring/test_restored_books.py",
    "waived": "tests/mirroring/test_waived_objects.py",
    "sweeps": "tests/mirroring/test_sweeps.py",
    "descriptor": "tests/mirroring/test_sweeps_after_rebuild.py",
}


def numbers_of(file: str) -> set[int]:
    """Those in the names of a file's tests: test_7_8_and_9_a_merged_branch gives 7, 8 and 9."""
    names = re.findall(r"^def (?:test|play)_((?:\d+_|and_)+)", (ROOT / file).read_text(), re.MULTILINE)
    return {int(number) for name in names for number in re.findall(r"\d+", name)}


def test_the_table_names_every_scenario_and_where_it_is_tested() -> None:
    lines = (ROOT / "docs/promotion.md").read_text().splitlines()
    rows = {int(row[1]): row for line in lines if (row := line.split("|"))[1:] and row[1].strip().isdigit()}
    assert sorted(rows) == [*range(1, len(rows) + 1)]
    for name, file in FILES.items():
        assert numbers_of(file) == {number for number, row in rows.items() if name in row[-2]}, file
    assert all(row[-2].strip() for row in rows.values())


def test_115_what_we_deleted_is_not_made_where_it_was() -> None:
    facts = PromotionFacts([CandidateCommit("A", 1), CandidateCommit("X", 3)], noted="A", position=1, anew=True)
    assert choose_promotion(without_branch(facts), "A".__contains__).action is Action.NOTHING
    assert choose_promotion(without_branch(facts), "AX".__contains__).commit_id == "X"


def test_115_what_somebody_moved_before_the_source_made_it_anew_is_put_back() -> None:
    facts = PromotionFacts([CandidateCommit("A", 1)], head="F", noted="A", position=1, anew=True)
    assert whose_move(facts) is Whose.OTHERS
    assert choose_promotion(facts, "A".__contains__) == Decision(Action.RESET, Why.REPAIRED, "A", 1)
