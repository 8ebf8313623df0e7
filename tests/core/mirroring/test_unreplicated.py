"""Which commits do some heads lead to that others don't?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from core.mirroring.unreplicated import Painting, Tally, group_tally, say_loss

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)

# A - B - C - D        main at D
#      \\       \\
#       X - Y   M      side at Y, merged at M (parents C and Y)
HISTORY = {"M": ("C", "Y"), "D": ("C",), "Y": ("X",), "C": ("B",), "X": ("B",), "B": ("A",), "A": ()}


def led_to(groups: list[list[str]], kept: list[str]) -> tuple[dict[str, int], bool]:
    """Groups of each commit, and whether it ended before the history did."""
    painting, found = Painting(groups, kept), {}
    for sha, parents in HISTORY.items():
        if painting.done:
            return found, True
        if paint := painting.visit(sha, parents):
            found[sha] = paint
    return found, False


def test_what_a_kept_head_leads_to_is_no_loss() -> None:
    assert led_to([["D"]], ["B"])[0] == {"D": 1, "C": 1}
    assert led_to([["Y"]], ["M"])[0] == {}


def test_a_merged_branch_s_own_commits_count() -> None:
    assert set(led_to([["M"]], ["C"])[0]) == {"M", "Y", "X"}


def test_a_commit_may_belong_to_several_groups() -> None:
    assert led_to([["D", "Y"], ["D"], ["Y"]], ["A"])[0] == {"D": 0b11, "C": 0b11, "Y": 0b101, "X": 0b101, "B": 0b111}


def test_it_ends_where_all_is_kept() -> None:
    assert led_to([["D"]], ["C"]) == ({"D": 1}, True)


def test_a_group_s_tally_is_that_of_all_its_commits() -> None:
    tallies = {0b01: Tally(), 0b11: Tally()}
    tallies[0b01].add(7, "ada", NOW)
    tallies[0b11].add(9, "bob", NOW.replace(year=2025))
    first, second = (group_tally(tallies, number) for number in (0, 1))
    assert (first.commits, dict(first.authors), first.oldest, first.keys) == (
        2,
        {"ada": 1, "bob": 1},
        NOW.replace(year=2025),
        [7, 9],
    )
    assert (second.commits, second.keys) == (1, [9])
    assert group_tally(tallies, 5).oldest is None


def loss_in_words(commits: int = 0, *, authors: int = 1, **more: Any) -> str:
    tally = Tally()
    for number in range(commits):
        tally.add(number, f"a{number % authors}", NOW)
    given: dict[str, Any] = {"at_least": False, "objects": 0, "unchecked": 0, "unproven": 0, "seen": True}
    return str(say_loss(source_region="us-east-1", tally=tally, **given | more))


def test_a_loss_is_told_in_one_sentence() -> None:
    lost = "If us-east-1 failed now, 4 commits by a0 and a1 would be lost; "
    lost += "8,112 objects are missing or wrong at the mirror."
    assert loss_in_words(4, authors=2, objects=8112) == lost
    assert "at least 5 commits by a0, a1, a2 and 2 others" in loss_in_words(5, authors=5, at_least=True)
    fewer = "would be lost (branches are 17 commits behind, added up: some lack the same ones); all"
    assert fewer in loss_in_words(4, summed=17) and "(" not in loss_in_words(4, summed=4)
    more = "would be lost (with merged ones, which 'behind' leaves out: the branches are 1 commit behind); all"
    assert more in loss_in_words(4, summed=1)
    assert loss_in_words(1).endswith("; all of their objects have arrived.")
    assert "the objects of 1 commit have not been checked yet" in loss_in_words(2, objects=None, unchecked=1)


def test_commits_of_branches_that_seem_to_be_deleted_are_told_apart() -> None:
    only = "1 commit by a0 would be lost (only on branches that the last check did not find there any more); all"
    assert only in loss_in_words(1, leaving=1, summed=0)
    some = "3 commits by a0 would be lost (1 of them only on branches that the last check did not find there any more);"
    assert some in loss_in_words(3, leaving=1, summed=2)


def test_what_was_committed_since_the_last_look_is_not_known() -> None:
    unread = " us-east-1 was last read 10 min ago; what was committed there after that is not known."
    assert loss_in_words(unread_for=600).endswith(f"would be lost.{unread}")
    assert loss_in_words(2, unread_for=600, doubts=["what eu-west-1 has now is not known"]).endswith(f"known.{unread}")


def test_what_another_branch_has_is_not_lost() -> None:
    assert loss_in_words(summed=1).endswith("seen so far would be lost: what branches are behind is on others.")


def test_without_a_loss_or_a_look_that_is_told() -> None:
    assert loss_in_words() == "If us-east-1 failed now, no commit seen so far would be lost."
    assert "is not known" in loss_in_words(seen=False)


def test_branches_that_are_not_proven_whole_are_told_beside_a_loss() -> None:
    assert loss_in_words(unproven=2).endswith(
        "would be lost, but 2 branches show a commit that is not known to be complete."
    )
    assert loss_in_words(1, unproven=1).endswith(
        "have arrived, but 1 branch shows a commit that is not known to be complete."
    )
