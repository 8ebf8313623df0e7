"""Looking again for what was missing: one HEAD each, from half a second on up to the cooldown."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction

from core.ports import ObjectStore
from core.presence import Depth, Reason, judge_object
from lakemirror_site import wiring
from mirrors.blockers import KEPT_PER_HOLDER, Problem, note_problems
from mirrors.duties import Lease
from mirrors.models import Blocker, Coverage, Mirror, MirrorCommit

BATCH = 2000
WORKERS = 16


@dataclass(slots=True)
class Relook:
    """How many things were looked for again, and how many had arrived."""

    looks: int = 0
    arrived: int = 0


def look_again(mirror: Mirror, lease: Lease) -> Relook:
    """Look for every due blocker; settle the ranges of which nothing is missing any more."""
    due = mirror.blockers.filter(look_at__lte=datetime.now(UTC)).exclude(kind=Blocker.Kind.RECORD)
    rows = list(due.order_by("look_at")[:BATCH])
    if not rows:
        return Relook()
    with lease.kept():
        problems = _look(mirror, rows)
    lease.fence(0)
    still = {(p.holder_id, p.key) for p in problems}
    arrived = [row for row in rows if (row.holder_id, row.key) not in still]
    was_gone = {row.holder_id for row in rows if row.gone_at_source}
    is_gone = {p.holder_id for p in problems if p.gone_at_source}
    holders = {row.holder_id for row in arrived} | (was_gone ^ is_gone)
    with transaction.atomic():
        note_problems(mirror, problems)
        _forget(mirror, arrived)
        settle_ranges(mirror, holders)
        _reopen(mirror, holders)
    return Relook(looks=len(rows), arrived=len(arrived))


def _reopen(mirror: Mirror, holders: set[str]) -> None:
    """Commits that waited for these must be judged again; in one transaction with what makes it so."""
    judged = mirror.commits.filter(data__in=[MirrorCommit.Data.WAITING, MirrorCommit.Data.GONE])
    again = [pk for pk, waits_for in judged.values_list("pk", "waits_for") if holders.intersection(waits_for)]
    for start in range(0, len(again), 500):
        mirror.commits.filter(pk__in=again[start : start + 500]).update(data=MirrorCommit.Data.UNKNOWN)


def _forget(mirror: Mirror, arrived: list[Blocker]) -> None:
    """Objects that arrived block no more. Files of metadata must be read first: their check settles the blocker."""
    objects = [row.pk for row in arrived if row.kind == Blocker.Kind.OBJECT]
    files = [row.holder_id for row in arrived if row.kind == Blocker.Kind.RANGE]
    for start in range(0, len(objects), 500):
        Blocker.objects.filter(pk__in=objects[start : start + 500]).delete()
    mirror.coverage.filter(range_id__in=files).delete()


def _look(mirror: Mirror, rows: list[Blocker]) -> list[Problem]:
    destination, source = wiring.objects(mirror.region), wiring.objects(mirror.source.region)
    with ThreadPoolExecutor(max_workers=min(WORKERS, len(rows))) as pool:
        looked = pool.map(lambda row: _look_at(mirror, row, destination, source), rows)
        return [problem for problem in looked if problem is not None]


def _look_at(mirror: Mirror, row: Blocker, destination: ObjectStore, source: ObjectStore) -> Problem | None:
    """None when it has arrived; a file of metadata still has to be read."""
    if row.reason == Reason.IMPORTED:
        return _again(row, row.reason, row.detail, gone=False)
    found = destination.head(uri_of(mirror.storage_namespace, row.address))
    if row.kind == Blocker.Kind.OBJECT:
        verdict = judge_object(found, size=row.size or 0, etag=row.etag, depth=Depth(mirror.depth))
    else:
        missing = Reason.RANGE_MISSING if row.kind == Blocker.Kind.RANGE else Reason.METARANGE_MISSING
        verdict = (missing, "not at the destination") if found is None else None
    if verdict is None:
        return None
    reason, detail = verdict
    gone = found is None and source.head(uri_of(mirror.source.storage_namespace, row.address)) is None
    return _again(row, reason, f"{detail}; gone at the source too" if gone else detail, gone=gone)


def uri_of(namespace: str, address: str) -> str:
    """Where an address lies: FULL ones name the place themselves, others are under the namespace."""
    return address if "://" in address else f"{namespace}/{address}"


def _again(row: Blocker, reason: str, detail: str, *, gone: bool) -> Problem:
    return Problem(
        kind=row.kind,
        holder_id=row.holder_id,
        address=row.address,
        reason=reason,
        path=row.path.encode("utf-8", "surrogateescape"),
        size=row.size,
        etag=row.etag,
        detail=detail,
        gone_at_source=gone,
        known_key=row.key,
    )


def settle_ranges(mirror: Mirror, range_ids: Iterable[str]) -> None:
    """Give ranges their state from the blockers that are left.

    A range of which not every problem was kept by name loses its row: it is planned anew.
    """
    for row in mirror.coverage.filter(range_id__in=list(range_ids), state__in=["waiting", "gone"]):
        left = list(mirror.blockers.filter(holder_id=row.range_id).values_list("gone_at_source", flat=True))
        if not left and row.problems > KEPT_PER_HOLDER:
            row.delete()
        elif not left:
            _set_state(row, Coverage.State.COMPLETE, 0)
        elif all(left) and row.problems <= KEPT_PER_HOLDER:
            _set_state(row, Coverage.State.GONE, len(left))
        else:
            _set_state(row, Coverage.State.WAITING, row.problems)


def _set_state(row: Coverage, state: str, problems: int) -> None:
    Coverage.objects.filter(pk=row.pk).update(state=state, problems=problems)
