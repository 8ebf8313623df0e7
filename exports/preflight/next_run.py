"""What would the next run of an export copy? Told from metaranges, and from some of the ranges that differ.

Nothing is stored, and the destination is not asked. Figures that are not of all ranges say so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from core.errors import Corrupt, LakeMirrorError, NotFound
from core.exporting.destinations import check_place
from core.exporting.run_cost import THROUGH, WITHIN, Pace, RunCost, run_cost
from core.exporting.state_machine import State, basis
from core.exporting.unit_planning import Unit, plan_units
from core.exporting.unit_values import UnitWork
from core.exporting.unit_windows import ACTIONS, plan_with_actions_anew, plan_without_actions
from deployment.wiring import clients, export_jobs, region_settings
from exports.models import Export, ExportRun
from exports.preflight.branch_sample import Branch, branch_of, ranges_of
from exports.preflight.checks import Plan
from graveler.metarange import RangeRef
from jobs.concurrent_calls import ask_all

SECONDS = 8.0
MOST_UNITS, MOST_ENTRIES = 8, 300_000
RUNS, MANY = 5, 100
"""So many of the last runs to the same bucket tell the pace, if they copied so many files."""
ANYWHERE = "s3://anywhere"


@dataclass(frozen=True, slots=True)
class Planned:
    """`full`: everything is copied; else what changed since `base`. `copies` and `removals` are exact unless
    `estimated`, `bytes` unless `bytes_estimated`; None where nobody can tell. `read` of `ranges` that differ were read;
    `cost` is for these figures, `pace` what its seconds are told by."""

    commit: str
    base: str
    full: bool
    copies: int | None
    removals: int | None
    bytes: int | None
    estimated: bool
    bytes_estimated: bool
    ranges: int
    read: int
    within: bool
    pace: Pace
    cost: RunCost | None


def planned_run(plan: Plan) -> Planned:
    """Raises Invalid, NotFound and Unreachable where the branch can't be read."""
    source = branch_of(plan.region, plan.repository, plan.branch)
    base, attempted = _basis(plan.export, plan.wish.path)
    known = [ranges for ref in (base, *attempted) if (ranges := _ranges(source, ref)) is not None]
    target = ranges_of(source)
    units = list(_units(plan, target, known or [[]]))
    some = _some(units)
    return _planned(source, plan, base, target, units, some, _diff(source, some))


def _units(plan: Plan, target: Sequence[RangeRef], others: Sequence[Sequence[RangeRef]]) -> Iterator[Unit]:
    """As the run cuts them."""
    anew = plan.export is not None and plan.export.actions_at_success != plan.actions
    if not plan.actions:
        return plan_without_actions(target, others, anew=anew)
    return plan_with_actions_anew(target, others) if anew else plan_units(target, others)


def _basis(export: Export | None, path: str) -> tuple[str, Sequence[str]]:
    if export is None:
        return "", ()
    try:
        path = check_place(path, "exportPath")
    except LakeMirrorError:
        return "", ()
    start = basis(replace(export.standing(), path=path))
    return start.base, start.attempted


def _ranges(source: Branch, ref: str) -> list[RangeRef] | None:
    """None for a commit that is gone, or whose metadata is gone or damaged; no ranges for "", that is: for nothing."""
    if not ref:
        return []
    try:
        commit = clients.quick_lakefs(source.region).get_commit(source.repository.id, ref)
        return ranges_of(source, commit)
    except (Corrupt, NotFound):
        return None


def _some(units: Sequence[Unit]) -> list[UnitWork]:
    """Some of the units, all if they are few: by chance, for ids are hashes."""
    chosen: list[UnitWork] = []
    entries = 0
    for number, unit in sorted(enumerate(units), key=lambda numbered: (numbered[1].target, numbered[1].others)):
        if chosen and (len(chosen) == MOST_UNITS or entries + unit.entries > MOST_ENTRIES):
            break
        chosen.append(UnitWork(number, unit))
        entries += unit.entries
    return chosen


