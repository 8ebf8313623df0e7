"""Is the source still the repository that we pinned? If not, it is frozen."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from core.errors import NoData, NotFound
from core.ports import LakeFS
from jobs.lease import DutyOutcome
from mirroring.listed_repository import listed_repository
from mirrors.models import Repository


@dataclass(frozen=True, slots=True)
class Identity:
    """Whether the source is the repository that we pinned. `problem`: why it is not, "" when it is; `certain`: no
    cache may have said so."""

    problem: str
    certain: bool


def ask_identity(repository: Repository, lakefs: LakeFS) -> Identity:
    """A server of lakeFS lists repositories as they are now. What it answers for one of them may be 10 s old, so it is
    asked for that only where our key may not list it."""
    listed = listed_repository(lakefs, repository.name)
    try:
        info = listed or lakefs.get_repository(repository.name)
    except (NotFound, NoData) as error:
        return Identity(f"the source repository is gone: {error.message}", certain=True)
    if (info.creation_date, info.storage_namespace) == (repository.creation_date, repository.storage_namespace):
        return Identity("", certain=bool(listed))
    return Identity("the source was replaced by a new repository of the same name", certain=True)


def moved_since(repository: Repository, lakefs: LakeFS, identity: Identity, listed_head: str) -> str:
    """Where the default branch is by now, if a list of before had it elsewhere; "" if it is still there.

    Asked only of a source that may be another one by now: what was listed since may be that one's, and then its default
    branch has a history of its own.
    """
    if identity.certain:
        return ""
    head = lakefs.get_branch(repository.name, repository.default_branch).commit_id
    return head if head != listed_head else ""


def tell_moved(repository: Repository, head: str) -> str:
    """Why nothing follows from a list."""
    return f"{repository.default_branch} has moved on meanwhile, to {head[:8]}, of which nothing is known yet"


def freeze(repository: Repository, reason: str) -> DutyOutcome:
    """Delete and move nothing any more; only an operator's word goes on from here, and what was seen before is void."""
    with transaction.atomic():
        rows = Repository.objects.filter(pk=repository.pk)
        rows.update(frozen_reason=reason, unrelated_roots={}, unrelated_since=None)
        for refs in (repository.branches, repository.tags):
            refs.filter(gone_at=None, missing_looks__gt=0).update(missing_since=None, missing_looks=0)
        if not repository.commits.exists():  # what could not be read may be the other repository's
            repository.branches.update(unread_head="", unread_since=None)
    return DutyOutcome(f"frozen: {reason}")
