"""Listings of all versions of a source and of its targets, read side by side in the order of their keys. Pure.

As `merging`, whose windows these are but for what a key has: its whole chain, also where that goes over several pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.errors import LakeMirrorError, RemoteFailure
from core.replicating.versions import Chain, Version


class Keyed(NamedTuple):
    """A key with its chain, the oldest version first."""

    key: str
    chain: Chain

    @property
    def size(self) -> int:
        """Of all versions together."""
        return sum(version.size for version in self.chain)


class VersionPage(NamedTuple):
    """A page of a listing: keys ascending, of each the newest version first. `position`: where the next page goes on,
    a key and a version as the store tells them; None: there is no other."""

    entries: Sequence[tuple[str, Version]]
    position: tuple[str, str] | None


Read = Callable[[str, tuple[str, str] | None], VersionPage]
"""Gives a page: the first one after a key, the others from a position on. Raises LakeMirrorError."""
Each = Callable[[Callable[["ChainCursor"], None], Iterable["ChainCursor"]], Iterable[None]]


@dataclass(frozen=True, slots=True)
class ChainWindow:
    """A stretch of keys up to `last`, with it: what the source has there, in order, and what each target has, by key.
    `end` and `failed` as those of `merging.Window`."""

    items: Sequence[Keyed]
    there: Mapping[int, Mapping[str, Chain]]
    last: str
    end: bool
    failed: Mapping[int, LakeMirrorError]


@dataclass(slots=True)
class ChainCursor:
    """A listing, read on as far as somebody needs. A chain is complete once another key, or the end, was seen."""

    read: Read
    after: str
    more: bool = True
    complete: list[Keyed] = field(default_factory=list)
    wanted: str = ""
    found: dict[str, Chain] = field(default_factory=dict)
    error: LakeMirrorError | None = None
    _position: tuple[str, str] | None = None
    _key: str = ""
    _newest_first: list[Version] = field(default_factory=list)

    def page(self) -> None:
        """Reads a page. Raises RemoteFailure for one that is not in order, or that leads nowhere."""
        page = self.read(self.after, self._position)
        if page.position is not None and (not page.entries or page.position == self._position):
            raise RemoteFailure("the store says that there are more versions, and lists none")
        for key, version in page.entries:
            if key < self._key:
                raise RemoteFailure(f"the store lists '{key[:200]}' after '{self._key[:200]}', which is out of order")
            if key <= self.after:
                continue
            if key != self._key:
                self._finish()
                self._key = key
            self._newest_first.append(version)
        self._position, self.more = page.position, page.position is not None
        if not self.more:
            self._finish()

    def _finish(self) -> None:
        if self._newest_first:
            self.complete.append(Keyed(self._key, self._newest_first[::-1]))
            self._newest_first = []

    def pages(self) -> list[Keyed]:
        """Reads on until a chain is complete; gives those that are."""
        while self.more and not self.complete:
            self.page()
        taken, self.complete = self.complete, []
        return taken

    def look_ahead(self) -> None:
        """Holds a complete chain, if there is any left; or notes what kept it from being read."""
        try:
            while self.more and not self.complete:
                self.page()
        except LakeMirrorError as error:
            self.error = error

    def take(self) -> None:
        """Moves the chains up to the key `wanted`, with it, into `found`; or notes what kept it from being read."""
        self.found = {}
        try:
            while self._takes_all() and self.more:
                self.page()
        except LakeMirrorError as error:
            self.error = error

    def _takes_all(self) -> bool:
        """Takes of what is complete; whether what is wanted may go on behind that."""
        for at, item in enumerate(self.complete):
            if item.key > self.wanted:
                self.complete = self.complete[at:]
                return False
            self.found[item.key] = item.chain
        self.complete = []
        return not self._newest_first or self._key <= self.wanted


def windows(
    source: Read, targets: Mapping[int, Read], after: str, high: str | None, each: Each = map, *, tail: bool = False
) -> Iterator[ChainWindow]:
    """The keys after one, up to another (None: to the end), about a page of the source at a time. Raises what the
    source raises; a target that can't be listed is left out from then on. `tail`: also what targets have behind the
    last key of the source."""
    ours, theirs = ChainCursor(source, after), {number: ChainCursor(read, after) for number, read in targets.items()}
    failed: dict[int, LakeMirrorError] = {}
    end, last = False, after
    while not end:
        items = ours.pages()
        inside = [item for item in items if high is None or item.key <= high]
        last = inside[-1].key if inside else last
        end = len(inside) < len(items) or not ours.more or (high is not None and last >= high)
        there = _there(theirs, failed, last, each)
        to = high if end and high is not None and not tail else last
        yield ChainWindow(inside, there, to, end and not tail, dict(failed))
    if tail:
        yield from _behind(theirs, failed, last, high, each)


def _there(
    theirs: Mapping[int, ChainCursor], failed: dict[int, LakeMirrorError], wanted: str, each: Each
) -> Mapping[int, Mapping[str, Chain]]:
    """What each target has up to a key; who could not be read is `failed` from then on."""
    going = {number: cursor for number, cursor in theirs.items() if number not in failed}
    for cursor in going.values():
        cursor.wanted = wanted
    list(each(ChainCursor.take, going.values()))
    failed |= {number: cursor.error for number, cursor in going.items() if cursor.error is not None}
    return {number: cursor.found for number, cursor in going.items() if cursor.error is None}


def _behind(
    theirs: Mapping[int, ChainCursor], failed: dict[int, LakeMirrorError], after: str, high: str | None, each: Each
) -> Iterator[ChainWindow]:
    """What targets have between the last key of the source and the end, a page of one of them at a time."""
    end, last = False, after
    while not end:
        going = {number: cursor for number, cursor in theirs.items() if number not in failed}
        list(each(ChainCursor.look_ahead, going.values()))
        read = [cursor for cursor in going.values() if cursor.error is None]
        ahead = [cursor.complete[-1].key for cursor in read if cursor.more]
        held = [item.key for cursor in read for item in cursor.complete]
        end = not ahead or (high is not None and min(ahead) >= high)
        last = high if end and high is not None else max([last, *held]) if end else min(ahead)
        yield ChainWindow([], _there(theirs, failed, last, each), last, end, dict(failed))
