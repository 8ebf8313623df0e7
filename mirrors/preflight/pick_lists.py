"""What the fields of a new mirror may be filled with, as the installations can list it: suggestions, and no more.

An installation that does not answer suggests nothing: a list that is missing keeps nobody from typing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from core.access.policies import namespace_arn, repository_arn
from core.errors import LakeMirrorError
from core.ports import LakeFS
from core.types import RepositoryInfo
from deployment.wiring import clients
from installations.probes import ask
from mirrors.preflight.questions import Plan
from rbac import services as rbac

MOST = 200
LISTED = 1000
"""So many repositories of an installation are looked at."""


@dataclass(frozen=True, slots=True)
class PickLists:
    """Names of source repositories, and beginnings of namespaces: each bucket in which the destination has one."""

    repositories: list[str]
    namespaces: list[str]


def pick_lists(*, actor: Any, plan: Plan) -> PickLists:
    """Repositories that the actor may mirror, and buckets of the destination in which they may put a mirror. What can't
    be asked raises nothing."""
    found = ask(
        {
            "source": lambda: _repositories(clients.quick_lakefs(plan.source_region)),
            "destination": lambda: _repositories(clients.quick_lakefs(plan.region)),
        }
    )
    sources = (one.id for one in _listed(found["source"]) if _may_mirror(actor, one.id))
    buckets = {one.storage_namespace.split("/")[2] for one in _listed(found["destination"]) if _in_s3(one)}
    spaces = (f"s3://{bucket}/{plan.source_repository}" for bucket in sorted(buckets))
    return PickLists(list(islice(sources, MOST)), list(islice((one for one in spaces if _may_use(actor, one)), MOST)))


def _repositories(lakefs: LakeFS) -> list[RepositoryInfo]:
    return list(lakefs.list_repositories(amount=LISTED).results)


def _listed(answer: list[RepositoryInfo] | LakeMirrorError) -> list[RepositoryInfo]:
    return [] if isinstance(answer, LakeMirrorError) else answer


def _may_mirror(actor: Any, repository: str) -> bool:
    return rbac.allowed(actor, "fs:MirrorRepository", repository_arn(repository))


def _may_use(actor: Any, namespace: str) -> bool:
    """As creating a mirror there needs it; before a repository is chosen, for one of any name."""
    arn = namespace_arn(f"{namespace}-" if namespace.endswith("/") else namespace)
    return rbac.allowed(actor, "fs:AttachStorageNamespace", arn)


def _in_s3(repository: RepositoryInfo) -> bool:
    return repository.storage_namespace.startswith("s3://")
