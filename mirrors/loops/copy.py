"""Copying of commit records to the destination, parents first. Only 204 or 409 proves that a record is there."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from core.errors import Corrupt
from core.ports import LakeFS
from core.types import RecordOutcome
from lakemirror_site import wiring
from mirrors import duties
from mirrors.blockers import note_blocker
from mirrors.duties import Lease, Outcome
from mirrors.history import settle_history
from mirrors.loops.manage import stop
from mirrors.models import Blocker, Mirror, MirrorCommit

log = logging.getLogger("lakemirror.copy")

BATCH = 500


def copy(lease: Lease) -> Outcome:
    """Copy the records that the destination has not accepted yet."""
    mirror = duties.subject_mirror(lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.source.frozen_reason:
        return Outcome("nothing is copied while the mirror is not active")
    refused = _refused(mirror)
    total = copied = 0
    while rows := list(mirror.commits.to_copy().exclude(pk__in=refused)[:BATCH]):
        total += len(rows)
        copied += _copy_batch(mirror, rows, refused, lease)
        if settle_history(mirror):
            duties.wake("promote", mirror.pk)
    return Outcome(f"{copied} of {total} records accepted")


def _refused(mirror: Mirror) -> set[int]:
    """Rows that can't be copied now. Their descendants find out by their parents."""
    return set(mirror.commits.filter(record__in=["refused", "tampered"]).values_list("pk", flat=True))


def _copy_batch(mirror: Mirror, rows: list[MirrorCommit], refused: set[int], lease: Lease) -> int:
    lakefs = wiring.lakefs(mirror.region)
    bad = set(mirror.commits.filter(record__in=["refused", "tampered"]).values_list("commit__sha", flat=True))
    bad |= set(mirror.commits.filter(pk__in=refused).values_list("commit__sha", flat=True))
    accepted: list[int] = []
    for row in rows:
        lease.beat()
        behind_bad = bad & set(row.commit.parents)
        state = MirrorCommit.Record.PENDING if behind_bad else _copy_one(mirror, lakefs, row)
        if state == MirrorCommit.Record.ACCEPTED:
            accepted.append(row.pk)
        else:
            bad.add(row.commit.sha)
            refused.add(row.pk)
    now = datetime.now(UTC)
    mirror.commits.filter(pk__in=accepted).update(record=MirrorCommit.Record.ACCEPTED, recorded_at=now)
    return len(accepted)


def _copy_one(mirror: Mirror, lakefs: LakeFS, row: MirrorCommit) -> str:
    record = row.commit.record()
    try:
        outcome = lakefs.put_commit_record(mirror.name, record)
    except Corrupt as error:
        return _give_up(mirror, row, MirrorCommit.Record.REFUSED, "source-corrupt", error.message)
    if outcome is RecordOutcome.CREATED:
        return MirrorCommit.Record.ACCEPTED
    there = lakefs.get_commit(mirror.name, record.id)
    if (there.generation, there.version) == (record.generation, record.version):
        return MirrorCommit.Record.ACCEPTED
    detail = (
        f"the destination has a record of {record.id[:8]} with generation {there.generation} "
        f"and version {there.version}; the source's are {record.generation} and {record.version}"
    )
    stop(mirror, "tampered-record", detail)
    return _give_up(mirror, row, MirrorCommit.Record.TAMPERED, "tampered-record", detail)


def _give_up(mirror: Mirror, row: MirrorCommit, state: str, reason: str, detail: str) -> str:
    log.error("%s: commit %s: %s", mirror.name, row.commit.sha[:8], detail)
    mirror.commits.filter(pk=row.pk).update(record=state, detail=detail)
    note_blocker(mirror, Blocker.Kind.RECORD, row.commit.sha, address=row.commit.sha, reason=reason, detail=detail)
    return state
