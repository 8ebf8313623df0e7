"""Are the records of commits still at the destination? Only what it says to another POST proves it.

Its lakeFS may have been restored from a backup, younger than our books: records and moves of some minutes are gone
there, and what was copied since then is there. A GET may be answered from a cache; POST answers 409 where the record
is, and puts it where it is not.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from core.ports import LakeFS
from core.types import RecordOutcome
from db.chunks import chunks
from jobs import duties
from jobs.concurrent_calls import SideBySide
from jobs.lease import Lease
from mirrors.models import Mirror, MirrorCommit, MirrorDuty
from mirrors.queries.ancestors import ShownHistory
from mirrors.transitions.ancestry import mark_complete_ancestry, reset_ancestry
from mirrors.transitions.proven_heads import prove_heads
from mirrors.transitions.validity import locked_mirror

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


@dataclass(frozen=True, slots=True)
class _Answers:
    """What became of records that were sent: those that were `created`, for they were not there; those of which nobody
    heard, with what went wrong; and those that were not sent any more, for the destination did not answer."""

    created: set[int]
    unheard: dict[int, Exception]
    unsent: set[int]

    def raise_unheard(self) -> None:
        """Raise what kept the destination from answering, if anything did."""
        for error in self.unheard.values():
            raise error


def prove_records(mirror: Mirror, lakefs: LakeFS, sha: str, shown: ShownHistory, lease: Lease) -> bool:
    """Whether a commit's record is at the destination, and those of all its ancestors that no branch there shows.

    One that was lost is there again by then, but others may be too: then nothing moves until all were sent again.
    Raises what kept some from being answered: those alone, and what is built on them, wait until they are.
    """
    keys = shown.beyond(sha)
    if not keys:
        return True
    if not _begin(mirror, lease):
        log.warning("%s: nobody heard how an earlier proof of records ended: they are sent again", mirror.name)
        doubt_records(mirror, lease)
        return False
    answers = _prove(mirror, lakefs, keys, lease)
    if answers.created:
        return False
    answers.raise_unheard()
    shown.add(keys)
    return True


def prove_newest(mirror: Mirror, lakefs: LakeFS, lease: Lease) -> None:
    """The destination may have been restored, or a worker ended before it could tell what it heard: are the records
    that were accepted last still there? If not, nothing moves until all were sent again; if so, nothing waits for them.

    Raises what kept the destination from answering, if it gives no answer to anything.
    """
    _begin(mirror, lease)
    answers = _prove(mirror, lakefs, sorted(_newest(mirror)), lease, all_of_them=True)
    if answers.unsent and not answers.created:
        answers.raise_unheard()


def prove_after_404(mirror: Mirror, lakefs: LakeFS, sha: str, lease: Lease) -> None:
    """The destination does not know a commit that it had accepted: is its record there? Only that tells whether records
    were lost, or the call alone meets this answer."""
    if not _begin(mirror, lease):
        doubt_records(mirror, lease)
        return
    rows = mirror.commits.filter(commit__repository=mirror.source_id, commit__sha=sha)
    _prove(mirror, lakefs, rows.values_list("commit_id", flat=True), lease)


def _prove(mirror: Mirror, lakefs: LakeFS, keys: Iterable[int], lease: Lease, *, all_of_them: bool = False) -> _Answers:
    """Send records, and write down what follows from the answers. What was noted before (`_begin`) stays if a worker
    ends here, and if `all_of_them` had to be sent and were not."""
    unheard, answers = dict[int, Exception](), _Answers(set(), {}, set())
    for some in chunks(list(keys)):
        answers = _ask(mirror, lakefs, some, lease)
        unheard |= answers.unheard
        if answers.created or answers.unsent:
            break
    answers = replace(answers, unheard=unheard)
    if answers.created:
        log.error("%s: records were lost in %s", mirror.name, mirror.region)
    _conclude(mirror, answers, lease, over=not (all_of_them and answers.unsent))
    return answers


def _ask(mirror: Mirror, lakefs: LakeFS, keys: Collection[int], lease: Lease) -> _Answers:
    """Send records until it is clear whether one was not there. An answer that nobody heard may have been the one that
    tells so: from the second time on the neighbours of such a record are sent with it."""
    unheard, tried = dict[int, Exception](), 0
    while True:
        answers = _send(mirror, lakefs, keys, lease)
        tried += 1
        unheard = {key: error for key, error in unheard.items() if key in answers.unsent} | answers.unheard
        if answers.created or answers.unsent or not unheard or tried == TRIES:
            return replace(answers, unheard=unheard)
        keys = unheard.keys() | neighbours(mirror, unheard.keys())


def _send(mirror: Mirror, lakefs: LakeFS, keys: Collection[int], lease: Lease) -> _Answers:
    """Send records once, parents first, whatever becomes of some; no more of them if so many in a row go wrong that it
    is the destination."""
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
    return _Answers(created, failed, {row.commit_id for row in ahead})


def neighbours(mirror: Mirror, keys: Collection[int]) -> set[int]:
    """Keys of the commits before and after each of some whose records the destination has accepted."""
    accepted, found = mirror.commits.filter(record=MirrorCommit.Record.ACCEPTED), set[int]()
    for key in keys:
        older = accepted.filter(commit_id__lt=key).order_by("-commit_id").values_list("commit_id", flat=True)
        newer = accepted.filter(commit_id__gt=key).order_by("commit_id").values_list("commit_id", flat=True)
        found.update(older[:NEIGHBOURS], newer[:NEIGHBOURS])
    return found


def _begin(mirror: Mirror, lease: Lease) -> bool:
    """Note that records are being sent: if the worker ends before it can tell what it heard, what was lost is there
    again without anybody knowing. False if that was noted already."""
    with locked_mirror(mirror, lease, settings=False):
        return Mirror.objects.filter(pk=mirror.pk, proving_records=False).update(proving_records=True) > 0


def _conclude(mirror: Mirror, answers: _Answers, lease: Lease, *, over: bool) -> None:
    """Where one was lost, others may be too. One of which nobody heard is sent again by the copier; what is not built
    on it is in order all the same, and goes on."""
    unheard = sorted(answers.unheard)
    with locked_mirror(mirror, lease, settings=False):
        if answers.created:
            _send_again(mirror, _newest(mirror))
            doubt_around(mirror, min(answers.created))
        _send_again(mirror, unheard)
        for some in chunks(unheard):
            mirror.commits.filter(commit_id__in=some, record=MirrorCommit.Record.PENDING).update(resent=True)
        Mirror.objects.filter(pk=mirror.pk).update(proving_records=not (over or answers.created))
    if unheard and not answers.created and mark_complete_ancestry(mirror):
        prove_heads(mirror)


def doubt_records(mirror: Mirror, lease: Lease) -> None:
    """The destination may have lost records: those that it accepted last are sent again before anything moves."""
    with locked_mirror(mirror, lease, settings=False):
        _send_again(mirror, _newest(mirror))
        Mirror.objects.filter(pk=mirror.pk).update(proving_records=False)


def _newest(mirror: Mirror) -> list[int]:
    newest = mirror.commits.filter(record=MirrorCommit.Record.ACCEPTED).order_by("-recorded_at", "-commit_id")
    return list(newest.values_list("commit_id", flat=True)[:WINDOW])


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
    if not keys:
        return
    for some in chunks(keys):
        rows = mirror.commits.filter(commit_id__in=some, record=MirrorCommit.Record.ACCEPTED)
        rows.update(record=MirrorCommit.Record.PENDING)
    reset_ancestry(mirror, keys[:1])
    duties.wake(MirrorDuty.COPY_RECORDS, mirror.pk)
