"""The last word on an object: where its entry doesn't decide, the source's object does, and the content itself.

An entry's size and ETag may be whatever a client once staged, and a copy made in other parts has another ETag. Nothing
is proven by a source that can't be asked: then the mismatch stands, and is looked at again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4
from zlib import crc32

from core.errors import Archived, LakeMirrorError, NotFound
from core.mirroring.object_check import (
    OF_ENTRY,
    Depth,
    Note,
    Reason,
    Verdict,
    What,
    is_failure,
    is_md5,
    is_refusal,
    judge_failed,
    judge_object,
    judge_refusal,
    judge_refused,
)
from core.proof_of_parts import is_proven
from core.types import ObjectInfo

OWN_FILES = "_lakemirror/"
"""Below it, in a mirror's namespace, lies what LakeMirror keeps there: no data of anybody's."""
UPLOAD_MARKS = f"{OWN_FILES}uploads/"
"""Of a managed mirror: a small file for each upload in parts that LakeMirror has begun, deleted when it has ended."""
OWN_DESCRIPTOR = f"{OWN_FILES}mirror.json"
"""The file below a namespace by which a store is asked whether it answers us at all."""

_VANISHED = (Reason.MISSING, "it vanished while it was looked at")


class Visible(Protocol):
    """A store that can be asked for an object and its head."""

    def head(self, uri: str) -> ObjectInfo | None: ...
    def get(self, uri: str) -> bytes: ...  # NotFound


class Readable(Visible, Protocol):
    """What a proof needs of a store. May raise Denied, Unreachable, Throttled, RemoteFailure."""

    def md5(self, uri: str) -> str: ...  # NotFound


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of it: a verdict that stands, or a note on how the object passed.

    `only_here`: the destination's object differs from the source's, but has the entry's ETag, and the source's has not:
    it may be the last one that is right.
    """

    verdict: Verdict = None
    note: Note | None = None
    only_here: bool = False


def is_sampled(uri: str, share: float, seed: int) -> bool:
    """Whether an object is among the share (0 to 1) that is read; each seed picks others, the same one the same."""
    return share >= 1.0 or crc32(f"{seed} {uri}".encode()) < share * 2**32


class Refusals:
    """Tells what one key's refusal or failure says of that key from a store that gives nothing, which is raised.

    The store is asked for the mirror's own descriptor: any answer will do, a 404 too. By HEAD, once, at the first
    refusal; by HEAD and GET after each failure, for stores come and go. Where the descriptor fails as well, the two may
    lie on the same broken disks: then for a key that nobody has made, each time another one. Safe to use from several
    threads.
    """

    def __init__(self, store: Visible, namespace: str) -> None:
        self._store, self._namespace = store, namespace.rstrip("/")
        self._descriptor = f"{self._namespace}/{OWN_DESCRIPTOR}"
        self._lock = threading.Lock()
        self._descriptor_asked = False
        self._failure: LakeMirrorError | None = None

    def are_about(self, uri: str, error: LakeMirrorError) -> bool:
        """Whether an error of a question below this address may be no more than that address's own matter."""
        if error.retryable:
            return is_failure(error) and self._failure_of_any() is None
        return self._is_imported(uri) or is_refusal(error)

    def of_object(self, uri: str, error: LakeMirrorError) -> tuple[Reason, str]:
        """What is to be said of an object, imported or not. Raises what concerns the store as a whole."""
        if self._is_imported(uri) and not error.retryable:
            return judge_refusal(error)
        return self.of_key(error, What.OBJECT)

    def of_key(self, error: LakeMirrorError, what: What) -> tuple[Reason, str]:
        """What is to be said of something below the namespace. Raises what concerns the store as a whole."""
        verdict = judge_refused(error, what) or judge_failed(error, what)
        if verdict is None:
            raise error
        if error.retryable:
            self._require_answers_now(error)
        elif not isinstance(error, Archived):  # that is said of a key alone
            self._require_answers(error)
        return verdict

    def _require_answers_now(self, error: LakeMirrorError) -> None:
        """Raises the error if the store gives no answer for the descriptor either."""
        if failure := self._failure_of_any():
            raise error from failure

    def _failure_of_any(self) -> LakeMirrorError | None:
        """What keeps the store from answering for the descriptor now, by HEAD or by GET, or for any other key."""
        if failure := self._failure_of(self._descriptor):
            return self._failure_of_another(failure)
        try:
            self._store.get(self._descriptor)
        except NotFound:
            return None
        except LakeMirrorError as failure:
            return failure
        return None

    def _is_imported(self, uri: str) -> bool:
        return not uri.startswith(f"{self._namespace}/")

    def _require_answers(self, error: LakeMirrorError) -> None:
        """Raises the error if the store refuses the descriptor as well, or what keeps it from answering."""
        with self._lock:
            if not self._descriptor_asked:
                self._failure, self._descriptor_asked = self._failure_now(), True
        if self._failure is not None:
            raise error if is_refusal(self._failure) else self._failure

    def _failure_now(self) -> LakeMirrorError | None:
        failure = self._failure_of(self._descriptor)
        return failure and self._failure_of_another(failure)

    def _failure_of_another(self, failure: LakeMirrorError) -> LakeMirrorError | None:
        """What keeps the store from answering for a key that nobody has made, where the descriptor's failure may be
        that one's own matter."""
        return self._failure_of(f"{self._namespace}/{OWN_FILES}{uuid4().hex}") if is_failure(failure) else failure

    def _failure_of(self, uri: str) -> LakeMirrorError | None:
        try:
            self._store.head(uri)
        except LakeMirrorError as failure:
            return failure
        return None


