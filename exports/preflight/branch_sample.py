"""The first files of a branch, read from its commit's ranges: few of them, in little time, for somebody who types."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from core.errors import NotFound, Unreachable
from core.exporting.markers import touched_directories
from core.exporting.unit_windows import ACTIONS
from core.types import Commit, RepositoryInfo
from deployment.wiring import clients
from exports.engine.source_commits import Parsed, read_proven
from graveler.metarange import RangeRef, read_metarange
from installations.probes import is_name
from mirrors.services.adoption import reaching

MOST_READ, MOST_KEYS, MOST_DIRECTORIES = 200_000, 10_000, 1_000
MOST_BYTES = 32_000_000
"""Of ranges. The first one is read however large it is: lakeFS ends them at some tens of megabytes."""
SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch as its installation has it: the repository, and the commit that it points to."""

    region: str
    repository: RepositoryInfo
    commit: Commit


@dataclass(frozen=True, slots=True)
class FirstFiles:
    """`keys` and `directories` (the root is empty) ascend. `read` files of `files` were looked at for the directories.
    `whole`: these are all keys and directories that there are. `imported`: for each folder from which the branch was
    given objects by import one of these, its address and its key."""

    files: int
    read: int
    keys: tuple[bytes, ...]
    directories: tuple[bytes, ...]
    whole: bool
    imported: tuple[tuple[str, bytes], ...] = ()


def branch_of(region: str, repository: str, branch: str) -> Branch:
    """Raises Invalid (no such region), NotFound saying what is not there, and Unreachable."""
    lakefs = clients.quick_lakefs(region)
    with reaching(f"source {region}"):
        try:
            info = lakefs.get_repository(repository) if is_name(repository) else None
        except NotFound:
            info = None
        if info is None:
            raise NotFound(
                f"there is no repository '{repository[:80]}' in {region}",
                hint="Check the name of the repository and its region",
            )
        try:
            head = lakefs.get_branch(repository, branch).commit_id
        except NotFound:
            text = f"there is no branch '{branch[:80]}' in '{repository}'"
            raise NotFound(text, hint="Use an existing branch: tags and commits can't be exported") from None
        return Branch(region, info, lakefs.get_commit(repository, head))


def ranges_of(branch: Branch, commit: Commit | None = None) -> list[RangeRef]:
    """The ranges of a commit, of the branch's own if none is given. NotFound, Corrupt, Unreachable."""
    metarange_id = (commit or branch.commit).metarange_id
    if not metarange_id:
        return []
    return _read(branch.region, branch.repository.storage_namespace, metarange_id, read_metarange)


def first_files(branch: Branch, *, actions: bool = True) -> FirstFiles:
    """With what is below `_lakefs_actions/`, or without. Raises as `ranges_of`. What was read once is kept: a commit
    does not change."""
    ranges = tuple(ranges_of(branch))
    return _first_files(branch.region, branch.repository.storage_namespace, ranges, actions)


@functools.lru_cache(maxsize=8)
def _first_files(region: str, namespace: str, ranges: tuple[RangeRef, ...], actions: bool) -> FirstFiles:
    paths: list[bytes] = []
    imported: dict[str, tuple[str, bytes]] = {}
    ends, read, size = time.monotonic() + SECONDS, 0, 0
    for ref in ranges:
        if read and (len(paths) >= MOST_READ or size + ref.estimated_size > MOST_BYTES or time.monotonic() > ends):
            break
        columns = _columns(region, namespace, ref)
        paths += columns["path"].to_pylist()
        imported = _imported(columns) | imported
        read, size = read + 1, size + ref.estimated_size
    files = sum(ref.count for ref in ranges)
    if not actions:
        data = [path for path in paths if not path.startswith(ACTIONS.low)]
        files, paths = files - (len(paths) - len(data)), data
    seen = paths[:MOST_READ]
    directories = sorted(touched_directories(seen))
    whole = len(seen) == files and len(seen) <= MOST_KEYS and len(directories) <= MOST_DIRECTORIES
    keys, first_directories = tuple(seen[:MOST_KEYS]), tuple(directories[:MOST_DIRECTORIES])
    return FirstFiles(files, len(seen), keys, first_directories, whole, tuple(imported.values()))


def _columns(region: str, namespace: str, ref: RangeRef) -> Any:
    try:
        from graveler.ranges import read_range_columns
    except ImportError as error:  # the pages start before Spark's packages are there
        raise Unreachable("Spark is still being installed", hint="Try again in a minute") from error
    return _read(region, namespace, ref.id, read_range_columns)


def _imported(columns: Any) -> dict[str, tuple[str, bytes]]:
    """By folder."""
    from graveler.columns import is_full

    entries = columns.select(["path", "address"]).filter(is_full(columns)).to_pylist()
    return {entry["address"].rpartition("/")[0]: (entry["address"], entry["path"]) for entry in reversed(entries)}


def _read(region: str, namespace: str, file_id: str, read: Callable[..., Parsed]) -> Parsed:
    return read_proven(namespace, file_id, partial(_fetch, region), read)


def _fetch(region: str, uri: str) -> bytes:
    with reaching(f"store of {region}"):
        return clients.quick_objects(region).get(uri)
