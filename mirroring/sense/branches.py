"""The commit sensor: what do the source's branches point at, and by which history?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from django.db import transaction

from core.errors import Fenced, LakeMirrorError, NoData, NotFound, RemoteFailure
from core.mirroring import source_moves
from core.mirroring.promotion import UNKNOWN
from core.ports import LakeFS
from core.types import main_parent
from db import clock
from db.chunks import chunks
from deployment.wiring import clients
from jobs.lease import DutyOutcome, Lease
from mirroring.sense.commit_spool import Spool, served_mirrors, wake_promotion
from mirroring.sense.identity import ask_identity, freeze, moved_since, tell_moved
from mirroring.sense.inferred import keep_inferred
from mirroring.sense.missing_refs import note_missing
from mirroring.sense.read_log import (
    forget_wrong,
    list_heads,
    read_histories,
    unread_before,
    unread_heads,
)
from mirroring.sense.tags import look_at_tags, tell_unseen, unread_tags
from mirroring.sense.unrelated_histories import NEXT_LOOK_SECONDS, strangers, tell_strange
from mirrors.models import Candidate, Commit, Repository, SourceBranch
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.ancestry import check_after_all
from mirrors.transitions.required_commits import follow_moves

FIRST_WINDOW, LAST_WINDOW = 20, 1000
"""Rows that are read at once on the way along a chain: most moves are short."""


def sense(lease: Lease) -> DutyOutcome:
    """One look at one source repository: its branches, then its tags if a mirror follows them."""
    repository = mirror_duties.subject_repository(lease)
    if repository.frozen_reason:
        return DutyOutcome(f"frozen: {repository.frozen_reason}")
    lakefs = clients.lakefs(repository.region)
    before = clock.now()
    try:
        heads = list_heads(lakefs, repository.name, lease)
    except (NotFound, NoData):
        if problem := ask_identity(repository, lakefs).problem:
            return freeze(repository, problem)
        raise
    if not source_moves.is_valid_look(heads, repository.default_branch):
        error = f"the source returned no branch {repository.default_branch}: this answer is ignored"
        Repository.objects.filter(pk=repository.pk).update(look_error=error)
        return DutyOutcome(error)
    outcome, trusted = _take_look(repository, lakefs, heads, before, lease)
    if not trusted:
        return outcome
    keep_inferred(repository, lease)
    try:
        tags_summary = look_at_tags(repository, lakefs, heads[repository.default_branch], lease)
    except LakeMirrorError as error:
        tell_unseen(repository, error)
        raise
    return replace(outcome, summary=f"{outcome.summary}, {tags_summary}") if tags_summary else outcome


def _take_look(
    repository: Repository, lakefs: LakeFS, heads: dict[str, str], at: datetime, lease: Lease
) -> tuple[DutyOutcome, bool]:
    """What came of it, and whether anything may follow from it."""
    last, sensed, known = _before(repository)
    hidden = _hidden(repository, lakefs, sorted(heads.keys() - known), lease)
    changed = source_moves.changed_branches(heads, sensed)
    spool, moved = Spool(repository, lease), set(changed.values())
    waiting = [*unread_before(changed, _unread_branches(repository)), *sorted(spool.frontier())]
    errors = read_histories(spool, lakefs, moved, lease, waiting) if changed else {}
    identity = ask_identity(repository, lakefs)
    if identity.problem:
        spool.clear()
        return freeze(repository, identity.problem), False
    since = ""
    if changed or last.keys() - heads:
        since = moved_since(repository, lakefs, identity, heads[repository.default_branch])
        read_histories(spool, lakefs, {since} - {""}, lease, ())
    strange = strangers(spool, {*moved, since} - {""}, at)
    if doubt := _doubt(spool, strange, changed, since):
        return _distrust(repository, changed, doubt, at, spool), False
    new = spool.place(at) if changed else 0
    unread = unread_heads(spool, moved, errors)
    if changed:
        forget_wrong(spool, unread, errors, chain(strange, unread_tags(repository)))
    readable = {name: head for name, head in changed.items() if head not in unread}
    for mirror in served_mirrors(repository).filter(follows_all=False) if readable else ():
        follow_moves(mirror, readable.items(), lease)
    with transaction.atomic():
        Repository.objects.select_for_update(no_key=True).get(pk=repository.pk)
        lease.lock()
        if dict(repository.branches.filter(gone_at=None).values_list("name", "head")) != last:
            raise Fenced(f"another check of {repository.name} was faster")
        _store_moves(repository, readable, last, at)
        _note_hidden(repository, hidden)
        any_deleted = note_missing(repository.branches.all(), heads, at)
        _note_unread(repository, {name: head for name, head in changed.items() if head in unread}, at, spool)
        error = _name_unread(repository, changed, unread, strange - errors.keys())
        Repository.objects.filter(pk=repository.pk).update(looked_at=at, look_error=error)
        if readable or any_deleted:
            wake_promotion(repository)
    summary = error or f"{len(heads)} branches, {len(changed)} moved, {new} new commits"
    return DutyOutcome(summary, next_in=NEXT_LOOK_SECONDS if strange else None), True


def _doubt(spool: Spool, strange: Collection[str], changed: Mapping[str, str], since: str) -> str:
    """Why nothing may follow from a look that found strangers, or after which the default branch has moved `since`; ""
    if it may."""
    repository = spool.repository
    if strange and not _is_known(spool, changed.get(repository.default_branch, ""), strange):
        return tell_strange(repository, strange)
    return "" if _is_known(spool, since, strange) else tell_moved(repository, since)


def _is_known(spool: Spool, head: str, strange: Collection[str]) -> bool:
    """Whether a new head of the default branch, if it has one, is no stranger's, and all of its history was read."""
    if not head or spool.stored([head]):
        return True
    below = spool.below([head])
    return head not in strange and bool(below) and not spool.lacking(below)