def _diff(source: Branch, some: Sequence[UnitWork]) -> list[Mapping[str, Any]]:
    """What is planned for these units; nothing if they could not be read in time."""
    rows: list[Mapping[str, Any]] = []
    namespace = source.repository.storage_namespace
    settings = partial(export_jobs.settings, region=source.region, namespace=namespace, path=ANYWHERE, tries=1)

    def read() -> list[Mapping[str, Any]]:
        export_jobs.diff(some, settings(deadline=time.time() + SECONDS), rows.extend, here=True, tag="")
        return rows

    if not some:
        return []
    answer = ask_all({"diff": read}, limit=1, seconds=SECONDS)["diff"]
    return [] if isinstance(answer, LakeMirrorError) else answer


def _planned(
    source: Branch,
    plan: Plan,
    base: str,
    target: Sequence[RangeRef],
    units: Sequence[Unit],
    some: Sequence[UnitWork],
    rows: Sequence[Mapping[str, Any]],
) -> Planned:
    wish, complete = plan.wish, len(rows) == len(units)
    share = _share(units, some, rows)
    copies, removals, size = (_scaled(rows, name, share) for name in ("to_copy", "to_delete", "copy_bytes"))
    if not base:
        copies, removals = copies if complete else sum(ref.count for ref in target), removals or 0
    within, pace = _pace(source.region, wish.path)
    cost = None
    if copies is not None and size is not None:
        cost = run_cost(
            copies=copies,
            removals=removals or 0,
            size=size,
            ranges=len(units),
            within=within,
            compare=not base,
            pace=pace,
            objects_limit=wish.objects_per_second,
            bytes_limit=wish.bytes_per_second,
        )
    return Planned(
        commit=source.commit.id,
        base=base,
        full=not base,
        copies=copies,
        removals=removals,
        bytes=size,
        estimated=not complete and (bool(base) or _leaves_out(plan, target)),
        bytes_estimated=not complete,
        ranges=len(units),
        read=len(rows),
        within=within,
        pace=pace,
        cost=cost,
    )


def _leaves_out(plan: Plan, target: Sequence[RangeRef]) -> bool:
    """May it be that not all files of the commit are wanted?"""
    return not plan.actions and any(map(ACTIONS.overlaps, target))


def _share(units: Sequence[Unit], some: Sequence[UnitWork], rows: Sequence[Mapping[str, Any]]) -> float | None:
    """By how much figures of what was read are multiplied to be those of all; None if nothing was read."""
    if not units:
        return 1.0
    read = {row["unit"] for row in rows}
    entries = sum(item.unit.entries for item in some if item.number in read)
    return sum(unit.entries for unit in units) / entries if entries else None


def _scaled(rows: Sequence[Mapping[str, Any]], name: str, share: float | None) -> int | None:
    return None if share is None else round(sum(row[name] for row in rows) * share)


# --- how fast ---------------------------------------------------------------------------------------------------------


def _pace(region: str, path: str) -> tuple[bool, Pace]:
    """Whether the store copies by itself, and how fast: as the last runs to the same bucket, or assumed."""
    bucket = path.partition("://")[2].partition("/")[0]
    route = region_settings.export_route(region, path)
    within = route is not None and route.within
    return within, _measured(region, bucket) or (WITHIN if within else THROUGH)


def _measured(region: str, bucket: str) -> Pace | None:
    """By runs that ended well."""
    runs = ExportRun.objects.filter(export__region=region, path__startswith=f"s3://{bucket}/", copied__gte=MANY)
    ended = runs.filter(outcome=State.SUCCESS, ended_at__isnull=False).order_by("-pk")[:RUNS]
    figures = list(ended.values_list("copied", "copied_bytes", "started_at", "ended_at"))
    seconds = sum((ended_at - started_at).total_seconds() for _, _, started_at, ended_at in figures)
    copied, size = sum(row[0] for row in figures), sum(row[1] for row in figures)
    if not seconds or not size:
        return None
    return Pace(copied / seconds, size / seconds, measured=True)
