"""Writing versions and markers to a place: as the latest at any store, under the source's ids and times at a MinIO that
lets us (`s3:ReplicateObject`).

A write that anybody could see is sent once: where versions are kept, a second one would be another version. Whether a
write that nobody answered was carried out is seen in the listing before the next try.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import urllib3

from adapters.places.versions import OF_HEADER
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.mover import PART_BYTES, Mover
from adapters.s3.multipart import Layout, Part, Uploads
from adapters.s3.originals import Original, Pack, as_it_is
from adapters.s3.part_hashes import PartHashes
from adapters.s3.store import NO_HEADERS, split_uri, stored
from adapters.s3.writes import Writer
from core.bringing import LARGEST_PART, Side, Unbrought, parts_of
from core.errors import Conflict, Invalid, LakeMirrorError, NotFound, RemoteFailure, Unversioned
from core.replicating.versions import NULL, Step, Version, name_of
from core.types import ObjectInfo

T = TypeVar("T")
R = TypeVar("R")

REPLICA: Mapping[str, str] = {
    "x-minio-source-replication-request": "true",
    "x-amz-replication-status": "REPLICA",
}
"""What tells MinIO that a write brings what another store has."""


class AtVersion:
    """A store in which one address means one version of the object there; else it is the store."""

    def __init__(self, store: FastObjectStore, uri: str, version: str) -> None:
        self._at_store, self._at, self._at_version = store, split_uri(uri), version

    def __getattr__(self, name: str) -> Any:
        return getattr(self._at_store, name)

    def url(self, bucket: str, key: str = "", query: Mapping[str, str] = NO_HEADERS) -> str:
        """As the store's."""
        own = {"versionId": self._at_version} if (bucket, key) == self._at and self._at_version else {}
        return self._at_store.url(bucket, key, {**query, **own})

    def read(self, uri: str, span: tuple[int, int] | None = None, match: str = "") -> bytes:
        """As the store's."""
        return FastObjectStore.read(cast(Any, self), uri, span, match)

    def head(self, uri: str) -> ObjectInfo | None:
        """As the store's."""
        url = self.url(*split_uri(uri))
        try:
            return stored(split_uri(uri)[1], self._at_store.asked("HEAD", url, f"head {uri}").headers)
        except NotFound:
            return None


def at_version(store: FastObjectStore, uri: str, version: str) -> FastObjectStore:
    """A store that has the version where it else has the latest."""
    return cast(FastObjectStore, AtVersion(store, uri, version))


