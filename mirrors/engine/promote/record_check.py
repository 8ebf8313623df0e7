"""Are the records of commits still at the destination? Only what it says to another POST proves it.

Its lakeFS may have been restored from a backup, younger than our books: records and moves of some minutes are gone
there, and what was copied since then is there. A GET may be answered from a cache; POST answers 409 where the record
is, and puts it where it is not.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Sequence

from django.db import transaction

from core.ports import LakeFS
from core.types import RecordOutcome
from db.chunks import chunks
from jobs import duties
from jobs.concurrent_calls import SideBySide
from jobs.lease import Lease
from mirrors.models import Mirror, MirrorCommit, MirrorDuty
from mirrors.queries.ancestors import ShownHistory
from mirrors.transitions.ancestry import reset_ancestry
from mirrors.transitions.validity import lock_mirror

log = logging.getLogger("lakemirror.promote")

WINDOW = 1000
"""So many of the records that were accepted last are sent again where some may be lost; more, as long as some were."""
AT_ONCE = 8
TRIES = 8
"""So often a record is sent in one proof before its missing answer ends it."""
MOST_FAILURES = 5
"""After so many answers in a row that did not come it is the destination, and nothing else is asked of it."""
NEIGHBOURS = 2
"""So many records on either side of one whose answer nobody heard are sent again. A backup is a point in time: where
that one was lost with others, one of these was lost too."""


def prove_records(mirror: Mirror, lakefs: LakeFS, sha: str, shown: ShownHistory, lease: Lease) -> bool:
    """Whether a commit's record is at the destination, and those of all its ancestors that no branch there shows.

    One that was lost is there again by then, but others may be too: then nothing moves until all were sent again. An
    answer that nobody heard may have been the one that tells so: the neighbours of that record are sent again.
    """
    keys = shown.beyond(sha)
    if not keys:
        return True
    if not _begin(mirror, lease):
        return False
    for some in chunks(keys):
        if created := _created(mirror, lakefs, some, lease):
            log.error("%s: records below %s were lost in %s", mirror.name, sha[:8], mirror.region)
            doubt_records(mirror, lease, since=min(created))
            return False
    _end(mirror, lease)
    shown.add(keys)
    return True


def _created(mirror: Mirror, lakefs: LakeFS, keys: Sequence[int], lease: Lease) -> set[int]:
    """Those of some records that were not there, of those that were sent until it was clear. Raises what kept the
    destination from answering, if it goes on."""
    unheard, tried = set(keys), 0
    while unheard:
        created, failed = _send(mirror, lakefs, unheard | (neighbours(mirror, unheard) if tried else set()), lease)
        unheard, tried = set(failed), tried + 1
        if created:
            return created
        if unheard and tried == TRIES:
            raise next(iter(failed.values()))
    return set()


def _send(mirror: Mirror, lakefs: LakeFS, keys: Collection[int], lease: Lease) -> tuple[set[int], dict[int, Exception]]:
    """Send records, parents first, whatever becomes of some: those that were not there, and what went wrong. Raises
    it if so many in a row go wrong that it is the destination."""
    created, failed, in_a_row = set[int](), dict[int, Exception](), 0
    rows = mirror.commits.filter(commit__repository=mirror.source_id, commit_id__in=keys).select_related("commit")
    ahead = deque(rows.order_by("commit_id"))
    with SideBySide[int, RecordOutcome](AT_ONCE, lease) as calls:
        while (ahead and in_a_row < MOST_FAILURES) or not calls.idle:
            while ahead and calls.free and in_a_row < MOST_FAILURES:
                row = ahead.popleft()
                calls.start(row.commit_id, lakefs.put_commit_record, mirror.name, row.commit.record())
            for key, answer in calls.answers():
                try:
                    if answer.result() is RecordOutcome.CREATED:
                        created.add(key)
                    in_a_row = 0
                except Exception as error:
                    failed[key], in_a_row = error, in_a_row + 1
    if ahead and not created:
        raise next(iter(failed.values()))
    return created, failed


def neighbours(mirror: Mirror, keys: Collection[int]) -> set[int]:
    """Keys of the commits before and after each of some whose records the destination has accepted."""
    accepted, found = mirror.commits.filter(record=MirrorCommit.Record.ACCEPTED), set[int]()
    for key in keys:
        older = accepted.filter(commit_id__lt=key).order_by("-commit_id").values_list("commit_id", flat=True)
        newer = accepted.filter(commit_id__gt=key).order_by("commit_id").values_list("commit_id", flat=True)
        found.update(older[:NEIGHBOURS], newer[:NEIGHBOURS])
    return found


def _begin(mirror: Mirror, lease: Lease) -> bool:
    """Note that records are being sent. False if it was noted already: a worker ended before it could tell what it
    heard, and what was lost is there again without anybody knowing."""
    with transaction.atomic():
        lock_mirror(mirror, lease, settings=False)
        begun = Mirror.objects.filter(pk=mirror.pk, proving_records=False).update(proving_records=True)
    if not begun:
        log.warning("%s: nobody heard how an earlier proof of records ended: they are sent again", mirror.name)
        doubt_records(mirror, lease)
    return bool(begun)


def _end(mirror: Mirror, lease: Lease) -> None:
    with transaction.atomic():
        lease.lock()
        Mirror.objects.filter(pk=mirror.pk).update(proving_records=False)


def doubt_records(mirror: Mirror, lease: Lease, *, since: int | None = None) -> None:
    """The destination may have lost records: those that it accepted last are sent again before anything moves, and if
    that of the commit with the key `since` was lost, those around it."""
    with transaction.atomic():
        lock_mirror(mirror, lease, settings=False)
        newest = mirror.commits.filter(record=MirrorCommit.Record.ACCEPTED).order_by("-recorded_at", "-commit_id")
        _send_again(mirror, newest.values_list("commit_id", flat=True)[:WINDOW])
        if since is not None:
            doubt_around(mirror, since)
        Mirror.objects.filter(pk=mirror.pk).update(proving_records=False)


def doubt_around(mirror: Mirror, key: int) -> None:
    """A record was lost: so may be older ones, and any that was accepted until the destination was restored. Inside of
    a transaction that holds the mirror."""
    accepted = mirror.commits.filter(record=MirrorCommit.Record.ACCEPTED).values_list("commit_id", flat=True)
    _send_again(mirror, accepted.filter(commit_id__lt=key).order_by("-commit_id")[:WINDOW])
    _send_again(mirror, accepted.filter(commit_id__gt=key))


def doubt_neighbours(mirror: Mirror, keys: Collection[int]) -> None:
    """Nobody heard whether these records were lost: their neighbours will tell. Inside of a transaction that holds the
    mirror."""
    _send_again(mirror, neighbours(mirror, keys))


def _send_again(mirror: Mirror, keys: Iterable[int]) -> None:
    keys = sorted(keys)
    for some in chunks(keys):
        mirror.commits.filter(commit_id__in=some).update(record=MirrorCommit.Record.PENDING)
    reset_ancestry(mirror, keys[:1])
    duties.wake(MirrorDuty.COPY_RECORDS, mirror.pk)
