"""What lies in a source's namespace and not in a mirror's, from the listings of both. Pure.

A replication rule brings what is written after it was made. What was there before takes a job of its own, like S3 Batch
Replication, which wants a manifest: CSV without a heading, bucket, key in URL encoding, version id
(`S3BatchOperations_CSV_20180820` in the S3 User Guide).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import quote

from core.errors import RemoteFailure
from core.installations.preflight_stores import bucket_of, prefix_of
from core.mirroring.content_proof import OWN_FILES
from core.text.phrases import count
from core.text.sizes import size_in_words
from core.types import ObjectInfo, ObjectVersion


class Listed(Protocol):
    """An object of a listing: its whole key, and its bytes."""

    @property
    def key(self) -> str: ...

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=Listed)


@dataclass(slots=True)
class Lacking:
    """So many objects of the source the mirror's namespace lacks, or has in another size, and so many were looked at;
    `whole`: that were all of them."""

    objects: int = 0
    bytes: int = 0
    looked: int = 0
    whole: bool = False

    def note(self, one: Listed, *, lacks: bool) -> None:
        """Count an object of the source."""
        self.looked += 1
        if lacks:
            self.objects += 1
            self.bytes += one.size

    @property
    def figure(self) -> str:
        """How much is lacking, in words."""
        more = "" if self.whole else "or more "
        return f"{self.objects:,} {more}({size_in_words(self.bytes)})"


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Those of a source and of its mirror."""

    source: str
    mirror: str


def lacking(
    places: Namespaces, source: Iterable[T], mirror: Iterable[ObjectInfo], tally: Lacking, is_over: Callable[[], bool]
) -> Iterator[T]:
    """Objects of the source that the mirror lacks, or has in another size, as both are listed, keys ascending; `tally`
    counts them. It ends early when it `is_over`. LakeMirror's own files don't count.

    RemoteFailure for a listing that is out of order: then nothing could be told from it.
    """
    there = _relative(mirror, places.mirror)
    found = next(there, None)
    for key, one in _relative(source, places.source):
        while found is not None and found[0] < key and not is_over():
            found = next(there, None)
        if is_over():
            return
        lacks = found is None or found[0] != key or found[1].size != one.size
        tally.note(one, lacks=lacks)
        if lacks:
            yield one
    tally.whole = True


def _relative(listing: Iterable[T], namespace: str) -> Iterator[tuple[str, T]]:
    """With their keys below the namespace."""
    start, before = prefix_of(namespace), None
    for one in listing:
        key = one.key.removeprefix(start)
        if before is not None and key <= before:
            raise RemoteFailure(f"the listing of {namespace} is out of order: '{key}' comes after '{before}'")
        before = key
        if not key.startswith(OWN_FILES):
            yield key, one


def manifest_line(namespace: str, one: Listed) -> str:
    """A line of the manifest: with the version where one is known."""
    columns = [bucket_of(namespace), quote(one.key, safe="/")]
    if isinstance(one, ObjectVersion):
        columns.append(one.version_id)
    return ",".join(columns) + "\n"


def say_lacking(places: Namespaces, found: Lacking) -> str:
    """What was counted, in one sentence without its full stop."""
    if found.objects:
        return f"Of {count(found.looked, 'object')} in {places.source}, {found.figure} are not in {places.mirror}"
    if not found.whole:
        others = "the rest was not checked"
        return f"The first {count(found.looked, 'object')} of {places.source} are in {places.mirror}; {others}"
    if not found.looked:
        return f"{places.source} is empty"
    return f"All {count(found.looked, 'object')} of {places.source} are in {places.mirror}"
