"""What a check finds missing at a mirror that brings its objects itself is brought on the spot, and judged again.

Objects first, in the order of their ranges, small and large ones in lanes of their own; a range's file once all that it
names and that can be brought is there.
What keeps a store from giving or taking anything stops the bringing, not the look: the rest is told as missing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from adapters.s3.mover import PARTS_AT_ONCE, Mover
from adapters.s3.store_keys import proof_key_of
from core.bringing import Side, Unbrought, is_bringable
from core.errors import Conflict, Full, Invalid, LakeMirrorError, NotFound, RemoteFailure
from core.exporting.deadline import Deadline, Late, Rate
from core.mirroring.content_proof import OWN_FILES, UPLOAD_MARKS, Proof, Refusals
from core.mirroring.object_check import WAIVABLE, Depth, Reason, What, address_hash
from core.types import ObjectInfo
from spark_jobs.check.lanes import Lanes
from spark_jobs.check.presence import Expected, Looker
from spark_jobs.check.progress import LANES, LARGE, Progress, lane_of
from spark_jobs.check.ranges import OpenedRange
from spark_jobs.check.settings import CheckSettings, is_one_store, place_of, store_at

LEAST_SECONDS = 5.0
"""What is surely brought, is so for so long, even if the time is up when that begins."""
TOLD_SECONDS = 1.0
"""So often a job tells how far it is, also while nothing ends."""
MOST_REFUSED = 20
"""So many objects in a row that the destination did not take: then it takes none."""
IN_HAND = 1000
"""So many objects of a lane are given to the workers at a time; each of a range's 100,000 would cost kilobytes."""
_OF_ONE_KEY = (Invalid, Conflict, RemoteFailure)
"""What the destination may answer to a write for the key's own sake."""


class Brings(Protocol):
    """What bringing needs of two stores; adapters/s3/mover.py says what each raises."""

    def read(self, uri: str) -> bytes: ...
    def write(self, uri: str, data: bytes) -> None: ...
    def shows(self, prefix_uri: str) -> bool: ...
    def bring(self, source: str, uri: str, size: int, etag: str = "") -> ObjectInfo: ...
    def allow(self, seconds: float) -> None: ...
    def pace(self, bytes_per_second: float, objects_per_second: float) -> None: ...
    def passed(self) -> int: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class Brought:
    """What came of an object. `late`: nothing yet, its turn is in the next slice; `gone`: the source lacks it too."""

    proof: Proof
    copied: int = 0
    size: int = 0
    late: bool = False
    gone: bool = False


def mover_of(settings: CheckSettings) -> Brings:
    """What moves objects from the source of a check to its destination, with this process's credentials."""
    bring, source = settings.bring, settings.source
    assert bring is not None
    assert source is not None
    connections = bring.workers + PARTS_AT_ONCE + 4
    return Mover(
        store_at(source, settings.tries, connections),
        store_at(place_of(settings), settings.tries, connections),
        Deadline(bring.until),
        within=is_one_store(source, settings),
        rate=Rate(bring.bytes_per_second),
        objects=Rate(bring.objects_per_second),
        proof_key=proof_key_of(settings.proof_key),
        marks=settings.uri_of(UPLOAD_MARKS),
        hashes=Depth.ETAG.is_deeper_than(Depth(settings.depth)),
    )