class VersionWriter(Writer):
    """Writes one version, or marker, to one address; `given`: the id that the store gave it, `is_marker`: whether it
    says that it made a marker. To other addresses it writes as usual."""

    def __init__(self, usual: Writer, uri: str, step: Step) -> None:
        super().__init__(usual.store, usual.deadline, tries=1)
        self._usual, self._uri, self._step = usual, uri, step
        self.given, self.is_marker = "", False

    @property
    def id(self) -> str:
        """Of what was written; "" for the latest."""
        return self._step.version.id if self._step.exact else self.given

    def _is_own(self, method: str, uri: str, query: Mapping[str, str]) -> bool:
        """Whether the request makes the version, or begins the upload that does."""
        if uri != self._uri or "partNumber" in query or method == "GET":
            return False
        return not (method == "DELETE" and "uploadId" in query)

    def write(
        self,
        method: str,
        uri: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        query: Mapping[str, str] = NO_HEADERS,
        read_seconds: float = 0.0,
    ) -> urllib3.BaseHTTPResponse:
        """As Writer's."""
        if not self._is_own(method, uri, query):
            return self._usual.write(method, uri, headers, body, query, read_seconds)
        told, asked = self._own_headers(method, headers, query), self._own_query(query)
        if self._step.exact and (method == "DELETE" or "uploadId" in query):
            self._expect_nothing()
        answer = super().write(method, uri, told, body, asked, read_seconds)
        if "uploads" not in query:
            self.given = answer.headers.get("x-amz-version-id", "")
            self.is_marker = answer.headers.get("x-amz-delete-marker", "") == "true"
        return answer

    def write_compared(
        self,
        uri: str,
        digest: str,
        body: bytes,
        headers: Mapping[str, str] = NO_HEADERS,
        query: Mapping[str, str] = NO_HEADERS,
    ) -> urllib3.BaseHTTPResponse:
        """As Writer's, of parts only: it may write twice."""
        return self._usual.write_compared(uri, digest, body, headers, query)

    def _own_query(self, query: Mapping[str, str]) -> Mapping[str, str]:
        named = self._step.exact and "uploadId" not in query
        return {**query, "versionId": self._step.version.id} if named else query

    def _own_headers(self, method: str, headers: Mapping[str, str], query: Mapping[str, str]) -> Mapping[str, str]:
        version, exact = self._step.version, self._step.exact
        if not exact:
            own = {OF_HEADER: name_of(version)} if method == "PUT" or "uploads" in query else {}
            return {**headers, **own}
        own = {**REPLICA, "x-minio-source-mtime": self._step.moment}
        if version.marker:
            return {**headers, **own, "x-minio-source-deletemarker": "true"}
        own["x-minio-source-etag"] = version.etag
        if method == "PUT" and not self._replaces:
            own["if-none-match"] = "*"
        if "uploadId" in query:
            own["x-minio-replication-actual-object-size"] = str(version.size)
        return {**headers, **own}

    @property
    def _replaces(self) -> bool:
        """Directory objects have one version there, which is replaced."""
        return self._uri.endswith("/") and self._step.version.id == NULL

    def _expect_nothing(self) -> None:
        """An upload's end replaces what has the id; a request for a marker deletes that, also if it is the very marker.
        Raises Conflict."""
        if self._replaces:
            return
        try:
            there = at_version(self.store, self._uri, self._step.version.id).head(self._uri) is not None
        except Invalid:  # 405: a marker
            there = True
        if there:
            told = f"{self.store.where} has something under the version id {self._step.version.id} of {self._uri}"
            raise Conflict(told)


class _VersionUploads(Uploads):
    """Uploads of one version: what was begun of another one with the same content is not gone on with."""

    def __init__(self, writer: Writer, marks: str, version: str) -> None:
        super().__init__(writer, marks)
        self._version = version

    def start(self, uri: str, headers: Mapping[str, str], of: str = "") -> str:
        return super().start(uri, headers, f"{of} {self._version}")

    def resumed(self, uri: str, layout: Layout, of: str = "") -> tuple[str, dict[int, Part]]:
        return super().resumed(uri, layout, f"{of} {self._version}")


@dataclass(frozen=True, slots=True)
class UnevenLayout(Layout):
    """An object in parts of these sizes."""

    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.sizes)

    def span(self, number: int) -> tuple[int, int]:
        start = sum(self.sizes[: number - 1])
        return start, start + self.sizes[number - 1]

    def fits(self, number: int, size: int) -> bool:
        return number <= self.count and size == self.sizes[number - 1]


