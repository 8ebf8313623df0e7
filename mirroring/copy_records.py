"""Copying of commit records to the destination, parents first. Only 204 or 409 proves that a record is there.

A record is sent once all of its parents are accepted; those of which that is true are sent side by side.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from core.errors import Corrupt, Denied, LakeMirrorError, NotSent, RemoteFailure, Unreachable
from core.mirroring.commit_graph import Waiting
from core.ports import LakeFS
from core.types import Commit as CommitRecord
from core.types import RecordOutcome
from db import clock
from db.chunks import chunks
from deployment.wiring import clients
from graveler.identity import commit_id
from jobs import duties
from jobs.concurrent_calls import SideBySide
from jobs.lease import DutyOutcome, Lease
from mirroring.manage import require_pinned, stop
from mirroring.promote.resend_records import doubt_around, doubt_neighbours
from mirrors.models import Blocker, Mirror, MirrorCommit, MirrorDuty
from mirrors.services.priority import mark_needed
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.ancestry import mark_complete_ancestry
from mirrors.transitions.blockers import note_blocker
from mirrors.transitions.proven_heads import prove_heads, unprove_heads
from mirrors.transitions.validity import locked_mirror

log = logging.getLogger("lakemirror.copy")

BATCH = 500
AT_ONCE = 8
SETTLE_SECONDS = 5.0
SETTLE_SHARE = 20
"""Histories are put in order at a round's end and in between, so seldom that it takes a small share of the time."""
MOST_FAILURES = 5
"""So many records that the destination could not take end a round: then it is the destination."""


