"""How many bytes are held at once, and how quickly they pass."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.exporting.deadline import Budget, Deadline, Late, Rate


def in_a_minute() -> Deadline:
    return Deadline(time.time() + 60)


def test_no_more_is_held_at_once_than_there_is_room_for() -> None:
    budget, lock, now, most = Budget(100), threading.Lock(), [0], [0]

    def hold(size: int) -> None:
        with budget.hold(size, in_a_minute()):
            with lock:
                now[0] += size
                most[0] = max(most[0], now[0])
            time.sleep(0.005)
            with lock:
                now[0] -= size

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(hold, [30, 45, 60, 10] * 10))
    assert (now[0], 60 < most[0] <= 100) == (0, True)


def test_what_is_larger_than_all_of_it_is_held_alone() -> None:
    budget, order = Budget(100), list[str]()
    with ThreadPoolExecutor(2) as pool:
        with budget.hold(1, in_a_minute()):

            def hold(size: int) -> None:
                with budget.hold(size, in_a_minute()):
                    order.append(f"held {size}")

            large = pool.submit(hold, 500)
            time.sleep(0.05)
            small = pool.submit(hold, 1)  # there is room for it, but it came later
            time.sleep(0.05)
            order.append("given back")
        large.result(5)
        small.result(5)
    assert order == ["given back", "held 500", "held 1"]


def test_who_waits_in_vain_is_late_and_lets_others_pass() -> None:
    budget = Budget(100)
    with budget.hold(80, in_a_minute()):
        with pytest.raises(Late), budget.hold(50, Deadline(time.time() + 0.05)):
            pass
        with budget.hold(20, in_a_minute()):
            pass


def test_what_fails_gives_back_what_it_held() -> None:
    budget = Budget(100)
    with pytest.raises(ZeroDivisionError), budget.hold(100, in_a_minute()):
        raise ZeroDivisionError
    with budget.hold(100, in_a_minute()):
        pass


def test_a_rate_that_is_changed_holds_for_what_waits_already() -> None:
    rate = Rate(10.0, clock=lambda: 100.0)
    assert [rate.turn(20), rate.turn(10)] == [0.0, 2.0]
    rate.set(1.0)
    assert rate.turn(5) == pytest.approx(30.0), "30 were let through"
    rate.set(35.0)
    assert rate.turn() == pytest.approx(1.0)
    rate.set(0.0)
    assert rate.turn(10**9) == rate.turn() == 0.0


def test_who_waits_takes_the_room_that_is_made() -> None:
    budget = Budget(10)
    with ThreadPoolExecutor(1) as pool, budget.hold(8, in_a_minute()):

        def hold() -> str:
            with budget.hold(50, in_a_minute()):
                return "held"

        waiting = pool.submit(hold)
        time.sleep(0.05)
        assert not waiting.done()
        budget.resize(60)
        assert waiting.result(5) == "held"
