"""Bringing one object from a source to an export's destination, under exactly its key and only if it is the entry's.

Within one store the store copies, whole or in parts; between stores the bytes come through this process, a large object
in parts. What an entry says of its object (ETag, size) is what has to be copied: another object there is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import md5, sha256

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.multipart import Layout, Part, Uploads, part_bytes
from adapters.s3.store import split_uri
from adapters.s3.writes import Writer
from core.errors import Conflict, LakeMirrorError, NotFound
from core.exporting.deadline import Deadline, Rate
from core.exporting.failure_reasons import KeyFailed, Reason

MOST_KEY_BYTES = 1024
STAMP = "lakemirror-etag"
"""Metadata of an object whose own ETag can't be its entry's: this is the entry's tag."""

_META = "x-amz-meta-"
_PLAIN_ETAG = re.compile(r"[!#-~]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Sizes:
    """From which bytes on objects go in parts, and how large those are: within a store, and through this process."""

    copied_whole: int = 1 << 30
    copied_part: int = 256 << 20
    put_whole: int = 8 << 20
    put_part: int = 16 << 20
    parts_at_once: int = 4


@dataclass(frozen=True, slots=True)
class Item:
    """An object to bring. `metadata` as the entry keeps it, with or without S3's prefix."""

    key: bytes
    source: str
    size: int
    etag: str
    content_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """What tells its content from any other of its size."""
        return tag_of(self.etag, self.source)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an export goes: `s3://bucket/path`, and keys below it."""

    path: str

    def uri(self, key: bytes) -> str:
        """Where a key lies, byte for byte. Raises KeyFailed for one that S3 can't have."""
        try:
            uri = f"{self.prefix}{key.decode()}"
        except UnicodeDecodeError:
            raise KeyFailed(Reason.KEY, "the key is not UTF-8, which S3 requires") from None
        if (length := len(split_uri(uri)[1].encode())) > MOST_KEY_BYTES:
            message = f"the key has {length} bytes at the destination: S3 allows at most {MOST_KEY_BYTES}"
            raise KeyFailed(Reason.KEY, message)
        return uri

    @property
    def prefix(self) -> str:
        """What all addresses begin with."""
        return f"{self.path.rstrip('/')}/"


class Copier:
    """Brings objects from one store to a destination until a deadline. Safe to use from several threads.

    `within`: both are one store that may read and write, so it copies by itself. Raises KeyFailed or what the stores
    raise for a key that can't be brought, Late for one that the deadline left over.
    """

    def __init__(
        self,
        source: FastObjectStore,
        store: FastObjectStore,
        destination: Destination,
        deadline: Deadline,
        *,
        within: bool,
        sizes: Sizes = Sizes(),
        bytes_rate: Rate | None = None,
    ) -> None:
        self._source, self.writer, self.destination = source, Writer(store, deadline), destination
        self._within, self._sizes, self._deadline = within, sizes, deadline
        self._bytes = bytes_rate or Rate(0)
        self._uploads = Uploads(self.writer)
        self._parts = ThreadPoolExecutor(sizes.parts_at_once)
        self._stamped = False

    def close(self) -> None:
        """Lets the threads for parts go."""
        self._parts.shutdown(cancel_futures=True)

    def copy(self, item: Item) -> None:
        """Brings one object."""
        uri = self.destination.uri(item.key)
        whole = self._sizes.copied_whole if self._within else self._sizes.put_whole
        if item.size > whole:
            return self._in_parts(item, uri)
        self._deadline.pause(self._bytes.turn(item.size))
        return self._copy_whole(item, uri) if self._within else self._put_whole(item, uri)

    def delete(self, keys: Sequence[bytes]) -> dict[bytes, LakeMirrorError]:
        """Deletes keys; absent is deleted, and so is what can't be a key there. Gives what could not be deleted."""
        uris = {uri: key for key in keys if (uri := self._possible(key))}
        return {uris[uri]: error for uri, error in self.writer.delete(list(uris)).items()}

    def _possible(self, key: bytes) -> str:
        try:
            return self.destination.uri(key)
        except KeyFailed:
            return ""

    def unfinished(self) -> dict[bytes, list[str]]:
        """Keys to which there are unfinished uploads, whosoever, with their ids."""
        beginning, ids_by_key = split_uri(self.destination.prefix)[1], dict[bytes, list[str]]()
        for upload in self._uploads.unfinished(self.destination.prefix):
            ids_by_key.setdefault(upload.key[len(beginning) :].encode(), []).append(upload.id)
        return ids_by_key

    def abort(self, uploads: Mapping[bytes, Sequence[str]]) -> None:
        """Gives up uploads to keys."""
        for key, ids in uploads.items():
            for upload_id in ids:
                self._uploads.abort(self.destination.uri(key), upload_id)

    def has_stamp(self, item: Item) -> bool:
        """Does the object at the destination bear the entry's tag in its metadata?"""
        return self.stamp(item.key) == item.tag

    def stamp(self, key: bytes) -> str:
        """The tag that we wrote into the metadata of the object at the destination; "" for none. NotFound."""
        return self._told(key).get(_META + STAMP, "")

    def is_described(self, item: Item) -> bool:
        """Has the object at the destination the entry's content type and metadata? NotFound."""
        told, wanted = self._told(item.key), described(item, stamped=False)
        names = {name for name in told if name.startswith(_META)}.union(wanted) - {_META + STAMP}
        return all(told.get(name) == wanted.get(name) for name in names)

    def _told(self, key: bytes) -> dict[str, str]:
        """What the object at the destination says of itself."""
        answer = self.writer.write("HEAD", self.destination.uri(key))
        return {name.lower(): str(value) for name, value in answer.headers.items()}

    # --- within one store ---------------------------------------------------------------------------------------------

    def _copy_whole(self, item: Item, uri: str) -> None:
        stamped, match = self._stamped or not item.etag, self._pin(item)
        try:
            etag = self._copy_if(item, uri, match, stamped)
        except Conflict:
            # An object of several parts has more in its ETag than lakeFS keeps, and its copy has another one.
            stamped, match = True, self._true_etag(item)
            etag = self._copy_if(item, uri, match, stamped)
        if not is_of(etag, item.etag):
            self._judge_copy(item, uri, stamped)

    def _copy_if(self, item: Item, uri: str, match: str, stamped: bool) -> str:
        with self._asking_source(item):
            return self.writer.copy(item.source, match, uri, described(item, stamped))

    def _judge_copy(self, item: Item, uri: str, stamped: bool) -> None:
        """A copy with an ETag of its own is either of another object, in stores that don't look, or wants a stamp."""
        try:
            match = self._true_etag(item)
        except KeyFailed:
            self.writer.delete([uri])
            raise
        if not stamped:
            self._stamped = self._stamped or "-" not in match
            self._copy_if(item, uri, match, stamped=True)

    @contextmanager
    def _asking_source(self, item: Item) -> Iterator[None]:
        """What is not found is either the source or the destination's bucket."""
        try:
            yield
        except NotFound:
            self._true_etag(item)
            raise

    def _pin(self, item: Item) -> str:
        """What the source's ETag is expected to be: the entry's, or asked for where that is none."""
        return item.etag if _PLAIN_ETAG.fullmatch(item.etag) else self._true_etag(item)

    def _true_etag(self, item: Item) -> str:
        """The ETag of the source object, which has to be the entry's but for the number of parts."""
        info = self._source.head(item.source)
        if info is None:
            raise KeyFailed(Reason.GONE, f"{item.source} is missing at the source (garbage collection?)")
        if info.size != item.size or not is_of(info.etag, item.etag):
            actual, wanted = f"{info.size} bytes, ETag {info.etag}", f"{item.size} bytes, ETag {item.etag}"
            raise KeyFailed(Reason.CHANGED, f"source object changed: {item.source} has {actual}, the entry {wanted}")
        return info.etag

    # --- through this process -----------------------------------------------------------------------------------------

    def _put_whole(self, item: Item, uri: str) -> None:
        data = self._read_whole(item)
        stamped = self._stamped or md5(data, usedforsecurity=False).hexdigest() != item.etag
        etag = self.writer.put(uri, data, described(item, stamped))
        if not stamped and not is_of(etag, item.etag):
            self._stamped = True
            self.writer.put(uri, data, described(item, stamped=True))

    def _read_whole(self, item: Item) -> bytes:
        """All of a small object. One byte more is asked for, so that a larger one shows and is not read."""
        if not item.size:
            self._true_etag(item)
            return b""
        data = self._read(item, (0, item.size + 1), self._pin(item))
        if data is None:
            data = self._read(item, (0, item.size + 1), self._true_etag(item))
        if data is None or len(data) != item.size:
            self._true_etag(item)
            raise KeyFailed(Reason.CHANGED, f"{item.source} does not have {item.size} bytes")
        return data

    def _read(self, item: Item, span: tuple[int, int], match: str) -> bytes | None:
        """Bytes of the source object; None if it has another ETag."""
        try:
            return self._source.read(item.source, span, match)
        except Conflict:
            return None
        except NotFound:
            raise KeyFailed(Reason.GONE, f"{item.source} is missing at the source (garbage collection?)") from None

    # --- in parts -----------------------------------------------------------------------------------------------------

    def _in_parts(self, item: Item, uri: str, afresh: bool = False) -> None:
        etag = self._true_etag(item)
        least = self._sizes.copied_part if self._within else self._sizes.put_part
        what = f"{item.source} {etag} {item.size} {sorted(described(item, stamped=True).items())}"
        layout = Layout(item.size, part_bytes(item.size, least, what))
        upload_id, parts = ("", {}) if afresh else self._uploads.resumed(uri, layout)
        resumed = bool(upload_id)
        if not resumed:
            upload_id = self._uploads.start(uri, described(item, stamped=True))
        with self._given_up(uri, upload_id):
            self._bring_parts(item, uri, upload_id, layout, etag, parts)
            if self._within and self._true_etag(item) != etag:
                raise KeyFailed(Reason.CHANGED, f"{item.source} changed while it was copied")
            self._complete(item, uri, upload_id, parts)
        if resumed and not self.has_stamp(item):
            # Parts of another source that happened to have this size.
            self._in_parts(item, uri, afresh=True)

    @contextmanager
    def _given_up(self, uri: str, upload_id: str) -> Iterator[None]:
        """An upload that can't be finished is aborted; one that is late goes on in the next slice."""
        try:
            yield
        except LakeMirrorError:
            self._uploads.abort(uri, upload_id)
            raise

    def _bring_parts(
        self, item: Item, uri: str, upload_id: str, layout: Layout, etag: str, parts: dict[int, Part]
    ) -> None:
        """Adds to `parts` what is lacking."""
        lacking = [number for number in range(1, layout.count + 1) if number not in parts]
        bring = partial(self._part, item, uri, upload_id, layout, etag)
        parts.update(zip(lacking, self._parts.map(bring, lacking), strict=True))

    def _part(self, item: Item, uri: str, upload_id: str, layout: Layout, etag: str, number: int) -> Part:
        start, stop = layout.span(number)
        self._deadline.pause(self._bytes.turn(stop - start))
        self._deadline.check()
        try:
            if self._within:
                return self._uploads.copy(uri, upload_id, number, item.source, etag, (start, stop))
            data = self._read(item, (start, stop), etag)
        except (Conflict, NotFound):
            self._true_etag(item)
            raise
        if data is None or len(data) != stop - start:
            self._true_etag(item)
            raise KeyFailed(Reason.CHANGED, f"{item.source} changed while it was read")
        return self._uploads.put(uri, upload_id, number, data)

    def _complete(self, item: Item, uri: str, upload_id: str, parts: Mapping[int, Part]) -> None:
        try:
            self._uploads.complete(uri, upload_id, parts)
        except NotFound:
            # A repeated request may find that the first one has done it.
            if not self.has_stamp(item):
                raise


def tag_of(etag: str, address: str) -> str:
    """An entry's ETag; without one nothing but where its object lies tells its content: lakeFS writes each anew."""
    return etag or f"address-{sha256(address.encode()).hexdigest()[:32]}"


def is_of(etag: str, entry: str) -> bool:
    """Is an object's ETag that of the entry? lakeFS keeps it without the number of parts."""
    return not entry or etag == entry or etag.partition("-")[0] == entry


def described(item: Item, stamped: bool) -> dict[str, str]:
    """Headers that give the new object what the entry says of it. Raises KeyFailed where that can't be."""
    if _BREAKS.search(item.content_type):
        raise KeyFailed(Reason.METADATA, f"S3 can't store the content type {item.content_type[:100]!r}")
    headers = {"content-type": item.content_type} if item.content_type else {}
    for name, value in item.metadata.items():
        plain = name[len(_META) :] if name.lower().startswith(_META) else name
        if not _TOKEN.fullmatch(plain) or _BREAKS.search(value):
            raise KeyFailed(Reason.METADATA, f"S3 can't store the metadata {name!r}: {value[:100]!r}")
        headers[_META + plain.lower()] = value
    return headers | ({_META + STAMP: item.tag} if stamped else {})
