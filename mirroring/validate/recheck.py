"""Looking again for what was missing: one HEAD each, from half a second on up to the cooldown."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from core.bringing import BRINGABLE, BRINGABLE_METADATA
from core.errors import LakeMirrorError
from core.mirroring.content_proof import Prover, Refusals, is_sampled
from core.mirroring.object_check import (
    Depth,
    Imported,
    Reason,
    Verdict,
    What,
    is_in_s3,
    judge_object,
    judge_refusal,
)
from core.ports import ObjectStore
from core.proof_of_parts import PURPOSE
from core.types import ObjectInfo
from db import clock
from db.chunks import chunks
from deployment import config
from deployment.wiring import clients
from jobs.lease import Lease
from mirroring.validate.check_depth import as_deep, as_found
from mirrors.models import Blocker, Mirror
from mirrors.models.problem import FOUND_BY_READING, Problem
from mirrors.models.waived import is_accepted, is_full, waived_addresses
from mirrors.queries.metaranges import METADATA_PREFIX, read_afresh
from mirrors.transitions.blockers import LOOKED_FOR, note_problems
from mirrors.transitions.doubt import doubt_ranges
from mirrors.transitions.range_states import ask_anew, reopen, settle_ranges
from mirrors.transitions.seen_missing import note_losses
from mirrors.transitions.validity import locked_mirror

log = logging.getLogger("lakemirror.rechecks")

BATCH = 2000
WORKERS = 16
_FOR_ALL = {Reason.MISSING, Reason.ARCHIVED, Reason.UNREADABLE, Reason.UNREACHABLE}
"""What is wrong with an object for every range that names it, whatever size and ETag that one says."""


_BROUGHT = BRINGABLE | BRINGABLE_METADATA


@dataclass(slots=True)
class Relook:
    """How many of the things that were looked for again had arrived; what some `failed` of."""

    arrived: int = 0
    failed: LakeMirrorError | None = None


def look_again(mirror: Mirror, lease: Lease) -> Relook:
    """Look for every due blocker; settle the ranges of which nothing is missing any more."""
    due = mirror.blockers.needed().filter(look_at__lte=clock.now(), kind__in=LOOKED_FOR)
    rows = list(due.order_by("look_at")[:BATCH])
    if not rows:
        return Relook()
    rows += _of_the_same_objects(mirror, rows)
    failed: list[LakeMirrorError] = []
    problems = _look(mirror, rows, failed)
    if len(failed) == len(rows):
        return Relook(failed=failed[0])
    problems += _of_others(rows, problems)
    found = {(p.holder_id, p.key) for p in problems}
    arrived = [row for row in rows if (row.holder_id, row.key) not in found]
    with locked_mirror(mirror, lease):
        waived = waived_addresses(mirror)
        still = {(p.holder_id, p.key): waived.accept(p) for p in problems}
        # Whether history may lack it or not: whichever it was, another answer than last time changes its holder.
        holders = {row.holder_id for row in rows if still.get((row.holder_id, row.key)) is not is_accepted(row)}
        note_problems(mirror, problems)
        note_losses(mirror, _lost_now(rows, problems))
        _forget(mirror, arrived)
        doubt_ranges(mirror, _disputed(mirror, arrived))
        damaged = {row.holder_id for row in rows if row.damage}
        settle_ranges(mirror, holders, damaged=damaged)
        if mirror.brings:
            holders |= _have_brought(mirror, [p for p in problems if not waived.accept(p)], damaged)
        reopen(mirror, holders)
    return Relook(arrived=len(arrived), failed=failed[0] if failed else None)


def _lost_now(rows: Sequence[Blocker], problems: Sequence[Problem]) -> list[int]:
    """What is found to be gone at the source now may be gone at its other mirrors, too."""
    lost = {(problem.holder_id, problem.key) for problem in problems if problem.gone_at_source}
    return [row.pk for row in rows if not row.gone_at_source and (row.holder_id, row.key) in lost]


def _have_brought(mirror: Mirror, problems: Sequence[Problem], damaged: Collection[str]) -> set[str]:
    """What is missing still, and not gone or waived, is brought by the next check of what holds it: gives the holders.
    The rows stay, so that it is tried again at longer and longer pauses."""
    waits = {p.holder_id for p in problems if p.reason in _BROUGHT and not p.full}
    for some in chunks(sorted(waits)):
        for row in mirror.coverage.filter(range_id__in=some):
            ask_anew(row, damaged=row.range_id in damaged)
    return waits


def _of_the_same_objects(mirror: Mirror, rows: Sequence[Blocker]) -> list[Blocker]:
    """What other ranges lack is looked for together with it: a look counts for all that wait for the same object."""
    hashes = sorted({row.address_hash for row in rows if row.kind == Blocker.Kind.OBJECT})
    others = mirror.blockers.filter(kind=Blocker.Kind.OBJECT).exclude(pk__in=[row.pk for row in rows])
    return [row for some in chunks(hashes) for row in others.filter(address_hash__in=some)]


def _of_others(rows: Sequence[Blocker], problems: Sequence[Problem]) -> list[Problem]:
    """It was there for one range, and a moment later it was not for another one, or can't be read: then it is there for
    none."""
    still = {(problem.holder_id, problem.key): problem for problem in problems}
    looked = [(row, still.get((row.holder_id, row.key))) for row in rows if row.kind == Blocker.Kind.OBJECT]
    lacking = {_object_of(row): problem for row, problem in looked if problem and problem.reason in _FOR_ALL}
    return [
        _again(row, other.reason, other.detail, lost=other.gone_at_source)
        for row, problem in looked
        if problem is None and (other := lacking.get(_object_of(row)))
    ]


def _object_of(row: Blocker) -> tuple[str, bool]:
    return row.address, is_full(row)


def _forget(mirror: Mirror, arrived: list[Blocker]) -> None:
    """What arrived blocks no more. A range must be read first: its check settles the blocker."""
    objects = [row.pk for row in arrived if row.kind != Blocker.Kind.RANGE]
    files = [row.holder_id for row in arrived if row.kind == Blocker.Kind.RANGE]
    for some in chunks(objects):
        Blocker.objects.filter(pk__in=some).delete()
    damaged = {row.holder_id for row in arrived if row.damage}
    for row in mirror.coverage.filter(range_id__in=files):
        ask_anew(row, damaged=row.range_id in damaged)


def _disputed(mirror: Mirror, arrived: list[Blocker]) -> set[str]:
    """Ranges of which something is in order as deep as the mirror looks, and known to be wrong by a deeper check of
    another range. They are read, and wait for it as that one does, which is asked at once."""
    deeper = list(mirror.coverage.found_deeper().values_list("range_id", flat=True))
    checksums = {row.crc for row in arrived if row.crc is not None}
    wrong: set[int] = set()
    for some in chunks(deeper if checksums else []):
        held = mirror.blockers.held_by(some).order_by()
        wrong |= checksums.intersection(held.exclude(crc=None).values_list("crc", flat=True))
        held.filter(crc__in=wrong).update(look_at=clock.now())
    return {row.holder_id for row in arrived if row.crc in wrong}


def _look(mirror: Mirror, rows: list[Blocker], failed: list[LakeMirrorError]) -> list[Problem]:
    """What is missing still. What can't be asked for is as it was, and what that `failed` of is told."""
    destination = clients.objects(mirror.region)
    source = _Source(clients.objects(mirror.source.region), mirror.source.namespace)
    refusals = Refusals(destination, mirror.namespace)
    mirrors = _as_deep_as_found(mirror, rows)

    def look(row: Blocker) -> Problem | None:
        try:
            return _look_at(mirrors[row.holder_id], row, destination, source, refusals)
        except LakeMirrorError as error:
            failed.append(error)
            return _again(row, row.reason, row.detail, lost=row.gone_at_source)

    with ThreadPoolExecutor(max_workers=min(WORKERS, len(rows))) as pool:
        return [problem for problem in pool.map(look, rows) if problem is not None]


