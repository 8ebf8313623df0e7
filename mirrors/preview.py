"""What would a mirror cost? Told from the source's branches, and from the metaranges of some of their heads.

Nothing is stored. What creation would refuse is refused here with the same words.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from core.errors import NotFound
from core.estimate import Cost, first_check
from core.presence import Depth
from core.selection import Selection
from core.types import Commit
from graveler.metarange import RangeRef, read_metarange
from lakemirror_site import wiring
from mirrors.adoption import reaching
from mirrors.metaranges import metadata_uri
from mirrors.models import Mirror, all_branches
from mirrors.services import Creation

MOST_BRANCHES, MOST_HEADS, MOST_RANGES = 10_000, 20, 100_000
READERS = 8


@dataclass(frozen=True, slots=True)
class Preview:
    """What a mirror would begin with. `read` of its `heads` were looked into, the default branch's first.

    `commits` is the longest line below one of these. `entries` are the names in their `ranges`, each range once.
    `best` and `worst`: what their first check takes. `all_listed`: no more branches than these; `at_least`: the
    numbers are not of all heads.
    """

    branches: int
    selected: int
    all_listed: bool
    heads: int
    read: int
    commits: int
    metaranges: int
    ranges: int
    entries: int
    metadata_bytes: int
    best: Cost
    worst: Cost
    warnings: Sequence[str]

    @property
    def at_least(self) -> bool:
        return self.read < self.heads or not self.all_listed


def preview_of(creation: Creation) -> Preview:
    """Reads the source: its branches, the records of some heads, and the metaranges of these."""
    branches, all_listed = _branches(creation)
    selection = _selection(creation)
    chosen = {name: head for name, head in branches.items() if name in selection}
    default = creation.source.default_branch
    heads = list(dict.fromkeys(chosen[name] for name in sorted(chosen, key=lambda name: (name != default, name))))
    commits = _commits(creation, heads[:MOST_HEADS])
    found, read = _read_ranges(creation, commits)
    metaranges = {commit.metarange_id for commit in commits[:read]} - {""}
    ranges = {ref.id: ref for refs in found for ref in refs}
    entries = sum(ref.count for ref in ranges.values())
    best, worst = first_check(
        metaranges=len(metaranges), ranges=len(ranges), entries=entries, **_depth_of(creation.settings)
    )
    return Preview(
        branches=len(branches),
        selected=len(chosen),
        all_listed=all_listed,
        heads=len(heads),
        read=read,
        commits=max((commit.generation for commit in commits), default=0),
        metaranges=len(metaranges),
        ranges=len(ranges),
        entries=entries,
        metadata_bytes=sum(ref.estimated_size for ref in ranges.values()),
        best=best,
        worst=worst,
        warnings=selection.warnings(branches.keys()) if all_listed else (),
    )


def _selection(creation: Creation) -> Selection:
    selected = creation.settings.get("selected") or all_branches()
    return Selection(creation.source.default_branch, tuple(selected["include"]), tuple(selected["exclude"]))


def _depth_of(settings: Mapping[str, object]) -> dict[str, object]:
    plain = Mirror()
    return {
        "depth": Depth(settings.get("depth", plain.depth)),
        "content_sample": settings.get("content_sample", plain.content_sample),
    }


# --- the source -------------------------------------------------------------------------------------------------------


def _branches(creation: Creation) -> tuple[dict[str, str], bool]:
    """The heads of so many branches, and whether that is all of them."""
    lakefs, found, after = wiring.lakefs(creation.source_region), {}, ""
    with reaching(f"source {creation.source_region}"):
        while len(found) < MOST_BRANCHES:
            page = lakefs.list_branches(creation.source.id, after=after)
            found.update((branch.name, branch.commit_id) for branch in page.results)
            after = page.next_after
            if not after:
                return found, True
    return found, False


def _commits(creation: Creation, heads: Collection[str]) -> list[Commit]:
    lakefs = wiring.lakefs(creation.source_region)
    with reaching(f"source {creation.source_region}"), ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(lambda head: lakefs.get_commit(creation.source.id, head), heads))


def _read_ranges(creation: Creation, commits: Sequence[Commit]) -> tuple[list[list[RangeRef]], int]:
    """The ranges of each of the first commits, and how many those are: metaranges may be large, so it ends early.

    A metarange that is not there ends it too; creation would find that out just the same.
    """
    store, found, ranges = wiring.objects(creation.source_region), [], 0
    for commit in commits:
        if ranges > MOST_RANGES:
            break
        refs: list[RangeRef] = []
        if commit.metarange_id:
            uri = metadata_uri(creation.source.storage_namespace, commit.metarange_id)
            try:
                with reaching(f"store of {creation.source_region}"):
                    refs = read_metarange(store.get(uri), expected_id=commit.metarange_id, file=uri)
            except NotFound:
                break
        found.append(refs)
        ranges += len(refs)
    return found, len(found)