def _distrust(
    repository: Repository, changed: Mapping[str, str], error: str, at: datetime, spool: Spool
) -> DutyOutcome:
    """The default branch itself is a stranger, or can't be read: nothing follows from such a look, and what moved in it
    is unread for now; what was stays so. What was read of it is kept for the next one, which reads its roots again."""
    with transaction.atomic():
        Repository.objects.select_for_update(no_key=True).get(pk=repository.pk)
        spool.lease.lock()
        before = dict(repository.branches.exclude(unread_head="").values_list("name", "unread_head"))
        _note_unread(repository, before | dict(changed), at, spool)
        Repository.objects.filter(pk=repository.pk).update(look_error=error)
    return DutyOutcome(error, next_in=NEXT_LOOK_SECONDS)


def _before(repository: Repository) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """What the last look left, in one query: heads; those without branches that only a mirror's certificate tells of,
    of whose candidates nothing is known yet; the branches of which it is known whether they are hidden."""
    rows = list(repository.branches.filter(gone_at=None).values_list("name", "head", "position", "hidden"))
    sensed = {name: head for name, head, position, _ in rows if position >= 0}
    return {row[0]: row[1] for row in rows}, sensed, {row[0] for row in rows if row[3] is not None}


def _unread_branches(repository: Repository) -> list[str]:
    return list(repository.branches.exclude(unread_head="").values_list("name", flat=True))


def _hidden(repository: Repository, lakefs: LakeFS, new: Sequence[str], lease: Lease) -> dict[bool, list[str]]:
    """Branches that are new to us by whether they are hidden: a plain list leaves those out. It stays so for life."""
    if not new:
        return {}
    plain = list_heads(lakefs, repository.name, lease, hidden=False)
    if not source_moves.is_valid_look(plain, repository.default_branch):
        raise RemoteFailure(f"the source returned no branch {repository.default_branch}")
    return {True: [name for name in new if name not in plain], False: [name for name in new if name in plain]}


def _note_hidden(repository: Repository, branches: Mapping[bool, Sequence[str]]) -> None:
    for hidden, names in branches.items():
        for some in chunks(names):
            repository.branches.filter(name__in=some).update(hidden=hidden)


def _name_unread(
    repository: Repository,
    changed: Mapping[str, str],
    unread: Mapping[str, Sequence[LakeMirrorError]],
    strange: Collection[str],
) -> str:
    """What is told of branches whose history can't be read or is a stranger's; the others went on without them."""
    names = [name for name, head in changed.items() if head in unread and head not in strange]
    broken = (
        f"the history of {', '.join(names[:5])} can't be read: {unread[changed[names[0]]][0].message}" if names else ""
    )
    return "; ".join(part for part in (broken, tell_strange(repository, strange)) if part)


# Branches


def _store_moves(repository: Repository, changed: dict[str, str], last: dict[str, str], at: datetime) -> None:
    for name, head in changed.items():
        older = last.get(name, "")
        move = source_moves.describe_move(name, head, older, _MainParents(repository, older))
        _store_move(repository, move, at)


