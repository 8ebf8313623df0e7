"""Puts, overwritings and deletions at places that copy to one another, by links that are late, lost or down: what was
deleted never comes back, what was written since never goes, and in the end all have the same."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.replicating.both_ways.tombstones import (
    Act,
    Have,
    Since,
    Tombstone,
    covers,
    is_barred,
    later,
    mark_of,
    step,
    unless_newer,
)
from core.replicating.both_ways.upstream import End, Way, newest, upstream
from core.replicating.stamps import Stamp, bucket_mark, is_newer, of_copy, own_stamp

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
REGIONS = ("eu-west-1", "us-east-1", "ap-south-1", "eu-north-1")
AHEAD = (0, 3600, -7000, 7000)
"""How far each store's clock is from ours, in seconds."""


def stamp(seconds: int = 0, place: int = 0, *, copied: bool = False) -> Stamp:
    region = REGIONS[place]
    return Stamp(AT + timedelta(seconds=seconds), region, bucket_mark(region, "b"), AT if copied else None)


def have(seconds: int = 0, place: int = 0, etag: str = "x", *, copied: bool = False, **more: bool) -> Have:
    at = AT + timedelta(seconds=seconds)
    return Have(stamp(seconds, place, copied=copied), 1, etag, mark_of(at, etag), **more)


GONE = Tombstone(stamp(5), 1, "x")


@pytest.mark.parametrize(
    ("what", "is_gone"),
    [
        (have(5), True),
        (have(5, copied=True), True),
        (have(4, 1, "y"), True),
        (have(6, 1), False),
        (have(5, etag="y"), False),
        (have(5, etag="y", copied=True), False),
        (have(5, etag="y-2", copied=True), True),
        (have(5, etag="y", copied=True, hashed=False), True),
        (have(5, etag="y", hashed=False), False),
    ],
    ids=["the same", "a copy", "older", "later", "of one second", "its copy", "other parts", "KMS", "KMS, not a copy"],
)
def test_what_a_tombstone_covers(what: Have, is_gone: bool) -> None:
    assert covers(GONE, what) is is_gone
    assert covers(replace(GONE, since=Since.OVER), what) is is_gone
    assert not covers(replace(GONE, since=Since.PARDONED), what)


def test_who_deletes_at_the_target_has_it_deleted_at_the_source() -> None:
    one = have(5)
    there = step(one.mark, "x", one, None, None, None)
    assert there.act is Act.NOTHING and there.at_target == GONE
    assert step(None, None, None, one, there.at_target, None).act is Act.DELETE


def test_what_was_written_since_is_copied_whatever_the_clocks_say() -> None:
    known = have(5)
    assert step(known.mark, "x", have(2, etag="y"), None, None, None).act is Act.COPY
    assert step(known.mark, "x", have(6), None, None, None).act is Act.COPY


def test_what_nobody_knew_there_is_copied() -> None:
    assert step(None, None, have(5), None, None, None).act is Act.COPY
    assert step("", None, replace(have(5), mark=""), None, None, None).act is Act.COPY


def test_what_somebody_wrote_over_a_copy_is_not_deleted() -> None:
    assert step("", "x", None, have(5), None, None).act is Act.NOTHING
    assert step("", "x", None, have(5, etag="y", copied=True), None, None).act is Act.NOTHING
    assert step("", "x", None, have(5, copied=True), None, None).act is Act.DELETE


def test_a_deletion_of_ours_is_not_taken_for_somebody_elses() -> None:
    """Somebody has written the same content anew elsewhere, which another link had seen to be equal."""
    ours = replace(GONE, since=Since.DONE)
    again = have(9, 1)
    assert step(again.mark, "x", again, None, None, ours).act is Act.COPY
    assert not is_barred(again, ours, again.mark)
    assert step(again.mark, "x", again, None, None, GONE).act is Act.NOTHING


def test_what_was_pardoned_comes_back() -> None:
    pardoned = replace(GONE, since=Since.PARDONED)
    assert step(have(5).mark, "x", have(5), None, None, pardoned) == step(None, None, have(5), None, None, pardoned)
    assert not is_barred(have(5), pardoned, have(5).mark, {(1, "x")})
    assert step(None, None, None, None, GONE, pardoned).at_target == pardoned


