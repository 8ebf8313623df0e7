"""When a link is down or blocked, and when something is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.replicating.health import REFUSALS, Standing, Tally, after, answered
from core.replicating.outcomes import Kind, Outcome
from core.replicating.retries import LONGEST, pause_after, probe_pause
from core.replicating.states import Code, Health

T = datetime(2026, 1, 1, tzinfo=UTC)
DONE = Outcome(Kind.DONE)
SILENT = Outcome(Kind.SILENT, Code.TARGET_DOWN, "nobody answers")
REFUSED = Outcome(Kind.REFUSED, Code.TARGET_DENIED, "403")
FULL = Outcome(Kind.REFUSED, Code.TARGET_FULL, "507")
BUSY = Outcome(Kind.RETRY, Code.TARGET_FAILED, "500")


def at(seconds: float) -> datetime:
    return T + timedelta(seconds=seconds)


def through(*told: tuple[Outcome, float], standing: Standing | None = None) -> Standing:
    """What follows from these, each so many seconds after the beginning."""
    standing = standing or Standing()
    for outcome, seconds in told:
        standing = after(standing, outcome, at(seconds))
    return standing


def test_three_silences_within_ten_seconds_are_down() -> None:
    two = through((SILENT, 0), (SILENT, 5))
    assert two.state is Health.UP
    down = through((SILENT, 9), standing=two)
    assert (down.state, down.since, down.code, down.message) == (
        Health.DOWN,
        at(9),
        Code.TARGET_DOWN,
        "nobody answers",
    )
    assert through((SILENT, 11), (SILENT, 22), standing=two).state is Health.UP


def test_an_answer_in_between_begins_the_count_anew() -> None:
    assert through((SILENT, 0), (SILENT, 1), (DONE, 2), (SILENT, 3)).state is Health.UP
    heard = answered(through((SILENT, 0), (SILENT, 1)), at(2))
    assert through((SILENT, 3), standing=heard).state is Health.UP


def test_who_is_down_is_tried_after_growing_pauses_until_it_answers() -> None:
    standing = through((SILENT, 0), (SILENT, 0), (SILENT, 0))
    now, pauses = 0.0, []
    for _ in range(8):
        assert standing.probe_at is not None
        pauses.append((standing.probe_at - at(now)).total_seconds())
        assert not standing.may_try(at(now))
        now += pauses[-1]
        assert standing.may_try(at(now))
        standing = after(standing, SILENT, at(now))
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert standing.since == T
    up = answered(standing, at(now))
    assert (up.state, up.since, up.probe_at, up.code) == (Health.UP, at(now), None, "")


def test_who_is_down_and_then_refuses_is_up_again() -> None:
    down = through(*[(SILENT, 0)] * 3)
    assert after(down, REFUSED, at(1)).state is Health.UP


def test_a_probe_that_is_put_off_leaves_it_down() -> None:
    down = through(*[(SILENT, 0)] * 3, (BUSY, 1))
    assert (down.state, down.code, down.message) == (Health.DOWN, Code.TARGET_DOWN, "500")


def test_twenty_refusals_of_one_kind_in_a_row_block() -> None:
    almost = through(*[(REFUSED, 0)] * (REFUSALS - 1))
    assert almost.state is Health.UP
    blocked = after(almost, REFUSED, at(7))
    assert (blocked.state, blocked.code, blocked.probe_at) == (Health.BLOCKED, Code.TARGET_DENIED, at(67))
    assert after(almost, FULL, T).state is Health.UP
    assert after(after(almost, DONE, T), REFUSED, T).state is Health.UP


def test_right_after_something_arrived_refusals_are_of_single_objects() -> None:
    blocked = through(*[(REFUSED, 0)] * REFUSALS)
    up = after(blocked, DONE, at(60))
    refused = through(*[(REFUSED, 69)] * 50, standing=up)
    assert refused.state is Health.UP
    assert through((REFUSED, 70), standing=refused).state is Health.BLOCKED


def test_what_a_clock_that_was_ahead_has_noted_counts_neither_for_nor_against_it() -> None:
    up = Standing(Health.UP, at(86_400))
    assert through(*[(REFUSED, 0)] * REFUSALS, standing=up).state is Health.BLOCKED
    ahead = through((SILENT, 86_400), (SILENT, 86_401))
    assert through((SILENT, 0), standing=ahead).state is Health.UP
    down = through((SILENT, 86_402), standing=ahead)
    assert down.state is Health.DOWN and down.may_try(at(0)) and not down.may_try(at(86_402))


def test_who_is_blocked_is_probed_once_a_minute_until_something_arrives() -> None:
    blocked = through(*[(REFUSED, 0)] * REFUSALS, (FULL, 60))
    assert (blocked.state, blocked.code, blocked.probe_at) == (Health.BLOCKED, Code.TARGET_FULL, at(120))
    assert not blocked.may_try(at(119)) and blocked.may_try(at(120))
    assert after(blocked, DONE, at(120)).state is Health.UP
    assert answered(blocked, at(120)).state is Health.BLOCKED


@pytest.mark.parametrize("kind", [Kind.GONE, Kind.SKIPPED, Kind.LATE, Kind.CHANGED, Kind.RETRY])
def test_what_says_nothing_of_the_target_changes_nothing(kind: Kind) -> None:
    almost = through(*[(REFUSED, 0)] * (REFUSALS - 1))
    assert after(almost, Outcome(kind), T) == almost


@given(st.lists(st.sampled_from([DONE, SILENT, REFUSED, FULL, BUSY]), max_size=60))
def test_it_always_can_be_tried_again_and_is_kept_as_it_is(outcomes: list[Outcome]) -> None:
    standing = through(*((outcome, number) for number, outcome in enumerate(outcomes)))
    assert (standing.probe_at is None) is (standing.state is Health.UP)
    assert standing.may_try(at(len(outcomes) + 61))
    assert Tally.of_json(standing.tally.as_json()) == standing.tally
    assert after(standing, DONE, T).state is Health.UP


def test_pauses_of_an_object_grow_fourfold_up_to_an_hour() -> None:
    assert [pause_after(attempts, 1.0) for attempts in (1, 2, 3, 6, 7, 99)] == [1, 4, 16, 1024, LONGEST, LONGEST]
    assert pause_after(1, 0.0) == 0.5
    assert pause_after(1, 0.5, asked=30.0) == 30.0
    assert probe_pause(99) == 30.0