@dataclass
class Bringer:
    """Brings what is missing below a namespace: as many objects at once as `settings` say.

    `failure` is what kept a store from giving or taking anything; `late`: there was no time left.
    """

    mover: Brings
    settings: CheckSettings
    source_refusals: Refusals
    failure: LakeMirrorError | None = None
    late: bool = False
    _known: dict[Expected, Brought] = field(default_factory=dict)
    _refused: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _source_shows: bool | None = None

    def __post_init__(self) -> None:
        self._namespace = self.settings.namespace.rstrip("/")
        assert self.settings.source is not None
        assert self.settings.bring is not None
        self._source = self.settings.source.namespace.rstrip("/")
        self._lanes = Lanes(self.settings.bring.workers)
        self._progress = Progress(self.mover.passed)
        self._sure = self.settings.bring.sure
        self.late = not self._sure and time.time() >= self.settings.bring.until

    def pace(self, bytes_per_second: float, objects_per_second: float) -> None:
        """Brings no more than that per second from now on; 0: any number."""
        self.mover.pace(bytes_per_second, objects_per_second)

    def tell(self, uri: str, made_at: float) -> None:
        """Writes there how far it is. Raises Unbrought."""
        self.mover.write(uri, self._progress.file(made_at))

    def stop(self) -> None:
        """Begins nothing more: all that is left is late."""
        self.late = True
        self.mover.stop()

    def close(self) -> None:
        """Waits for what is under way."""
        self._lanes.close()
        self.mover.close()

    def can_bring(self, proof: Proof, entry: Expected) -> bool:
        """Whether it is missing or wrong, and lies below the namespace: what is imported lies where it lies. What has
        the commit's ETag here alone is not written over."""
        return is_bringable(proof.verdict) and not proof.only_here and entry.uri.startswith(f"{self._namespace}/")

    def is_unseen(self, proof: Proof, entry: Expected) -> bool:
        """Whether it may lack, below the namespace, for all that the destination tells, and that is not accepted."""
        unread = proof.verdict is not None and proof.verdict[0] == Reason.UNREADABLE
        return unread and entry.uri.startswith(f"{self._namespace}/") and not self.is_accepted(proof, entry)

    def is_accepted(self, proof: Proof, entry: Expected) -> bool:
        """Whether history may lack it: that it has other content is never accepted."""
        accepted = self.settings.bring.accepted if self.settings.bring else ()
        if not accepted or proof.verdict is None or proof.verdict[0] not in WAIVABLE:
            return False
        return address_hash(entry.uri.removeprefix(f"{self._namespace}/")) in accepted

    # --- objects ------------------------------------------------------------------------------------------------------

    def bring(self, lacking: Iterable[tuple[Expected, Proof]], looker: Looker) -> Iterator[list[dict[str, Any]]]:
        """Bring these, each address once; `of` tells what came of each. Gives rows that tell how far it is."""
        todo = {entry: proof for entry, proof in lacking if entry not in self._known}
        self._progress.expect(entry.size for entry in todo)
        yield self._progress.take()
        if self._sure and todo:
            self.mover.allow(LEAST_SECONDS)
            self._sure = False
        yield from self._carry_out(todo, looker)
        yield self._progress.take()

    def _carry_out(self, todo: Mapping[Expected, Proof], looker: Looker) -> Iterator[list[dict[str, Any]]]:
        """In the order of the ranges: what is most urgent is first in each lane, of which each has so many in hand."""
        ended: SimpleQueue[Future[tuple[Expected, Brought]]] = SimpleQueue()
        lanes = {lane: iter([entry for entry in todo if lane_of(entry.size) == lane]) for lane in LANES}

        def start(entry: Expected) -> None:
            self._start(entry, todo[entry], looker).add_done_callback(ended.put)

        for waiting in lanes.values():
            for entry in islice(waiting, IN_HAND):
                start(entry)
        left, told_at = len(todo), time.monotonic()
        while left:
            with suppress(Empty):
                entry, brought = ended.get(timeout=TOLD_SECONDS).result()
                self._known[entry] = brought
                left -= 1
                if following := next(lanes[lane_of(entry.size)], None):
                    start(following)
            if time.monotonic() - told_at >= TOLD_SECONDS:
                yield self._progress.take()
                told_at = time.monotonic()

    def forget(self) -> None:
        """What came, and what there was no time for, shows at the next look: a job may bring millions of objects."""
        kept = ((entry, one) for entry, one in self._known.items() if one.proof.verdict is not None and not one.late)
        self._known = dict(kept)

    def of(self, entry: Expected) -> Brought:
        """What came of an object."""
        return self._known[entry]

    def _start(self, entry: Expected, proof: Proof, looker: Looker) -> Future[tuple[Expected, Brought]]:
        return self._lanes.submit(lambda: self._counted(entry, proof, looker), large=lane_of(entry.size) == LARGE)

    def _counted(self, entry: Expected, proof: Proof, looker: Looker) -> tuple[Expected, Brought]:
        self._progress.begin(entry.size)
        brought = Brought(proof)
        try:
            _, brought = self._one(entry, proof, looker)
        finally:
            self._progress.end(entry.size, copied=brought.copied, copied_bytes=brought.size)
        return entry, brought

    def _one(self, entry: Expected, proof: Proof, looker: Looker) -> tuple[Expected, Brought]:
        if self.failure is not None:
            return entry, Brought(_told(proof, f"copying stopped: {self.failure.message}"))
        if self.late:
            return entry, Brought(proof, late=True)
        if self._is_reserved(entry):
            return entry, Brought(_told(proof, "it is not copied: files of lakeFS and LakeMirror themselves lie there"))
        try:
            info = self.mover.bring(self._source + entry.uri.removeprefix(self._namespace), entry.uri, entry.size)
            self._refused = 0
            return entry, Brought(looker.judge(info, entry), copied=1, size=info.size)
        except Late:
            self.late = True
            return entry, Brought(proof, late=True)
        except Unbrought as unbrought:
            return entry, self._why(proof, unbrought)
        except LakeMirrorError as error:  # of the look at what was brought
            self.failure = self.failure or error
            return entry, Brought(proof)

    def _is_reserved(self, entry: Expected) -> bool:
        """Whoever may stage an entry names its address: by that nobody puts metadata, or what LakeMirror keeps here to
        prove the mirror by, in place of what is there."""
        address = entry.uri.removeprefix(f"{self._namespace}/")
        return address.startswith((f"{self.settings.metadata_prefix}/", OWN_FILES))

    def _why(self, proof: Proof, unbrought: Unbrought) -> Brought:
        """What is told of an object that could not be brought; notes what concerns a store as a whole."""
        error = unbrought.error
        try:
            if unbrought.gone:
                self._require_source()
                return Brought(_told(proof, "the source does not have it either"), gone=True)
            if unbrought.side is Side.SOURCE:
                _, detail = self.source_refusals.of_key(error, What.OBJECT)
                return Brought(_told(proof, f"it can't be read at the source: {detail}"))
            self._require_taken(error)
        except LakeMirrorError as failure:
            self.failure = self.failure or failure
            return Brought(_told(proof, f"copying stopped: {failure.message}"))
        except Unbrought as other:
            self.failure = self.failure or other.error
            return Brought(_told(proof, f"copying stopped: {other.error.message}"))
        return Brought(_told(proof, f"it can't be copied: {error.message}"))

    def _require_source(self) -> None:
        """A source that shows no metadata (a bucket that is not there, another one) proves nothing by a 404."""
        prefix = f"{self._source}/{self.settings.metadata_prefix}/"
        with self._lock:
            if self._source_shows is None:
                self._source_shows = self.mover.shows(prefix)
        if not self._source_shows:
            hint = "Check the source's storage namespace, and that its region's store is the right one"
            raise NotFound(f"the source shows nothing below {prefix}", hint=hint)

    def _require_taken(self, error: LakeMirrorError) -> None:
        """Raises what the destination says of all keys."""
        with self._lock:
            self._refused += 1
            refused = self._refused
        if isinstance(error, Full) or not isinstance(error, _OF_ONE_KEY) or refused >= MOST_REFUSED:
            raise _at_destination(error, self._namespace)

    # --- ranges -------------------------------------------------------------------------------------------------------

    def range_file(self, range_id: str) -> bytes:
        """A range's file as the source has it. Raises what keeps it from being had, of this file or of all."""
        if self.failure is not None:
            raise self.failure
        uri = f"{self._source}/{self.settings.metadata_prefix}/{range_id}"
        try:
            return self.mover.read(uri)
        except Unbrought as unbrought:
            self._note_source(unbrought)
            raise unbrought.error from unbrought

    def _note_source(self, unbrought: Unbrought) -> None:
        """What concerns the source as a whole, of what it says of a range."""
        try:
            if unbrought.gone:
                self._require_source()
            else:
                self.source_refusals.of_key(unbrought.error, What.RANGE)
        except LakeMirrorError as failure:
            self.failure = self.failure or failure
        except Unbrought as other:
            self.failure = self.failure or other.error

    def write_range(self, range_id: str, data: bytes) -> str:
        """Writes a range's file and reads it back; gives why that could not be done, "" if it was. Raises Late."""
        if self.failure is not None:
            return f"copying stopped: {self.failure.message}"
        try:
            self.mover.write(self.settings.metadata_uri(range_id), data)
        except Unbrought as unbrought:
            error = unbrought.error
            try:
                self._require_taken(error)
            except LakeMirrorError as failure:
                self.failure = failure
            return f"it can't be written: {error.message}"
        return ""


