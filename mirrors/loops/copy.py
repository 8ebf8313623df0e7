"""Copying of commit records to the destination, parents first. Only 204 or 409 proves that a record is there."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from core.errors import Corrupt, RemoteFailure
from core.ports import LakeFS
from core.types import Commit as CommitRecord
from core.types import RecordOutcome
from graveler.identity import commit_id
from lakemirror_site import wiring
from mirrors import duties
from mirrors.blockers import note_blocker
from mirrors.duties import Lease, Outcome
from mirrors.history import settle_history
from mirrors.loops.manage import require_pinned, stop
from mirrors.models import Blocker, Mirror, MirrorCommit

log = logging.getLogger("lakemirror.copy")

BATCH = 500
MOST_FAILURES = 5
"""So many records that the destination could not take end a round: then it is the destination."""


def copy(lease: Lease) -> Outcome:
    """Copy the records that the destination has not accepted yet."""
    mirror = duties.subject_mirror(lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.source.frozen_reason:
        return Outcome("nothing is copied while the mirror is not active")
    round_ = _Round(mirror, wiring.lakefs(mirror.region), lease)
    last = 0
    while rows := list(mirror.commits.to_copy().filter(commit_id__gt=last)[:BATCH]):
        last = rows[-1].commit_id
        round_.copy_batch(rows)
        if settle_history(mirror):
            duties.wake("promote", mirror.pk)
    if round_.failed is not None:
        raise round_.failed
    return Outcome(f"{round_.copied} of {round_.total} records accepted")


class _Round:
    """One round of copying. `bad` are commits that could not be copied: their descendants have to wait."""

    def __init__(self, mirror: Mirror, lakefs: LakeFS, lease: Lease) -> None:
        self.mirror, self.lakefs, self.lease = mirror, lakefs, lease
        given_up = mirror.commits.filter(record__in=["refused", "tampered"])
        self.bad = set(given_up.values_list("commit__sha", flat=True))
        self.total = self.copied = self.failures = 0
        self.failed: RemoteFailure | None = None

    def copy_batch(self, rows: list[MirrorCommit]) -> None:
        """Copy records; those that were accepted are written down whatever becomes of the rest."""
        self.total += len(rows)
        accepted: list[int] = []
        require_pinned(self.mirror, self.lakefs)
        try:
            for row in rows:
                self.lease.beat()
                if self._is_accepted(row):
                    accepted.append(row.pk)
                else:
                    self.bad.add(row.commit.sha)
        finally:
            self._write_down(accepted)

    def _is_accepted(self, row: MirrorCommit) -> bool:
        """A record that the destination can't take (500) delays only its descendants, unless there are many."""
        if self.bad.intersection(row.commit.parents):
            return False
        try:
            return _copy_one(self.mirror, self.lakefs, row) == MirrorCommit.Record.ACCEPTED
        except RemoteFailure as error:
            self.failed, self.failures = error, self.failures + 1
            if self.failures == MOST_FAILURES:
                raise
            return False

    def _write_down(self, accepted: list[int]) -> None:
        """What another repository of the same name has taken in the meantime proves nothing."""
        if not accepted:
            return
        require_pinned(self.mirror, self.lakefs)
        now = datetime.now(UTC)
        pinned = self.mirror.pinned_creation_date
        rows = self.mirror.commits.filter(pk__in=accepted, mirror__pinned_creation_date=pinned)
        rows.update(record=MirrorCommit.Record.ACCEPTED, recorded_at=now)
        self.copied += len(accepted)


def _copy_one(mirror: Mirror, lakefs: LakeFS, row: MirrorCommit) -> str:
    record = row.commit.record()
    try:
        outcome = lakefs.put_commit_record(mirror.name, record)
    except Corrupt as error:
        if gives_its_id(record):
            raise RemoteFailure(error.message, hint="The record is right: this is no reason to give it up") from error
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


def gives_its_id(record: CommitRecord) -> bool:
    """Whether a record's content has the id that it claims."""
    claimed = commit_id(
        committer=record.committer,
        message=record.message,
        metarange_id=record.metarange_id,
        creation_date=record.creation_date,
        metadata=record.metadata,
        parents=record.parents,
    )
    return claimed == record.id


def _give_up(mirror: Mirror, row: MirrorCommit, state: str, reason: str, detail: str) -> str:
    log.error("%s: commit %s: %s", mirror.name, row.commit.sha[:8], detail)
    mirror.commits.filter(pk=row.pk).update(record=state, detail=detail)
    note_blocker(mirror, Blocker.Kind.RECORD, row.commit.sha, address=row.commit.sha, reason=reason, detail=detail)
    return state