class _MainParents:
    """Main parents of the commits stored after `older`: a chain that leaves them does not lead to it.

    Rows are read a window at a time, for keys only fall on the way from child to parent.
    """

    def __init__(self, repository: Repository, older: str) -> None:
        self._commits, self._size = repository.commits, FIRST_WINDOW
        self._since = self._key(older) if older else None
        self._window: dict[str, str] = {}

    def __call__(self, sha: str) -> str:
        if sha not in self._window:
            self._load(sha)
        return self._window.get(sha, "")

    def _key(self, sha: str) -> int | None:
        return self._commits.filter(sha=sha).values_list("pk", flat=True).first()

    def _load(self, sha: str) -> None:
        key = self._key(sha)
        if key is None or self._since is None:
            self._window = {}
            return
        rows = self._commits.filter(pk__lte=key, pk__gt=self._since).order_by("-pk")
        lines = rows.values_list("sha", "parents", "version")[: self._size]
        self._window = {sha: main_parent(parents, version) for sha, parents, version in lines}
        self._size = min(4 * self._size, LAST_WINDOW)


def _store_move(repository: Repository, move: source_moves.Move, at: datetime) -> None:
    branch, _ = SourceBranch.objects.get_or_create(
        repository=repository, name=move.branch, defaults={"head": move.head, "position": -1, "changed_at": at}
    )
    if branch.gone_at is not None:
        branch.candidates.all().delete()
    for start in range(0, len(move.candidates), 500):
        _store_candidates(branch, move.candidates[start : start + 500], branch.position + 1 + start, at)
    SourceBranch.objects.filter(pk=branch.pk).update(
        head=move.head,
        position=branch.position + len(move.candidates),
        changed_at=at,
        missing_since=None,
        missing_looks=0,
        gone_at=None,
        begun_at=None if branch.gone_at is not None else branch.begun_at,
    )


def _store_candidates(branch: SourceBranch, some: Sequence[tuple[str, bool]], position: int, at: datetime) -> None:
    commits = Commit.objects.filter(repository_id=branch.repository_id, sha__in=[sha for sha, _ in some])
    keys = dict(commits.values_list("sha", "pk"))
    check_after_all(branch.repository, list(keys.values()))
    Candidate.objects.bulk_create(
        Candidate(branch=branch, position=n, commit_id=keys[sha], seen_at=at, fast_forward=forward)
        for n, (sha, forward) in enumerate(some, start=position)
    )


def _note_unread(repository: Repository, unread: Mapping[str, str], at: datetime, spool: Spool) -> None:
    """Which branches moved on to a head whose history can't be read, and since when they stand at such heads."""
    noted = dict(repository.branches.exclude(unread_head="").values_list("name", "unread_head"))
    new = {name: head for name, head in unread.items() if noted.get(name) != head}
    seen_at = _unread_heads_seen_at(repository, set(new.values()), spool)
    for some in chunks(sorted(noted.keys() - unread.keys())):
        repository.branches.filter(name__in=some).update(unread_head="", unread_since=None)
    for name, head in new.items():
        branch, _ = SourceBranch.objects.get_or_create(
            repository=repository, name=name, defaults={"head": "", "position": UNKNOWN, "changed_at": at}
        )
        if branch.gone_at is not None:
            _begin_anew(branch, at)
        elif branch.position == UNKNOWN and branch.begun_at is None:
            SourceBranch.objects.filter(pk=branch.pk).update(begun_at=at)
        rows = SourceBranch.objects.filter(pk=branch.pk)
        rows.update(unread_head=head, unread_head_at=seen_at[head], unread_since=branch.unread_since or at)


def _unread_heads_seen_at(repository: Repository, heads: set[str], spool: Spool) -> Mapping[str, datetime | None]:
    """When each of these was seen first, or an unread head that it descends from; None: in the very first look. Nobody
    asks where commits are known."""
    now = clock.now() if repository.looked_at else None
    if not heads or repository.commits.exists():
        return dict.fromkeys(heads, now)
    before = dict(repository.branches.exclude(unread_head="").values_list("unread_head", "unread_head_at"))
    seen = {}
    for head, history in spool.histories(heads):
        times = [before[commit] for commit in before.keys() & {head, *history}]
        seen[head] = None if None in times else min((time for time in times if time), default=now)
    return seen


def _begin_anew(branch: SourceBranch, at: datetime) -> None:
    """It was deleted, and one of its name is there now: nothing is known yet of where that one pointed to. Positions go
    on, for a mirror may still stand at the old one's."""
    branch.candidates.all().delete()
    SourceBranch.objects.filter(pk=branch.pk).update(
        head="", changed_at=at, begun_at=at, missing_since=None, missing_looks=0, gone_at=None
    )
