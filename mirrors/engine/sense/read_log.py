"""What is read of a source repository beside its branches: histories, tags, and whether it is still the same one."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import Future

from core.errors import Corrupt, LakeMirrorError, NoData, NotFound, RemoteFailure
from core.mirroring.log_reading import Reading, Walk
from core.ports import LakeFS
from core.types import Commit as CommitRecord
from core.types import Page
from deployment import config
from jobs.concurrent_calls import SideBySide
from jobs.lease import DutyOutcome, Lease
from mirrors.engine.sense.ingest import Spool
from mirrors.models import Repository

log = logging.getLogger("lakemirror.sense")


def identity_problem(repository: Repository, lakefs: LakeFS) -> str:
    """Why the source is not the repository that we pinned; "" when it is."""
    try:
        found = lakefs.get_repository(repository.name)
    except (NotFound, NoData) as error:
        return f"the source repository is gone: {error.message}"
    if (found.creation_date, found.storage_namespace) == (repository.creation_date, repository.storage_namespace):
        return ""
    return "a new repository stands at the source under the old one's name"


def freeze(repository: Repository, reason: str) -> DutyOutcome:
    """Delete and move nothing any more; only an operator's word goes on from here, and what was seen before is void."""
    Repository.objects.filter(pk=repository.pk).update(frozen_reason=reason, unrelated_since=None)
    return DutyOutcome(f"frozen: {reason}")


def list_tags(lakefs: LakeFS, repository: str, lease: Lease) -> dict[str, str]:
    """Tag name to commit id, all pages."""
    tags: dict[str, str] = {}
    after = ""
    while True:
        lease.renew()
        amount = config.current().commit_sensor.list_branch_page_size
        page = lakefs.list_tags(repository, after=after, amount=amount)
        tags.update((tag.name, tag.commit_id) for tag in page.results)
        after = page.next_after
        if not after:
            return tags


def read_histories(spool: Spool, lakefs: LakeFS, heads: Collection[str], lease: Lease) -> Mapping[str, LakeMirrorError]:
    """Read the records of all commits reachable from `heads` that are not stored yet.

    A head whose history the source can't give is named with the reason: it must not hold up the others.
    """
    unknown = set(heads) - spool.stored(heads)
    if not unknown:
        return {}
    reading = Reading(unknown - spool.known(unknown), spool.frontier())
    settings = config.current().commit_sensor
    with SideBySide[Walk, Page[CommitRecord]](settings.branches_scanner_concurrency_limit, lease) as calls:
        while True:
            while calls.free and (walk := reading.next()):
                options = {"after": walk.after, "amount": settings.log_commit_page_size}
                calls.start(walk, lakefs.log_commits, spool.repository.name, walk.start, **options)
            if calls.idle:
                return reading.errors
            for walk, answer in calls.answers():
                _take_page(spool, reading, walk, answer)


def _take_page(spool: Spool, reading: Reading, walk: Walk, answer: Future[Page[CommitRecord]]) -> None:
    try:
        page = answer.result()
    except (NotFound, NoData, Corrupt, RemoteFailure) as error:
        log.warning("%s: %s", spool.repository, error)
        reading.failed(walk, error)
        return
    fresh = {record.id: record.parents for record in spool.add(page.results)}
    known = spool.known({parent for parents in fresh.values() for parent in parents})
    reading.took(walk, [record.id for record in page.results], page.next_after, fresh, known)


def unreadable(spool: Spool, heads: Collection[str], errors: Mapping[str, LakeMirrorError]) -> dict[str, str]:
    """The heads that could not be stored, because something of their history is missing, and why."""
    missing = set(heads) - spool.stored(heads)
    if not (missing and any(error.retryable for error in errors.values())):
        spool.clear()  # what is left belongs to no head any more, or is wrong: it is read again, all of it
    other = next(iter(errors.values()), Corrupt("the commit records of the source name each other in a circle"))
    return {head: errors.get(head, other).message for head in missing}
