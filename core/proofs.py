"""The last word on an object: where its entry doesn't decide, the source's object does, and the content itself.

An entry's size and ETag may be whatever a client once staged, and a copy made in other parts has another ETag. Nothing
is proven by a source that can't be asked: then the mismatch stands, and is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from core.errors import LakeMirrorError, NotFound
from core.presence import Depth, Note, Reason, Verdict, is_md5, judge_object
from core.types import ObjectInfo

_OF_ENTRY = {Reason.SIZE, Reason.ETAG}


class Readable(Protocol):
    """What a proof needs of a store. May raise Denied, Unreachable, Throttled, RemoteFailure."""

    def head(self, uri: str) -> ObjectInfo | None: ...
    def md5(self, uri: str) -> str: ...  # NotFound


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of it: a verdict that stands, or a note on how the object passed."""

    verdict: Verdict = None
    note: Note | None = None


def is_sampled(uri: str, share: float, seed: int) -> bool:
    """Whether an object is among the share (0 to 1) that is read; each seed picks others, the same one the same."""
    return share >= 1.0 or crc32(f"{seed} {uri}".encode()) < share * 2**32


@dataclass(frozen=True, slots=True)
class Prover:
    """Compares objects of a destination with those of its source. Raises what the destination's store raises."""

    store: Readable
    namespace: str
    source: Readable
    source_namespace: str

    def appeal(self, verdict: Verdict, found: ObjectInfo, uri: str, *, size: int, etag: str) -> Proof:
        """A mismatch passes if the source's object is the same one; any other verdict stands."""
        if verdict is None or verdict[0] not in _OF_ENTRY:
            return Proof(verdict)
        try:
            return self._same(verdict, found, uri, size=size, etag=etag)
        except _SourceSilent as error:
            return Proof((verdict[0], f"{verdict[1]}; the source can't be asked ({error})"))

    def _same(self, verdict: tuple[Reason, str], found: ObjectInfo, uri: str, *, size: int, etag: str) -> Proof:
        original = self._original(uri)
        if original is None or original.size != found.size:
            return Proof(verdict)
        if original.etag_is_content and found.etag_is_content and original.etag == found.etag:
            return Proof(note=Note.ENTRY_DIFFERS)
        if (is_md5(original) and is_md5(found)) or self._hash_of(original, uri) != self.store.md5(uri):
            return Proof(verdict)
        as_entry = judge_object(original, size=size, etag=etag, depth=Depth.ETAG) is None
        return Proof(note=Note.BY_CONTENT if as_entry else Note.ENTRY_DIFFERS)

    def read(self, uri: str) -> Proof:
        """Read the object: its hash must be its ETag or, where that is none, the hash of the source's object."""
        found = self.store.head(uri)
        if found is None:
            return Proof((Reason.MISSING, "not at the destination"))
        try:
            return self._content(found, uri)
        except NotFound:
            return Proof((Reason.MISSING, "it vanished while it was looked at"))
        except _SourceSilent as error:
            return Proof((Reason.UNPROVEN, f"its content can't be compared: the source can't be asked ({error})"))

    def _content(self, found: ObjectInfo, uri: str) -> Proof:
        if is_md5(found):
            whose, wanted = "its ETag is", found.etag
        else:
            original = self._original(uri)
            if original is None:
                return Proof(note=Note.NO_ORIGINAL)
            whose, wanted = "the source's have", self._hash_of(original, uri)
        digest = self.store.md5(uri)
        if digest == wanted:
            return Proof()
        return Proof((Reason.CONTENT, f"the bytes at the destination have the MD5 {digest}, {whose} {wanted}"))

    def _hash_of(self, original: ObjectInfo, uri: str) -> str:
        """The MD5 of the source's object, read only where its ETag doesn't tell."""
        if is_md5(original):
            return original.etag
        try:
            return self.source.md5(self._original_uri(uri))
        except LakeMirrorError as error:
            raise _SourceSilent(error.message) from error

    def _original(self, uri: str) -> ObjectInfo | None:
        """What the source says; None when it definitely has no such object, as for what is imported."""
        if not uri.startswith(f"{self.namespace}/"):
            return None
        try:
            return self.source.head(self._original_uri(uri))
        except LakeMirrorError as error:
            raise _SourceSilent(error.message) from error

    def _original_uri(self, uri: str) -> str:
        return self.source_namespace + uri.removeprefix(self.namespace)


class _SourceSilent(Exception):
    """The source gave no answer that proves anything."""


def tell_notes(notes: Iterable[Note]) -> list[str]:
    """Notes of a range's objects in words, each once with its number."""
    given = list(notes)
    return [f"{number} of its objects: {note.value}" for note in Note if (number := given.count(note))]
