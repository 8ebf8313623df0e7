"""What is read of a source repository: which branches and tags it has, and their histories."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress

from core.errors import Corrupt, LakeMirrorError, NoData, NotFound, RemoteFailure
from core.listing import branch_heads, tag_commits
from core.mirroring.log_reading import Reading, Walk, in_turn
from core.ports import LakeFS
from core.types import Commit as CommitRecord
from core.types import Page
from deployment import config
from jobs.concurrent_calls import SideBySide
from jobs.lease import Lease
from mirroring.sense.commit_spool import Spool

log = logging.getLogger("lakemirror.sense")

REFUSED = 5
"""After so many logs in a row without an answer of lakeFS no other one is asked for in that look."""


def list_heads(lakefs: LakeFS, repository: str, lease: Lease, *, hidden: bool = True) -> dict[str, str]:
    """Branch name to commit id, all pages; without hidden branches if so told."""
    amount = config.current().commit_sensor.list_branch_page_size
    return branch_heads(lakefs, repository, amount=amount, hidden=hidden, before_page=lease.renew)


def list_tags(lakefs: LakeFS, repository: str, lease: Lease) -> dict[str, str]:
    """Tag name to commit id, all pages."""
    amount = config.current().commit_sensor.list_branch_page_size
    return tag_commits(lakefs, repository, amount=amount, before_page=lease.renew)


def read_histories(
    spool: Spool, lakefs: LakeFS, heads: Collection[str], lease: Lease, waiting: Sequence[str]
) -> Mapping[str, LakeMirrorError]:
    """Read the records of all commits reachable from `heads` that are not stored yet, and of `waiting`: what an earlier
    reading did not find, which comes after all others and begins at another place in each look.

    A head whose history the source can't give is named with the reason: it must not hold up the others.
    """
    unknown = set(heads) - spool.stored(heads)
    if not unknown:
        return {}
    first = unknown - spool.known(unknown)
    later = [commit for commit in waiting if commit in first or commit not in heads]
    reading = Reading(first, in_turn(later, lease.attempt))
    settings = config.current().commit_sensor
    answers = _Answers(spool, lakefs, reading)
    with SideBySide[Walk, Page[CommitRecord]](settings.branches_scanner_concurrency_limit, lease) as calls:
        while True:
            while calls.free and (walk := reading.next()):
                options = {"after": walk.after, "amount": settings.log_commit_page_size}
                calls.start(walk, lakefs.log_commits, spool.repository.name, walk.start, **options)
            if calls.idle:
                return reading.errors
            for walk, answer in calls.answers():
                answers.take(walk, answer)


def unread_before(changed: Mapping[str, str], unread: Collection[str]) -> list[str]:
    """The heads, each once, of branches or tags that could not be read in the look before, wherever they have moved to:
    one that moves in each look must not come before all others in each."""
    return list(dict.fromkeys(changed[name] for name in sorted(unread) if name in changed))


class _Answers:
    """Takes what the logs answer. An error at one of them is the matter of whoever needs that one, whatever its kind,
    as long as the source answers at all."""

    def __init__(self, spool: Spool, lakefs: LakeFS, reading: Reading) -> None:
        self._spool, self._lakefs, self._reading = spool, lakefs, reading
        self._refused = 0
        """How many logs in a row there was no answer to, or none from lakeFS itself."""

    def take(self, walk: Walk, answer: Future[Page[CommitRecord]]) -> None:
        """One page, or why it could not be read. Raises what a source that is away as a whole raises."""
        spool, reading = self._spool, self._reading
        try:
            page = answer.result()
        except LakeMirrorError as error:
            log.warning("%s: %s", spool.repository, error)
            reading.failed(walk, error)
            if not isinstance(error, NotFound | NoData | Corrupt | RemoteFailure):
                self._count(error)
            return
        self._refused = 0
        fresh = {record.id: record.parents for record in spool.add(page.results)}
        known = spool.known({parent for parents in fresh.values() for parent in parents})
        reading.took(walk, [record.id for record in page.results], page.next_after, fresh, known)

    def _count(self, error: LakeMirrorError) -> None:
        """Each such error may have cost a time-out: nobody pays that for a thousand branches."""
        if not self._refused:
            with suppress(NotFound, NoData):  # that is an answer: whose the source is now is asked after the logs
                self._lakefs.get_repository(self._spool.repository.name)
        self._refused += 1
        if self._refused >= REFUSED:
            self._reading.give_up(error)


def unread_heads(
    spool: Spool, heads: Collection[str], errors: Mapping[str, LakeMirrorError]
) -> dict[str, list[LakeMirrorError]]:
    """The heads that could not be stored, because something of their history is missing, and why: what was said of its
    own log, or of those of what its history lacks; else what was said of others', for a log is read for several heads.
    """
    circle = [Corrupt("the commit records of the source name each other in a circle")]
    causes = {}
    for head, history in spool.histories(set(heads) - spool.stored(heads)):
        lacking = spool.lacking(history) if history else {head}
        own = [errors[commit] for commit in (head, *sorted(lacking)) if commit in errors]
        causes[head] = own or (list(errors.values()) if lacking else circle) or circle
    return causes


def forget_wrong(
    spool: Spool,
    unread: Mapping[str, Collection[LakeMirrorError]],
    errors: Mapping[str, LakeMirrorError],
    wanted: Iterable[str] = (),
) -> None:
    """Forget what was read and not placed, but for the histories of which the next look may find the rest: those of
    `wanted`, and of the `unread` heads that wait for what may still come. All else is wrong, or belongs to no head any
    more, and is read again; so is what names a parent that the source does not have, whoever waits for it."""
    if spool.repository.unplaced.exists():
        worth = {head for head, causes in unread.items() if any(error.retryable for error in causes)}
        spool.keep_below({*worth, *wanted}, {commit for commit, error in errors.items() if not error.retryable})
