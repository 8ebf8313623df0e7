"""The commit sensor: what do the source's branches point at, and by which history?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from django.db import transaction

from core import sensing
from core.errors import Corrupt, Fenced, NoData, NotFound, RemoteFailure
from core.graph import missing_parents, parents_first
from core.ports import LakeFS
from core.types import Commit as CommitRecord
from lakemirror_site import config, wiring
from mirrors import duties
from mirrors.duties import Lease, Outcome
from mirrors.loops.manage import add_commits
from mirrors.models import Candidate, Commit, Mirror, Repository, SourceBranch

log = logging.getLogger("lakemirror.sense")


def sense(lease: Lease) -> Outcome:
    """One look at one source repository."""
    repository = duties.subject_repository(lease)
    if repository.frozen_reason:
        return Outcome(f"frozen: {repository.frozen_reason}")
    lakefs = wiring.lakefs(repository.region)
    before = datetime.now(UTC)
    try:
        heads = list_heads(lakefs, repository.name, lease)
    except (NotFound, NoData):
        if problem := identity_problem(repository, lakefs):
            return freeze(repository, problem)
        raise
    if not sensing.is_valid_look(heads, repository.default_branch):
        return _note_error(repository, f"the source gave no branch {repository.default_branch}: not taken for a look")
    return _take_look(repository, lakefs, heads, before, lease)


def list_heads(lakefs: LakeFS, repository: str, lease: Lease) -> dict[str, str]:
    """Branch name to commit id, all pages."""
    heads: dict[str, str] = {}
    after = ""
    while True:
        lease.beat()
        page = lakefs.list_branches(
            repository, after=after, amount=config.current().commit_sensor.list_branch_page_size
        )
        heads.update((branch.name, branch.commit_id) for branch in page.results)
        after = page.next_after
        if not after:
            return heads


def _take_look(repository: Repository, lakefs: LakeFS, heads: dict[str, str], at: datetime, lease: Lease) -> Outcome:
    last = _last_heads(repository)
    changed = sensing.changed_branches(heads, _sensed_heads(repository))
    records, unreadable = _new_records(repository, lakefs, set(changed.values()), lease)
    readable = {name: head for name, head in changed.items() if head not in unreadable}
    if changed and (problem := identity_problem(repository, lakefs)):
        return freeze(repository, problem)
    with transaction.atomic():
        Repository.objects.select_for_update().get(pk=repository.pk)
        lease.hold()
        if _last_heads(repository) != last:
            raise Fenced(f"another look at {repository.name} came between")
        _store_records(repository, records, at)
        _store_moves(repository, readable, last, at)
        went = _note_missing(repository, set(last) - heads.keys(), set(heads), at)
        error = _name_unreadable(changed, unreadable)
        Repository.objects.filter(pk=repository.pk).update(looked_at=at, look_error=error)
        _wake_mirrors(repository, bool(records), bool(readable) or went)
    return Outcome(error or f"{len(heads)} branches, {len(changed)} moved, {len(records)} new commits")


def _last_heads(repository: Repository) -> dict[str, str]:
    return dict(repository.branches.filter(gone_at=None).values_list("name", "head"))


def _sensed_heads(repository: Repository) -> dict[str, str]:
    """Without the branches that only a mirror's certificate tells of: nothing is known of their candidates yet."""
    return dict(repository.branches.filter(gone_at=None, position__gte=0).values_list("name", "head"))


def _name_unreadable(changed: Mapping[str, str], unreadable: Mapping[str, str]) -> str:
    """One sentence about branches whose history can't be read; the others went on without them."""
    names = [name for name, head in changed.items() if head in unreadable]
    return f"the history of {', '.join(names[:5])} can't be read: {unreadable[changed[names[0]]]}" if names else ""


def identity_problem(repository: Repository, lakefs: LakeFS) -> str:
    """Why the source is not the repository that we pinned; "" when it is."""
    try:
        found = lakefs.get_repository(repository.name)
    except (NotFound, NoData) as error:
        return f"the source repository is gone: {error.message}"
    if (found.creation_date, found.storage_namespace) == (repository.creation_date, repository.storage_namespace):
        return ""
    return "a new repository stands at the source under the old one's name"


def freeze(repository: Repository, reason: str) -> Outcome:
    """Delete and move nothing any more; only an operator's word goes on from here."""
    Repository.objects.filter(pk=repository.pk).update(frozen_reason=reason)
    return Outcome(f"frozen: {reason}")


def _note_error(repository: Repository, error: str) -> Outcome:
    Repository.objects.filter(pk=repository.pk).update(look_error=error)
    return Outcome(error)


# History


def _new_records(
    repository: Repository, lakefs: LakeFS, heads: set[str], lease: Lease
) -> tuple[list[CommitRecord], dict[str, str]]:
    """Records of all commits reachable from `heads` that are not stored yet, parents first, and the heads left out.

    A head whose history the source can't give is left out with the reason: it must not hold up the others.
    """
    collected: dict[str, CommitRecord] = {}
    known: set[str] = set()
    unreadable: dict[str, str] = {}
    for head in sorted(_unknown(repository, heads, known)):
        try:
            found = _collect_history(repository, lakefs, head, known, lease)
        except (NotFound, NoData, Corrupt, RemoteFailure) as error:
            log.warning("%s: %s", repository, error)
            unreadable[head] = error.message
        else:
            collected.update(found)
            known.update(found)
    return parents_first(collected, known.__contains__), unreadable


