"""Which commits do some heads lead to that others don't?"""

from __future__ import annotations

from datetime import UTC, datetime

from core.loss import Painting, Tally, group_tally

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
