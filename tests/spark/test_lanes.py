"""Small and large objects share the workers. Without Spark."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from spark_jobs.check.lanes import Lanes


class Watched:
    """Work that notes how much of its kind is under way, until it is let go."""

    def __init__(self) -> None:
        self.now, self.most, self.done = Counter[str](), Counter[str](), list[str]()
        self.lock, self.go = threading.Lock(), threading.Event()

    def work(self, kind: str, seconds: float = 0.0) -> None:
        with self.lock:
            self.now[kind] += 1
            self.most[kind] = max(self.most[kind], self.now[kind])
        if kind == "large":
            self.go.wait(10)
        time.sleep(seconds)
        with self.lock:
            self.now[kind] -= 1
            self.done.append(kind)


def test_35_small_objects_are_not_behind_large_ones() -> None:
    """Scenario 35: large ones come first and never end, and all small ones are brought."""
    lanes, seen = Lanes(8), Watched()
    large = [lanes.submit(lambda: seen.work("large"), large=True) for _ in range(2)]
    time.sleep(0.1)
    small = [lanes.submit(lambda: seen.work("small", 0.002), large=False) for _ in range(100)]
    large += [lanes.submit(lambda: seen.work("large"), large=True) for _ in range(6)]
    for job in small:
        job.result(10)
    assert seen.done == ["small"] * 100
    seen.go.set()
    for job in large:
        job.result(10)
    lanes.close()
    assert Counter(seen.done) == {"large": 8, "small": 100}


def test_while_small_ones_wait_large_ones_have_a_quarter_and_then_all() -> None:
    lanes, seen, first = Lanes(8), Watched(), threading.Event()
    small = [lanes.submit(lambda: first.wait(10), large=False) for _ in range(8)]
    small += [lanes.submit(lambda: seen.work("small", 0.05), large=False) for _ in range(24)]
    large = [lanes.submit(lambda: seen.work("large"), large=True) for _ in range(20)]
    first.set()
    time.sleep(0.1)
    assert seen.now["large"] == 2
    for job in small:
        job.result(10)
    end = time.monotonic() + 5
    while seen.now["large"] < 8 and time.monotonic() < end:
        time.sleep(0.01)
    assert (seen.now["large"], seen.most["small"] <= 6) == (8, True)
    seen.go.set()
    for job in large:
        job.result(10)
    lanes.close()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_few_workers_bring_small_ones_first(workers: int) -> None:
    lanes, seen, first = Lanes(workers), Watched(), threading.Event()
    jobs = [lanes.submit(lambda: first.wait(10), large=False) for _ in range(workers)]
    seen.go.set()
    for kind in ("large", "small") * 5:
        jobs.append(lanes.submit(lambda kind=kind: seen.work(kind, 0.001), large=kind == "large"))
    first.set()
    for job in jobs:
        job.result(10)
    lanes.close()
    before = 6 - workers  # none begins while a small one waits: so no more than workers - 1 of these end after it
    assert seen.done[:before] == ["small"] * before
    assert Counter(seen.done) == {"small": 5, "large": 5}


def test_what_work_raises_is_told_and_the_rest_goes_on() -> None:
    lanes = Lanes(1)
    failed = lanes.submit(lambda: 1 // 0, large=True)
    fine = lanes.submit(lambda: "fine", large=True)
    assert isinstance(failed.exception(10), ZeroDivisionError)
    assert fine.result(10) == "fine"
    lanes.close()
