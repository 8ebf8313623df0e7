"""What the stores of a native mirror have not brought, and somebody had LakeMirror copy once.

It is a permission to write what is missing: an address that a commit waits for, of which the destination has no object
at this very moment. To replace once what is there and wrong is another permission: only by what the source has as the
commit says, only where no other commit says something else of the address, and after all that may name it is put in
question. What was copied counts for nothing until a look has found it.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from django.db import transaction
from django.db.models import F

from adapters.s3.mover import PUT_WHOLE
from core.bringing import ObjectReplication, Side, Unbrought, is_as_entry
from core.errors import Conflict, Fenced, Invalid, LakeMirrorError, NotFound
from core.exporting.deadline import Late
from core.mirroring.content_proof import OWN_FILES, Refusals
from core.mirroring.doubt import Suspect, address_crc
from core.mirroring.object_check import Reason, What
from core.replication.causes import Verdict, why_kept
from core.types import ObjectInfo
from db import clock
from db.chunks import chunks
from deployment.wiring import check_jobs, clients
from graveler.errors import FormatError
from graveler.ranges import read_range_columns
from jobs.lease import Lease
from mirroring.validate.replaced import named_otherwise
from mirrors.models import Blocker, Mirror
from mirrors.queries.metarange_cache import parse
from mirrors.queries.metaranges import METADATA_PREFIX
from mirrors.transitions.bringing import asked_for, end_if_managed, keep_in_step, take_over, to_replace
from mirrors.transitions.causes import awaited, note_kept, wrong
from mirrors.transitions.doubt import doubt_sharers
from mirrors.transitions.validity import locked_mirror
from spark_jobs.check.bring import Brings

SECONDS = 15.0
"""So long a round copies; what was not begun comes in the next one, a second later."""
BATCH = 2000
SMALL_AT_ONCE, LARGE_AT_ONCE = 8, 2
ASKED_SECONDS = 1.0
"""So often it is asked whether it may go on."""
log = logging.getLogger("lakemirror.bring")


class _Came(Enum):
    """What came of one address."""

    COPIED = "copied"
    THERE = "there"
    LATE = "late"
    GONE = "gone"
    NOT = "not"
    KEPT = "kept"
    """What is there stays: the source has nothing better."""


@dataclass(slots=True)
class Asked:
    """How many files were copied, of how many bytes; what kept a store from giving or taking anything."""

    copied: int = 0
    bytes: int = 0
    failed: LakeMirrorError | None = None


def bring_asked(mirror: Mirror, lease: Lease) -> Asked:
    """Copy what somebody asked for and what is due, before it is looked for."""
    if mirror.object_replication == ObjectReplication.MANAGED:
        end_if_managed(mirror, lease)  # LakeMirror copies everything there. A pause keeps it
        return Asked()
    keep_in_step(mirror, lease)
    if not mirror.brings_on_request:
        return Asked()
    chosen = _chosen(mirror)
    if chosen and mirror.bring_at is None:  # a version before was asked: it notes that at the blockers alone
        take_over(mirror, chosen.values())
        keep_in_step(mirror, lease)
        chosen = _chosen(mirror)
    came, kept = _left_as_it_is(mirror, chosen)
    todo = [row for address, row in chosen.items() if address not in came]
    _question(mirror, [row for row in todo if _is_replaced(row)], lease)
    if not chosen:
        return Asked()
    round_ = _Round(mirror, lease, check_jobs.mover_on_request(mirror, SECONDS))
    came |= round_.bring(todo)
    _note(mirror, {row.address_hash: came[row.address] for row in chosen.values()})
    _note_kept(mirror, chosen, kept | round_.kept)
    if round_.told.copied:
        log.info("%s: copied %s files of %s bytes on request", mirror.name, round_.told.copied, round_.told.bytes)
    return round_.told


def _chosen(mirror: Mirror) -> dict[str, Blocker]:
    """What is due of what somebody asked for, by address."""
    now = clock.now()
    rows, replaced = asked_for(mirror).filter(look_at__lte=now), to_replace(mirror).filter(look_at__lte=now)
    return {row.address: row for some in (rows, replaced) for row in some.order_by("look_at")[:BATCH]}


def _is_replaced(row: Blocker) -> bool:
    """Whether somebody has permitted to write over it, wrong as it is."""
    return row.replace_asked_at is not None and row.is_replaceable


def _left_as_it_is(mirror: Mirror, chosen: Mapping[str, Blocker]) -> tuple[dict[str, _Came], dict[str, str]]:
    """Of what is to be replaced, by address, what must stay, and why; all of it for now where that can't be found
    out."""
    replaced = {address: row for address, row in chosen.items() if _is_replaced(row)}
    try:
        stays = named_otherwise(mirror, replaced.values())
    except LakeMirrorError as error:
        log.warning("%s: nothing is replaced now: a range can't be read: %s", mirror.name, error.message)
        return dict.fromkeys(replaced, _Came.NOT), {}
    return dict.fromkeys(stays, _Came.KEPT), dict(stays)


def _note_kept(mirror: Mirror, chosen: Mapping[str, Blocker], kept: Mapping[str, str]) -> None:
    """Who asked for it is told why it stays."""
    found: dict[Verdict, list[str]] = defaultdict(list)
    for address, why in kept.items():
        log.warning("%s: %s is not replaced: %s", mirror.name, address, why)
        found[why_kept(why)].append(chosen[address].address_hash)
    note_kept(mirror, found, clock.now())


def _question(mirror: Mirror, rows: Sequence[Blocker], lease: Lease) -> None:
    """What else may name these objects is read again before it counts: it may be right for that as it is."""
    suspects: dict[str, list[Suspect]] = defaultdict(list)
    for row in rows:
        if row.kind == Blocker.Kind.OBJECT:
            path = row.path.encode("utf-8", "surrogateescape")
            suspects[row.holder_id].append(Suspect(path, address_crc(row.address)))
    if suspects:
        with locked_mirror(mirror, lease):
            for holder, own in suspects.items():
                doubt_sharers(mirror, [holder], own)


def _note(mirror: Mirror, by_hash: dict[str, _Came]) -> None:
    """When each is looked for: at once, but for what had no turn. What nobody can copy is asked for no more, and what
    was written over once is not written over again."""
    with transaction.atomic():
        # As who asks does: both write to many rows, each in an order of its own.
        Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
        _write(mirror, by_hash)


def _write(mirror: Mirror, by_hash: dict[str, _Came]) -> None:
    now = clock.now()
    at = {_Came.COPIED: now, _Came.THERE: now, _Came.LATE: now + timedelta(seconds=1)}
    for what, moment in at.items():
        for some in chunks(sorted(key for key, one in by_hash.items() if one is what)):
            for rows in (awaited(mirror), wrong(mirror)):
                rows.filter(address_hash__in=some).update(look_at=moment)
    for some in chunks(sorted(key for key, one in by_hash.items() if one is _Came.GONE)):
        awaited(mirror).filter(address_hash__in=some).update(bring_asked_at=None)
    ended = (_Came.COPIED, _Came.THERE, _Came.GONE, _Came.KEPT)
    for some in chunks(sorted(key for key, one in by_hash.items() if one in ended)):
        mirror.blockers.filter(address_hash__in=some).update(replace_asked_at=None)


@dataclass
class _Round:
    """A slice of copying. `told` is what came of it so far; `kept`: why what is at an address is not replaced."""

    mirror: Mirror
    lease: Lease
    mover: Brings
    told: Asked = field(default_factory=Asked)
    kept: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _source_shows: bool | None = None

    def __post_init__(self) -> None:
        self._destination = clients.objects(self.mirror.region)
        source = self.mirror.source
        self._source = clients.objects(source.region)
        self._refusals = Refusals(self._source, source.namespace)

    def bring(self, rows: Sequence[Blocker]) -> dict[str, _Came]:
        """Copy these, small ones first, as long as it may go on; tells what came of each address. Raises Fenced."""
        self.lease.fence(SECONDS)  # else another worker may find what is there right, just before it is replaced
        small = [row for row in rows if (row.size or 0) <= PUT_WHOLE]
        large = [row for row in rows if (row.size or 0) > PUT_WHOLE]
        workers = self.mirror.copy_workers
        with (
            ThreadPoolExecutor(min(workers, SMALL_AT_ONCE)) as quick,
            ThreadPoolExecutor(min(workers, LARGE_AT_ONCE)) as slow,
        ):
            jobs = {quick.submit(self._one, row): row.address for row in small}
            jobs |= {slow.submit(self._one, row): row.address for row in large}
            self._follow(jobs)
        self.mover.close()
        Mirror.objects.filter(pk=self.mirror.pk).update(
            copied=F("copied") + self.told.copied, copied_bytes=F("copied_bytes") + self.told.bytes
        )
        return {address: job.result() for job, address in jobs.items()}

    def _follow(self, jobs: Iterable[Future[_Came]]) -> None:
        """Nothing more is begun once the mirror is paused, stopped, deleted or managed, its source is frozen, somebody
        has ended it or asked for more, or the lease was lost."""
        left = set(jobs)
        while left:
            _, left = wait(left, timeout=ASKED_SECONDS)
            if left and not self._may_go_on():
                self.mover.stop()

    def _may_go_on(self) -> bool:
        now = Mirror.objects.select_related("source").filter(pk=self.mirror.pk).first()
        try:
            self.lease.fence(0)
        except Fenced as error:
            log.warning("%s: copying stops: %s", self.mirror.name, error)
            return False
        if now is None or now.bring_at != self.mirror.bring_at:  # what is asked for since, the next round sees
            return False
        return now.brings_on_request

    def _one(self, row: Blocker) -> _Came:
        uri, source = f"{self.mirror.namespace}/{row.address}", f"{self.mirror.source.namespace}/{row.address}"
        if self.told.failed is not None or self._is_reserved(row):
            return _Came.NOT
        try:
            info, etag = self._destination.head(uri), ""
            if info is not None and self._stays(row, info):
                return _Came.THERE
            if _is_replaced(row) and row.kind == Blocker.Kind.OBJECT:
                original = self._original(source)
                if not is_as_entry(original, size=row.size or 0, etag=row.etag):
                    self.kept[row.address] = "the source does not have it as the commit says either"
                    return _Came.KEPT
                etag = original.etag
            size = self._copy(row, source, uri, etag)
        except Late:
            return _Came.LATE
        except Unbrought as unbrought:
            return self._why(row, unbrought)
        except FormatError as error:
            log.warning("%s: the source's %s is damaged: %s", self.mirror.name, row.address, error)
            return _Came.NOT
        except LakeMirrorError as error:  # of the look
            self._fail(error)
            return _Came.NOT
        with self._lock:
            self.told.copied += 1
            self.told.bytes += size
        return _Came.COPIED

    def _stays(self, row: Blocker, info: ObjectInfo) -> bool:
        """Whether what is there is not written over. A range's or metarange's file is proven by its id before that."""
        if not _is_replaced(row):
            return True
        if row.kind != Blocker.Kind.OBJECT or row.reason == Reason.CONTENT:
            return False
        return is_as_entry(info, size=row.size or 0, etag=row.etag)

    def _original(self, source: str) -> ObjectInfo:
        """Raises Unbrought."""
        try:
            info = self._source.head(source)
        except LakeMirrorError as error:
            raise Unbrought(Side.SOURCE, error) from error
        if info is None:
            raise Unbrought(Side.SOURCE, NotFound(f"the source has no {source}"))
        return info

    def _copy(self, row: Blocker, source: str, uri: str, etag: str) -> int:
        """An object only if it has this ETag, if any; metadata only if it gives its id. Gives how many bytes."""
        if row.kind == Blocker.Kind.OBJECT:
            return self.mover.bring(source, uri, row.size or 0, etag).size
        data = self.mover.read(source)
        if row.kind == Blocker.Kind.RANGE:
            read_range_columns(data, expected_id=row.holder_id, file=source)
        else:
            parse(data, row.holder_id, source)
        self.mover.write(uri, data)
        return len(data)

    def _is_reserved(self, row: Blocker) -> bool:
        """Whoever may stage an entry names its address: by that nobody puts metadata, or our own files, here."""
        return row.kind == Blocker.Kind.OBJECT and row.address.startswith((f"{METADATA_PREFIX}/", OWN_FILES))

    def _why(self, row: Blocker, unbrought: Unbrought) -> _Came:
        """Whether it is this key's fault, or the store's."""
        try:
            if unbrought.gone:
                self._require_source()
                return _Came.GONE
            if unbrought.side is Side.SOURCE:
                self._refusals.of_key(unbrought.error, What(row.kind))
            elif not isinstance(unbrought.error, (Invalid, Conflict)):
                raise unbrought.error
        except Unbrought as other:
            self._fail(other.error)
        except LakeMirrorError as error:
            self._fail(error)
        log.warning("%s: %s can't be copied: %s", self.mirror.name, row.address, unbrought.error.message)
        return _Came.NOT

    def _require_source(self) -> None:
        """A source that shows no metadata (another bucket, say) proves nothing by a 404."""
        prefix = f"{self.mirror.source.namespace}/{METADATA_PREFIX}/"
        with self._lock:
            if self._source_shows is None:
                self._source_shows = self.mover.shows(prefix)
        if not self._source_shows:
            raise NotFound(f"the source shows nothing below {prefix}")

    def _fail(self, error: LakeMirrorError) -> None:
        self.told.failed = self.told.failed or error
