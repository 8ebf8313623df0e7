"""Running the Spark `check` job for a mirror, and writing down what it finds as it comes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import Count

from core.errors import LakeMirrorError
from core.presence import Reason
from core.validation import RangeCheck, verify_again_at
from lakemirror_site import config, wiring
from mirrors.blockers import KEPT_PER_HOLDER, Problem, note_problems
from mirrors.duties import Lease
from mirrors.models import Blocker, Coverage, Mirror, Run

_OF_RANGE = {Reason.RANGE_MISSING, Reason.RANGE_DAMAGED}


def run_checks(
    mirror: Mirror, checks: Sequence[RangeCheck], lease: Lease, *, again: Callable[[set[str]], None] | None = None
) -> None:
    """Check ranges at the destination by Spark; coverage and blockers are written batch by batch.

    `again`: they had been complete, so what is wrong now is damage; it is told of each batch, in its transaction.
    A run that breaks off keeps what it had written. Raises what the job raised.
    """
    _end_orphans(mirror)
    job = "verify" if again else "check"
    run = Run.objects.create(mirror=mirror, job=job, started_at=datetime.now(UTC), ranges=len(checks))
    writer = _Writer(mirror, {check.range_id: check for check in checks}, run, lease, again=again)
    try:
        with lease.kept():
            wiring.run_check(mirror, [(check.range_id, list(check.base_ids)) for check in checks], writer.write)
    except LakeMirrorError as error:
        _end(run, "failed", error.message)
        raise
    except Exception as error:
        _end(run, "failed", f"{type(error).__name__}: {error}"[:2000])
        raise
    _end(run, "done", "")


def next_check(range_id: str, now: datetime) -> datetime:
    """When a range that is complete now is checked again."""
    return verify_again_at(range_id, now, config.current().validator.reverify_after)


def _end_orphans(mirror: Mirror) -> None:
    """We hold the lease: a run that still counts as running lost its worker."""
    orphans = mirror.runs.filter(ended_at=None)
    orphans.update(outcome="broken-off", error="its worker ended before it did", ended_at=datetime.now(UTC))


def _end(run: Run, outcome: str, error: str) -> None:
    run.outcome, run.error, run.ended_at = outcome, error, datetime.now(UTC)
    run.save()


class _Writer:
    """Takes result rows as they come and writes ranges down once all of their problems are known."""

    def __init__(
        self,
        mirror: Mirror,
        checks: Mapping[str, RangeCheck],
        run: Run,
        lease: Lease,
        *,
        again: Callable[[set[str]], None] | None,
    ) -> None:
        self.mirror, self.checks, self.run, self.lease, self.again = mirror, checks, run, lease, again
        self.problems: dict[str, list[Problem]] = defaultdict(list)
        self.most = {holder: KEPT_PER_HOLDER + 4 * known for holder, known in self._known().items()}

    def _known(self) -> dict[str, int]:
        """How many problems each range has by name. One that is checked again because those led nowhere keeps more."""
        asked = list(self.checks)
        known: dict[str, int] = {}
        for start in range(0, len(asked), 500):
            named = self.mirror.blockers.filter(holder_id__in=asked[start : start + 500]).order_by()
            known.update(named.values_list("holder_id").annotate(Count("pk")))
        return known

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of CHECK_COLUMNS; a range's problems stand before its own row."""
        ranges = []
        for row in rows:
            if row["kind"] == "problem":
                self._collect(row)
            else:
                ranges.append(row)
        if ranges:
            with transaction.atomic():
                self.lease.hold()
                self._write_ranges(ranges)

    def _collect(self, row: Mapping[str, Any]) -> None:
        kept = self.problems[row["range_id"]]
        if len(kept) < self.most.get(row["range_id"], KEPT_PER_HOLDER):
            kept.append(_problem(row, damage=self.again is not None))

    def _write_ranges(self, rows: list[Mapping[str, Any]]) -> None:
        now = datetime.now(UTC)
        note_problems(self.mirror, [p for row in rows for p in self.problems[row["range_id"]]])
        self._drop_stale_blockers(rows)
        Coverage.objects.bulk_create(
            [self._coverage(row, now) for row in rows],
            batch_size=400,
            update_conflicts=True,
            unique_fields=["mirror", "range_id"],
            update_fields=[
                "state",
                "depth",
                "bases",
                "entries",
                "bytes",
                "looked_up",
                "problems",
                "note",
                "checked_at",
                "verify_at",
            ],
        )
        self._count(rows)
        if self.again is not None:
            self.again({row["range_id"] for row in rows})

    def _drop_stale_blockers(self, rows: list[Mapping[str, Any]]) -> None:
        """What an earlier check found and this one did not."""
        for row in rows:
            found = {p.key for p in self.problems[row["range_id"]]}
            stale = (
                self.mirror.blockers.filter(holder_id=row["range_id"]).exclude(key__in=found)
                if len(found) < 500
                else None
            )
            if stale is not None:
                stale.delete()

    def _coverage(self, row: Mapping[str, Any], now: datetime) -> Coverage:
        bad = row["problems"]
        return Coverage(
            mirror=self.mirror,
            range_id=row["range_id"],
            state=Coverage.State.WAITING if bad else Coverage.State.COMPLETE,
            depth=self.mirror.depth,
            bases=list(self.checks[row["range_id"]].base_ids),
            entries=row["entries"],
            bytes=row["bytes"],
            looked_up=row["looked_up"],
            problems=bad,
            note=(row.get("detail") or "")[:2000],
            checked_at=now,
            verify_at=None if bad else next_check(row["range_id"], now),
        )

    def _count(self, rows: list[Mapping[str, Any]]) -> None:
        run = self.run
        run.ranges_done += len(rows)
        run.entries += sum(row["entries"] for row in rows)
        run.looked_up += sum(row["looked_up"] for row in rows)
        run.requests += sum(row["s3_requests"] for row in rows)
        run.problems += sum(row["problems"] for row in rows)
        run.save()


def _problem(row: Mapping[str, Any], *, damage: bool) -> Problem:
    of_range = row["reason"] in _OF_RANGE
    return Problem(
        kind=Blocker.Kind.RANGE if of_range else Blocker.Kind.OBJECT,
        holder_id=row["range_id"],
        address=row["address"],
        reason=row["reason"],
        path=bytes(row["path"] or b""),
        size=row["size"],
        etag=row["etag"] or "",
        detail=row["detail"] or "",
        damage=damage,
    )