def test_deletions_are_passed_on_where_neither_has_it() -> None:
    assert step(None, None, None, None, GONE, None).at_target == GONE
    assert step(None, None, None, None, replace(GONE, since=Since.OVER), None).at_target == GONE


def test_what_is_barred() -> None:
    one = have(5)
    assert is_barred(one, GONE, None) and is_barred(one, None, one.mark) and is_barred(one, None, None, {(1, "x")})
    assert not is_barred(one, None, None) and not is_barred(have(6), GONE, one.mark, {(1, "y")})


def test_what_was_written_anew_elsewhere_comes_back() -> None:
    one = have(5)
    barred = step(None, None, one, None, None, GONE)
    back = unless_newer(barred, one, stamp(9, 1))
    assert back.act is Act.COPY and back.at_target == replace(GONE, since=Since.PARDONED)
    assert unless_newer(barred, one, stamp(5)) == unless_newer(barred, one, stamp(4, 1)) == barred


# --- places that pass on what is written and deleted ------------------------------------------------------------------


@dataclass
class Place:
    """An object of one key, or none, and what is known of it; `content`: of which put it is."""

    has: Have | None = None
    content: int = 0
    grave: Tombstone | None = None


@dataclass
class Link:
    """What it has seen at both ends (mark and ETag), and what it is about to do."""

    known: tuple[str, str] | None = None
    plan: str = ""


