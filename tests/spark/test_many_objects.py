"""A job that copies very many objects has few of them in hand, and keeps none that came. Without Spark."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from core.bringing import Side, Unbrought
from core.errors import Invalid
from core.exporting.deadline import Late
from core.mirroring.content_proof import Proof
from core.mirroring.object_check import Reason
from core.types import ObjectInfo
from spark_jobs.check import bring as module
from spark_jobs.check.bring import Bringer, bring_group
from spark_jobs.check.presence import Expected
from spark_jobs.check.progress import LARGE, SMALL, lane_of
from spark_jobs.check.settings import Bring, CheckSettings, StoreLocation

MIB = 1 << 20
LACKING = Proof((Reason.MISSING, "it is not there"))
LOOKER: Any = SimpleNamespace(judge=lambda info, entry: Proof(None))


class Movements:
    """Copies nothing, notes what is asked of it, and meets trouble by the last part of an address."""

    def __init__(self) -> None:
        self.brought: list[str] = []
        self.trouble: dict[str, Exception] = {}

    def bring(self, source: str, uri: str, size: int, etag: str = "") -> ObjectInfo:
        self.brought.append(uri.rpartition("/")[2])
        if error := self.trouble.get(self.brought[-1]):
            raise error
        return ObjectInfo("k", size, "e")

    def passed(self) -> int:
        return 0

    def allow(self, seconds: float) -> None:
        """It has all the time."""

    def stop(self) -> None:
        """Nothing is under way."""

    close = stop


@pytest.fixture
def movements() -> Movements:
    return Movements()


@pytest.fixture
def bringer(movements: Movements) -> Iterator[Bringer]:
    moves: Any = movements
    settings = CheckSettings(
        "s3://dst/lake", source=StoreLocation("s3://src/lake"), bring=Bring(time.time() + 60, workers=1)
    )
    one = Bringer(moves, settings, mock.Mock())
    yield one
    one.close()


def entries(*names: str, size: int = 1) -> list[Expected]:
    return [Expected(f"s3://dst/lake/data/{name}", size, "e") for name in names]


def group(bringer: Bringer, wanted: list[Expected]) -> tuple[Any, list[Proof]]:
    """Brings what a range lacks, and gives the range with its proofs."""
    opened: Any = SimpleNamespace(expected=lambda: iter(wanted), unwritten=None, late=False, problems=[])
    proofs = [LACKING] * len(wanted)
    list(bring_group([opened], [proofs], bringer, LOOKER))
    return opened, proofs


def test_of_each_lane_so_many_are_in_hand_and_every_one_is_brought_in_the_order_of_its_lane(
    bringer: Bringer, movements: Movements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_HAND", 3)
    small, large = [f"s{number:03}" for number in range(200)], [f"l{number}" for number in range(9)]
    wanted = [*entries(*large, size=9 * MIB), *entries(*small)]
    in_hand, most, lock, start = Counter[str](), Counter[str](), threading.Lock(), bringer._start

    def counted(entry: Expected, *others: Any) -> Any:
        with lock:
            in_hand[lane_of(entry.size)] += 1
            most[lane_of(entry.size)] = max(most[lane_of(entry.size)], in_hand[lane_of(entry.size)])
        future = start(entry, *others)
        future.add_done_callback(lambda _: ended(entry))
        return future

    def ended(entry: Expected) -> None:
        with lock:
            in_hand[lane_of(entry.size)] -= 1

    monkeypatch.setattr(bringer, "_start", counted)
    _, proofs = group(bringer, wanted)
    assert proofs == [Proof(None)] * 209
    assert most == {SMALL: 3, LARGE: 3}
    assert [name for name in movements.brought if name[0] == "s"] == small
    assert [name for name in movements.brought if name[0] == "l"] == large


def test_what_came_is_not_kept_and_what_the_destination_does_not_take_is_not_tried_again(
    bringer: Bringer, movements: Movements
) -> None:
    movements.trouble["refused"] = Unbrought(Side.DESTINATION, Invalid("no such key"))
    for number in range(5):
        _, proofs = group(bringer, entries(f"a{number}", f"b{number}", "refused"))
        assert [proof.verdict is None for proof in proofs] == [True, True, False]
    assert Counter(movements.brought)["refused"] == 1
    assert len(movements.brought) == 11
    assert [entry.uri for entry in bringer._known] == ["s3://dst/lake/data/refused"]


def test_what_there_was_no_time_for_is_late_in_every_range_that_names_it(
    bringer: Bringer, movements: Movements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_HAND", 2)
    movements.trouble["a1"] = Late()
    first, proofs = group(bringer, entries("a0", "a1", *(f"c{number}" for number in range(50))))
    assert first.late
    assert [proof.verdict is None for proof in proofs] == [True, *[False] * 51]
    again, proofs = group(bringer, entries("a1", "c3", "d"))
    assert again.late
    assert proofs == [LACKING] * 3
    assert movements.brought == ["a0", "a1"]
    assert not bringer._known