def _collect_history(
    repository: Repository, lakefs: LakeFS, head: str, known: set[str], lease: Lease
) -> dict[str, CommitRecord]:
    """All commits reachable from a head that are not known yet. Raises Corrupt when the source's log has gaps."""
    collected: dict[str, CommitRecord] = {}
    wanted = {head} - known
    while wanted:
        commit_id = wanted.pop()
        _page_history(lakefs, repository, commit_id, collected, known, lease)
        if commit_id not in collected:
            raise Corrupt(f"the log of commit {commit_id[:8]} does not hold that commit")
        wanted = _unknown(repository, missing_parents(collected, known), known)
    parents_first(collected, known.__contains__)
    return collected


def _page_history(
    lakefs: LakeFS,
    repository: Repository,
    commit_id: str,
    collected: dict[str, CommitRecord],
    known: set[str],
    lease: Lease,
) -> None:
    """Page the log of a commit until every parent is known: the order of the log itself proves nothing."""
    after = ""
    while True:
        lease.beat()
        size = config.current().commit_sensor.log_commit_page_size
        page = lakefs.log_commits(repository.name, commit_id, after=after, amount=size)
        fresh = {commit.id: commit for commit in page.results if commit.id not in collected}
        collected.update((sha, commit) for sha, commit in fresh.items() if sha in _unknown(repository, fresh, known))
        after = page.next_after
        if not after or not _unknown(repository, missing_parents(collected, known), known):
            return


def _unknown(repository: Repository, shas: Mapping[str, object] | set[str], known: set[str]) -> set[str]:
    """Those of `shas` that are not in the database; the others are added to `known`."""
    asked = list(set(shas) - known)
    for start in range(0, len(asked), 500):
        found = repository.commits.filter(sha__in=asked[start : start + 500]).values_list("sha", flat=True)
        known.update(found)
    return set(asked) - known


def _store_records(repository: Repository, records: list[CommitRecord], at: datetime) -> None:
    rows = [
        Commit(
            repository=repository,
            sha=record.id,
            parents=list(record.parents),
            committer=record.committer,
            message=record.message,
            creation_date=record.creation_date,
            metarange_id=record.metarange_id,
            metadata=dict(record.metadata),
            generation=record.generation,
            version=record.version,
            seen_at=at,
        )
        for record in records
    ]
    Commit.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
    if rows:
        for mirror in _mirrors(repository):
            add_commits(mirror)


def _mirrors(repository: Repository) -> list[Mirror]:
    states = (Mirror.State.ACTIVE, Mirror.State.STOPPED)
    return list(repository.mirrors.filter(state__in=states))


# Branches


def _store_moves(repository: Repository, changed: dict[str, str], last: dict[str, str], at: datetime) -> None:
    for name, head in changed.items():
        older = last.get(name, "")
        move = sensing.describe_move(name, head, older, _main_parents(repository, older))
        _store_move(repository, move, at)


def _main_parents(repository: Repository, older: str) -> Callable[[str], str]:
    """First parents of the commits stored after `older`: a chain that leaves them does not lead to it."""
    since = repository.commits.filter(sha=older).values_list("pk", flat=True).first() if older else None
    if since is None:
        return lambda sha: ""
    later = repository.commits.filter(pk__gt=since).defer("metadata", "message")
    chain = {commit.sha: commit.main_parent() for commit in later}
    return lambda sha: chain.get(sha, "")


def _store_move(repository: Repository, move: sensing.Move, at: datetime) -> None:
    branch, _ = SourceBranch.objects.get_or_create(
        repository=repository, name=move.branch, defaults={"head": move.head, "position": -1, "changed_at": at}
    )
    if branch.gone_at is not None:
        branch.candidates.all().delete()
    shas = [sha for sha, _ in move.candidates]
    keys = {
        c.sha: c.pk
        for start in range(0, len(shas), 500)
        for c in repository.commits.filter(sha__in=shas[start : start + 500])
    }
    rows = [
        Candidate(branch=branch, position=branch.position + n, commit_id=keys[sha], seen_at=at, fast_forward=forward)
        for n, (sha, forward) in enumerate(move.candidates, start=1)
    ]
    Candidate.objects.bulk_create(rows, batch_size=500)
    SourceBranch.objects.filter(pk=branch.pk).update(
        head=move.head,
        position=rows[-1].position,
        changed_at=at,
        missing_since=None,
        missing_looks=0,
        gone_at=None,
    )


def _note_missing(repository: Repository, missing: set[str], there: set[str], at: datetime) -> bool:
    """Count looks without a branch; true when one is now taken for deleted."""
    repository.branches.filter(name__in=there, missing_looks__gt=0).update(missing_since=None, missing_looks=0)
    went = False
    for branch in repository.branches.filter(name__in=missing, gone_at=None):
        since = branch.missing_since or at
        looks = branch.missing_looks + 1
        gone = sensing.is_gone(looks=looks, seconds=(at - since).total_seconds())
        went |= gone
        SourceBranch.objects.filter(pk=branch.pk).update(
            missing_since=since, missing_looks=looks, gone_at=at if gone else None
        )
    return went


def _wake_mirrors(repository: Repository, records: bool, moves: bool) -> None:
    kinds = [*(("copy", "validate") if records else ()), *(("promote",) if moves else ())]
    for mirror in _mirrors(repository) if kinds else ():
        for kind in kinds:
            duties.wake(kind, mirror.pk)
