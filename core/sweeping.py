"""A mirror follows its source's garbage collection: which of its objects may go, when, and who is asked first. Pure.

lakeFS collects garbage at the source. What it deleted there stays at a mirror that LakeMirror copies objects to, until
a sweep of the mirror's own namespace finds that no commit which is kept names it, and that the source has it no more;
and a second sweep, a week later, finds the same. An object has one address, relative to the namespace, at both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import unquote

from core.bringing import ObjectReplication
from core.errors import Invalid, LakeMirrorError
from core.mirroring.content_proof import OWN_FILES
from core.text.phrases import count

APART = timedelta(days=7)
"""So long it has to be before a second sweep that the first one found the same; and so old an object has to be."""
EXPIRES = timedelta(days=7)
"""So long a list may be approved."""
USUAL_PERCENT, USUAL_MOST = 10, 10_000
MOST_MOST = 10**9
MOST_FOUND = 500_000
"""So many addresses a sweep keeps; the others' turn comes once these have gone."""
SHOWN = 100
"""So many keys are told with what waits for approval; all of them are in its CSV."""
METADATA = "_lakefs/"
_NEVER = (METADATA, OWN_FILES)
_PROBE = "dummy"
"""What lakeFS writes into a new repository's namespace to see that it may."""


class NothingGoes(LakeMirrorError):
    """Why nothing is deleted at present: something is in doubt that somebody else has to settle, or time."""

    retryable = True


class Found(NamedTuple):
    """An object that no kept commit names, and that the source does not have: its address, size in bytes and ETag."""

    address: str
    size: int
    etag: str


class Candidate(NamedTuple):
    """Such an object, and since when (Unix seconds) a sweep is known to have found it so, and each one after it too."""

    address: str
    size: int
    etag: str
    since: float

    @property
    def found_at(self) -> datetime:
        """The same as a time in UTC."""
        return datetime.fromtimestamp(self.since, UTC)


def check_can_follow(settings: Mapping[str, Any]) -> None:
    """Raises Invalid for a mirror that would follow its source's garbage collection while the stores copy objects."""
    if settings.get("follow_gc") and settings.get("object_replication") != ObjectReplication.MANAGED:
        raise Invalid(
            "follow_gc needs managed replication: with native replication the rule of the store copies deletions",
            field="follow_gc",
        )


def is_swept(address: str) -> bool:
    """Whether an address is an object's that a commit might name: never metadata, nor a file of lakeFS's or our own."""
    return bool(address) and not address.startswith(_NEVER) and address != _PROBE


def named_below(namespace: str, uri: str) -> set[str]:
    """What an entry with a URI of its own names below a namespace, relative to it; nothing if that lies elsewhere.

    Both as it is written and as lakeFS reads it: without a query, and decoded. The scheme may be another name of S3's.
    """
    prefix = f"{_without_scheme(namespace).rstrip('/')}/"
    written = _without_scheme(uri)
    read = unquote(written.partition("?")[0])
    return {one.removeprefix(prefix) for one in (written, read) if one.startswith(prefix)} - {""}


def _without_scheme(uri: str) -> str:
    return uri.partition("://")[2]


# --- from one sweep to the next -------------------------------------------------------------------------------------


def carried(found: Iterable[Found], before: Mapping[str, Candidate], looked_at: float) -> list[Candidate]:
    """What this sweep found, by address, each with the time since when it is known: its own end for what the sweep
    before did not find, or found as another object. Of what is new no more than MOST_FOUND are kept in all."""
    kept, new = [], []
    for one in found:
        known = before.get(one.address)
        if known is not None and (known.size, known.etag) == (one.size, one.etag):
            kept.append(known)
        else:
            new.append(Candidate(*one, looked_at))
    new.sort()
    return sorted(kept + new[: max(0, MOST_FOUND - len(kept))])


def due(candidates: Iterable[Candidate], began_at: float) -> list[Candidate]:
    """Those that a sweep which began then found as well as one that had ended a week before."""
    return [one for one in candidates if one.since + APART.total_seconds() <= began_at]


def why_ask(number: int, listed: int, percent: int, most: int, *, lately: int = 0) -> str:
    """Why somebody has to approve so many deletions among so many objects, in words; "" if nobody has to. `lately`: so
    many more were deleted in the week before without asking."""
    after = f", after {lately:,} in the week before" if lately else ""
    if number + lately > most:
        return f"{count(number, 'object')} would be deleted{after}, more than {most:,}"
    if (number + lately) * 100 > percent * (listed + lately):
        return f"{number:,} of {count(listed, 'object')} would be deleted{after}, more than {percent} %"
    return ""


# --- at the act -----------------------------------------------------------------------------------------------------


class Fate(StrEnum):
    """What becomes of an object whose turn it is."""

    DELETE = "delete"
    NAMED = "named"
    AT_SOURCE = "at-source"
    GONE = "gone"
    CHANGED = "changed"
    YOUNG = "young"
    LOCKED = "locked"


@dataclass(frozen=True, slots=True)
class Standing:
    """An object as the mirror's store tells of it now. `modified`: when it was written; None: the store does not say.
    `locked`: by a retention or a legal hold."""

    size: int
    etag: str
    modified: datetime | None
    locked: bool = False


def fate_of(one: Candidate, here: Standing | None, *, named: Collection[str], at_source: bool, now: datetime) -> Fate:
    """What is to be done about an object, by all that was asked anew right before. `named`: addresses that a commit
    names which came to be kept since the sweep; `at_source`: whether the source has it (again)."""
    if one.address in named or not is_swept(one.address):
        return Fate.NAMED
    if at_source:
        return Fate.AT_SOURCE
    if here is None:
        return Fate.GONE
    if (here.size, here.etag) != (one.size, one.etag):
        return Fate.CHANGED
    if here.modified is None or here.modified > now - APART:
        return Fate.YOUNG
    return Fate.LOCKED if here.locked else Fate.DELETE


def tally(fates: Iterable[Fate]) -> dict[str, int]:
    """How many were spared, and why, in the words of the columns that count them."""
    counted = Counter(fates)
    spared = (Fate.NAMED, Fate.AT_SOURCE, Fate.CHANGED, Fate.YOUNG)
    return {"spared": sum(counted[fate] for fate in spared), "locked": counted[Fate.LOCKED]}


# --- the work -------------------------------------------------------------------------------------------------------


def stretches(sample: Collection[str], number: int) -> list[tuple[str, str]]:
    """The keys of a namespace in so many stretches at most, about equally full if `sample` is like all of them.

    Each holds the keys after its first one up to its last, that one included; "" is no bound. Together they hold each
    key once, whatever the sample.
    """
    keys = sorted(set(sample) - {""})
    at = [len(keys) * part // max(1, number) for part in range(1, number)]
    cuts = sorted({keys[place] for place in at if place < len(keys)})
    return list(zip(["", *cuts], [*cuts, ""], strict=True))


def spread_over(ids: Sequence[str], most: int) -> list[str]:
    """So many of some ids at most, spread over all of them."""
    step = max(1, -(-len(ids) // most))
    return list(ids[::step])