def _told(proof: Proof, why: str) -> Proof:
    """The same verdict, with why it was not mended."""
    assert proof.verdict is not None
    reason, detail = proof.verdict
    return Proof((Reason(reason), f"{detail}; {why}"), proof.note)


def _at_destination(error: LakeMirrorError, namespace: str) -> LakeMirrorError:
    """A write's 404 is of the bucket."""
    if isinstance(error, NotFound):
        hint = "Make the bucket there, or tell where the region's store is"
        return NotFound(f"nothing can be written to {namespace}: {error.message}", hint=hint)
    return error


# --- a group of ranges ------------------------------------------------------------------------------------------------


def lacking_bytes(group: Sequence[OpenedRange], proofs: Sequence[Sequence[Proof]], bringer: Bringer) -> int:
    """How much would be brought."""
    return sum(entry.size for entry, _ in _lacking(group, proofs, bringer))


def bring_group(
    group: Sequence[OpenedRange], proofs: Sequence[list[Proof]], bringer: Bringer, looker: Looker
) -> Iterator[list[dict[str, Any]]]:
    """Bring what a look at these ranges lacked, then the ranges' own files; rows that tell how far that is.

    `proofs` are as those of a second look then; what was not brought for want of time makes its range `late`.
    """
    yield from bringer.bring(_lacking(group, proofs, bringer), looker)
    for opened, own in zip(group, proofs, strict=True):
        waits = _take_over(opened, own, bringer)
        if opened.unwritten is not None and not opened.late:
            _write_file(opened, bringer, waits=waits)
    bringer.forget()


