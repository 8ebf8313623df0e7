"""What the fields of a new export may be filled with, as its region can list it: suggestions, and no more.

A region that does not answer suggests nothing: a list that is missing keeps nobody from typing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from core.access.policies import branch_arn
from core.errors import LakeMirrorError
from core.types import RepositoryInfo
from deployment.wiring import clients
from exports.models import Export
from exports.preflight.checks import Plan
from installations.probes import ask, is_name
from rbac import services as rbac

MOST = 200
LISTED = 1000
"""So many repositories, and branches of one, are looked at."""


@dataclass(frozen=True, slots=True)
class PickLists:
    """Names of repositories and branches, and places: one in each bucket that is known to be written to, or read."""

    repositories: list[str]
    branches: list[str]
    paths: list[str]
    status_paths: list[str]


def pick_lists(*, actor: Any, plan: Plan) -> PickLists:
    """What the actor may have exported. What can't be asked raises nothing."""
    questions: dict[str, Callable[[], list[Any]]] = {
        "repositories": lambda: list(clients.quick_lakefs(plan.region).list_repositories(amount=LISTED).results)
    }
    if is_name(plan.repository):
        questions["branches"] = lambda: _branches(plan)
    found = {name: [] if isinstance(answer, LakeMirrorError) else answer for name, answer in ask(questions).items()}
    repositories = [one for one in found["repositories"] if _may_export(actor, one.id, one.default_branch)]
    branches = [name for name in found.get("branches", ()) if _may_export(actor, plan.repository, name)]
    buckets = sorted({*_buckets(repositories), *_buckets_of_exports(actor)})[:MOST]
    below = f"{plan.repository or 'repository'}/{plan.branch or 'branch'}"
    return PickLists(
        repositories=[one.id for one in islice(repositories, MOST)],
        branches=branches[:MOST],
        paths=[f"s3://{bucket}/exports/{below}" for bucket in buckets],
        status_paths=[f"s3://{bucket}/export-status" for bucket in buckets],
    )


def _branches(plan: Plan) -> list[str]:
    page = clients.quick_lakefs(plan.region).list_branches(plan.repository, amount=LISTED)
    return [head.name for head in page.results]


def _may_export(actor: Any, repository: str, branch: str) -> bool:
    arn = branch_arn(repository, branch)
    return rbac.allowed(actor, "fs:ExportConfig", arn) and rbac.allowed(actor, "fs:ReadBranch", arn)


def _buckets(repositories: Iterable[RepositoryInfo]) -> Iterable[str]:
    spaces = (one.storage_namespace for one in repositories)
    return (space.split("/")[2] for space in spaces if space.startswith("s3://"))


def _buckets_of_exports(actor: Any) -> Iterable[str]:
    """Where the exports go that the actor may configure."""
    rows = Export.objects.filter(deleting=False).values_list("repository", "branch", "path")[:LISTED]
    return (
        path.split("/")[2]
        for repository, branch, path in rows
        if path.startswith("s3://") and _may_export(actor, repository, branch)
    )
