"""Bringing one object of a namespace to another one: the same bytes under the same address, with the source's headers
and in the source's parts, so that its ETag is the same.

Within one store the store copies; between stores the bytes come through this process. An address is written once and
never changes: a write that comes late, or twice, is the same bytes, and needs no fence.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.multipart import Layout, Part, Sent, Uploads
from adapters.s3.originals import Original, Pack, as_it_is, expected_md5, md5_of, only_new, original_of, telling
from adapters.s3.part_hashes import PartHashes
from adapters.s3.store import split_uri, stored
from adapters.s3.writes import Writer, copy_source, parsed, text_of
from core.bringing import LARGEST_PART, Overwritten, Side, Unbrought, part_sizes, parts_of
from core.errors import Conflict, Invalid, LakeMirrorError, NotFound, RemoteFailure
from core.exporting.deadline import Budget, Deadline, Rate
from core.mirroring.object_check import is_md5
from core.proof_of_parts import PROOF_HEADER, signature
from core.types import ObjectInfo

PUT_WHOLE = 8 << 20
"""Objects of up to so many bytes go in one request, as those do that the source has in one piece."""
PUT_ONE_PIECE = 64 << 20
"""An object of one piece has its MD5 for an ETag as long as it stays one: up to so many bytes it does."""
COPY_WHOLE = 1 << 30
PART_BYTES = 16 << 20
IN_FLIGHT = 256 << 20
"""Of objects that go in parts or are large no more bytes are read and not written yet. A part may have half of that."""
SMALL_IN_FLIGHT = 128 << 20
"""The same of small objects, which so never wait for large ones."""
PARTS_AT_ONCE = 4
HELD_SECONDS = 5.0
"""Under a limit no more is on its way than may be read in so many seconds: it is brought after the time is up, too."""
PIECES_PER_SECOND = 2
LEAST_PIECE = 1 << 20
"""Under a limit bytes are read in pieces, so that they pass evenly."""
TRIES = 5
log = logging.getLogger(__name__)


class Mover:
    """Brings objects from one store to another until a deadline. Safe to use from several threads.

    `within`: both are one store, which may read there and write here: `rate`, in bytes, is for what passes here.
    `marks`: where at the destination our uploads are marked, so that others' are left alone. `hashes`: all is hashed
    here before it is written, where no check looks at ETags afterwards. `tries`: so often a write is tried. Raises
    Unbrought, or Late for what the deadline left over; an object or part that was begun before it is brought.
    """

    def __init__(
        self,
        source: FastObjectStore,
        store: FastObjectStore,
        deadline: Deadline,
        *,
        within: bool,
        rate: Rate,
        objects: Rate | None = None,
        proof_key: str = "",
        marks: str = "",
        hashes: bool = False,
        tries: int = TRIES,
    ) -> None:
        self._source, self._store, self._within = source, store, within
        self._writer, self._deadline = Writer(store, Deadline(math.inf), tries), deadline
        self._end, self._proof_key = Deadline(math.inf), proof_key
        self._rate, self._objects = rate, objects or Rate(0)
        self._small, self._large = Budget(0), Budget(0)
        self._make_room()
        self._uploads, self._hashes = Uploads(self._writer, marks), hashes
        self._parts = ThreadPoolExecutor(PARTS_AT_ONCE)

    def pace(self, bytes_per_second: float, objects_per_second: float) -> None:
        """Brings no more than that per second from now on; 0: any number."""
        self._rate.set(bytes_per_second)
        self._objects.set(objects_per_second)
        self._make_room()

    def passed(self) -> int:
        """How many bytes have passed here so far; of what a store copies within itself none do."""
        return int(self._rate.taken)

    def stop(self) -> None:
        """The time is up."""
        self._deadline.at = self._end.at = 0.0

    def _make_room(self) -> None:
        most = self._rate.per_second * HELD_SECONDS or math.inf
        self._small.resize(min(SMALL_IN_FLIGHT, most))
        self._large.resize(min(IN_FLIGHT, most))

    @property
    def _step(self) -> int:
        """How much is read at once; 0: all."""
        rate = self._rate.per_second
        return max(LEAST_PIECE, int(rate / PIECES_PER_SECOND)) if rate else 0

    def _take_turn(self, size: int) -> None:
        """Waits for it, if at all: a sleep of no time would hand the processor to the other threads."""
        if (seconds := self._rate.turn(size)) > 0:
            time.sleep(seconds)

    def allow(self, seconds: float) -> None:
        """There is at least so much time left to begin anything."""
        self._deadline.extend(seconds)

    def close(self) -> None:
        """Lets the threads for parts go."""
        self._parts.shutdown(cancel_futures=True)

    def read(self, uri: str) -> bytes:
        """The whole of a small object of the source."""
        self._deadline.check()
        with telling(Side.SOURCE):
            return self._source.read(uri)

    def write(self, uri: str, data: bytes) -> None:
        """Writes a small object whatever the time, and reads it back: it is there then."""
        with telling(Side.DESTINATION):
            self._writer.put(uri, data)
            if self._store.read(uri) != data:
                raise RemoteFailure(f"{self._store.where} returns other bytes than were written to {uri}")

    def shows(self, prefix_uri: str) -> bool:
        """Whether the source has anything below a prefix: one that shows nothing at all proves nothing by a 404."""
        with telling(Side.SOURCE):
            return bool(self._source.page(prefix_uri).keys)

    def bring(
        self, source: str, uri: str, size: int, etag: str = "", *, new: bool = False, pack: Pack = as_it_is
    ) -> ObjectInfo:
        """Brings an object that should have `size` bytes, whatever it has, if it has this ETag (else raises Unbrought
        before anything is written, as `pack` may); tells what is at the destination then. `new`: Unbrought by Conflict
        where one request would do and something is there already, if the store looks."""
        self._deadline.pause(self._objects.turn())
        self._deadline.check()
        small = not self._within and 0 < size <= min(PUT_WHOLE, self._step or PUT_WHOLE)
        if small and (brought := self._put_small(source, uri, size, etag, pack, new)) is not None:
            return brought
        original = pack(self._original(source, etag))
        if self._within:
            return self._copied(source, uri, original)
        if parts_of(original.info.etag) or original.info.size > PUT_ONE_PIECE:
            return self._in_parts(source, uri, original)
        return self._put(source, uri, only_new(original) if new else original)

    def _original(self, source: str, etag: str = "") -> Original:
        with telling(Side.SOURCE):
            answer = self._source.asked("HEAD", self._source.url(*split_uri(source)), f"head {source}")
        return original_of(source, answer, etag)

    # --- in one piece -------------------------------------------------------------------------------------------------

    def _put_small(self, source: str, uri: str, size: int, etag: str, pack: Pack, new: bool) -> ObjectInfo | None:
        """Reads and writes at once, without asking first; None for what is larger than it should be or has parts."""
        url = self._source.url(*split_uri(source))
        with self._small.hold(size, self._deadline):
            self._take_turn(size)
            try:
                answer = self._source.asked("GET", url, f"get {source}", {"range": f"bytes=0-{size}"})
            except Invalid:  # 416: it is empty
                return None
            except LakeMirrorError as error:
                raise Unbrought(Side.SOURCE, error) from error
            original = original_of(source, answer, etag)
            if len(answer.data) > size or parts_of(original.info.etag):
                return None
            return self._written(uri, answer.data, only_new(pack(original)) if new else pack(original))

    def _put(self, source: str, uri: str, original: Original) -> ObjectInfo:
        size = original.info.size
        with (self._small if size <= PUT_WHOLE else self._large).hold(size, self._deadline):
            return self._written(uri, self._paced(source, original, (0, size)), original)

    def _written(self, uri: str, data: bytes, original: Original) -> ObjectInfo:
        """The store compares what it gets of a large object with the MD5 that the source tells: here it is hashed only
        where something is wrong, to say whose bytes they are."""
        compared = is_md5(original.info) and len(data) > PUT_WHOLE and not self._hashes
        digest = original.info.etag if compared else expected_md5(self._source.where, data, original)
        try:
            with telling(Side.DESTINATION):
                if compared:
                    answer = self._writer.write_compared(uri, digest, data, {**original.headers, **original.when})
                else:
                    answer = self._writer.write("PUT", uri, original.for_body(digest), data)
        except Unbrought:
            if compared:
                expected_md5(self._source.where, data, original)
            raise
        told = {name.lower(): value for name, value in answer.headers.items()} | {"content-length": str(len(data))}
        info = stored(split_uri(uri)[1], told)
        if compared and info.etag != digest:
            digest = expected_md5(self._source.where, data, original)
        if is_md5(info) and info.etag != digest:
            told_of = f"{self._store.where} stored {uri} with the ETag {info.etag}"
            raise Unbrought(Side.DESTINATION, RemoteFailure(f"{told_of}, but what was sent has the MD5 {digest}"))
        return info if info.etag else self._found(uri)

    def _found(self, uri: str) -> ObjectInfo:
        with telling(Side.DESTINATION):
            info = self._store.head(uri)
        if info is None:
            error = RemoteFailure(f"{self._store.where} accepted {uri} but does not have it")
            raise Unbrought(Side.DESTINATION, error)
        return info

    def _paced(self, source: str, original: Original, span: tuple[int, int]) -> bytes:
        """The same bytes, at the pace that is allowed."""
        at, stop = span
        pieces: list[bytes] = []
        while at < stop:
            end = min(stop, at + (self._step or stop))
            self._take_turn(end - at)
            pieces.append(self._piece(source, original, (at, end)))
            at = end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _piece(self, source: str, original: Original, span: tuple[int, int]) -> bytes:
        """Bytes of the very object that was asked for before."""
        with telling(Side.SOURCE):
            try:
                data = self._source.read(source, span, original.info.etag)
            except Conflict as error:
                raise Overwritten(f"{source} was overwritten while it was read") from error
            if len(data) != span[1] - span[0]:
                raise RemoteFailure(f"{self._source.where} gave {len(data)} bytes for {span} of {source}")
        return data

    # --- in parts -----------------------------------------------------------------------------------------------------

    def _in_parts(self, source: str, uri: str, original: Original) -> ObjectInfo:
        likely = self._likely_parts(source, original)
        hashes = [PartHashes(part, original.info.size) for part in likely[1:]]
        sent = self._sent(source, uri, original, Layout(original.info.size, likely[0]), hashes, self._deadline)
        right = next((other.part for other in hashes if other.etag == original.info.etag), None)
        if sent.info.etag_is_content and sent.info.etag != original.info.etag and right is not None:
            sent = self._sent(source, uri, original, Layout(original.info.size, right), [], self._end)
        return sent.info if sent.info.etag == original.info.etag else self._signed(source, uri, original, sent)

    def _signed(self, source: str, uri: str, original: Original, sent: Sent) -> ObjectInfo:
        """The object with a proof of its parts, if each was what the source has: those that lay there before are read
        once more. What the store does not want to rewrite stays without."""
        own = sent.info
        if not (self._proof_key and own.etag_is_content and original.info.etag_is_content):
            return own
        for number in sorted(sent.parts.keys() - sent.compared):
            with self._part(source, original, sent.layout, number, self._end) as data:
                if md5_of(data) == sent.parts[number].etag:
                    sent.compared.add(number)
        if sent.compared != sent.parts.keys():
            return own
        told = {"size": own.size, "source_etag": original.info.etag, "own_etag": own.etag}
        proof = {PROOF_HEADER: signature(self._proof_key, uri, **told)}
        try:
            self._uploads.describe(uri, {**original.headers, **proof}, sent.layout, own.etag)
        except LakeMirrorError as error:
            log.warning("%s keeps no proof of its parts, so its content will decide: %s", uri, error.message)
        return self._found(uri)

    def _likely_parts(self, source: str, original: Original) -> list[int]:
        """How large the source's parts may be, likeliest first; at least one."""
        size, number = original.info.size, parts_of(original.info.etag)
        first = self._first_part(source) if number else 0
        if first and first <= LARGEST_PART and -(-size // first) == number:
            return [first]
        least = max(PART_BYTES, -(-size // 9_000))
        return [*part_sizes(size, number)] or [least]

    def _first_part(self, source: str) -> int:
        """The size of the source's first part, where the store tells; 0 where it does not."""
        url = self._source.url(*split_uri(source), {"partNumber": "1"})
        try:
            answer = self._source.asked("HEAD", url, f"head {source}, part 1")
        except (Invalid, NotFound):
            return 0
        except LakeMirrorError as error:
            raise Unbrought(Side.SOURCE, error) from error
        return int(answer.headers.get("content-length", 0)) if answer.status == 206 else 0

    def _sent(
        self, source: str, uri: str, original: Original, layout: Layout, hashes: list[PartHashes], until: Deadline
    ) -> Sent:
        """Sends the object in these parts, those that are not there yet. Where others are hashed too all bytes
        are read, in their order, and no deadline ends that: it would begin anew each time."""
        until.check()
        compared = set[int]()
        with telling(Side.DESTINATION):
            upload_id, parts = self._uploads.resumed(uri, layout, original.info.etag)
            upload_id = upload_id or self._uploads.start(uri, original.headers, original.info.etag)
            with self._going_on(uri, upload_id):
                until = self._end if hashes else until
                every = self._send_parts(source, uri, upload_id, original, layout, parts, hashes, until)
                for number, sent, digest in every:
                    parts[number] = sent
                    compared |= {number} if sent.etag == digest else set()
                self._uploads.complete(uri, upload_id, parts, original.when)
        return Sent(self._found(uri), layout, parts, compared)

    @contextmanager
    def _going_on(self, uri: str, upload_id: str) -> Iterator[None]:
        """A 404 of an upload that was begun is not one of the bucket: another task took it for a leftover."""
        try:
            yield
        except NotFound as error:
            self._uploads.abort(uri, upload_id)
            raise RemoteFailure(f"the upload to {uri} was cancelled by somebody else") from error

    def _send_parts(
        self,
        source: str,
        uri: str,
        upload_id: str,
        original: Original,
        layout: Layout,
        there: Mapping[int, Part],
        hashes: list[PartHashes],
        until: Deadline,
    ) -> Iterator[tuple[int, Part, str]]:
        """Each part that is read, with its MD5."""
        numbers = range(1, layout.count + 1)

        def send(number: int) -> tuple[int, Part, str]:
            with self._part(source, original, layout, number, until) as data:
                for other in hashes:
                    other.take(data)
                digest, part = md5_of(data), there.get(number)
                if part is None or part.etag != digest:
                    part = self._uploads.put(uri, upload_id, number, data, digest)
                return number, part, digest

        if hashes:
            yield from map(send, numbers)
            return
        lacking = [number for number in numbers if number not in there]
        for at in range(0, len(lacking), PARTS_AT_ONCE):
            some = lacking[at : at + PARTS_AT_ONCE]
            yield from self._parts.map(send, some)

    @contextmanager
    def _part(self, source: str, original: Original, layout: Layout, number: int, until: Deadline) -> Iterator[bytes]:
        """A part's bytes, which count as held until it is sent."""
        until.check()
        start, stop = layout.span(number)
        with self._large.hold(stop - start, until):
            yield self._paced(source, original, (start, stop))

    # --- within one store ---------------------------------------------------------------------------------------------

    def _copied(self, source: str, uri: str, original: Original) -> ObjectInfo:
        number = parts_of(original.info.etag)
        if number or original.info.size > COPY_WHOLE:
            return self._copied_in_parts(source, uri, original)
        with telling(Side.DESTINATION):
            headers = copy_source(source, original.info.etag) | original.for_copy
            try:
                answer = self._writer.write("PUT", uri, headers, read_seconds=60.0)
            except (NotFound, Conflict):
                self._original(source)  # raises what the source says, if it is about that
                raise
            root = parsed(answer.data)
            if root is None or not text_of(root, "ETag"):
                raise RemoteFailure(f"{self._store.where} gave a response that is not S3 to copy to {uri}")
        return self._found(uri)

    def _copied_in_parts(self, source: str, uri: str, original: Original) -> ObjectInfo:
        info: ObjectInfo | None = None
        least = max(256 << 20, -(-original.info.size // 9_000))
        sizes = self._likely_parts(source, original) if parts_of(original.info.etag) else [least]
        for part in sizes:
            info = self._copy_in(source, uri, original, Layout(original.info.size, part))
            if info.etag == original.info.etag:
                break
        assert info is not None
        return info

    def _copy_in(self, source: str, uri: str, original: Original, layout: Layout) -> ObjectInfo:
        with telling(Side.DESTINATION):
            upload_id, parts = self._uploads.resumed(uri, layout, original.info.etag)
            upload_id = upload_id or self._uploads.start(uri, original.headers, original.info.etag)

            def copy(number: int) -> Part:
                self._deadline.check()
                span = layout.span(number)
                return self._uploads.copy(uri, upload_id, number, source, original.info.etag, span)

            lacking = [number for number in range(1, layout.count + 1) if number not in parts]
            with self._going_on(uri, upload_id):
                parts |= dict(zip(lacking, self._parts.map(copy, lacking), strict=True))
                self._original(source, original.info.etag)  # some stores copy parts of whatever is there
                self._uploads.complete(uri, upload_id, parts, original.when)
        return self._found(uri)