def _lacking(
    group: Sequence[OpenedRange], proofs: Sequence[Sequence[Proof]], bringer: Bringer
) -> Iterator[tuple[Expected, Proof]]:
    for opened, own in zip(group, proofs, strict=True):
        for entry, proof in zip(opened.expected(), own, strict=True):
            if bringer.can_bring(proof, entry):
                yield entry, proof


def _take_over(opened: OpenedRange, own: list[Proof], bringer: Bringer) -> bool:
    """What came of a range's objects; gives whether any of them may yet be brought."""
    waits = False
    for at, entry in enumerate(opened.expected()):
        if bringer.can_bring(own[at], entry):
            brought = bringer.of(entry)
            own[at] = brought.proof
            opened.late |= brought.late
            waits |= brought.proof.verdict is not None and not (
                brought.gone or bringer.is_accepted(brought.proof, entry)
            )
        else:
            waits |= bringer.is_unseen(own[at], entry)
    return waits


def _write_file(opened: OpenedRange, bringer: Bringer, *, waits: bool) -> None:
    """A reader never meets a range before what it names, but for what nobody can bring."""
    assert opened.unwritten is not None
    why = "it is written once its objects are here"
    if not waits:
        try:
            why = bringer.write_range(opened.range_id, opened.unwritten)
        except Late:
            opened.late = True
            return
    if why:
        prefix = bringer.settings.metadata_prefix
        detail = f"the range's file is not at the destination: {why}"
        opened.problems.append(opened.without_file(prefix, Reason.RANGE_MISSING, detail))
