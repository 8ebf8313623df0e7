"""Which pages of a source's logs are read: all of the history is found, whatever the order that a log has."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Corrupt, RemoteFailure
from core.mirroring.log_reading import Reading, Walk, in_turn
from tests.core.mirroring.test_commit_graph import Parents, histories


@dataclass
class Source:
    """Logs of a history, each in its own random order, with the commits that the reader has already."""

    parents: Parents
    stored: set[str]
    random: random.Random
    size: int = 3
    newest_first: bool = False
    broken: set[str] = field(default_factory=set)
    logs: dict[str, list[str]] = field(default_factory=dict)
    pages: int = 0

    def ancestors(self, start: str) -> set[str]:
        found, ahead = set(), [start]
        while ahead:
            current = ahead.pop()
            if current not in found:
                found.add(current)
                ahead.extend(self.parents[current])
        return found

    def page(self, walk: Walk) -> tuple[list[str], str]:
        self.pages += 1
        if walk.start not in self.logs:
            log = sorted(self.ancestors(walk.start), reverse=True)
            self.logs[walk.start] = log if self.newest_first else self.random.sample(log, k=len(log))
        log = self.logs[walk.start]
        start = log.index(walk.after) + 1 if walk.after else 0
        page = log[start : start + self.size]
        return page, page[-1] if start + self.size < len(log) else ""

    def read(self, reading: Reading, limit: int) -> Reading:
        """Let up to `limit` pages be on their way, and answer them in any order."""
        running: list[Walk] = []
        while True:
            while len(running) < limit and (walk := reading.next()):
                running.append(walk)
            if not running:
                return reading
            self.answer(reading, running.pop(self.random.randrange(len(running))))

    def answer(self, reading: Reading, walk: Walk) -> None:
        if walk.start in self.broken:
            reading.failed(walk, RemoteFailure("500"))
            return
        page, after = self.page(walk)
        fresh = {one: self.parents[one] for one in page if one not in self.stored}
        self.stored |= fresh.keys()
        named = {parent for parents in fresh.values() for parent in parents}
        reading.took(walk, page, after, fresh, named & self.stored)


@given(histories(), st.data(), st.integers(1, 5), st.randoms(use_true_random=False), st.booleans())
def test_every_ancestor_of_the_heads_is_read(
    parents: Parents, data: st.DataObject, limit: int, chance: random.Random, newest_first: bool
) -> None:
    heads = data.draw(st.sets(st.sampled_from(sorted(parents)), min_size=1))
    source = Source(parents, set(), chance, newest_first=newest_first)
    old = data.draw(st.sampled_from(sorted(parents)))
    source.stored = source.ancestors(old) if data.draw(st.booleans()) else set()
    unknown = heads - source.stored
    reading = source.read(Reading(unknown), limit)
    assert reading.errors == {}
    assert source.stored >= set().union(*(source.ancestors(head) for head in heads))
    assert source.pages <= 2 * len(parents) * len(parents)


@given(histories(), st.data(), st.randoms(use_true_random=False))
def test_a_reading_that_broke_off_is_taken_up_at_its_frontier(
    parents: Parents, data: st.DataObject, chance: random.Random
) -> None:
    head = max(parents)
    source = Source(parents, set(), chance)
    source.stored = {head, *data.draw(st.sets(st.sampled_from(sorted(source.ancestors(head)))))}
    frontier = {parent for one in source.stored for parent in parents[one]} - source.stored
    reading = source.read(Reading((), frontier), limit=2)
    assert reading.errors == {}
    assert source.stored == source.ancestors(head)


def line(length: int) -> Parents:
    names = [f"c{n:05}" for n in range(length)]
    return {name: (names[n - 1],) if n else () for n, name in enumerate(names)}


@pytest.mark.parametrize("heads", [1, 10])
def test_a_line_is_read_once_however_many_branches_stand_on_it(heads: int) -> None:
    """Each head's first page is asked for; then all but one wait for the one that goes on."""
    parents = line(1000)
    source = Source(parents, set(), random.Random(1), size=10, newest_first=True)
    source.read(Reading(sorted(parents)[-heads:]), limit=10)
    assert len(source.stored) == 1000
    assert source.pages <= 100 * 1.2 + heads


def test_an_old_commit_that_is_merged_is_asked_for_and_not_searched_for() -> None:
    parents = line(1000) | {"x": (), "z": ("c00999", "x")}
    source = Source(parents, set(line(1000)), random.Random(1), size=10, newest_first=True)
    source.logs["z"] = ["z", *sorted(line(1000), reverse=True), "x"]
    source.read(Reading(["z"]), limit=1)
    assert source.stored == parents.keys()
    assert source.pages == 2


def test_a_log_without_its_own_commit_is_an_error_of_that_head_alone() -> None:
    source = Source({"a": (), "b": ("a",), "c": ()}, set(), random.Random(1))
    source.logs = {"a": ["c"], "b": ["b"]}
    reading = source.read(Reading(["b", "c"]), limit=2)
    assert isinstance(reading.errors["b"], Corrupt)
    assert source.stored == {"b", "c"}


def test_a_log_that_fails_is_not_asked_for_again() -> None:
    source = Source(line(5), set(), random.Random(1), broken={"c00002"}, size=2, newest_first=True)
    reading = source.read(Reading(["c00004"]), limit=3)
    assert list(reading.errors) == ["c00004"]
    assert source.stored == {"c00004", "c00003"}


def test_the_rest_of_a_log_that_was_answered_comes_before_logs_that_nobody_has_asked_for() -> None:
    source = Source(line(6), set(), random.Random(1), size=2, newest_first=True, broken={"d1", "d2", "e1"})
    reading = Reading(["c00005", "d1", "d2", "e1"], ["e1"])
    asked: list[str] = []
    while walk := reading.next():
        asked.append(walk.start)
        source.answer(reading, walk)
    assert asked == ["c00005", "c00003", "c00001", "d1", "d2", "e1"]


def test_each_attempt_begins_with_another_one_of_what_was_not_found() -> None:
    waiting = ["a", "b", "c"]
    assert [in_turn(waiting, n)[0] for n in range(4)] == ["a", "b", "c", "a"]
    assert sorted(in_turn(waiting, 7)) == waiting
    assert in_turn([], 3) == []
