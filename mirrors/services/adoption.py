"""May a repository that exists already become a mirror? Only a read-only one, in its place, of the source's history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from core.errors import Conflict, Invalid, LakeMirrorError, NotFound, Unreachable
from core.listing import branch_heads
from core.types import RepositoryInfo
from deployment.wiring import clients


@dataclass(frozen=True, slots=True)
class Adopted:
    """A repository that was found to be a mirror already. `heads` by branch: where it stands is ours from now on."""

    creation_date: int
    heads: dict[str, str]


@contextmanager
def reaching(side: str) -> Iterator[None]:
    """Whatever keeps an installation from answering is Unreachable; its "not there" is an answer."""
    try:
        yield
    except NotFound:
        raise
    except LakeMirrorError as error:
        raise Unreachable(f"the {side} can't be asked: {error.message}", hint=error.hint) from error


def check_adoptable(
    existing: RepositoryInfo, region: str, namespace: str, source: RepositoryInfo, source_region: str
) -> Adopted:
    """Raises Conflict or Invalid, naming what is wrong, unless `existing` can be the mirror of `source`."""
    if not existing.read_only:
        raise Conflict(f"'{existing.id}' in {region} is writable: only a read-only repository is adopted", field="name")
    if existing.storage_namespace != namespace:
        raise Invalid(
            f"'{existing.id}' in {region} is over {existing.storage_namespace}, not {namespace}",
            field="storage_namespace",
        )
    if existing.default_branch != source.default_branch:
        raise Conflict(
            f"the default branch of '{existing.id}' is {existing.default_branch}, "
            f"the source's is {source.default_branch}",
            field="name",
        )
    with reaching(f"destination {region}"):
        heads = branch_heads(clients.lakefs(region), existing.id)
    _check_history(existing, heads, source, source_region)
    return Adopted(existing.creation_date, heads)


def _check_history(existing: RepositoryInfo, heads: dict[str, str], source: RepositoryInfo, source_region: str) -> None:
    """A commit's id covers its whole history: the heads are enough. The copying of records compares the rest."""
    branches = {head: name for name, head in heads.items()}
    for head, name in branches.items():
        if not _has_commit(source.id, source_region, head):
            raise Conflict(
                f"'{existing.id}' has another history: {name} is at {head[:8]}, and '{source.id}' has no such commit",
                field="name",
            )


def _has_commit(repository: str, region: str, commit_id: str) -> bool:
    try:
        with reaching(f"source {region}"):
            return clients.lakefs(region).get_commit(repository, commit_id).id == commit_id
    except NotFound:
        return False
