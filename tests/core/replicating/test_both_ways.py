"""Places that write, delete and pass on one key: all come to have what was done last, and then nobody does more."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.replicating.both_ways import Found, Step, step
from core.replicating.stamps import Stamp, bucket_mark, of_copy

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
REGIONS = ("eu-west-1", "us-east-1", "ap-south-1")


def stamp(seconds: int = 0, region: str = "eu-west-1") -> Stamp:
    return Stamp(AT + timedelta(seconds=seconds), region, bucket_mark(region, "b"))


HERE, NEWER = Found(stamp(1)), Found(stamp(2))
GONE, GONE_LATER = Found(stamp(1), deleted=True), Found(stamp(2), deleted=True)


@pytest.mark.parametrize(
    ("source", "there", "expected"),
    [
        (HERE, None, Step.COPY),
        (NEWER, HERE, Step.COPY),
        (HERE, NEWER, Step.KEPT),
        (NEWER, GONE, Step.COPY),
        (HERE, GONE_LATER, Step.KEPT),
        (GONE_LATER, HERE, Step.DELETE),
        (GONE, NEWER, Step.KEPT),
        (GONE, GONE_LATER, Step.NOTHING),
        (GONE, None, Step.DELETE),
        (None, HERE, Step.NOTHING),
        (None, None, Step.NOTHING),
    ],
)
def test_steps(source: Found | None, there: Found | None, expected: Step) -> None:
    assert step(source, there, equal=False, markers=True) is expected


def test_equal_ones_are_never_written() -> None:
    assert step(NEWER, HERE, equal=True, markers=True) is Step.NOTHING


def test_without_markers_what_is_deleted_comes_back() -> None:
    assert step(HERE, GONE_LATER, equal=False, markers=False) is Step.COPY
    assert step(GONE_LATER, HERE, equal=False, markers=False) is Step.NOTHING


# --- places that pass a key on ----------------------------------------------------------------------------------------


@dataclass
class Held:
    """What lies at a place: an object's content, or 0 for a marker."""

    content: int
    stamp: Stamp

    @property
    def found(self) -> Found:
        return Found(self.stamp, deleted=self.content == 0)


@dataclass
class Places:
    """Places that each have one key, and links between them. A step is two: look, then act if nobody has written."""

    links: list[tuple[int, int]]
    now: int = 0
    has: dict[int, Held] = field(default_factory=dict)
    done: list[tuple[datetime, str, int]] = field(default_factory=list)
    begun: dict[tuple[int, int], tuple[Held, Held | None]] = field(default_factory=dict)

    def put(self, place: int) -> None:
        self._do(place, len(self.done) + 1)

    def delete(self, place: int) -> None:
        if self.has.get(place, Held(0, stamp())).content:
            self._do(place, 0)

    def _do(self, place: int, content: int) -> None:
        own = stamp(self.now, REGIONS[place])
        self.has[place] = Held(content, own)
        self.done.append((own.at, own.region, content))

    def look(self, link: tuple[int, int]) -> bool:
        source, there = self.has.get(link[0]), self.has.get(link[1])
        equal = source is not None and there is not None and source.content == there.content
        found = step(source and source.found, there and there.found, equal=equal, markers=True)
        if found not in (Step.COPY, Step.DELETE):
            return False
        assert source is not None
        self.begun[link] = (source, there)
        return True

    def act(self, link: tuple[int, int]) -> None:
        source, there = self.begun.pop(link, (None, None))
        if source is not None and self.has.get(link[1]) is there:
            now = AT + timedelta(seconds=self.now)  # all steps of a second have one time: the worst of clocks
            self.has[link[1]] = Held(source.content, of_copy(source.stamp, there.stamp if there else None, now))

    def settle(self) -> int:
        """Copies until nothing is left to do; how many rounds that took."""
        for link in list(self.begun):
            self.act(link)
        for number in range(50):
            begun = [self.look(link) for link in self.links]
            if not any(begun):
                return number
            for link in list(self.begun):
                self.act(link)
        raise AssertionError("they overwrite each other for ever")

    def last(self) -> int:
        """What was done last: in the latest second, in the region that comes first."""
        latest = max(at for at, _, _ in self.done)
        first = min(region for at, region, _ in self.done if at == latest)
        return [content for at, region, content in self.done if (at, region) == (latest, first)][-1]


PAIR = [(0, 1), (1, 0)]
RING = [(0, 1), (1, 2), (2, 0)]
MESH = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
WHAT = st.sampled_from(["put", "put", "delete", "look", "act", "tick"])
EVENTS = st.lists(st.tuples(WHAT, st.integers(0, 5)), max_size=40)


@pytest.mark.parametrize("links", [PAIR, RING, MESH], ids=["both ways", "a ring", "a mesh"])
@given(events=EVENTS)
def test_all_places_come_to_have_what_was_done_last(
    links: list[tuple[int, int]], events: list[tuple[str, int]]
) -> None:
    places = Places(links)
    number = 1 + max(max(link) for link in links)
    for what, which in events:
        if what == "put":
            places.put(which % number)
        elif what == "delete":
            places.delete(which % number)
        elif what == "look":
            places.look(links[which % len(links)])
        elif what == "act":
            places.act(links[which % len(links)])
        else:
            places.now += 1
    places.settle()
    if places.done:
        everywhere = {places.has[place].content if place in places.has else 0 for place in range(number)}
        assert everywhere == {places.last()}
    assert places.settle() == 0
