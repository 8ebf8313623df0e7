"""A verification at work: the destination is compared with the commit of the last success, in slices as a run's.

It writes nothing at the destination. What it has seen stands in the database, and it goes on there whoever dies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from django.db import transaction
from django.db.models import F

from core.errors import Fenced, LakeMirrorError, RemoteFailure
from core.exporting.deadline import Late
from core.exporting.unit_planning import Unit, plan_units
from core.exporting.unit_values import UnitWork
from core.exporting.unit_windows import ACTIONS, EVERYTHING, Window, outside
from core.text.phrases import count
from db import clock
from deployment import config
from deployment.wiring import export_jobs
from exports.engine import verifications
from exports.engine.source_commits import ranges_of
from exports.engine.unit_rows import ROWS_AT_ONCE, of_json, to_json
from exports.models import ExportDrift, ExportVerification, VerificationUnit
from jobs.lease import DutyOutcome, Lease

MOST_TAKEOVERS = 5
MOST_NAMED = 10_000
"""So many keys that drifted are rows; more are counted."""
UNITS_AT_ONCE, ENTRIES_AT_ONCE = 256, 3_000_000

Verdict = ExportVerification.Outcome


def carry(it: ExportVerification, lease: Lease, *, last_try: bool) -> DutyOutcome:
    """A slice of it. What may pass by itself is tried again; another error is how it ends."""
    if it.in_hand and it.takeovers >= MOST_TAKEOVERS:
        return _failed(it, lease, RemoteFailure(f"its worker was lost {MOST_TAKEOVERS + 1} times in a row"))
    _take(it)
    try:
        with lease.keep_alive():
            _slice(it, lease)
    except Fenced:
        raise
    except Late:
        return DutyOutcome("the verification is outdated: a run began", 0.0)
    except LakeMirrorError as error:
        _hand_back(it)
        if error.retryable and not last_try:
            raise
        return _failed(it, lease, error)
    _hand_back(it, takeovers=0)
    it.refresh_from_db()
    progress = it.outcome or f"{it.seen:,} of {count(it.files, 'file')} compared"
    return DutyOutcome(f"verification of {it.ref[:8]}: {progress}", 0.0)


def _take(it: ExportVerification) -> None:
    """In hand still means that somebody was gone in the middle of it: what kills a worker may kill the next one."""
    if it.in_hand:
        it.takeovers += 1
    it.in_hand = True
    it.save(update_fields=["in_hand", "takeovers"])


def _hand_back(it: ExportVerification, **values: int) -> None:
    ExportVerification.objects.filter(pk=it.pk).update(in_hand=False, **values)


def _failed(it: ExportVerification, lease: Lease, error: LakeMirrorError) -> DutyOutcome:
    with transaction.atomic():
        lease.lock()
        verifications.end(it, Verdict.FAILED, str(error))
    return DutyOutcome(f"could not verify: {error}", 0.0)


def _slice(it: ExportVerification, lease: Lease) -> None:
    deadline = clock.now().timestamp() + config.current().exports.slice.total_seconds()
    if not it.cut:
        _cut(it, lease)
    while clock.now().timestamp() < deadline:
        rows = _some(it)
        if not rows:
            return _succeeded(it, lease)
        _compare(it, rows, deadline, lease)


def _succeeded(it: ExportVerification, lease: Lease) -> None:
    it.refresh_from_db()
    with transaction.atomic():
        lease.lock()
        ExportVerification.objects.filter(pk=it.pk).update(files=it.seen)  # units may have told of more than is theirs
        verifications.end(it, Verdict.DRIFTED if it.drifted else Verdict.EQUAL)


def _cut(it: ExportVerification, lease: Lease) -> None:
    """All ranges of the commit; where it has none, or none that is exported, there is to be nothing."""
    units = list(plan_units(ranges_of(it.export, it.ref), [[]])) or [_nothing(EVERYTHING)]
    if not it.actions:
        units = sorted([*outside(units, ACTIONS), _nothing(ACTIONS)], key=lambda unit: unit.low)
    rows = [
        VerificationUnit(verification=it, number=number, unit=to_json(unit), entries=unit.entries)
        for number, unit in enumerate(units)
    ]
    with transaction.atomic():
        lease.lock()
        verifications.lock(it)
        VerificationUnit.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
        it.cut, it.files = True, sum(unit.entries for unit in units)
        it.save(update_fields=["cut", "files"])


def _nothing(window: Window) -> Unit:
    """No key of a window is in the commit."""
    return Unit(window.low, window.high, "", ((),))


def _some(it: ExportVerification) -> list[VerificationUnit]:
    candidates = list(it.units.all()[:UNITS_AT_ONCE])
    sums = accumulate(row.entries for row in candidates)
    return [row for row, sofar in zip(candidates, sums, strict=True) if sofar <= ENTRIES_AT_ONCE] or candidates[:1]


def _compare(it: ExportVerification, rows: Sequence[VerificationUnit], deadline: float, lease: Lease) -> None:
    """By the worker itself, or by Spark where the commit is large."""
    export = it.export
    settings = export_jobs.settings(
        region=export.region,
        namespace=export.storage_namespace,
        path=it.path,
        deadline=deadline,
        objects_per_second=float(export.objects_per_second or 0),
    )
    work = [UnitWork(row.number, of_json(row.unit, row.entries)) for row in rows]
    small = it.files <= config.current().validator.small_check_entries
    export_jobs.verify(work, settings, _noting(it, lease), here=small, tag=str(export.pk))


# --- what was seen ----------------------------------------------------------------------------------------------------


def _noting(it: ExportVerification, lease: Lease) -> Callable[[Sequence[Mapping[str, Any]]], None]:
    """What takes a job's rows as they come; Late ends the job when a run has begun."""

    def take(rows: Sequence[Mapping[str, Any]]) -> None:
        with transaction.atomic():
            lease.lock()
            verifications.lock(it)
            for row in rows:
                _note(it, row)

    return take


def _note(it: ExportVerification, row: Mapping[str, Any]) -> None:
    """What was seen of a unit: counted, and named as far as there is room. What is left of it begins after that."""
    named = ExportVerification.objects.values_list("named", flat=True).get(pk=it.pk)
    drift = [_drift(it, difference) for difference in row["drift"][: MOST_NAMED - named]]
    ExportDrift.objects.bulk_create(drift, batch_size=ROWS_AT_ONCE)
    ExportVerification.objects.filter(pk=it.pk).update(
        equal=F("equal") + row["equal"],
        equal_bytes=F("equal_bytes") + row["bytes"],
        missing=F("missing") + row["missing"],
        different=F("different") + row["different"],
        foreign=F("foreign") + row["foreign"],
        named=named + len(drift),
        requests=F("requests") + row["requests"],
    )
    unit = it.units.filter(number=row["unit"])
    if row["done"]:
        unit.delete()
    elif row["upto"] is not None:
        unit.update(unit=_after(unit.get(), bytes(row["upto"])))


def _drift(it: ExportVerification, difference: Mapping[str, Any]) -> ExportDrift:
    return ExportDrift(
        verification=it,
        key=bytes(difference["key"]),
        kind=difference["kind"],
        size=difference["size"],
        etag=difference["etag"] or "",
        there_size=difference["there_size"],
        there_etag=difference["there_etag"] or "",
    )


def _after(row: VerificationUnit, last: bytes) -> dict[str, Any]:
    """The unit without what is compared already."""
    unit = of_json(row.unit, row.entries)
    return to_json(Unit(max(unit.low, last + b"\0"), unit.high, unit.target, unit.others))
