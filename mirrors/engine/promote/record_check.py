"""Are the records of commits still at the destination? Only what it says to another POST proves it.

Its lakeFS may have been restored from a backup, younger than our books: records and moves of some minutes are gone
there. A GET may be answered from a cache; POST answers 409 where the record is, and puts it where it is not.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Sequence

from django.db import transaction

from core.ports import LakeFS
from core.types import Commit as CommitRecord
from core.types import RecordOutcome
from db.chunks import chunks
from jobs import duties
from jobs.concurrent_calls import SideBySide
from jobs.lease import Lease
from mirrors.models import Mirror, MirrorCommit, MirrorDuty
from mirrors.transitions.ancestry import reset_ancestry
from mirrors.transitions.validity import lock_mirror

log = logging.getLogger("lakemirror.promote")

WINDOW = 1000
"""So many of the records that were accepted last are sent again where some may be lost; more, as long as some were."""
MOST_PROVEN = 200
AT_ONCE = 8


def prove_records(mirror: Mirror, lakefs: LakeFS, sha: str, shown: Collection[str], lease: Lease) -> bool:
    """Whether a commit's record is at the destination, and those that lie between it and what branches show there.

    One that was lost is there again by then, but others may be too: then nothing moves until all were sent again. An
    answer that nobody heard may have been the one that tells so: the same, and its error is raised.
    """
    records = [row.commit.record() for row in _unshown(mirror, sha, shown)]
    if not records:
        return True
    if not _begin(mirror, lease):
        return False
    created, failed = _send(mirror, lakefs, records, lease)
    if not created and failed is None:
        _end(mirror, lease)
        return True
    log.error("%s: the record of %s, or one below it, may have been lost in %s", mirror.name, sha[:8], mirror.region)
    doubt_records(mirror, lease)
    if failed is not None:
        raise failed
    return False


def _send(
    mirror: Mirror, lakefs: LakeFS, records: Sequence[CommitRecord], lease: Lease
) -> tuple[bool, Exception | None]:
    """Send all of them, whatever becomes of some: whether one was not there, and what went wrong first."""
    created, failed, ahead = False, None, deque(records)
    with SideBySide[str, RecordOutcome](AT_ONCE, lease) as calls:
        while ahead or not calls.idle:
            while ahead and calls.free:
                record = ahead.popleft()
                calls.start(record.id, lakefs.put_commit_record, mirror.name, record)
            for _, answer in calls.answers():
                try:
                    created = answer.result() is RecordOutcome.CREATED or created
                except Exception as error:
                    failed = failed or error
    return created, failed


def _begin(mirror: Mirror, lease: Lease) -> bool:
    """Note that records are being sent. False if it was noted already: a worker ended before it could tell what it
    heard, and what was lost is there again without anybody knowing."""
    with transaction.atomic():
        lock_mirror(mirror, lease, settings=False)
        started = Mirror.objects.filter(pk=mirror.pk, proving_records=False).update(proving_records=True)
    if not started:
        log.warning("%s: nobody heard how an earlier proof of records ended: they are sent again", mirror.name)
        doubt_records(mirror, lease)
    return bool(started)


def _end(mirror: Mirror, lease: Lease) -> None:
    with transaction.atomic():
        lease.lock()
        Mirror.objects.filter(pk=mirror.pk).update(proving_records=False)


def _unshown(mirror: Mirror, sha: str, shown: Collection[str]) -> list[MirrorCommit]:
    """The commit and its ancestors down to those that branches show, at most so many; parents come last."""
    unshown: list[MirrorCommit] = []
    seen = set(shown)
    ahead = [] if sha in seen else [sha]
    while ahead and len(unshown) < MOST_PROVEN:
        seen.update(ahead)
        of_source = mirror.commits.filter(commit__repository=mirror.source_id, commit__sha__in=ahead)
        rows = list(of_source.select_related("commit"))
        unshown += rows
        ahead = sorted({parent for row in rows for parent in row.commit.parents} - seen)
    return unshown[:MOST_PROVEN]


def doubt_records(mirror: Mirror, lease: Lease) -> None:
    """The destination may have lost records: those that it accepted last are sent again before anything moves."""
    with transaction.atomic():
        lock_mirror(mirror, lease, settings=False)
        newest = mirror.commits.filter(record=MirrorCommit.Record.ACCEPTED).order_by("-recorded_at", "-commit_id")
        _send_again(mirror, list(newest.values_list("pk", "commit_id")[:WINDOW]))
        Mirror.objects.filter(pk=mirror.pk).update(proving_records=False)


def doubt_older(mirror: Mirror, commit_id: int) -> None:
    """A record was lost: so may be older ones. Inside of a transaction that holds the mirror."""
    accepted = mirror.commits.filter(record=MirrorCommit.Record.ACCEPTED, commit_id__lt=commit_id)
    _send_again(mirror, list(accepted.order_by("-commit_id").values_list("pk", "commit_id")[:WINDOW]))


def _send_again(mirror: Mirror, rows: list[tuple[int, int]]) -> None:
    for some in chunks([pk for pk, _ in rows]):
        mirror.commits.filter(pk__in=some).update(record=MirrorCommit.Record.PENDING)
    if rows:
        reset_ancestry(mirror, [min(key for _, key in rows)])
    duties.wake(MirrorDuty.COPY_RECORDS, mirror.pk)
