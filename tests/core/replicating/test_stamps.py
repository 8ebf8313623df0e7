"""Objects that several places write and pass on to one another: the newest one wins, everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.replicating.stamps import LATEST_WRITE, Stamp, bucket_mark, is_newer, of_copy, own_stamp, read, written

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
REGIONS = ("eu-west-1", "us-east-1", "ap-south-1")


def stamp(seconds: int = 0, region: str = "eu-west-1", *, copied: bool = False) -> Stamp:
    return Stamp(AT + timedelta(seconds=seconds), region, bucket_mark(region, "b"), AT if copied else None)


@pytest.mark.parametrize(
    ("source", "there", "newer"),
    [
        (stamp(2), stamp(1), True),
        (stamp(1), stamp(2), False),
        (stamp(1, "a"), stamp(1, "b"), True),
        (stamp(1, "b"), stamp(1, "a"), False),
        (stamp(1), stamp(1, copied=True), True),
        (stamp(1, copied=True), stamp(1), False),
        (stamp(1, copied=True), stamp(1, copied=True), False),
    ],
    ids=["later", "earlier", "first region", "second region", "from its place", "at its place", "the same one"],
)
def test_which_is_newer(source: Stamp, there: Stamp, newer: bool) -> None:
    assert is_newer(source, there) is newer


def test_two_buckets_of_one_region_are_told_apart() -> None:
    one, other = own_stamp(AT, "eu", "one"), own_stamp(AT, "eu", "other")
    assert is_newer(one, other) is not is_newer(other, one)


def test_fractions_of_a_second_do_not_count() -> None:
    """HEAD tells none."""
    assert own_stamp(AT + timedelta(milliseconds=900), "eu", "b") == own_stamp(AT, "eu", "b")


# --- in metadata ------------------------------------------------------------------------------------------------------

OF = {"key": "k", "uri": "s3://b/a", "size": 3}


def test_a_stamp_is_read_as_it_was_written() -> None:
    value = written(stamp(-60, "eu:west é", copied=True), AT, **OF)
    assert value.isascii()
    assert read(value, modified=AT, in_parts=False, **OF) == stamp(-60, "eu:west é", copied=True)


@pytest.mark.parametrize("other", [{"key": "other"}, {"uri": "s3://b/b"}, {"size": 4}, {"key": ""}])
def test_a_stamp_is_of_one_object(other: dict[str, object]) -> None:
    value = written(stamp(copied=True), AT, **OF)
    assert read(value, modified=AT, in_parts=False, **{**OF, **other}) is None


@pytest.mark.parametrize("value", ["", "1", "1:2:3", "1:x:eu:b:e:y:z", "2:1:eu:b:e:1:z", "é:1:eu:b:e:1:ü"])
def test_what_is_no_stamp(value: str) -> None:
    assert read(value, modified=AT, in_parts=False, **OF) is None


def test_altered_times_are_no_stamp() -> None:
    told = written(stamp(copied=True), AT, **OF).split(":")
    told[1] = str(int(told[1]) + 1)
    assert read(":".join(told), modified=AT, in_parts=False, **OF) is None


def test_who_restores_an_older_version_writes_anew() -> None:
    """A copy of a version onto its own key takes the metadata along."""
    value = written(stamp(copied=True), AT, **OF)
    later = AT + LATEST_WRITE + timedelta(seconds=1)
    assert read(value, modified=later, in_parts=False, **OF) is None
    assert read(value, modified=later, in_parts=True, **OF) is not None


# --- places that pass objects on --------------------------------------------------------------------------------------


@dataclass
class Held:
    """An object at a place; `stamp` of a copy."""

    content: int
    stamp: Stamp


@dataclass
class Places:
    """Places that each have one key, and links between them. A copy is two steps: look, then write."""

    links: list[tuple[int, int]]
    now: int = 0
    writes: int = 0
    has: dict[int, Held] = field(default_factory=dict)
    puts: dict[int, tuple[datetime, str]] = field(default_factory=dict)
    begun: dict[tuple[int, int], tuple[Held, Held | None]] = field(default_factory=dict)

    def put(self, place: int) -> None:
        self.writes += 1
        own = stamp(self.now, REGIONS[place])
        self.has[place] = Held(self.writes, own)
        self.puts[self.writes] = (own.at, own.region)

    def look(self, link: tuple[int, int]) -> bool:
        source, there = self.has.get(link[0]), self.has.get(link[1])
        if source is None or (there is not None and there.content == source.content):
            return False
        if there is not None and not is_newer(source.stamp, there.stamp):
            return False
        self.begun[link] = (source, there)
        return True

    def write(self, link: tuple[int, int]) -> None:
        """Only if nobody has written there since."""
        source, there = self.begun.pop(link, (None, None))
        if source is not None and self.has.get(link[1]) is there:
            now = AT + timedelta(seconds=self.now)  # all steps of a second have one time: the worst of clocks
            self.has[link[1]] = Held(source.content, of_copy(source.stamp, there.stamp if there else None, now))

    def settle(self) -> int:
        """Copies until nothing is left to copy; how many rounds that took."""
        for link in list(self.begun):
            self.write(link)
        for number in range(50):
            begun = [self.look(link) for link in self.links]
            if not any(begun):
                return number
            for link in list(self.begun):
                self.write(link)
        raise AssertionError("they overwrite each other for ever")

    def newest(self) -> int:
        """Of what was written last: the latest put of the latest second, of the region that comes first."""
        latest = max(at for at, _ in self.puts.values())
        first = min(region for at, region in self.puts.values() if at == latest)
        return max(content for content, (at, region) in self.puts.items() if (at, region) == (latest, first))


PAIR = [(0, 1), (1, 0)]
RING = [(0, 1), (1, 2), (2, 0)]
MESH = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
EVENTS = st.lists(st.tuples(st.sampled_from(["put", "look", "write", "tick"]), st.integers(0, 5)), max_size=40)


@pytest.mark.parametrize("links", [PAIR, RING, MESH], ids=["both ways", "a ring", "a mesh"])
@given(events=EVENTS)
def test_all_places_come_to_have_the_newest_and_then_write_no_more(
    links: list[tuple[int, int]], events: list[tuple[str, int]]
) -> None:
    places = Places(links)
    number = 1 + max(max(link) for link in links)
    for what, which in events:
        if what == "put":
            places.put(which % number)
        elif what == "look":
            places.look(links[which % len(links)])
        elif what == "write":
            places.write(links[which % len(links)])
        else:
            places.now += 1
    places.settle()
    if places.puts:
        assert {held.content for held in places.has.values()} == {places.newest()}
        assert len(places.has) == number
    assert places.settle() == 0