@dataclass
class Places:
    """Looks note what is to be done, rounds look once more and do it; a round may be lost before it says so."""

    links: list[tuple[int, int]]
    now: int = 0
    puts: int = 0
    writes: int = 0
    deletes: int = 0
    at: list[Place] = field(default_factory=lambda: [Place() for _ in REGIONS])
    of: dict[tuple[int, int], Link] = field(default_factory=dict)
    stamps: dict[int, Stamp] = field(default_factory=dict)
    bytes_of: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    """Puts that somebody deleted where a link knew of them."""
    maybe: set[int] = field(default_factory=set)
    """Puts that somebody deleted, or wrote over, anywhere."""
    unseen: dict[int, tuple[int, Have, set[tuple[int, int]]]] = field(default_factory=dict)
    """Where, of these, what no tombstone tells of yet, and the links that knew of it."""

    def __post_init__(self) -> None:
        self.of = {link: Link() for link in self.links}

    # --- people -------------------------------------------------------------------------------------------------------

    def put(self, place: int, *, same: bool = False) -> None:
        """`same`: with the bytes of the put before."""
        self.puts += 1
        data = self.bytes_of.get(self.puts - 1, self.puts) if same else self.puts
        at = AT + timedelta(seconds=self.now + AHEAD[place])
        own = own_stamp(at, REGIONS[place], "b")
        self.maybe.add(self.at[place].content)
        grave = self.at[place].grave
        if grave is not None and covers(grave, Have(own, 1, f"{data}")):
            self.gone.clear()  # by this clock it is older than what was deleted
        self.at[place].has = Have(own, 1, f"{data}", mark_of(at, f"{data}"))
        self.at[place].content = self.puts
        self.stamps[self.puts], self.bytes_of[self.puts] = own, data
        self._forget(place)

    def delete(self, place: int) -> None:
        here = self.at[place]
        if here.has is None:
            return
        self.maybe.add(here.content)
        who = {link for link in self.links if self._knows(link, place, here.has)}
        self._forget(place)
        if who:
            self.gone.add(here.content)
            self.unseen[here.content] = (place, here.has, who)
        here.has, here.content = None, 0

    def _forget(self, place: int) -> None:
        """What was deleted there, or at the other end of who knew, and nobody has seen that: nobody ever can."""
        for put, (where, has, who) in list(self.unseen.items()):
            if where == place:
                who.clear()
            who -= {link for link in who if place in link}
            if not who and not covers(self.at[where].grave, has):
                self.gone.discard(put)
                del self.unseen[put]

    def _knows(self, link: tuple[int, int], place: int, has: Have) -> bool:
        """Whether a link has seen just this at both ends, and the other end has it still."""
        known = self.of[link].known
        if known is None or place not in link:
            return False
        other = self.at[link[0] if place == link[1] else link[1]].has
        if other is None or known[1] != has.etag:
            return False
        return known[0] == other.mark if place == link[1] else other.etag == known[1] and other.is_copy

    # --- links --------------------------------------------------------------------------------------------------------

    def newest(self, link: tuple[int, int]) -> Stamp:
        """Of the source's object, as those that lead there are asked."""
        has = self.at[link[0]].has
        assert has is not None

        def ask(way: Way, uri: str, _: str) -> Stamp | None:
            found = self.at[int(uri[len("s3://b")])].has
            return found.stamp if found is not None and found.etag == has.etag else None

        ways = upstream(way_of(link), [way_of(one) for one in self.links])
        return newest(("store", f"s3://b{link[0]}/key"), has.stamp, ways, ask)

    def look(self, link: tuple[int, int]) -> None:
        own, one, two = self.of[link], self.at[link[0]], self.at[link[1]]
        mark, etag = own.known or (None, None)
        own.plan = ""
        told = step(mark, etag, one.has, two.has, one.grave, two.grave)
        if told.act is Act.NOTHING and one.has is not None and two.has is None:
            told = unless_newer(told, one.has, self.newest(link))
        one.grave, two.grave = told.at_source, told.at_target
        if one.has is not None and two.has is not None:
            if one.has.etag == two.has.etag:
                own.known = (one.has.mark, two.has.etag)
            else:
                own.known = own.known if etag == two.has.etag else None
                own.plan = "copy" if is_newer(self.newest(link), two.has.stamp) else ""
            return
        own.plan = {Act.COPY: "copy", Act.DELETE: "delete"}.get(told.act, "")
        own.known = own.known if told.act is Act.DELETE and etag == two.has.etag else None

    def carry(self, link: tuple[int, int], *, lost: bool = False) -> None:
        """Do what was noted, if it is still so."""
        own, plan = self.of[link], self.of[link].plan
        if not lost:
            own.plan = ""
        if plan == "copy":
            self._copy(link, lost)
        elif plan == "delete":
            self._delete(link, lost)

    def _copy(self, link: tuple[int, int], lost: bool) -> None:
        own, one, two = self.of[link], self.at[link[0]], self.at[link[1]]
        if one.has is None:
            return
        bears = one.has.stamp
        if two.has is not None:
            bears = bears if is_newer(bears, two.has.stamp) else self.newest(link)
            if one.has.etag == two.has.etag or not is_newer(bears, two.has.stamp):
                return
        if two.has is None:
            bears = self.newest(link) if two.grave is not None else bears
            mark = own.known[0] if own.known else None
            others = {(1, known[1]) for other in self.links if (known := self._at(other, link[1])) is not None}
            if is_barred(one.has, two.grave, mark, others - self._at_own(link)):
                return
        at = AT + timedelta(seconds=self.now + AHEAD[link[1]])
        stamped = of_copy(bears, two.has.stamp if two.has else None, AT + timedelta(seconds=self.now))
        two.has, two.content = Have(stamped, 1, one.has.etag, mark_of(at, one.has.etag)), one.content
        if self.bytes_of[one.content] not in {self.bytes_of[put] for put in self.unseen}:
            self._forget(link[1])
        self.writes += 1
        if not lost:
            own.known = (one.has.mark, one.has.etag)
            two.grave = None if two.grave is None else replace(two.grave, since=Since.OVER)
            if bears.origin != one.has.stamp.origin:
                two.grave = later(two.grave, Tombstone(bears, 1, one.has.etag, Since.OVER))
                of = [put for put, own in self.stamps.items() if own.origin == bears.origin]
                two.content = max(put for put in of if f"{self.bytes_of[put]}" == one.has.etag)

    def _at(self, link: tuple[int, int], place: int) -> tuple[str, str] | None:
        return self.of[link].known if place in link else None

    def _at_own(self, link: tuple[int, int]) -> set[tuple[int, str]]:
        """What only this link knows is known by its mark."""
        own = self.of[link].known
        also = any(self._at(other, link[1]) == own for other in self.links if other != link)
        return set() if own is None or also else {(1, own[1])}

    def _delete(self, link: tuple[int, int], lost: bool) -> None:
        own, one, two = self.of[link], self.at[link[0]], self.at[link[1]]
        if one.has is not None or two.has is None or not covers(one.grave, two.has):
            return
        assert one.grave is not None
        if two.grave is None or not is_newer(two.grave.stamp, one.grave.stamp):
            two.grave = replace(one.grave, since=Since.DONE)
        two.has, two.content = None, 0
        self.deletes += 1
        if not lost:
            own.known = None

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> int:
        """Looks and rounds until nothing is left to be done; gives how many writes and deletions that took."""
        before = self.writes + self.deletes
        quiet = 0
        for _ in range(60):
            done = self.writes + self.deletes
            for link in self.links:
                self.look(link)
            for link in self.links:
                self.carry(link)
            quiet = quiet + 1 if self.writes + self.deletes == done else 0
            if quiet > len(self.links):
                break
        else:
            raise AssertionError("it goes round for ever")
        return self.writes + self.deletes - before


