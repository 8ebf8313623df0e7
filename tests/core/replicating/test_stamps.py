"""Objects that several places write and pass on to one another: the newest one wins, everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.replicating.both_ways.upstream import End, Way, newest, upstream
from core.replicating.stamps import LATEST_WRITE, Stamp, bucket_mark, is_newer, of_copy, own_stamp, read, written

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
REGIONS = ("eu-west-1", "us-east-1", "ap-south-1", "eu-north-1")


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

    content: str
    stamp: Stamp


@dataclass
class Put:
    """What somebody wrote."""

    place: int
    content: str
    at: datetime


@dataclass
class Places:
    """Places that each have one key, and links between them. A copy is two steps: look, then write. `asking`: places
    that lead to a source are asked how new content is."""

    links: list[tuple[int, int]]
    asking: bool = True
    now: int = 0
    writes: int = 0
    has: dict[int, Held] = field(default_factory=dict)
    puts: list[Put] = field(default_factory=list)
    begun: dict[tuple[int, int], tuple[Held, Stamp, Held | None]] = field(default_factory=dict)

    def put(self, place: int, content: str) -> None:
        own = stamp(self.now, REGIONS[place])
        self.has[place] = Held(content, own)
        self.puts.append(Put(place, content, own.at))

    def look(self, link: tuple[int, int]) -> bool:
        source, there = self.has.get(link[0]), self.has.get(link[1])
        if source is None or (there is not None and there.content == source.content):
            return False
        bears = source.stamp
        if there is not None and not is_newer(bears, there.stamp):
            bears = self.newest(link, source)
            if not is_newer(bears, there.stamp):
                return False
        self.begun[link] = (source, bears, there)
        return True

    def newest(self, link: tuple[int, int], source: Held) -> Stamp:
        """As the link's source is asked, and those that lead there."""
        ways = upstream(way_of(link), [way_of(one) for one in self.links]) if self.asking else ()

        def ask(way: Way, uri: str, _: str) -> Stamp | None:
            found = self.has.get(int(uri[len("s3://b")]))
            return found.stamp if found is not None and found.content == source.content else None

        return newest(("store", f"s3://b{link[0]}/key"), source.stamp, ways, ask)

    def write(self, link: tuple[int, int]) -> None:
        """Only if nobody has written there since."""
        source, bears, there = self.begun.pop(link, (None, None, None))
        if source is not None and bears is not None and self.has.get(link[1]) is there:
            now = AT + timedelta(seconds=self.now)  # all steps of a second have one time: the worst of clocks
            self.has[link[1]] = Held(source.content, of_copy(bears, there.stamp if there else None, now))
            self.writes += 1

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

    def expected(self, place: int) -> str | None:
        """What was written last there, or at any place that leads there: in the latest second, at the place whose
        region comes first."""
        leading = {place}
        while more := {one for one, other in self.links if other in leading} - leading:
            leading |= more
        puts = [put for put in self.puts if put.place in leading]
        if not puts:
            return None
        latest = max(put.at for put in puts)
        first = min(REGIONS[put.place] for put in puts if put.at == latest)
        return [put for put in puts if (put.at, REGIONS[put.place]) == (latest, first)][-1].content


def way_of(link: tuple[int, int]) -> Way:
    return Way(*(End("store", REGIONS[place], f"s3://b{place}") for place in link))


PAIR = [(0, 1), (1, 0)]
RING = [(0, 1), (1, 2), (2, 0)]
MESH = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
LONG_RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
LINE = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
TAIL = [(0, 1), (1, 0), (1, 2), (2, 3)]
CHORD = [*LONG_RING, (0, 2)]
SHAPES = {
    "both ways": PAIR,
    "a ring": RING,
    "a mesh": MESH,
    "a long ring": LONG_RING,
    "a line": LINE,
    "a tail": TAIL,
    "a chord": CHORD,
}
EVENTS = st.lists(
    st.tuples(st.sampled_from(["put", "put later", "look", "write", "calm"]), st.integers(0, 7), st.sampled_from("xy")),
    max_size=20,
)


def check(links: list[tuple[int, int]], events: list[tuple[str, int, str]]) -> None:
    """All that happens, and what has to be so in the end."""
    places = Places(links)
    number = 1 + max(max(link) for link in links)
    for what, which, content in events:
        if what in ("put", "put later"):
            places.now += what == "put later"
            places.put(which % number, content)
        elif what == "look":
            places.look(links[which % len(links)])
        elif what == "write":
            places.write(links[which % len(links)])
        else:
            places.settle()
    places.settle()
    ends = [places.has[place].content if place in places.has else None for place in range(number)]
    assert ends == [places.expected(place) for place in range(number)]
    assert places.settle() == 0


@pytest.mark.parametrize("links", SHAPES.values(), ids=SHAPES)
@given(events=EVENTS)
def test_all_places_come_to_have_the_newest_and_then_write_no_more(
    links: list[tuple[int, int]], events: list[tuple[str, int, str]]
) -> None:
    """Where few contents are written again and again, at any place."""
    check(links, events)


@given(data=st.data())
def test_links_may_lead_anywhere(data: st.DataObject) -> None:
    every = [(one, other) for one in range(4) for other in range(4) if one != other]
    links = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=8, unique=True))
    check(links, data.draw(EVENTS))


@pytest.mark.parametrize(("asking", "ends"), [(False, "xxy"), (True, "xxx")])
def test_what_a_key_had_already_is_written_anew_elsewhere(asking: bool, ends: str) -> None:
    """Equal content is not written, so the second place does not hear of it by its stamp."""
    places = Places(RING, asking=asking)
    places.put(0, "x")
    places.settle()
    places.now = 2
    places.put(2, "y")
    places.now = 3
    places.put(0, "x")
    places.settle()
    assert "".join(places.has[place].content for place in range(3)) == ends


@pytest.mark.parametrize("shape", ["both ways", "a mesh", "a line"])
def test_nobody_is_asked_where_the_target_leads_straight_back(shape: str) -> None:
    ways = [way_of(link) for link in SHAPES[shape]]
    assert {upstream(way, ways) for way in ways} == {()}


def test_who_leads_to_the_target_is_not_asked() -> None:
    ways = {link: way_of(link) for link in CHORD}
    assert upstream(ways[1, 2], ways.values()) == ()
    assert upstream(ways[2, 3], ways.values()) == (ways[1, 2], ways[0, 2], ways[0, 1])
    partly = {**ways, (0, 2): ways[0, 2]._replace(whole=False)}
    assert upstream(partly[1, 2], partly.values()) == (ways[0, 1], ways[3, 0])


def test_a_folder_of_a_place_that_is_copied_further() -> None:
    home, away, far = End("s", "us", "s3://home/raw"), End("s", "eu", "s3://away"), End("t", "ap", "s3://far")
    into, on = Way(home, away), Way(End("s", "eu", "s3://away/2026"), far)
    assert upstream(on, [into, Way(away, home), on]) == (into, Way(away, home))
    asked = []

    def ask(way: Way, source: str, target: str) -> Stamp | None:
        asked.append((way, source, target))
        return stamp(5) if way == into else None

    assert newest(("s", "s3://away/2026/a"), stamp(1), [into, Way(away, home)], ask) == stamp(5)
    assert asked == [(into, "s3://home/raw/2026/a", "s3://away/2026/a")]
