"""Which branches of a source have one of our action files? Read from the metadata of their heads, which LakeMirror may
read anyway: lakeFS itself would want another right.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from core.errors import LakeMirrorError
from core.installations.preflight_hooks import Hooked
from core.types import RepositoryInfo
from deployment.wiring import clients
from jobs.concurrent_calls import ask_all
from mirrors.services.locate.entries import Holder, named_at

MOST_HEADS = 20
"""The heads of so many are read: of the default branch, then by name. Most share their ranges, which are read once."""
SECONDS = 6.0
READERS = 4


def hooked_branches(source: RepositoryInfo, region: str, heads: Mapping[str, str], file: str) -> Hooked:
    """Of these branches, by name with their heads, those that have a file at this path. Raises what kept all of them
    from being read."""
    names = sorted(heads, key=lambda name: (name != source.default_branch, name))
    commits = list(dict.fromkeys(heads[name] for name in names))[:MOST_HEADS]
    asked = {commit: partial(_has, source, region, commit, file) for commit in commits}
    has = ask_all(asked, limit=READERS, seconds=SECONDS)
    errors = [answer for answer in has.values() if isinstance(answer, LakeMirrorError)]
    if errors and len(errors) == len(has):
        raise errors[0]
    having = [name for name in names if has.get(heads[name]) is True]
    lacking = [name for name in names if has.get(heads[name]) is False]
    return Hooked(having, lacking, len(names) - len(having) - len(lacking))


def _has(source: RepositoryInfo, region: str, commit_id: str, file: str) -> bool:
    commit = clients.quick_lakefs(region).get_commit(source.id, commit_id)
    holders = [Holder(region, source.storage_namespace.rstrip("/"))]
    return named_at(holders, commit.metarange_id, file) is not None
