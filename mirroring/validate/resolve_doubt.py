"""Ranges in question are read: does one name an object that was found missing or wrong? Its bytes tell, for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from core.errors import LakeMirrorError, NotFound
from core.mirroring.content_proof import Refusals
from core.mirroring.doubt import address_crc
from core.mirroring.object_check import Depth, Reason, What
from core.ports import ObjectStore
from db.chunks import chunks
from deployment.wiring import clients
from graveler.errors import FormatError
from graveler.ranges import read_range
from jobs.lease import Lease
from mirrors.models import Blocker, Coverage, Mirror
from mirrors.models.problem import Problem
from mirrors.models.waived import is_full, stored_address
from mirrors.queries.metaranges import METADATA_PREFIX, metadata_uri
from mirrors.transitions.blockers import note_problems
from mirrors.transitions.range_states import reopen, settle_rows
from mirrors.transitions.validity import locked_mirror

BATCH = 200
READERS = 8


class Named(NamedTuple):
    """An entry of a range that may be missing."""

    path: bytes
    address: str
    size: int
    etag: str
    full: bool


@dataclass(frozen=True, slots=True)
class Read:
    """What a range names of some checksums, or the problem with its own file."""

    named: tuple[Named, ...] = ()
    broken: Problem | None = None


def resolve_doubts(mirror: Mirror, lease: Lease) -> LakeMirrorError | None:
    """Read the ranges that may name what was found missing or wrong. Each is then complete again, or waits for the very
    things that it names. One that can't be read stays in question: gives what that failed of."""
    rows = list(mirror.coverage.to_read().order_by("checked_at", "pk")[:BATCH])
    if not rows:
        return None
    wanted = _missing(mirror)
    store = clients.objects(mirror.region)
    read = partial(_read, store, mirror.namespace, Refusals(store, mirror.namespace), wanted)
    with ThreadPoolExecutor(min(READERS, len(rows))) as pool:
        results = dict(zip([row.range_id for row in rows], pool.map(read, [row.range_id for row in rows]), strict=True))
    failed = [result for result in results.values() if isinstance(result, LakeMirrorError)]
    with locked_mirror(mirror, lease):
        if not _missing(mirror) - wanted:  # else something more was found meanwhile: they are read once more
            _settle(mirror, {range_id: result for range_id, result in results.items() if isinstance(result, Read)})
    return failed[0] if failed else None


def _missing(mirror: Mirror) -> set[int]:
    objects = mirror.blockers.filter(kind=Blocker.Kind.OBJECT, crc__isnull=False).order_by()
    return set(objects.values_list("crc", flat=True).iterator())


def _read(
    store: ObjectStore, namespace: str, refusals: Refusals, wanted: set[int], range_id: str
) -> Read | LakeMirrorError:
    try:
        return _read_range(store, namespace, refusals, wanted, range_id)
    except LakeMirrorError as error:
        return error


def _read_range(store: ObjectStore, namespace: str, refusals: Refusals, wanted: set[int], range_id: str) -> Read:
    uri = metadata_uri(namespace, range_id)
    try:
        data = store.get(uri)
        return Read(tuple(_named(data, range_id, uri, wanted)))
    except NotFound:
        return Read(broken=_broken(range_id, Reason.RANGE_MISSING, "the range's file is not at the destination"))
    except FormatError as error:
        return Read(broken=_broken(range_id, Reason.RANGE_DAMAGED, str(error)))
    except LakeMirrorError as error:
        return Read(broken=_broken(range_id, *refusals.of_key(error, What.RANGE)))


def _named(data: bytes, range_id: str, uri: str, wanted: set[int]) -> Iterable[Named]:
    for entry in read_range(data, expected_id=range_id, file=uri):
        if address_crc(entry.address) in wanted:
            yield Named(entry.path, entry.address, entry.size, entry.etag, not entry.relative)


def _broken(range_id: str, reason: Reason, detail: str) -> Problem:
    address = f"{METADATA_PREFIX}/{range_id}"
    return Problem(Blocker.Kind.RANGE, range_id, address, reason, detail=detail, damage=True)


# --- writing down ---------------------------------------------------------------------------------------------------


def _settle(mirror: Mirror, reads: Mapping[str, Read]) -> None:
    """Inside of a transaction that holds the mirror."""
    open_ones, deeper = _open(mirror, reads), _depths(mirror)
    rows = list(mirror.coverage.to_read().filter(range_id__in=list(reads)))
    problems = {row.range_id: _problems(row, reads[row.range_id], open_ones) for row in rows}
    note_problems(mirror, chain.from_iterable(problems.values()))
    for row in rows:
        row.deeper = _depth_of(row, problems[row.range_id], open_ones, deeper)
        row.problems = max(row.problems, len(problems[row.range_id]))
        row.save(update_fields=["deeper", "problems"])
    settle_rows(mirror, rows, damaged={row.range_id for row in rows if row.doubt == Coverage.Doubt.SHARED})
    reopen(mirror, set(reads))


def _depth_of(
    row: Coverage,
    problems: Iterable[Problem],
    open_ones: Mapping[tuple[str, bool], Blocker],
    deeper: Mapping[str, Depth],
) -> str:
    """As deep as what found the things that it shares, if that was deeper than the mirror's own checks."""
    keys = [(stored_address(problem.address), bool(problem.full)) for problem in problems]
    holders = {open_ones[key].holder_id for key in keys if key in open_ones}
    found = (deeper[holder] for holder in {*holders, row.range_id} if holder in deeper)
    return max(found, key=list(Depth).index, default=row.deeper)


def _depths(mirror: Mirror) -> dict[str, Depth]:
    """How deep those checks were that found something which the mirror's own depth would not see."""
    return {
        range_id: Depth(depth) for range_id, depth in mirror.coverage.found_deeper().values_list("range_id", "deeper")
    }


def _open(mirror: Mirror, reads: Mapping[str, Read]) -> dict[tuple[str, bool], Blocker]:
    """What is missing or wrong now, of what these ranges name, by address."""
    checksums = {address_crc(entry.address) for read in reads.values() for entry in read.named}
    rows: dict[tuple[str, bool], Blocker] = {}
    for some in chunks(sorted(checksums)):
        for row in mirror.blockers.filter(kind=Blocker.Kind.OBJECT, crc__in=some):
            rows.setdefault((row.address, is_full(row)), row)
    return rows


def _problems(row: Coverage, read: Read, open_ones: Mapping[tuple[str, bool], Blocker]) -> list[Problem]:
    damage = row.doubt == Coverage.Doubt.SHARED
    if read.broken is not None:
        return [replace(read.broken, damage=damage)]
    shared = [(entry, open_ones.get((stored_address(entry.address), entry.full))) for entry in read.named]
    return [_shared(row.range_id, entry, blocker, damage=damage) for entry, blocker in shared if blocker is not None]


def _shared(range_id: str, entry: Named, blocker: Blocker, *, damage: bool) -> Problem:
    return Problem(
        kind=Blocker.Kind.OBJECT,
        holder_id=range_id,
        address=entry.address,
        reason=blocker.reason,
        path=entry.path,
        size=entry.size,
        etag=entry.etag,
        detail=blocker.detail,
        gone_at_source=blocker.gone_at_source,
        must_read=blocker.must_read,
        damage=damage,
        full=entry.full,
    )
