"""One limit, shared by priority."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.shared_limits import HEADROOM, Sharer, shares

LIMIT = 100.0


def lived(wants: dict[int, float], priorities: dict[int, int], rounds: int = 12) -> list[dict[int, float]]:
    """What each uses in each round, of those that want so much."""
    told: list[dict[int, float]] = []
    used: dict[int, float] = dict.fromkeys(wants, 0.0)
    share: dict[int, float | None] = dict.fromkeys(wants, None)
    for _ in range(rounds):
        found = shares(LIMIT, [Sharer(key, priorities[key], used[key], share[key]) for key in wants])
        share = dict(found)
        used = {key: min(wants[key], found[key]) for key in wants}
        told.append(used)
    return told


def test_35_the_first_gets_what_it_can_use_and_the_second_the_rest() -> None:
    used = lived({1: 60.0, 2: 1000.0}, {1: 1, 2: 2})[-1]
    assert used[1] == 60 and used[2] == pytest.approx(LIMIT - 60 * HEADROOM)


def test_35_the_second_never_has_nothing() -> None:
    for used in lived({1: 1000.0, 2: 1000.0}, {1: 1, 2: 2}):
        assert used[2] == 5 and used[1] == 95


def test_35_what_nobody_uses_is_given_on() -> None:
    used = lived({1: 2.0, 2: 1.0, 3: 1000.0}, {1: 0, 2: 1, 3: 2})[-1]
    assert used[1] == 2 and used[2] == 1 and used[3] > 85


def test_who_wants_more_again_has_it_in_a_few_rounds() -> None:
    shared = lived({1: 2.0, 2: 1000.0}, {1: 1, 2: 2})[-1]
    assert shared[2] > 90
    after = shares(LIMIT, [Sharer(1, 1, 5.0, 5.0), Sharer(2, 2, 90.0, 95.0)])
    assert after[1] == 95


def test_those_of_one_priority_share_alike() -> None:
    used = lived({1: 1000.0, 2: 1000.0, 3: 1000.0}, {1: 0, 2: 0, 3: 0})[-1]
    assert list(used.values()) == pytest.approx([LIMIT / 3] * 3)


def test_an_own_limit_is_never_passed_and_what_is_left_of_it_given_on() -> None:
    found = shares(LIMIT, [Sharer(1, 1, most=20.0), Sharer(2, 2)])
    assert found[1] == pytest.approx(20) and found[2] == pytest.approx(80)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(0, 1e9), st.none() | st.floats(0, 1e9), st.floats(0, 1e9)), max_size=30
    )
)
def test_all_together_have_no_more_than_the_limit_and_each_has_something(
    told: list[tuple[int, float, float | None, float]],
) -> None:
    sharers = [Sharer(key, *one) for key, one in enumerate(told)]
    found = shares(LIMIT, sharers)
    assert set(found) == {one.key for one in sharers}
    assert sum(found.values()) <= LIMIT * 1.000001 and all(share > 0 for share in found.values())