def copy_records(lease: Lease) -> DutyOutcome:
    """Copy the records that the destination has not accepted yet."""
    mirror = mirror_duties.subject_mirror(lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.source.frozen_reason:
        return DutyOutcome("nothing is copied while the mirror is not active")
    round_ = _Round(mirror, clients.lakefs(mirror.region), lease)
    for rows in _batches(mirror, lease):
        round_.copy_batch(rows)
        if rows[0].urgency or time.monotonic() > round_.settle_at:
            round_.settle()
    round_.settle()
    if round_.failed is not None:
        raise round_.failed
    return DutyOutcome(f"{round_.copied} of {round_.total} records accepted")


def _batches(mirror: Mirror, lease: Lease) -> Iterator[list[MirrorCommit]]:
    """The records to copy, parents first; while there are urgent ones, these and what they need before all others.

    After a round that failed the next ones begin elsewhere, every other one of them without the urgent ones: what fails
    may fill a batch.
    """
    begin = last = _beginning(mirror, lease) if lease.duty.failures else 0
    urgent, urgent_first, from_the_first = 0, not (lease.duty.failures and lease.attempt % 2), begin == 0
    while True:
        mark_needed(mirror, lease)
        if urgent_first and (rows := list(mirror.commits.to_copy().urgent().filter(commit_id__gt=urgent)[:BATCH])):
            urgent = rows[-1].commit_id
        elif rows := list(mirror.commits.to_copy().filter(commit_id__gt=last)[:BATCH]):
            last = rows[-1].commit_id
        elif not from_the_first:
            last, from_the_first = 0, True
            continue
        else:
            return
        yield rows


def _beginning(mirror: Mirror, lease: Lease) -> int:
    """The key after which this round begins: another batch's in each, in turn."""
    keys = mirror.commits.to_copy().values_list("commit_id", flat=True)
    first = lease.attempt // 2 * BATCH % max(1, keys.count())
    return keys[first - 1] if first else 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """What becomes of a record, and why if it is not accepted."""

    record: str
    reason: str = ""
    detail: str = ""
    created: bool = False

    @property
    def accepted(self) -> bool:
        return self.record == MirrorCommit.Record.ACCEPTED


class _Round:
    """One round of copying. `bad` are commits that could not be copied: their descendants have to wait."""

    def __init__(self, mirror: Mirror, lakefs: LakeFS, lease: Lease) -> None:
        self.mirror, self.lakefs, self.lease = mirror, lakefs, lease
        given_up = mirror.commits.filter(record__in=["refused", "tampered"])
        self.bad = set(given_up.values_list("commit__sha", flat=True))
        self.total = self.copied = self.failures = 0
        self.failed: LakeMirrorError | None = None
        self.settle_at = time.monotonic() + SETTLE_SECONDS

    def copy_batch(self, rows: list[MirrorCommit]) -> None:
        """Copy records; those that were accepted are written down whatever becomes of the rest."""
        rows = [row for row in rows if row.commit.sha not in self.bad]  # once in a round
        self.total += len(rows)
        early = self._pending_parents(rows)
        accepted: list[tuple[MirrorCommit, bool]] = []
        require_pinned(self.mirror, self.lakefs)
        self._note_resent(rows)
        calls = SideBySide[MirrorCommit, _Answer](AT_ONCE, self.lease)
        try:
            with calls:
                self._send(rows, early, calls, accepted)
        finally:
            accepted += [(row, answer.created) for row, answer in calls.rest() if answer.accepted]
            self._write_down(accepted)

    def _pending_parents(self, rows: list[MirrorCommit]) -> set[str]:
        """Parents of a batch that come before it and are to be copied yet: only in a round that began elsewhere."""
        before = {parent for row in rows for parent in row.commit.parents} - {row.commit.sha for row in rows}
        asked = sorted(before) if self.lease.duty.failures else ()
        to_copy = self.mirror.commits.to_copy().values_list("commit__sha", flat=True)
        return {sha for some in chunks(asked) for sha in to_copy.filter(commit__sha__in=some)}

    def _note_resent(self, rows: list[MirrorCommit]) -> None:
        """Before they are sent: a worker that ends then has heard in vain that a record was lost, for it is there by
        then, and the next worker hears that it always was."""
        again = [row.pk for row in rows if row.recorded_at is not None]
        if again:
            with self.lease.transaction():
                self.mirror.commits.filter(pk__in=again).update(resent=True)

    def settle(self) -> None:
        """Put histories in order: that looks at every commit that waits."""
        began = time.monotonic()
        if mark_complete_ancestry(self.mirror):
            prove_heads(self.mirror)
            duties.wake(MirrorDuty.PROMOTE, self.mirror.pk)
        ended = time.monotonic()
        self.settle_at = ended + max(SETTLE_SECONDS, SETTLE_SHARE * (ended - began))

    def _send(
        self,
        rows: list[MirrorCommit],
        early: set[str],
        calls: SideBySide[MirrorCommit, _Answer],
        accepted: list[tuple[MirrorCommit, bool]],
    ) -> None:
        """Send each record once its parents are settled; those of other batches are, but for those that this one is too
        `early` for: what descends from them waits for the end of the round."""
        by_sha = {row.commit.sha: row for row in rows}
        waiting = Waiting()
        ready = deque(row for row in rows if waiting.add(row.commit.sha, by_sha.keys() & set(row.commit.parents)))
        ready.rotate(-MOST_FAILURES * self.lease.attempt)  # each round begins with others: the first ones may all fail
        while ready or not calls.idle:
            while ready and calls.free:
                row = ready.popleft()
                if not early.isdisjoint(row.commit.parents):
                    early.add(row.commit.sha)
                    ready.extend(by_sha[sha] for sha in waiting.settle(row.commit.sha))
                elif self.bad.isdisjoint(row.commit.parents):
                    calls.start(row, _copy_record, self.lakefs, self.mirror.name, row.commit.record())
                else:
                    self.bad.add(row.commit.sha)
                    ready.extend(by_sha[sha] for sha in waiting.settle(row.commit.sha))
            for row, answer in calls.answers():
                if self._is_accepted(row, answer):
                    accepted.append((row, answer.result().created))
                else:
                    self.bad.add(row.commit.sha)
                ready.extend(by_sha[sha] for sha in waiting.settle(row.commit.sha))

    def _is_accepted(self, row: MirrorCommit, answer: Future[_Answer]) -> bool:
        """A record that the destination can't take (500, silence, a firewall's 403) delays only its descendants, unless
        there are many."""
        try:
            result = answer.result()
        except (RemoteFailure, Unreachable, Denied) as error:
            self.failed, self.failures = error, self.failures + 1
            if self.failures == MOST_FAILURES or isinstance(error, NotSent):
                raise
            return False
        if not result.accepted:
            self._give_up(row, result)
        return result.accepted

    def _give_up(self, row: MirrorCommit, answer: _Answer) -> None:
        """What another repository of the same name has answered in the meantime says nothing of this one."""
        require_pinned(self.mirror, self.lakefs)
        sha, reason, detail = row.commit.sha, answer.reason, answer.detail
        with locked_mirror(self.mirror, self.lease):
            if answer.record == MirrorCommit.Record.TAMPERED:
                stop(self.mirror, reason, detail)
            self.mirror.commits.filter(pk=row.pk).update(record=answer.record, detail=detail)
            unprove_heads(self.mirror)
            note_blocker(self.mirror, Blocker.Kind.RECORD, sha, address=sha, reason=reason, detail=detail)
        log.error("%s: commit %s: %s", self.mirror.name, sha[:8], detail)

    def _write_down(self, accepted: list[tuple[MirrorCommit, bool]]) -> None:
        """What another repository of the same name has taken in the meantime proves nothing.

        One that had been accepted before, and was not there, was lost: then others may be too. So it may have been if
        nobody heard the answer when it was sent again before: then its neighbours are asked.
        """
        if not accepted:
            return
        require_pinned(self.mirror, self.lakefs)
        keys = [row.pk for row, _ in accepted]
        lost = [row.commit_id for row, created in accepted if row.recorded_at is not None and created]
        unheard = [row.commit_id for row, _ in accepted if row.resent]
        with locked_mirror(self.mirror, self.lease, settings=False):
            pinned = self.mirror.pinned_creation_date
            rows = self.mirror.commits.filter(pk__in=keys, mirror__pinned_creation_date=pinned)
            rows.update(record=MirrorCommit.Record.ACCEPTED, recorded_at=clock.now(), resent=False)
            if rows.promotable().exists():  # their data was quicker: nothing but their record kept them back
                prove_heads(self.mirror)
                duties.wake(MirrorDuty.PROMOTE, self.mirror.pk)
            if lost:
                doubt_around(self.mirror, min(lost))
            if unheard:
                doubt_neighbours(self.mirror, unheard)
        self.copied += len(accepted)


def _copy_record(lakefs: LakeFS, repository: str, record: CommitRecord) -> _Answer:
    """Runs side by side with others: the network only."""
    try:
        outcome = lakefs.put_commit_record(repository, record)
    except Corrupt as error:
        if gives_its_id(record):
            raise RemoteFailure(error.message, hint="The record is valid; it is retried") from error
        return _Answer(MirrorCommit.Record.REFUSED, "source-corrupt", error.message)
    if outcome is RecordOutcome.CREATED:
        return _Answer(MirrorCommit.Record.ACCEPTED, created=True)
    existing = lakefs.get_commit(repository, record.id)
    if (existing.generation, existing.version) == (record.generation, record.version):
        return _Answer(MirrorCommit.Record.ACCEPTED)
    detail = (
        f"the destination has a record of {record.id[:8]} with generation {existing.generation} "
        f"and version {existing.version}; the source's are {record.generation} and {record.version}"
    )
    return _Answer(MirrorCommit.Record.TAMPERED, "tampered-record", detail)


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
