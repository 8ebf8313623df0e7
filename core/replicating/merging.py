"""Listings of a source and of its targets, read side by side in the order of their keys. Pure: who calls gives what
reads a page.

Keys are relative to their places, so that one key has one name everywhere. Stores list by the bytes of UTF-8, which is
the order of Python's texts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.errors import LakeMirrorError, RemoteFailure
from core.replicating.eligible import LONGEST_KEY

FIRST_SURROGATE, FIRST_BEHIND_SURROGATES, LAST_LETTER = 0xD800, 0xE000, "\U0010ffff"


class Listed(NamedTuple):
    """An object in a listing. `modified` as the store wrote it, "" where nobody asked."""

    key: str
    size: int
    etag: str
    modified: str = ""


class Listing(NamedTuple):
    """A page: keys ascending, all after the one that was named. `more`: there are others after the last."""

    items: Sequence[Listed]
    more: bool


Read = Callable[[str], Listing]
"""Gives the page after a key. Raises LakeMirrorError."""
Each = Callable[[Callable[["Cursor"], None], Iterable["Cursor"]], Iterable[None]]
"""Like `map`: it may do several at a time."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of keys up to `last`, with it: what the source has there, in order, and what each target has (size and
    ETag by key; of what the source has not perhaps not all). `end`: the stretch that was asked for is through.
    `failed`: targets that could not be listed."""

    items: Sequence[Listed]
    there: Mapping[int, Mapping[str, tuple[int, str]]]
    last: str
    end: bool
    failed: Mapping[int, LakeMirrorError]


@dataclass(slots=True)
class Cursor:
    """A listing, read on as far as somebody needs."""

    read: Read
    after: str
    more: bool = True
    held: list[Listed] = field(default_factory=list)
    wanted: str = ""
    keys: Sequence[str] = ()
    """Those that are asked about: what lies between two of them needs not be listed."""
    found: dict[str, tuple[int, str]] = field(default_factory=dict)
    error: LakeMirrorError | None = None

    def page(self) -> list[Listed]:
        """The next page. Raises RemoteFailure for one that is not in order: a merge of it would prove nothing."""
        listing = self.read(self.after)
        last = self.after
        for item in listing.items:
            if item.key <= last:
                raise RemoteFailure(f"the store lists '{item.key[:200]}' after '{last[:200]}', which is out of order")
            last = item.key
        if listing.more and not listing.items:
            raise RemoteFailure("the store says that there is more, and lists nothing")
        self.after, self.more = last, listing.more
        return list(listing.items)

    def take(self) -> None:
        """Moves what is listed up to `wanted`, with it, into `found`; or notes what kept it from being read."""
        self.found = {}
        try:
            while self._takes_all() and self.more:
                self.held = self.page()
                self._skip()
        except LakeMirrorError as error:
            self.error = error

    def _skip(self) -> None:
        """After a page that has none of the keys that are asked about, go on right before the next of them."""
        at = bisect_right(self.keys, self.after)
        if at == len(self.keys) or not self.held or not self.more:
            return
        first = bisect_left(self.keys, self.held[0].key)
        if first == at:
            self.after = max(self.after, just_before(self.keys[at]))

    def look_ahead(self) -> None:
        """Holds something, if there is anything left; or notes what kept it from being read."""
        try:
            if not self.held and self.more:
                self.held = self.page()
        except LakeMirrorError as error:
            self.error = error

    def _takes_all(self) -> bool:
        """Takes of what is held; whether what is wanted may go on behind that."""
        for at, item in enumerate(self.held):
            if item.key > self.wanted:
                self.held = self.held[at:]
                return False
            self.found[item.key] = item.size, item.etag
        self.held = []
        return self.after < self.wanted


def just_before(key: str) -> str:
    """A text before a key that has next to nothing between them; "" where it would be too long for a store."""
    stem, last = key[:-1], ord(key[-1])
    if not last:
        return stem
    before = last - 1 if last != FIRST_BEHIND_SURROGATES else FIRST_SURROGATE - 1
    text = f"{stem}{chr(before)}{LAST_LETTER}"
    return text if len(text.encode()) <= LONGEST_KEY else ""


def windows(
    source: Read, targets: Mapping[int, Read], after: str, high: str | None, each: Each = map, *, tail: bool = False
) -> Iterator[Window]:
    """The keys after one, up to another (None: to the end), a page of the source at a time. Raises what the source
    raises; a target that can't be listed is left out from then on. `tail`: also what targets have behind the last key
    of the source."""
    ours, theirs = Cursor(source, after), {number: Cursor(read, after) for number, read in targets.items()}
    failed: dict[int, LakeMirrorError] = {}
    end, behind = False, after
    while not end:
        items = ours.page()
        inside = [item for item in items if high is None or item.key <= high]
        end = len(inside) < len(items) or not ours.more or (high is not None and ours.after >= high)
        behind = inside[-1].key if inside else behind
        last = behind if tail else high if end and high is not None else ours.after
        keys = () if tail else [item.key for item in inside]
        there = _there(theirs, failed, inside[-1].key if inside else after, keys, each)
        yield Window(inside, there, last, end and not tail, dict(failed))
    if tail:
        yield from _behind(theirs, failed, behind, high, each)


def _there(
    theirs: Mapping[int, Cursor], failed: dict[int, LakeMirrorError], wanted: str, keys: Sequence[str], each: Each
) -> Mapping[int, Mapping[str, tuple[int, str]]]:
    """What each target has up to a key, all of it unless `keys` are asked about; who could not be read is `failed` from
    then on."""
    going = {number: cursor for number, cursor in theirs.items() if number not in failed}
    for cursor in going.values():
        cursor.wanted, cursor.keys = wanted, keys
    list(each(Cursor.take, going.values()))
    failed |= {number: cursor.error for number, cursor in going.items() if cursor.error is not None}
    return {number: cursor.found for number, cursor in going.items() if cursor.error is None}


def _behind(
    theirs: Mapping[int, Cursor], failed: dict[int, LakeMirrorError], after: str, high: str | None, each: Each
) -> Iterator[Window]:
    """What targets have between the last key of the source and the end, a page of one of them at a time."""
    end, last = False, after
    while not end:
        going = {number: cursor for number, cursor in theirs.items() if number not in failed}
        list(each(Cursor.look_ahead, going.values()))
        ahead = [cursor.after for cursor in going.values() if cursor.more and cursor.error is None]
        held = [item.key for cursor in going.values() for item in cursor.held]
        end = not ahead or (high is not None and min(ahead) >= high)
        last = high if end and high is not None else max([last, *held]) if end else min(ahead)
        there = _there(theirs, failed, last, (), each)
        yield Window([], there, last, end, dict(failed))
