"""Which commit a ref names: as its source says now, else where the mirrors' own refs were last promoted to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.errors import (
    Corrupt,
    Denied,
    Invalid,
    NotFound,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
    Unreadable,
)
from core.ports import LakeFS
from core.types import Commit as Record
from deployment.wiring import clients
from graveler.identity import commit_id
from mirrors.models import Commit, Mirror, MirrorBranch, MirrorTag, Repository
from mirrors.queries.find_commit import LEAST_DIGITS, commits_beginning, expect_one

AWAY = (Unreachable, Throttled, RemoteFailure, Denied, Unauthenticated, Unreadable)
"""Errors of an installation that can't be asked now; all others are answers."""
_ID = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(rf"[0-9a-f]{{{LEAST_DIGITS},64}}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """The commit of a ref. `fresh`: no newer one can be meant. `away`: why the source was not asked, "" if it was."""

    sha: str
    metarange_id: str
    fresh: bool
    away: str = ""


def resolve(source: Repository, mirrors: Sequence[Mirror], ref: str) -> Resolved:
    """The commit that a branch, a tag or an id names. Raises NotFound, Conflict (several ids begin so), and Unreachable
    where neither the source nor one of these mirrors can tell."""
    if _ID.fullmatch(ref) and (known := _known(source, ref)):
        return Resolved(ref, known.metarange_id, fresh=True)
    try:
        return _at_source(source, ref)
    except AWAY as error:
        return _at_mirrors(source, mirrors, ref, str(error))


def _known(source: Repository, sha: str) -> Commit | None:
    return source.commits.filter(sha=sha).first()


def _at_source(source: Repository, ref: str) -> Resolved:
    if source.frozen_reason:
        raise RemoteFailure(f"{source.region} has another repository of that name: {source.frozen_reason}")
    try:
        lakefs = clients.quick_lakefs(source.region)
    except Invalid as error:  # the region is configured no more
        raise Unreachable(error.message) from error
    sha = _pointed_to(lakefs, source.name, ref) or _by_prefix(source, ref)
    record = _record(lakefs, source, sha or ref) if sha or _ID.fullmatch(ref) else None
    # Asked for afterwards: what answered before was the repository that we know, unless it was replaced since.
    _require_pinned(lakefs, source)
    if record is None:
        raise NotFound(f"{source.name} has no branch, tag or commit '{ref[:80]}'")
    return record


def _pointed_to(lakefs: LakeFS, repository: str, ref: str) -> str:
    """The commit of a branch or tag; "" where there is none of that name."""
    asked: tuple[Callable[[str, str], Record | object], ...] = (lakefs.get_branch, lakefs.get_tag)
    for ask in asked:
        try:
            return str(getattr(ask(repository, ref), "commit_id", ""))
        except (NotFound, Invalid):  # a name that no branch, or no tag, can have is refused
            continue
    return ""


def _by_prefix(source: Repository, ref: str) -> str:
    if not _PREFIX.fullmatch(ref):
        return ""
    found = list(commits_beginning([source.pk], ref).values_list("sha", flat=True)[:4])
    expect_one(ref, found)
    return found[0] if found else ""


def _record(lakefs: LakeFS, source: Repository, sha: str) -> Resolved | None:
    """From our books, else as the source gives it: its id is recomputed, for the books don't know it yet."""
    if known := _known(source, sha):
        return Resolved(sha, known.metarange_id, fresh=True)
    try:
        record = lakefs.get_commit(source.name, sha)
    except NotFound:
        return None
    claimed = commit_id(
        committer=record.committer,
        message=record.message,
        metarange_id=record.metarange_id,
        creation_date=record.creation_date,
        metadata=record.metadata,
        parents=record.parents,
    )
    if claimed != sha:
        raise Corrupt(f"{source.region} gave a record of {sha[:8]} that has not that id")
    return Resolved(sha, record.metarange_id, fresh=True)


def _require_pinned(lakefs: LakeFS, source: Repository) -> None:
    """The source is the repository that we know. Raises RemoteFailure: what another one says is no answer."""
    try:
        now = lakefs.get_repository(source.name)
    except NotFound as error:
        raise RemoteFailure(f"{source.region} has no repository {source.name} now") from error
    if (now.creation_date, now.storage_namespace.rstrip("/")) != (source.creation_date, source.namespace):
        raise RemoteFailure(f"{source.region} has another repository of the name {source.name} now")


def _at_mirrors(source: Repository, mirrors: Sequence[Mirror], ref: str, away: str) -> Resolved:
    """Where the furthest mirror's branch or tag of that name stands, as it was last put there."""
    branches = MirrorBranch.objects.filter(mirror__in=mirrors, name=ref, stray=False, misplaced=False)
    tags = MirrorTag.objects.filter(mirror__in=mirrors, name=ref, stray=False, stands_at=None)
    places = [(position, head) for head, position in branches.values_list("head", "position")]
    places += [(-1, commit) for commit in tags.values_list("commit_id", flat=True)]
    known = {row.sha: row for row in source.commits.filter(sha__in=[sha for _, sha in places])}
    found = max(((at, known[sha].pk, sha) for at, sha in places if sha in known), default=None)
    if found is not None:
        return Resolved(found[2], known[found[2]].metarange_id, fresh=False, away=away)
    if (sha := _by_prefix(source, ref)) and (commit := _known(source, sha)):
        return Resolved(sha, commit.metarange_id, fresh=True, away=away)
    raise Unreachable(
        f"no mirror of {source.name} has a branch or tag '{ref[:80]}', and its source can't be asked: {away}"
    )


def heads_named(source: Repository, mirrors: Sequence[Mirror], ref: str) -> list[tuple[Mirror, Commit]]:
    """Each of these mirrors that has a branch or tag of that name, and the commit that it shows there."""
    rows = MirrorBranch.objects.filter(mirror__in=mirrors, name=ref, stray=False, misplaced=False)
    shown = [(row.mirror, row.head) for row in rows.select_related("mirror")]
    tags = MirrorTag.objects.filter(mirror__in=mirrors, name=ref, stray=False, stands_at=None)
    shown += [(row.mirror, row.commit_id) for row in tags.select_related("mirror")]
    known = {row.sha: row for row in source.commits.filter(sha__in=[sha for _, sha in shown])}
    return [(mirror, known[sha]) for mirror, sha in shown if sha in known]