@dataclass(frozen=True, slots=True)
class Prover:
    """Compares objects of a destination with those of its source. Raises what concerns the destination's store.

    `refusals`: those of the destination, where several proofs share them. `proof_key`: what signed proofs of parts.
    """

    store: Readable
    namespace: str
    source: Readable
    source_namespace: str
    refusals: Refusals | None = None
    proof_key: str = ""

    def appeal(self, verdict: Verdict, info: ObjectInfo, uri: str, *, size: int, etag: str) -> Proof:
        """A mismatch passes if the source's object is the same one; any other verdict stands."""
        if verdict is None or verdict[0] not in OF_ENTRY:
            return Proof(verdict)
        try:
            return self._same(verdict, info, uri, size=size, etag=etag)
        except _SourceSilent as error:
            return Proof((verdict[0], f"{verdict[1]}; the source can't be asked ({error})"))
        except LakeMirrorError as error:
            return self._unread(uri, error)

    def _same(self, verdict: tuple[Reason, str], info: ObjectInfo, uri: str, *, size: int, etag: str) -> Proof:
        original = self._original(uri)
        if original is None or original.size != info.size:
            return Proof(verdict)
        if original.etag_is_content and info.etag_is_content and original.etag == info.etag:
            return Proof(note=Note.ENTRY_DIFFERS)
        as_entry = judge_object(original, size=size, etag=etag, depth=Depth.ETAG) is None
        if is_proven(self.proof_key, uri, info, original):
            return Proof(note=Note.BY_PARTS if as_entry else Note.ENTRY_DIFFERS)
        if (is_md5(original) and is_md5(info)) or self._hash_of(original, uri) != self.store.md5(uri):
            return Proof(verdict)
        return Proof(note=Note.BY_CONTENT if as_entry else Note.ENTRY_DIFFERS)

    def read(self, uri: str, *, size: int, etag: str) -> Proof:
        """Read the object: its hash must be its ETag or, where that is none, the hash of the source's object."""
        try:
            info = self.store.head(uri)
            if info is None:
                return Proof((Reason.MISSING, "not at the destination"))
            return self._content(info, uri, size=size, etag=etag)
        except _SourceSilent as error:
            return Proof((Reason.UNPROVEN, f"its content can't be compared: the source can't be asked ({error})"))
        except LakeMirrorError as error:
            return self._unread(uri, error)

    def _unread(self, uri: str, error: LakeMirrorError) -> Proof:
        """What it says of an object that the destination's store didn't give its bytes."""
        if isinstance(error, NotFound):
            return Proof(_VANISHED)
        refusals = self.refusals or Refusals(self.store, self.namespace)
        return Proof(refusals.of_object(uri, error))

    def _content(self, info: ObjectInfo, uri: str, *, size: int, etag: str) -> Proof:
        only_here = False
        if is_md5(info):
            whose, wanted = "its ETag is", info.etag
        else:
            original = self._original(uri)
            if original is None:
                return Proof(note=Note.NO_ORIGINAL)
            whose, wanted = "the source's have", self._hash_of(original, uri)
            only_here = _has(info, size, etag) and not _has(original, size, etag)
        digest = self.store.md5(uri)
        if digest == wanted:
            return Proof()
        told = f"the bytes at the destination have the MD5 {digest}, {whose} {wanted}"
        told += "; the ETag at the destination is the commit's, the source's is not" if only_here else ""
        return Proof((Reason.CONTENT, told), only_here=only_here)

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


def _has(info: ObjectInfo, size: int, etag: str) -> bool:
    """Whether an object's own ETag is the entry's."""
    known = bool(etag) and info.etag_is_content
    return known and judge_object(info, size=size, etag=etag, depth=Depth.ETAG) is None


class _SourceSilent(Exception):
    """The source gave no answer that proves anything."""


def tell_notes(notes: Iterable[Note]) -> list[str]:
    """Notes of a range's objects in words, each once with its number."""
    given = list(notes)
    return [f"{number} of its objects: {note.value}" for note in Note if (number := given.count(note))]
