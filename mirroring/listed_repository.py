"""Which repository stands under a name now? A server of lakeFS lists repositories as they are; what it answers for one
of them may be 10 s old."""

from __future__ import annotations

from core.errors import Denied, Unauthenticated
from core.ports import LakeFS
from core.types import RepositoryInfo


def listed_repository(lakefs: LakeFS, name: str) -> RepositoryInfo | None:
    """The repository of this name, as it is listed; None where there is none, or our key may not list it.

    The first of all names that begin with this one is this one itself.
    """
    try:
        page = lakefs.list_repositories(prefix=name, amount=1)
    except (Denied, Unauthenticated):
        return None
    return next((info for info in page.results if info.id == name), None)


def repository_now(lakefs: LakeFS, name: str) -> RepositoryInfo:
    """The repository of this name: as listed, else as a server's cache may have it. Raises NotFound."""
    return listed_repository(lakefs, name) or lakefs.get_repository(name)