def way_of(link: tuple[int, int]) -> Way:
    return Way(*(End("store", REGIONS[place], f"s3://b{place}") for place in link))


PAIR = [(0, 1), (1, 0)]
RING = [(0, 1), (1, 2), (2, 0)]
MESH = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
LONG_RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
LINE = [(0, 1), (1, 0), (1, 2), (2, 1)]
SHAPES = {"both ways": PAIR, "a ring": RING, "a mesh": MESH, "a long ring": LONG_RING, "a line": LINE}
WHAT = ["put", "put", "same", "delete", "delete", "look", "look", "look", "carry", "carry", "lost", "tick", "calm"]


def check(links: list[tuple[int, int]], events: list[tuple[str, int]]) -> None:
    """All that happens, and what has to be so in the end."""
    places = Places(links)
    number = 1 + max(max(link) for link in links)
    for what, which in events:
        link, place = links[which % len(links)], which % number
        if what in ("put", "same"):
            places.now += 1
            places.put(place, same=what == "same")
        elif what == "delete":
            places.delete(place)
        elif what == "look":
            places.look(link)
        elif what in ("carry", "lost"):
            places.carry(link, lost=what == "lost")
        elif what == "calm":
            places.settle()
        else:
            places.now += 1
    places.settle()
    ends = {(one.has.etag if one.has else None, one.content) for one in places.at[:number]}
    assert len({etag for etag, _ in ends}) == 1, "all have the same"
    kept = {content for _, content in ends if content}
    again = {places.bytes_of[put] for put in places.bytes_of.keys() - places.gone}
    back = {put for put in kept & places.gone if places.bytes_of[put] not in again}
    assert not back, "what was deleted stays away"
    if places.puts:
        newest = max(places.stamps, key=lambda put: (places.stamps[put].at, put))
        same = {put for put, data in places.bytes_of.items() if data == places.bytes_of[newest]}
        if not same & places.maybe:
            assert kept <= same and kept, "what nobody deleted, and is the newest, stays"
    assert places.settle() == 0, "and then it is quiet"


@pytest.mark.parametrize("links", SHAPES.values(), ids=SHAPES)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_nothing_comes_back_and_nothing_goes_that_was_written_since(
    links: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Also where the same bytes are written at several places."""
    check(links, data.draw(st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 5)), max_size=40)))


@pytest.mark.parametrize(
    ("links", "events"),
    [
        (MESH, [("put", 2), ("look", 3), ("carry", 3), ("look", 5), ("delete", 1), ("carry", 5)]),
        (PAIR, [("put", 0), ("same", 1), ("look", 1), ("delete", 0)]),
        (RING, [("put", 1), ("look", 1), ("carry", 1), ("delete", 2)]),
        (PAIR, [("put", 0), ("look", 0), ("carry", 0), ("look", 1), ("delete", 0), ("same", 1)]),
        (MESH, [("put", 0), *[("look", 0), ("carry", 0)], *[("look", 4), ("carry", 4)], ("delete", 1), ("same", 0)]),
        (RING, [("put", 0), ("calm", 0), ("same", 0), ("calm", 0), ("delete", 2)]),
        (LONG_RING, [("put", 0), ("calm", 0), ("same", 0), ("calm", 0), ("delete", 3), ("calm", 0), ("delete", 3)]),
    ],
    ids=[
        "another link knows",
        "both wrote it",
        "passed on",
        "written anew there",
        "written anew at its place",
        "written anew in a ring",
        "written anew in a long ring",
    ],
)
def test_lives_that_went_wrong_once(links: list[tuple[int, int]], events: list[tuple[str, int]]) -> None:
    check(links, events)
