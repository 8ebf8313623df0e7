"""How late a branch was, from its moves and the commits that it had not reached."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.mirroring.rpo import Stand, worst_lags

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
STEP = timedelta(minutes=5)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def lags(*stands: Stand, now: float = 20, steps: int = 4) -> list[float | None]:
    return worst_lags(stands, NOON, STEP, steps, at(now))


def test_a_branch_is_late_from_when_the_next_commit_was_seen_until_it_moves() -> None:
    assert lags(Stand(at(-60), waits_since=at(2)), Stand(at(8))) == [180, 360, 0, 0]


def test_what_waited_before_the_first_step_is_late_from_there_on() -> None:
    assert lags(Stand(at(-60), waits_since=at(-10))) == [900, 1200, 1500, 1800]


def test_a_step_tells_its_worst_moment_however_many_moves_it_holds() -> None:
    moves = [Stand(at(-1), at(0)), Stand(at(1), at(1)), Stand(at(4), at(4)), Stand(at(4.5))]
    assert lags(*moves)[0] == 180


def test_nothing_is_known_before_the_first_move_and_after_now() -> None:
    assert lags(Stand(at(6)), now=12) == [None, 0, 0, None]


def test_what_somebody_else_put_there_is_not_known_unless_it_was_late_for_sure() -> None:
    assert lags(Stand(at(-1)), Stand(at(2), known=False), Stand(at(7))) == [None, None, 0, 0]
    assert lags(Stand(at(-9), at(-9)), Stand(at(2), known=False), Stand(at(7))) == [660, None, 0, 0]


def test_without_moves_nobody_knows() -> None:
    assert lags() == [None] * 4
