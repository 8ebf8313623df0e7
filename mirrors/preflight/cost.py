"""What would a mirror cost? Told from the source's branches, from some of their heads' logs, metaranges and ranges.

Nothing is stored. What creation would refuse the API refuses with the same words; the page asks while one types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.access.policies import repository_arn
from core.errors import NotFound
from core.mirroring.branch_selection import Selection, check_selection
from core.mirroring.check_cost import Cost, first_check
from core.mirroring.object_check import Depth
from deployment.wiring import clients
from installations.probes import is_name
from mirrors.models import Mirror, all_branches
from mirrors.preflight.cost_sample import Sample, Source, commits_of, count_commits, heads_of, read_ranges, sample_of
from mirrors.preflight.questions import Plan
from mirrors.services.adoption import reaching
from mirrors.services.mirrors import Creation
from rbac import services as rbac

MOST_HEADS = 20
NOT_COUNTED = ("the time and traffic of bucket replication", "objects that only older commits refer to")


@dataclass(frozen=True, slots=True)
class Preview:
    """What a mirror would begin with. `read` of its `heads` were looked into, the default branch's first.

    `commits` of these lead to more where `commits_more`. `entries` are the names in their `ranges`, each range once.
    The bytes of `sample.ranges` of those were read. `best` and `worst`: what their first check takes. `all_listed`: no
    more branches than these.
    """

    branches: int
    selected: int
    all_listed: bool
    heads: int
    read: int
    commits: int
    commits_more: bool
    metaranges: int
    ranges: int
    entries: int
    metadata_bytes: int
    sample: Sample
    best: Cost
    worst: Cost
    warnings: Sequence[str]

    @property
    def at_least(self) -> bool:
        """Whether the figures are not of all heads."""
        return self.read < self.heads or not self.all_listed

    @property
    def bytes(self) -> int | None:
        """Of the objects; where only some ranges were read, as if the others were like them. None: nobody knows."""
        if not self.sample.entries:
            return None if self.entries else 0
        return round(self.sample.bytes * (self.entries / self.sample.entries))

    @property
    def bytes_estimated(self) -> bool:
        """Whether not all ranges were read for that."""
        return self.sample.ranges < self.ranges


def preview_of(creation: Creation) -> Preview:
    """Reads the source of a mirror that could be made."""
    source = Source(creation.source, creation.source_region)
    chosen = creation.settings.get("selected") or all_branches()
    selection = Selection(creation.source.default_branch, tuple(chosen["include"]), tuple(chosen["exclude"]))
    return _read(source, selection, **_depth_of(creation.settings))


def preview_of_plan(*, actor: Any, plan: Plan) -> Preview:
    """The same of what was typed so far: only the source and its branches matter.

    Raises Denied, Invalid (a glob is none), NotFound (no such source) and Unreachable.
    """
    rbac.require(actor, ("fs:MirrorRepository", repository_arn(plan.source_repository)))
    missing = f"there is no repository '{plan.source_repository[:80]}' in {plan.source_region}"
    hint = "Check the name of the repository and its region"
    if not is_name(plan.source_repository):
        raise NotFound(missing, hint=hint)
    try:
        with reaching(f"source {plan.source_region}"):
            repository = clients.quick_lakefs(plan.source_region).get_repository(plan.source_repository)
    except NotFound:
        raise NotFound(missing, hint=hint) from None
    selection = Selection(repository.default_branch, plan.include, plan.exclude)
    check_selection(selection)
    return _read(Source(repository, plan.source_region), selection, **_depth_of({}))


def _depth_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain = Mirror()
    return {
        "depth": Depth(settings.get("depth", plain.depth)),
        "content_sample": settings.get("content_sample", plain.content_sample),
    }


def _read(source: Source, selection: Selection, *, depth: Depth, content_sample: float) -> Preview:
    branches, all_listed = heads_of(source)
    chosen = {name: head for name, head in branches.items() if name in selection}
    heads = _heads(chosen, selection.default_branch)
    commits = commits_of(source, heads[:MOST_HEADS])
    range_lists = read_ranges(source, commits)
    metaranges = {commit.metarange_id for commit in commits[: len(range_lists)]} - {""}
    ranges = {ref.id: ref for refs in range_lists for ref in refs}
    number, more = count_commits(source, commits)
    entries = sum(ref.count for ref in ranges.values())
    best, worst = first_check(
        metaranges=len(metaranges), ranges=len(ranges), entries=entries, depth=depth, content_sample=content_sample
    )
    return Preview(
        branches=len(branches),
        selected=len(chosen),
        all_listed=all_listed,
        heads=len(heads),
        read=len(range_lists),
        commits=number,
        commits_more=more or len(commits) < len(heads) or not all_listed,
        metaranges=len(metaranges),
        ranges=len(ranges),
        entries=entries,
        metadata_bytes=sum(ref.estimated_size for ref in ranges.values()),
        sample=sample_of(source, ranges.values()),
        best=best,
        worst=worst,
        warnings=selection.warnings(branches.keys()) if all_listed else (),
    )


def _heads(chosen: Mapping[str, str], default: str) -> list[str]:
    """Each once, the default branch's first."""
    return list(dict.fromkeys(chosen[name] for name in sorted(chosen, key=lambda name: (name != default, name))))