class VersionMover(Mover):
    """Brings versions, whose bytes always come through this process. Safe to use from several threads."""

    _own: VersionWriter | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"within": False, "hashes": True, "proof_key": ""})
        self._marked_at = str(options.get("marks", ""))

    def put(
        self, source: str, uri: str, step: Step, pack: Pack = as_it_is, already: Callable[[], None] = lambda: None
    ) -> Version:
        """Bring one version, with what `pack` adds; gives it as the target has it. `already` is called where that had
        it under its id, with whatever went with it then. Raises Unbrought (Conflict, at the target: it has something
        else under this id) or Late."""
        one: VersionMover = copy.copy(self)
        writer = VersionWriter(self._writer, uri, step)
        one._source = at_version(self._source, source, step.version.id)
        one._writer = one._own = writer
        one._uploads = _VersionUploads(writer, self._marked_at, step.version.id)
        try:
            info = one.bring(source, uri, step.version.size, step.version.etag, pack=pack)
        except Unbrought as unbrought:
            if not (step.exact and unbrought.side is Side.DESTINATION and isinstance(unbrought.error, Conflict)):
                raise
            info = one._there(uri, step)
            already()
        if not step.exact and not writer.given and not uri.endswith("/"):
            raise Unbrought(Side.DESTINATION, Unversioned(f"{self._store.where} gave {uri} no version id"))
        given = step.version.id if step.exact else writer.given or NULL
        return Version(given, info.size, info.etag, of="" if step.exact else name_of(step.version))

    def together(self, call: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """What a call that only asks, or needs no turn, gives of each of these, several at a time."""
        return list(self._parts.map(call, items))

    def _there(self, uri: str, step: Step) -> ObjectInfo:
        """What the target has under the id already. Raises Unbrought where that is something else."""
        try:
            found = at_version(self._store, uri, step.version.id).head(uri)
        except Invalid:  # 405: it is a marker
            found = None
        except LakeMirrorError as error:
            raise Unbrought(Side.DESTINATION, error) from error
        if found is not None and (found.size, found.etag) == (step.version.size, step.version.etag):
            return found
        told = f"{self._store.where} has something else under the version id {step.version.id} of {uri}"
        raise Unbrought(Side.DESTINATION, Conflict(told))

    def mark(self, uri: str, step: Step) -> Version:
        """Make a marker the latest, or put one where it belongs; gives it as the target has it. Raises Unbrought."""
        writer = VersionWriter(self._writer, uri, step)
        try:
            writer.write("DELETE", uri)
            if not writer.is_marker:
                raise Unversioned(f"{self._store.where} made no delete marker of {uri}")
        except LakeMirrorError as error:
            if not (isinstance(error, Conflict) and self._is_marked(uri, step)):
                raise Unbrought(Side.DESTINATION, error) from error
        return Version(step.version.id if step.exact else writer.given, marker=True)

    def _is_marked(self, uri: str, step: Step) -> bool:
        """Whether somebody else has just put this very marker there."""
        try:
            at_version(self._store, uri, step.version.id).head(uri)
        except Invalid:  # 405
            return True
        except LakeMirrorError as error:
            raise Unbrought(Side.DESTINATION, error) from error
        return False

    # --- what Mover does otherwise ------------------------------------------------------------------------------------

    def _found(self, uri: str) -> ObjectInfo:
        assert self._own is not None
        try:
            info = at_version(self._store, uri, self._own.id).head(uri)
        except LakeMirrorError as error:
            raise Unbrought(Side.DESTINATION, error) from error
        if info is None:
            error = RemoteFailure(f"{self._store.where} accepted {uri} but does not have it")
            raise Unbrought(Side.DESTINATION, error)
        return info

    def _in_parts(self, source: str, uri: str, original: Original) -> ObjectInfo:
        """In the source's parts, whatever their sizes, where it tells these."""
        sizes = self._part_sizes(source, original)
        if not sizes:
            return super()._in_parts(source, uri, original)
        return self._sent(source, uri, original, UnevenLayout(original.info.size, 0, sizes), [], self._deadline).info

    def _part_sizes(self, source: str, original: Original) -> tuple[int, ...]:
        """Of each of the source's parts; none where it does not tell, or where one is larger than may be held."""
        number, first = parts_of(original.info.etag), self._first_part(source)
        if not (number and first):
            return ()
        numbers = range(2, number + 1)
        sizes = (first, *self._parts.map(lambda part: self._part_size(source, part), numbers))
        return sizes if sum(sizes) == original.info.size and max(sizes) <= LARGEST_PART else ()

    def _part_size(self, source: str, part: int) -> int:
        url = self._source.url(*split_uri(source), {"partNumber": str(part)})
        try:
            answer = self._source.asked("HEAD", url, f"head {source}, part {part}")
        except (Invalid, NotFound):
            return 0
        except LakeMirrorError as error:
            raise Unbrought(Side.SOURCE, error) from error
        return int(answer.headers.get("content-length", 0))

    def _likely_parts(self, source: str, original: Original) -> list[int]:
        """The one size of parts that is used: what is sent can't be sent once more. Where the source does not tell, all
        is read ahead to find out."""
        likely = super()._likely_parts(source, original)
        if len(likely) == 1:
            return likely
        layout = Layout(original.info.size, PART_BYTES)
        hashes = [PartHashes(part, original.info.size) for part in likely]
        for number in range(1, layout.count + 1):
            with self._part(source, original, layout, number, self._end) as data:
                for one in hashes:
                    one.take(data)
        return [next((one.part for one in hashes if one.etag == original.info.etag), likely[0])]
