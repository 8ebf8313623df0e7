"""What places may have in the end, by what people did and what docs/replication-rules.md says of that. Pure.

The newest write that a store has acknowledged is everywhere, unless somebody has deleted it, or a newer one. Of two
writes of one second that of the region whose name comes first is the newer one. A write that nobody answered may be
there or not. Where the store does not heed If-Match, what was written between LakeMirror's look and its write, or
deletion, may be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.replicating.stamps import bucket_mark
from tests.rule_fleet.journal import Deed, Kind
from tests.rule_fleet.traffic import Asked, Traffic

NOTED_SECONDS = 5.0


@dataclass(frozen=True)
class Heeds:
    """What a store does with If-Match: of a write, of a deletion."""

    puts: bool = True
    deletes: bool = False


def newer(one: Deed, other: Deed) -> bool | None:
    """Whether one write is newer than another one of its key; None: who looks from outside can't tell.

    At one place people write one after the other."""
    if one.place == other.place:
        return one.began > other.began
    least, most = _seconds(one)
    others_least, others_most = _seconds(other)
    if least > others_most or most < others_least:
        return least > others_most
    if least == most == others_least == others_most:
        return _origin(one) < _origin(other)
    return None


def may_be_unnoted(asked: Asked, kills: Sequence[float]) -> bool:
    """Whether who asked may have been killed before what came of it was noted."""
    return any(asked.began <= at <= asked.ended + NOTED_SECONDS for at in kills)


def left_over(begun: float, uploads: Sequence[Asked], kills: Sequence[float]) -> bool:
    """Whether LakeMirror should have given up an upload in parts that a store began at a time: it can't, where it has
    not heard that it was begun, or was killed before it could note that."""
    near = [one for one in uploads if one.began - 1 <= begun <= one.ended + 1]
    return not any(not one.heard or may_be_unnoted(one, kills) for one in near)


def _is_older(one: Deed, other: Deed) -> bool:
    """Whether the stamp of one write says for sure that it is older: of two of one second at one place it says
    nothing."""
    return _seconds(one)[1] < _seconds(other)[0] if one.place == other.place else newer(other, one) is True


def _seconds(deed: Deed) -> tuple[int, int]:
    return int(deed.began), int(deed.ended or deed.began + 3600)


def _origin(deed: Deed) -> tuple[str, str]:
    return deed.place.region, bucket_mark(deed.place.region, deed.place.bucket)


@dataclass
class BothWays:
    """One key of places that copy to one another. `final`: the number of the write that all have; None: nothing.
    `rejected`: when somebody last rejected its deletion; `kills`: when a worker was killed."""

    key: str
    deeds: Sequence[Deed]
    final: int | None
    traffic: Traffic = field(default_factory=Traffic)
    rejected: float = 0.0
    kills: Sequence[float] = ()
    heeds: Mapping[str, Heeds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._puts = {one.number: one for one in self.deeds if one.kind is Kind.PUT}
        self._deletes = [one for one in self.deeds if one.kind is Kind.DELETE]

    def problems(self) -> Iterator[str]:
        """What should not be so."""
        last = None if self.final is None else self._puts.get(self.final)
        if self.final is not None and last is None:
            yield f"{self.key} has write {self.final}, which nobody made"
            return
        for put in self._puts.values():
            if not put.sure or put is last or (last is not None and newer(last, put) is not False):
                continue
            if not self._excused(put):
                yield f"lost: {put}; there is {last or 'nothing'}"
        if last is not None:
            yield from self._back(last)
        yield from self._unasked()

    # --- nothing is lost ----------------------------------------------------------------------------------------------

    def _excused(self, put: Deed) -> bool:
        """Whether somebody may have deleted it, or it was lost as the documents say that it may be."""
        for delete in self._deletes:
            for number in self._hits(delete):
                hit = self._puts.get(number)
                if hit is put or (hit is not None and newer(hit, put) is not False):
                    return True
        if self._overtaken(put):
            return True
        unsure = [one for one in self._puts.values() if not one.sure and one.place == put.place]
        return any(newer(one, put) and self._excused(one) for one in unsure)

    def _overtaken(self, put: Deed) -> bool:
        heeds, at = self.heeds.get(put.place.region, Heeds()), (put.place.bucket, self.key)
        risky: list[Asked] = [] if heeds.deletes else [*self.traffic.deletes.get(at, ())]
        risky += [] if heeds.puts else self.traffic.writes.get(at, ())
        for asked in risky:
            looked = self.traffic.looked_before(at, asked.began)
            if asked.may_be_done and put.began <= asked.ended and put.ended >= looked:
                return True
        return False

    def _hits(self, delete: Deed) -> set[int]:
        """What may have lain there when somebody deleted it."""
        between = self.traffic.written_between((delete.place.bucket, self.key), delete.looked, delete.ended)
        return {delete.hit} | {one.number for one in between if one.number}

    # --- nothing comes back -------------------------------------------------------------------------------------------

    def _back(self, last: Deed) -> Iterator[str]:
        for delete in self._deletes:
            hits = self._hits(delete)
            hit = self._puts.get(delete.hit)
            if not delete.sure or len(hits) > 1 or hit is None or self.rejected > delete.began:
                continue
            older = last is hit or _is_older(last, hit)
            if (older and self._known(hit, delete)) or (last.began < delete.looked and self._known(last, delete)):
                yield f"back: {last}; {delete} had deleted {hit}"

    def _known(self, put: Deed, delete: Deed) -> bool:
        """Whether a link knew that a write was at a place before it was deleted there: it had brought it there, or from
        there to the next one, and had noted that."""
        for (bucket, key), asked in self.traffic.writes.items():
            there = bucket == delete.place.bucket or put.place == delete.place
            before = (one for one in asked if one.done and one.heard and one.ended < delete.looked)
            known = (one for one in before if one.number == put.number and not self._killed(one))
            if key == self.key and there and any(True for _ in known):
                return True
        return False

    def _killed(self, asked: Asked) -> bool:
        return may_be_unnoted(asked, self.kills)

    # --- nothing is deleted that nobody deleted -----------------------------------------------------------------------

    def _unasked(self) -> Iterator[str]:
        first = min((one.began for one in self._deletes), default=None)
        for (bucket, key), asked in self.traffic.deletes.items():
            if key == self.key and (first is None or any(one.ended < first for one in asked)):
                yield f"LakeMirror deleted {self.key} in {bucket}, which nobody had deleted"


# --- all versions -----------------------------------------------------------------------------------------------------


class Version(NamedTuple):
    """As a listing tells of it; `etag`: "" of a delete marker."""

    key: str
    id: str
    etag: str
    size: int
    modified: float
    latest: bool


def of_versions(deeds: Mapping[str, Sequence[Deed]], sides: Mapping[str, Sequence[Version]]) -> Iterator[str]:
    """What should not be so where all versions are at all places, each under its id."""
    (name, first), *others = sides.items()
    for other, there in others:
        for one in sorted(set(first) ^ set(there))[:20]:
            yield f"{name if one in set(first) else other} alone has {one}"
    known = {deed.version: deed for some in deeds.values() for deed in some if deed.version}
    there = {one.id: one for one in first}
    for version, deed in known.items():
        found = there.get(version)
        if deed.sure and found is None:
            yield f"lost: the version of {deed}"
        elif found is not None and (found.etag == "") != (deed.kind is Kind.DELETE):
            yield f"{found} is not what {deed} made"
    unsure = {deed.key for some in deeds.values() for deed in some if not deed.sure}
    for version, one in there.items():
        if version not in known and one.key not in unsure:
            yield f"nobody made {one}"


# --- a plain rule -----------------------------------------------------------------------------------------------------


class Standing(NamedTuple):
    """An object as HEAD tells of it: the number of its write, and what travels with it."""

    number: int
    etag: str
    content_type: str
    tags: tuple[tuple[str, str], ...] = ()
    mode: str = ""
    until: float = 0.0
    hold: bool = False


def at_source(deeds: Mapping[str, Sequence[Deed]], there: Mapping[str, Standing]) -> Iterator[str]:
    """What should not be so of a source, where nobody but people writes."""
    for key, some in deeds.items():
        may: set[int | None] = {None}
        for deed in some:
            now = deed.number if deed.kind is Kind.PUT else None
            may = {now} if deed.sure else may | {now}
        found = there[key].number if key in there else None
        if found not in may:
            yield f"the source has write {found} of {key}, not {sorted(may, key=str)}"


def at_target(
    source: Mapping[str, Standing], target: Mapping[str, Standing], may_stay: set[str], now: float
) -> Iterator[str]:
    """What should not be so of a target of the plain rule. `may_stay`: keys that somebody wants to keep there."""
    for key, one in source.items():
        there = target.get(key)
        if there is None:
            yield f"it lacks {key}"
        elif _compared(one, now) != _compared(there, now):
            yield f"{key} is {there}, not {one}"
    for key in sorted(target.keys() - source.keys() - may_stay):
        yield f"it has {key} still: {target[key]}"


def _compared(one: Standing, now: float) -> Standing:
    """A retention that ends within a minute counts as over."""
    return one if one.until > now + 60 else one._replace(mode="", until=0.0)


def unnoted(there: Mapping[str, Standing], traffic: Traffic, bucket: str, kills: Sequence[float]) -> set[str]:
    """Keys of which a target has what LakeMirror wrote without knowing it: no answer came, or the worker was killed
    before that was noted. If the source has overwritten and deleted it meanwhile, it is taken for somebody else's."""
    found = set[str]()
    for key, one in there.items():
        wrote = [asked for asked in traffic.writes.get((bucket, key), ()) if asked.number == one.number]
        if wrote and all(not asked.heard or may_be_unnoted(asked, kills) for asked in wrote):
            found.add(key)
    return found


def unasked(deeds: Mapping[str, Sequence[Deed]], traffic: Traffic, buckets: Sequence[str]) -> Iterator[str]:
    """What LakeMirror deleted at the targets of a plain rule before anybody had deleted it at the source."""
    for (bucket, key), asked in traffic.deletes.items():
        if bucket in buckets:
            first = min((one.began for one in deeds.get(key, ()) if one.kind is Kind.DELETE), default=None)
            if first is None or any(one.ended < first for one in asked):
                yield f"LakeMirror deleted {key} in {bucket}, which nobody had deleted"
