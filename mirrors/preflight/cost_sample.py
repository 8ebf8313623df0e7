"""Reads as much of a source as tells what a mirror would cost, and for no longer than it may take.

What did not answer in time is left out, and the figures say so. Calls are quick ones: sent once, with short time-outs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from core.errors import LakeMirrorError, NotFound, Unreachable
from core.types import Commit, Page, RepositoryInfo
from deployment.wiring import clients
from graveler.metarange import RangeRef, read_metarange
from jobs.concurrent_calls import Late, ask_all
from mirrors.queries.metaranges import metadata_uri
from mirrors.services.adoption import reaching

T = TypeVar("T")

SECONDS = 10.0
READERS = 8
MOST_BRANCHES, MOST_RANGES, MOST_COMMITS = 10_000, 100_000, 2_000
SAMPLED_RANGES, SAMPLED_BYTES = 8, 16_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """A repository that is looked into until `ends`, by the clock of time.monotonic."""

    repository: RepositoryInfo
    region: str
    ends: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    @property
    def remaining(self) -> float:
        """So many seconds are left."""
        return max(self.ends - time.monotonic(), 0.0)


def heads_of(source: Source) -> tuple[dict[str, str], bool]:
    """The heads of so many branches, and whether that is all of them."""
    list_branches = clients.quick_lakefs(source.region).list_branches
    with reaching(f"source {source.region}"):
        branches, all_listed = _listed(source, partial(list_branches, source.repository.id), MOST_BRANCHES)
    return {branch.name: branch.commit_id for branch in branches}, all_listed


def commits_of(source: Source, heads: Collection[str]) -> list[Commit]:
    """The records of the first of these heads: as many as there was time for."""
    lakefs = clients.quick_lakefs(source.region)
    calls = {head: partial(lakefs.get_commit, source.repository.id, head) for head in heads}
    return _leading(_ask(source, calls), heads, f"source {source.region}")


# --- how many commits -------------------------------------------------------------------------------------------------


def count_commits(source: Source, heads: Sequence[Commit]) -> tuple[int, bool]:
    """How many commits these lead to, and whether it is more than that.

    A commit's generation is the length of the longest line below it. Where that is long, nothing is counted.
    """
    longest = max((head.generation for head in heads), default=0)
    if longest > MOST_COMMITS:
        return longest, True
    logs = _ask(source, {head.id: partial(_log, source, head.id) for head in heads}).values()
    read = [log for log in logs if not isinstance(log, LakeMirrorError)]
    seen = {sha for shas, _ in read for sha in shas}
    return max(longest, len(seen)), len(read) < len(heads) or not all(ended for _, ended in read)


def _log(source: Source, head: str) -> tuple[list[str], bool]:
    """The ids of what a commit descends from, so many of them, and whether that is all."""
    log_commits = clients.quick_lakefs(source.region).log_commits
    commits, ended = _listed(source, partial(log_commits, source.repository.id, head), MOST_COMMITS)
    return [commit.id for commit in commits], ended


# --- ranges -----------------------------------------------------------------------------------------------------------


def read_ranges(source: Source, commits: Sequence[Commit]) -> list[list[RangeRef]]:
    """The ranges of each of the first commits: metaranges may be large, so it may end early.

    A metarange that is not there ends it too; creation would find that out just the same.
    """
    range_lists: list[list[RangeRef]] = []
    for some in (commits[:1], commits[1:]):  # the first one shows how large they are
        if sum(map(len, range_lists)) > MOST_RANGES:
            break
        calls = {commit.id: partial(_ranges_of, source, commit) for commit in some}
        read = _leading(_ask(source, calls), calls, f"store of {source.region}")
        range_lists += read
        if len(read) < len(calls):
            break
    return range_lists


def _ranges_of(source: Source, commit: Commit) -> list[RangeRef]:
    if not commit.metarange_id:
        return []
    uri = metadata_uri(source.repository.storage_namespace, commit.metarange_id)
    return read_metarange(clients.quick_objects(source.region).get(uri), expected_id=commit.metarange_id, file=uri)


@dataclass(frozen=True, slots=True)
class Sample:
    """Some ranges that were read whole: how many, their entries, and the bytes of these."""

    ranges: int
    entries: int
    bytes: int


def sample_of(source: Source, ranges: Iterable[RangeRef]) -> Sample:
    """Some of the ranges, by chance: their ids are hashes, and the first ones in order are taken."""
    chosen: list[RangeRef] = []
    for ref in sorted(ranges, key=lambda ref: ref.id)[:SAMPLED_RANGES]:
        if chosen and sum(picked.estimated_size for picked in chosen) + ref.estimated_size > SAMPLED_BYTES:
            break
        chosen.append(ref)
    answers = _ask(source, {ref.id: partial(_bytes_of, source, ref) for ref in chosen})
    read = {ref.id: size for ref in chosen if isinstance(size := answers[ref.id], int)}
    return Sample(len(read), sum(ref.count for ref in chosen if ref.id in read), sum(read.values()))


def _bytes_of(source: Source, ref: RangeRef) -> int:
    try:
        import pyarrow.compute as pc

        from graveler.ranges import read_range_columns
    except ImportError as error:  # the pages start before Spark's packages are there
        raise Unreachable("Spark is still being installed") from error
    uri = metadata_uri(source.repository.storage_namespace, ref.id)
    data = clients.quick_objects(source.region).get(uri)
    return int(pc.sum(read_range_columns(data, expected_id=ref.id, file=uri)["size"]).as_py() or 0)


# --- asking -----------------------------------------------------------------------------------------------------------


def _listed(source: Source, list_page: Callable[..., Page[T]], most: int) -> tuple[list[T], bool]:
    """So much of a list as there was time for, but not more than that, and whether it is all."""
    results: list[T] = []
    after = ""
    while len(results) < most and source.remaining:
        page = list_page(after=after)
        results += page.results
        after = page.next_after
        if not after:
            return results, True
    return results, False


def _ask(source: Source, calls: Mapping[str, partial[T]]) -> dict[str, T | LakeMirrorError]:
    return ask_all(calls, limit=READERS, seconds=source.remaining)


def _leading(answers: Mapping[str, T | LakeMirrorError], order: Iterable[str], whom: str) -> list[T]:
    """The answers up to the first one that is not there or came too late; raises any other error."""
    results: list[T] = []
    for key in order:
        answer = answers[key]
        if isinstance(answer, NotFound | Late):
            break
        if isinstance(answer, LakeMirrorError):
            with reaching(whom):
                raise answer
        results.append(answer)
    return results