def _as_deep_as_found(mirror: Mirror, rows: list[Blocker]) -> dict[str, Mirror]:
    """The mirror by holder, with the depth of the check that found the blockers."""
    holders = sorted({row.holder_id for row in rows})
    by_holder = dict.fromkeys(holders, mirror)
    for some in chunks(holders):
        deeper = mirror.coverage.found_deeper().filter(range_id__in=some)
        for range_id, depth in deeper.values_list("range_id", "deeper"):
            by_holder[range_id] = as_deep(mirror, as_found(Depth(mirror.depth), depth))
    return by_holder


class _Source:
    """What the source lacks for certain. One that can't be asked is not asked again in the same round; one that fails
    of a key alone is asked for others."""

    def __init__(self, store: ObjectStore, namespace: str) -> None:
        self.store, self.namespace = store, namespace
        self._refusals = Refusals(store, namespace)
        self._lock = threading.Lock()
        self._away: bool | None = None

    def lacks(self, row: Blocker) -> bool:
        """Whether it is gone there too: a definite 404; without an answer what was known before."""
        try:
            return row.gone_at_source if self._is_away() else self.store.head(uri_of(self.namespace, row)) is None
        except LakeMirrorError as error:
            self._note(error, row)
            return row.gone_at_source

    def _is_away(self) -> bool:
        """A store that shows no metadata under the namespace (a wrong bucket, say) proves nothing by a 404."""
        with self._lock:
            if self._away is None:
                prefix = f"{self.namespace}/{METADATA_PREFIX}/"
                self._away = next(iter(self.store.list(prefix)), None) is None
            return self._away

    def _note(self, error: LakeMirrorError, row: Blocker) -> None:
        try:
            self._refusals.of_key(error, What(row.kind))
        except LakeMirrorError as failure:
            if not self._away:
                log.warning("whether things are gone at the source is not known: %s", failure)
            self._away = True


