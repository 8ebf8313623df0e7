"""Units of a run as rows: cut from metaranges, kept as JSON, handed to the jobs."""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F

from core.errors import Corrupt, NotFound
from core.exporting.unit_planning import Unit, parts_of, plan_units
from core.exporting.unit_values import UnitWork
from core.exporting.unit_windows import plan_with_actions_anew, plan_without_actions
from exports.engine import drift_repairs
from exports.engine.commits_behind import between_runs, note_skipped
from exports.engine.source_commits import commit_of, ranges_of
from exports.models import ExportDirectory, ExportRun, ExportUnit
from graveler.metarange import RangeRef
from jobs.lease import Lease

log = logging.getLogger("lakemirror.export")

ROWS_AT_ONCE = 500


def cut(run: ExportRun, lease: Lease) -> None:
    """Cut a run's work into units: once, whoever tries. A run without a base, or that has lost a commit, compares with
    what is there."""
    export = run.export
    units, lost = _units(run)
    rows = [
        ExportUnit(run=run, number=number, unit=to_json(unit), entries=unit.entries)
        for number, unit in enumerate(units)
    ]
    message = commit_of(export, run.ref).message
    run.base = "" if run.base in lost else run.base
    run.attempted, run.lost = [ref for ref in run.attempted if ref not in lost], lost
    run.compare = run.compare or not run.base or run.actions_anew or bool(run.attempted or run.lost)
    skipped = between_runs(run)
    with transaction.atomic():
        lease.lock()
        run.units.all().delete()
        ExportUnit.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
        run.cut, run.message = True, message
        run.save(update_fields=["cut", "compare", "message", "base", "attempted", "lost"])
        note_skipped(run, skipped)
    if lost:
        log.warning("%s: nobody knows any more what was brought with %s", run, ", ".join(lost))


def _units(run: ExportRun) -> tuple[list[Unit], list[str]]:
    """Units by the commits of which the source still knows what they hold, and the commits that are lost.

    The target has to be there. Another commit, or its metadata, may be gone from the source for good: then what the
    destination holds of it is not known. Raises NotFound, Corrupt for the target; what stores and installations raise.
    """
    target = ranges_of(run.export, run.ref)
    found = {ref: _ranges(run, ref) for ref in (run.base, *run.attempted)}
    known = [ranges for ranges in found.values() if ranges is not None]
    lost = [*run.lost, *(ref for ref, ranges in found.items() if ranges is None)]
    # What is lost may have changed any key: one that is empty stands for it, so that all keys are planned.
    others = [*known, []] if lost else known
    units = sorted(_with_or_without_actions(run, target, others), key=lambda unit: unit.low)
    return (drift_repairs.narrow(run, units) if run.repairs_id else units), lost


def _with_or_without_actions(
    run: ExportRun, target: Sequence[RangeRef], others: Sequence[Sequence[RangeRef]]
) -> Iterator[Unit]:
    if not run.actions:
        return plan_without_actions(target, others, anew=run.actions_anew)
    return plan_with_actions_anew(target, others) if run.actions_anew else plan_units(target, others)


def _ranges(run: ExportRun, ref: str) -> list[RangeRef] | None:
    try:
        return ranges_of(run.export, ref)
    except (Corrupt, NotFound):
        return None


def lose(run: ExportRun, unreadable: Collection[str], lease: Lease) -> None:
    """The plan begins anew without the commits of which one of these ranges can't be read any more."""
    lost = [ref for ref in filter(None, (run.base, *run.attempted)) if _holds(run, ref, unreadable)]
    with transaction.atomic():
        lease.lock()
        run.units.all().delete()
        run.directories.all().delete()
        ExportRun.objects.filter(pk=run.pk).update(
            cut=False,
            base="" if run.base in lost else run.base,
            attempted=[ref for ref in run.attempted if ref not in lost],
            lost=[*run.lost, *lost],
            to_copy=0,
            to_copy_bytes=0,
            to_delete=0,
        )


def _holds(run: ExportRun, ref: str, range_ids: Collection[str]) -> bool:
    ranges = _ranges(run, ref)
    return ranges is None or any(range_ref.id in range_ids for range_ref in ranges)


def work_of(row: ExportUnit) -> UnitWork:
    """A row as the jobs take it."""
    remaining = None if row.left is None else tuple((start, stop) for start, stop in row.left)
    return UnitWork(row.number, of_json(row.unit, row.entries), row.part, row.parts, remaining)


def note_planned(run: ExportRun, rows: Iterable[dict[str, Any]]) -> None:
    """What the diff job found of some units, each counted once. One of which nothing is planned goes; a large one is
    cut into parts. Inside of a transaction."""
    for row in rows:
        _note_one(run, row)


def _note_one(run: ExportRun, row: dict[str, Any]) -> None:
    unit = run.units.select_for_update().filter(number=row["unit"], planned=False).first()
    if unit is None:
        return
    ExportRun.objects.filter(pk=run.pk).update(
        to_copy=F("to_copy") + row["to_copy"],
        to_copy_bytes=F("to_copy_bytes") + row["copy_bytes"],
        to_delete=F("to_delete") + row["to_delete"],
        requests=F("requests") + row["requests"],
    )
    directories = [ExportDirectory(run=run, path=path, depth=path.count(b"/")) for path in row["directories"]]
    ExportDirectory.objects.bulk_create(directories, batch_size=ROWS_AT_ONCE, ignore_conflicts=True)
    files = row["to_copy"] + row["to_delete"]
    if not files:
        unit.delete()
        return
    unit.planned, unit.files, unit.last_keys = True, files, row["last_keys"]
    unit.parts = parts_of(files, row["copy_bytes"])
    unit.save(update_fields=["planned", "files", "last_keys", "parts"])
    more = [_part(unit, number) for number in range(1, unit.parts)]
    ExportUnit.objects.bulk_create(more, batch_size=ROWS_AT_ONCE)


def _part(unit: ExportUnit, number: int) -> ExportUnit:
    names = ("run", "number", "parts", "unit", "entries", "planned", "files", "last_keys")
    return ExportUnit(part=number, **{name: getattr(unit, name) for name in names})


def to_json(unit: Unit) -> dict[str, Any]:
    """A unit as a column keeps it: keys are bytes."""
    high = None if unit.high is None else b64encode(unit.high).decode()
    others = [list(ids) for ids in unit.others]
    return {"low": b64encode(unit.low).decode(), "high": high, "target": unit.target, "others": others}


def of_json(fields: dict[str, Any], entries: int) -> Unit:
    """The unit that was kept."""
    high = None if fields["high"] is None else b64decode(fields["high"])
    others = tuple(tuple(ids) for ids in fields["others"])
    return Unit(b64decode(fields["low"]), high, fields["target"], others, entries)
