"""Uploads in parts, and how they go on after whoever began them is gone.

S3 tells of an unfinished upload only its key, and its parts' numbers, sizes and ETags: not what it is a copy of, nor
how the new object will be described. So the size of the parts says that: it depends on the source's address, ETag and
size, and on the description (`part_bytes`). What was begun otherwise has parts of another size, and is aborted.

Nor does it tell whose an upload is: a store that replicates by itself, or a tool of somebody, may have begun one to the
same key. Where parts have to be those of the source, each of ours is marked by a small object of its own, which says of
what it is a copy, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple
from xml.sax.saxutils import escape

from adapters.s3.store import NO_HEADERS, split_uri
from adapters.s3.writes import COPY_SECONDS, Writer, all_of, copy_source, parsed, plain_tag, text_of
from core.errors import Conflict, LakeMirrorError, NotFound, RemoteFailure
from core.types import ObjectInfo

MOST_PARTS = 9_000
PART_SECONDS = 300.0
"""How long the store may copy one part. Nobody sees a part, so it may well be answered after the deadline."""


class Part(NamedTuple):
    """A part that is there."""

    size: int
    etag: str


class Upload(NamedTuple):
    """An unfinished upload."""

    key: str
    id: str


def part_bytes(size: int, least: int, source: str) -> int:
    """How large the parts of an object of this size are; all equal, for some stores want that. `source` names what is
    copied, in every respect: another one gives, but for one in a million, another size."""
    base = max(least, -(-size // MOST_PARTS))
    return base + int.from_bytes(sha256(source.encode()).digest()[:8]) % (base // 4)


@dataclass(frozen=True, slots=True)
class Layout:
    """How an object is cut."""

    size: int
    part: int

    @property
    def count(self) -> int:
        """How many parts. At least one, also of an empty object."""
        return max(1, -(-self.size // self.part))

    def span(self, number: int) -> tuple[int, int]:
        """The first byte of a part (from 1), and the first one after it."""
        return (number - 1) * self.part, min(number * self.part, self.size)

    def fits(self, number: int, size: int) -> bool:
        """Could this be a part of it?"""
        start, stop = self.span(number)
        return number <= self.count and size == stop - start


class Sent(NamedTuple):
    """An object as it was sent, and in which parts; those that were `compared` have the MD5 of what was read."""

    info: ObjectInfo
    layout: Layout
    parts: dict[int, Part]
    compared: set[int]


class Uploads:
    """The uploads to one bucket by one writer.

    `marks`: the URI below which each upload that is begun has a mark, until it has ended. Uploads without one are left
    alone, whoever began them; "": nobody else uploads to these keys.
    """

    def __init__(self, writer: Writer, marks: str = "") -> None:
        self._writer, self._marks = writer, marks

    def start(self, uri: str, headers: Mapping[str, str], of: str = "") -> str:
        """Begins an upload with the new object's headers; gives its id. `of`: the ETag of what is copied."""
        answer = self._writer.write("POST", uri, headers, query={"uploads": ""})
        root = parsed(answer.data)
        if root is None or not (upload_id := text_of(root, "UploadId")):
            raise RemoteFailure(f"{self._writer.store.where} did not start an upload to {uri}")
        if self._marks:
            try:
                told = {"to": uri, "upload": upload_id, "of": of}
                self._writer.put(self._mark(uri, upload_id), json.dumps(told).encode())
            except BaseException:
                self.abort(uri, upload_id)
                raise
        return upload_id

    def _mark(self, uri: str, upload_id: str) -> str:
        return f"{self._marks}{sha256(f'{uri} {upload_id}'.encode()).hexdigest()[:40]}"

    def _begun_of(self, uri: str, upload_id: str) -> str | None:
        """The ETag of what an upload of ours is a copy of; None: it is not ours."""
        try:
            return str(json.loads(self._writer.store.read(self._mark(uri, upload_id)))["of"])
        except (NotFound, ValueError, LookupError, TypeError):
            return None

    def _ended(self, uri: str, upload_id: str) -> None:
        """Takes the mark away. Who may not is left with it: it says nothing once there is no such upload."""
        if self._marks:
            with suppress(LakeMirrorError):
                self._writer.write("DELETE", self._mark(uri, upload_id))

    def put(self, uri: str, upload_id: str, number: int, body: bytes, digest: str = "") -> Part:
        """Uploads a part. `digest`: its MD5, where that is known, for the store to compare it with."""
        query = _named(upload_id, number)
        if digest:
            answer = self._writer.write_compared(uri, digest, body, query=query)
        else:
            answer = self._writer.write("PUT", uri, body=body, query=query)
        return Part(len(body), answer.headers.get("etag", "").strip('"'))

    def copy(self, uri: str, upload_id: str, number: int, source: str, etag: str, span: tuple[int, int]) -> Part:
        """Lets the store copy a part from an object that still has this ETag."""
        start, stop = span
        headers = copy_source(source, etag) | {"x-amz-copy-source-range": f"bytes={start}-{stop - 1}"}
        answer = self._writer.write("PUT", uri, headers, query=_named(upload_id, number), read_seconds=PART_SECONDS)
        root = parsed(answer.data)
        if root is None or not (part_etag := text_of(root, "ETag")):
            raise RemoteFailure(f"{self._writer.store.where} did not copy a part of {source}")
        return Part(stop - start, part_etag.strip('"'))

    def complete(
        self, uri: str, upload_id: str, parts: Mapping[int, Part], when: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """Makes the object of its parts, `when` the condition of these headers holds, if the store looks: else
        Conflict, and the upload is given up. NotFound: there is no such upload, or no more."""
        items = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{escape(parts[number].etag)}&quot;</ETag></Part>"
            for number in sorted(parts)
        )
        body = f"<CompleteMultipartUpload>{items}</CompleteMultipartUpload>".encode()
        query = {"uploadId": upload_id}
        try:
            answer = self._writer.write("POST", uri, when, body, query, COPY_SECONDS)
        except Conflict:
            self.abort(uri, upload_id)  # what comes there next may be sent in one piece
            raise
        # Ceph's gateway leaves the ETag empty.
        if (root := parsed(answer.data)) is None or plain_tag(root) != "CompleteMultipartUploadResult":
            raise RemoteFailure(f"{self._writer.store.where} did not put {uri} together")
        self._ended(uri, upload_id)

    def describe(self, uri: str, headers: Mapping[str, str], layout: Layout, etag: str) -> None:
        """Gives an object other headers, however large it is, and leaves it in the same parts: the store copies it over
        itself, while it still has this ETag."""
        upload_id = self.start(uri, headers)
        try:
            numbers = range(1, layout.count + 1)
            parts = {number: self.copy(uri, upload_id, number, uri, etag, layout.span(number)) for number in numbers}
            self.complete(uri, upload_id, parts)
        except LakeMirrorError:
            self.abort(uri, upload_id)
            raise

    def abort(self, uri: str, upload_id: str) -> None:
        """Gives an upload up; one that is not there is no error, and neither is a store that does not answer."""
        try:
            self._writer.write("DELETE", uri, query={"uploadId": upload_id})
        except NotFound:
            self._ended(uri, upload_id)
        except LakeMirrorError:
            return
        else:
            self._ended(uri, upload_id)

    def unfinished(self, prefix_uri: str) -> Iterator[Upload]:
        """Uploads to keys that begin so. None where the store does not tell."""
        bucket, prefix = split_uri(prefix_uri)
        query = {"uploads": "", "prefix": prefix}
        while True:
            try:
                root = parsed(self._writer.write("GET", f"s3://{bucket}", query=query).data)
            except LakeMirrorError as error:
                if error.retryable:
                    raise
                return
            if root is None:
                return
            for element in all_of(root, "Upload"):
                yield Upload(text_of(element, "Key"), text_of(element, "UploadId"))
            if text_of(root, "IsTruncated") != "true" or not text_of(root, "NextKeyMarker"):
                return
            marks = {"key-marker": "NextKeyMarker", "upload-id-marker": "NextUploadIdMarker"}
            query |= {name: text_of(root, tag) for name, tag in marks.items()}

    def resumed(self, uri: str, layout: Layout, of: str = "") -> tuple[str, dict[int, Part]]:
        """An upload of ours to this key, `of` the same object and with parts of this layout, and these; ("", {}) for
        none. Our others are aborted."""
        chosen: tuple[str, dict[int, Part]] = ("", {})
        for upload in list(self.unfinished(uri)):
            begun_of = self._begun_of(uri, upload.id) if self._marks else of
            if upload.key != split_uri(uri)[1] or begun_of is None:
                continue
            parts = self._parts(uri, upload.id) if begun_of == of else {}
            if parts and all(layout.fits(number, part.size) for number, part in parts.items()) and not chosen[0]:
                chosen = upload.id, parts
            else:
                self.abort(uri, upload.id)
        return chosen

    def _parts(self, uri: str, upload_id: str) -> dict[int, Part]:
        parts: dict[int, Part] = {}
        query = {"uploadId": upload_id}
        while True:
            try:
                root = parsed(self._writer.write("GET", uri, query=query).data)
            except NotFound:
                return {}
            if root is None:
                return {}
            for element in all_of(root, "Part"):
                part = Part(int(text_of(element, "Size")), text_of(element, "ETag").strip('"'))
                parts[int(text_of(element, "PartNumber"))] = part
            marker = text_of(root, "NextPartNumberMarker")
            if text_of(root, "IsTruncated") != "true" or marker in ("", query.get("part-number-marker")):
                return parts
            query["part-number-marker"] = marker


def _named(upload_id: str, number: int) -> dict[str, str]:
    return {"partNumber": str(number), "uploadId": upload_id}