def _look_at(
    mirror: Mirror, row: Blocker, destination: ObjectStore, source: _Source, refusals: Refusals
) -> Problem | None:
    """None when it has arrived; a file of metadata still has to be read."""
    full = is_full(row)
    if row.reason == Reason.IMPORTED and not (mirror.imported == Imported.ALLOW and is_in_s3(row.address)):
        return _again(row, row.reason, row.detail, lost=False)
    try:
        info = destination.head(uri_of(mirror.namespace, row))
        verdict = _verdict(mirror, row, info, destination, source)
    except LakeMirrorError as error:
        alone = full and not error.retryable
        reason, detail = judge_refusal(error) if alone else refusals.of_key(error, What(row.kind))
        # It says nothing of the source: what both sides lacked, and the source still lacks, stays given up.
        return _again(row, reason, detail, lost=row.gone_at_source and source.lacks(row))
    if verdict is None:
        return None
    reason, detail = verdict
    lost = info is None and source.lacks(row)
    return _again(row, reason, f"{detail}; gone at the source too" if lost else detail, lost=lost)


def _verdict(
    mirror: Mirror, row: Blocker, info: ObjectInfo | None, destination: ObjectStore, source: _Source
) -> Verdict:
    if row.kind == Blocker.Kind.OBJECT:
        return _judge_again(mirror, row, info, destination, source)
    if info is not None:
        # Present is not readable: what refused to be read before is read again.
        return _read_metadata(mirror, row, info, destination)
    missing = Reason.RANGE_MISSING if row.kind == Blocker.Kind.RANGE else Reason.METARANGE_MISSING
    return missing, "not at the destination"


def _read_metadata(mirror: Mirror, row: Blocker, info: ObjectInfo, destination: ObjectStore) -> Verdict:
    if row.kind == Blocker.Kind.METARANGE:
        return read_afresh(mirror, row.holder_id).verdict
    if judge_object(info, size=info.size, etag=info.etag, depth=Depth.PRESENCE):
        return Reason.RANGE_ARCHIVED, f"archived: in storage class {info.storage_class} without an active restore"
    if row.reason == Reason.RANGE_UNREADABLE:
        destination.get(uri_of(mirror.namespace, row))
    return None


def _judge_again(
    mirror: Mirror, row: Blocker, info: ObjectInfo | None, destination: ObjectStore, source: _Source
) -> Verdict:
    """As the check job judges; what reading had found is read again, whatever became of it in between, and so is a
    share of what only now has arrived."""
    verdict = judge_object(info, size=row.size or 0, etag=row.etag, depth=Depth(mirror.depth))
    if info is None:
        return verdict
    uri = uri_of(mirror.namespace, row)
    key = config.current().derived_key(PURPOSE)
    prover = Prover(destination, mirror.namespace, source.store, source.namespace, proof_key=key)
    verdict = prover.appeal(verdict, info, uri, size=row.size or 0, etag=row.etag).verdict
    reads = row.must_read or row.reason in FOUND_BY_READING or is_sampled(uri, mirror.content_sample, seed=row.pk)
    if verdict is not None or mirror.depth != Depth.CONTENT or not reads:
        return verdict
    return prover.read(uri, size=row.size or 0, etag=row.etag).verdict


def uri_of(namespace: str, row: Blocker) -> str:
    """Where a blocker's thing lies: a FULL address names the place itself, others are under the namespace."""
    return row.address if is_full(row) else f"{namespace}/{row.address}"


def _again(row: Blocker, reason: str, detail: str, *, lost: bool) -> Problem:
    return Problem(
        kind=row.kind,
        holder_id=row.holder_id,
        address=row.address,
        reason=reason,
        path=row.path.encode("utf-8", "surrogateescape"),
        size=row.size,
        etag=row.etag,
        detail=detail,
        gone_at_source=lost,
        known_key=row.key,
        full=row.full,
        unneeded=row.unneeded,
    )
