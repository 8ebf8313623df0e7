"""Running the `check` job for a mirror, mostly by Spark, and writing down what it finds as it comes."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Count, F, Q

from core.errors import LakeMirrorError, Stopped
from core.mirroring.check_planning import Data, RangeCheck, is_small, state_with
from core.mirroring.doubt import KEY_BYTES, KnownRange, Suspect, with_memory
from core.mirroring.object_check import OF_RANGE, Depth
from db import clock
from db.chunks import chunks
from deployment import config
from deployment.wiring import check_jobs
from jobs.lease import Lease
from mirroring.validate.bringing_progress import RunProgress
from mirroring.validate.check_depth import HowDeep, as_deep, as_found, found_deeper
from mirroring.validate.copying_limits import CopiedOtherwise, follow_limits
from mirroring.validate.doubt_new_coverage import question_built_on_doubt, question_shared, question_unnamed
from mirrors.models import Blocker, Coverage, Mirror, Run
from mirrors.models.problem import FOUND_BY_READING, KEPT_PER_HOLDER, Problem
from mirrors.models.waived import waived_addresses
from mirrors.transitions.blockers import note_problems
from mirrors.transitions.doubt import doubt_holders, doubt_sharers
from mirrors.transitions.measures import note_checked
from mirrors.transitions.range_states import next_check, reopen
from mirrors.transitions.validity import locked_mirror
from spark_jobs.tasks import error_of

MOST_KEYS = 500
"""A check that finds more problems of a range drops none that were known before."""
FAILED = "failed"
LIMITS_SECONDS, PROGRESS_SECONDS = 1.0, 3.0
log = logging.getLogger("lakemirror.checks")
_CHECKED = [
    "state",
    "depth",
    "deeper",
    "doubt",
    "bases",
    "min_key",
    "max_key",
    "looked",
    "entries",
    "bytes",
    "looked_up",
    "problems",
    "note",
    "checked_at",
    "verify_at",
]


def run_checks(mirror: Mirror, checks: Sequence[RangeCheck], lease: Lease) -> None:
    """Check ranges at the destination; coverage and blockers are written batch by batch.

    By Spark, unless so little is new that a job would take longer to start than to do. What a deeper look has found
    damaged is looked at as deep again: a check that can't see the damage must not end it.
    """
    most = config.current().validator.small_check_entries
    found_by = found_deeper(mirror, [check.range_id for check in checks])
    groups: dict[HowDeep, list[RangeCheck]] = defaultdict(list)
    for check in checks:
        deeper = found_by.get(check.range_id, "")
        look = as_found(Depth(mirror.depth), deeper)
        groups[look].append(replace(check, base_ids=()) if deeper else check)  # its bases were not looked at so deep
    for look, some in groups.items():
        carry_out(CheckWriter(mirror, some, lease, look=look), small=is_small(some, most))


def carry_out(writer: CheckWriter, *, small: bool = False) -> None:
    """Run the job that a writer waits for; one that breaks off keeps what it had written. Raises what it raised."""
    mirror, run = writer.mirror, writer.run
    _end_orphans(mirror)
    run.save()
    try:
        _look(writer, small=small)
    except CopiedOtherwise:
        log.info("%s: how it copies was changed: it goes on by that", mirror.name)
    except Stopped as error:
        _end(run, "stopped", error.message)
        raise
    except LakeMirrorError as error:
        _end(run, "failed", error.message)
        raise
    except Exception as error:
        _end(run, "failed", f"{type(error).__name__}: {error}"[:2000])
        raise
    _end(run, "done", "")


def _look(writer: CheckWriter, *, small: bool) -> None:
    mirror, work = as_deep(writer.mirror, writer.look), writer.work()
    rows = check_jobs.check_small(mirror, work, writer.write) if small else None
    if rows is None:
        writer.by_spark_since = check_jobs.machine_time()
        try:
            check_jobs.run_check(mirror, work, writer.write)
        finally:
            writer.progress.end()
        return
    writer.write([row for row in rows if row["kind"] != FAILED])
    for row in rows:
        if row["kind"] == FAILED:
            raise error_of(row)


def _end_orphans(mirror: Mirror) -> None:
    """We hold the lease: a run that still counts as running lost its worker."""
    orphans = mirror.runs.filter(ended_at=None)
    orphans.update(outcome="broken-off", error="its worker ended before it did", ended_at=clock.now())


def _end(run: Run, outcome: str, error: str) -> None:
    run.outcome, run.error, run.ended_at = outcome, error, clock.now()
    run.save(update_fields=["outcome", "error", "ended_at"])


class CheckWriter:
    """Takes result rows as they come and writes ranges down once all of their problems are known."""

    job = "check"
    had_been_complete: Collection[str] = ()
    by_spark_since = 0.0

    def __init__(self, mirror: Mirror, checks: Sequence[RangeCheck], lease: Lease, *, look: HowDeep) -> None:
        self.mirror, self.lease, self.look, self.depth = mirror, lease, look, look.depth
        self.checks = {check.range_id: check for check in checks}
        self.run = Run(mirror=mirror, job=self.job, started_at=clock.now(), ranges=len(checks))
        self.bases = {check.range_id: check.base_ids for check in checks}
        self.problems: dict[str, list[Problem]] = defaultdict(list)
        self.nameless: dict[str, list[Suspect]] = defaultdict(list)
        self.read_nameless = set[str]()
        self.unread: Mapping[str, int] = {}
        self.lost = set[tuple[str, str]]()
        self.limits_asked, self.waived = time.monotonic(), waived_addresses(mirror)
        self.progress_asked = self.limits_asked
        self.progress = RunProgress(self.run)
        for some in chunks(list(self.checks)):
            lost = mirror.blockers.held_by(some).filter(gone_at_source=True).order_by()
            self.lost.update(lost.values_list("holder_id", "key"))
        self.most = {holder: KEPT_PER_HOLDER + 4 * known for holder, known in self._known().items()}

    def work(self) -> list[tuple[str, list[str]]]:
        """Range ids, each with those of the bases that it is checked on."""
        return [(check.range_id, list(check.base_ids)) for check in self.checks.values()]

    def deeper(self, range_id: str) -> str:
        """The depth of this check, if it is deeper than the mirror's own, or reading found what is not kept by name."""
        is_deeper = self.depth.is_deeper_than(Depth(self.mirror.depth))
        return self.depth.value if is_deeper or range_id in self.read_nameless else ""

    @property
    def proven_depth(self) -> str:
        """The mirror's own depth, or that of this check if it was less deep: no more than that is proven."""
        own = Depth(self.mirror.depth)
        return (self.depth if own.is_deeper_than(self.depth) else own).value

    def _known(self) -> dict[str, int]:
        """How many problems each range has by name. One that is checked again because those led nowhere keeps more."""
        known: dict[str, int] = {}
        for some in chunks(list(self.checks)):
            named = self.mirror.blockers.held_by(some).order_by()
            known.update(named.values_list("holder_id").annotate(Count("pk")))
        return known

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of CHECK_COLUMNS; a range's problems stand before its own row. Without rows: a moment to look up.

        Raises Stopped when somebody had the check stopped: from then on nothing of it is written down.
        """
        if self.is_stopped():
            raise Stopped("somebody stopped it")
        self._follow_limits()
        ranges, moved = [], []
        for row in rows:
            if row["kind"] == "problem":
                self._collect(row)
            elif row["kind"] == "bringing":
                moved.append(row)
            elif row["kind"] == "range":
                ranges.append(row)
        if moved:
            self.progress.add(moved)
        if ranges:
            with locked_mirror(self.mirror, self.lease):
                self._write_ranges(ranges)

    def _follow_limits(self) -> None:
        """Asked once a second. What was brought by then is there. Raises CopiedOtherwise."""
        if self.mirror.brings and time.monotonic() >= self.limits_asked + LIMITS_SECONDS:
            self.limits_asked = time.monotonic()
            follow_limits(self.mirror)
            if self.by_spark_since and self.limits_asked >= self.progress_asked + PROGRESS_SECONDS:
                self.progress_asked = self.limits_asked
                self.progress.look(check_jobs.copying_progress(self.mirror, len(self.checks), self.by_spark_since))

    def is_stopped(self) -> bool:
        """Whether somebody had it stopped."""
        return Run.objects.filter(pk=self.run.pk, stop_asked=True).exists()

    def _collect(self, row: Mapping[str, Any]) -> None:
        """Of a range that lacks very much only the first problems get a name; others may need the rest of it too."""
        named = self.problems[row["range_id"]]
        if len(named) < self.most.get(row["range_id"], KEPT_PER_HOLDER):
            named.append(self.problem(row))
        else:
            self.nameless[row["range_id"]].append(self.problem(row).suspect)
            if self.depth is Depth.CONTENT and row["reason"] in FOUND_BY_READING:
                self.read_nameless.add(row["range_id"])

    def problem(self, row: Mapping[str, Any]) -> Problem:
        """What a row of the job tells. What is known to be gone at both sides is no news, and stays so until it is
        looked for again."""
        problem = _problem(row, damage=row["range_id"] in self.had_been_complete)
        lost = (problem.holder_id, problem.key) in self.lost and problem.reason.endswith(("missing", "unreadable"))
        return replace(problem, gone_at_source=lost)

    def state_of(self, row: Mapping[str, Any]) -> Data | None:
        """What a range is now; None: what it was before."""
        lost = sum(map(self.waived.accept, self.problems[row["range_id"]]))
        return state_with(row["problems"], gone=lost)

    def _write_ranges(self, rows: list[Mapping[str, Any]]) -> None:
        self.waived = waived_addresses(self.mirror)
        new = self._first_seen(rows)
        self.note(rows)
        self._count(rows)
        self.settle(rows)
        note_checked(
            self.mirror,
            sum(row["entries"] for row in rows),
            sum(row["bytes"] for row in rows),
            new_objects=sum(row["looked_up"] for row in new),
            new_size=sum(row["new_bytes"] or 0 for row in new),
        )

    def _first_seen(self, rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those of ranges that were never checked before."""
        known: set[str] = set()
        for some in chunks([row["range_id"] for row in rows]):
            known.update(self.mirror.coverage.filter(range_id__in=some).values_list("range_id", flat=True))
        return [row for row in rows if row["range_id"] not in known]

    def note(self, rows: list[Mapping[str, Any]]) -> None:
        """Blockers and coverage of ranges that were looked through, inside of a transaction that holds the lease."""
        now = clock.now()
        for some in chunks([row["range_id"] for row in rows]):  # what was only remembered of them is waited for now
            self.mirror.blockers.held_by(some).filter(unneeded=True).update(unneeded=False, look_at=now)
        note_problems(self.mirror, [p for row in rows for p in self.problems[row["range_id"]]])
        for row in rows:
            nameless = self.nameless[row["range_id"]]
            doubt_sharers(self.mirror, [row["range_id"]], nameless, named=False, deeper=self.deeper(row["range_id"]))
        self.drop_stale_blockers(rows)
        self.unread = self._keep_unread(rows)
        self.store([self.coverage(row, now) for row in rows])

    def settle(self, rows: list[Mapping[str, Any]]) -> None:
        """What follows from ranges that were written down, in the same transaction: for new ones nothing."""

    def store(self, rows: list[Coverage]) -> None:
        """Write coverage, over what there was. What had been complete, and is so no more, is in question everywhere."""
        parts = chunks([row.range_id for row in rows])
        known = (row for some in parts for row in self.mirror.coverage.filter(range_id__in=some))
        before: dict[str, Coverage] = {row.range_id: row for row in known}
        for row in rows:
            _keep_what_was_looked_for(row, before.get(row.range_id))
        question_shared(self.mirror, rows)
        question_unnamed(self.mirror, rows, self.not_seen_by)
        built_on = {range_id: check.base_ids for range_id, check in self.checks.items()}
        question_built_on_doubt(self.mirror, rows, built_on)
        Coverage.objects.bulk_create(
            rows, batch_size=400, update_conflicts=True, unique_fields=["mirror", "range_id"], update_fields=_CHECKED
        )
        counted = {range_id for range_id, row in before.items() if row.state != Coverage.State.WAITING}
        doubt_holders(
            self.mirror,
            [row.range_id for row in rows if row.state == Coverage.State.WAITING and row.range_id in counted],
        )
        open_ones = {range_id for range_id, row in before.items() if row.state != Coverage.State.COMPLETE}
        reopen(self.mirror, {row.range_id for row in rows if row.state == Coverage.State.COMPLETE} & open_ones)

    @property
    def not_seen_by(self) -> list[str]:
        """Depths of a look that may find what this check can't."""
        unread = [] if self.reads_all else [Depth.CONTENT.value]
        return [depth.value for depth in self.depth.deeper] or unread

    def drop_stale_blockers(self, rows: list[Mapping[str, Any]]) -> None:
        """Forget what an earlier check found and this one did not. A range that it couldn't read tells nothing."""
        for row in rows:
            if any(p.kind == Blocker.Kind.RANGE for p in self.problems[row["range_id"]]):
                continue
            if (stale := self._not_found_again(row["range_id"])) is not None:
                stale.exclude(self._unread()).delete()

    def _not_found_again(self, range_id: str) -> models.QuerySet[Blocker] | None:
        """Blockers of a range that this check did not find; None: it found too many to tell."""
        keys = {p.key for p in self.problems[range_id]}
        return self.mirror.blockers.held_by([range_id]).exclude(key__in=keys) if len(keys) < MOST_KEYS else None

    def _unread(self) -> Q:
        """What reading found wrong is over when it was read again, and this check may have read others."""
        return Q(pk__in=[]) if self.reads_all else Q(must_read=True)

    @property
    def reads_all(self) -> bool:
        """Whether every object is read, and not only a share or none."""
        return self.depth is Depth.CONTENT and (self.look.reads_all or self.mirror.content_sample >= 1)

    def _keep_unread(self, rows: list[Mapping[str, Any]]) -> dict[str, int]:
        """How many of those each range has; they are looked for, and read, at once."""
        holders: set[str] = set()
        for some in chunks([row["range_id"] for row in rows]):
            unread = self.mirror.blockers.held_by(some).filter(self._unread()).order_by()
            holders.update(unread.values_list("holder_id", flat=True))
        kept: dict[str, int] = {}
        for range_id in holders:
            stale = self._not_found_again(range_id)
            if stale is not None and (number := stale.filter(self._unread()).update(look_at=clock.now())):
                kept[range_id] = number
        return kept

    def coverage(self, row: Mapping[str, Any], now: datetime) -> Coverage:
        """A range's row, by what was found of it."""
        unread = self.unread.get(row["range_id"], 0)
        bad, state = row["problems"] + unread, self.state_of(row) or Data.COMPLETE
        state = Data.WAITING if unread else state
        return Coverage(
            mirror=self.mirror,
            range_id=row["range_id"],
            state=state.value,
            depth=self.proven_depth,
            deeper=self.deeper(row["range_id"]) if bad else "",
            doubt=Coverage.Doubt.NONE,
            bases=list(self.bases[row["range_id"]]),
            min_key=row["min_key"][:KEY_BYTES],
            max_key=row["max_key"][:KEY_BYTES],
            looked=row["looked"],
            entries=row["entries"],
            bytes=row["bytes"],
            looked_up=row["looked_up"],
            problems=bad,
            note=(row.get("detail") or "")[:2000],
            checked_at=now,
            verify_at=None if state is Data.WAITING else next_check(row["range_id"], now),
        )

    def _count(self, rows: list[Mapping[str, Any]]) -> None:
        """In the transaction that writes the rows down: one that was stopped meanwhile takes them back."""
        counts = {"ranges_done": len(rows), "requests": sum(row["s3_requests"] for row in rows)}
        counts |= {name: sum(row[name] for row in rows) for name in ("entries", "looked_up", "problems")}
        going_on = Run.objects.filter(pk=self.run.pk, stop_asked=False)
        if not going_on.update(**{name: F(name) + number for name, number in counts.items()}):
            raise Stopped("somebody stopped it")


def _keep_what_was_looked_for(row: Coverage, before: Coverage | None) -> None:
    """Others build on this range by what earlier checks of it had looked for: a row never knows less of that."""
    if before is None or before.looked is None:
        return
    merged = with_memory(_known(row), _known(before))
    row.looked, row.bases, row.min_key, row.max_key = merged.looked, list(merged.bases), merged.min_key, merged.max_key


def _known(row: Coverage) -> KnownRange:
    low, high = bytes(row.min_key or b""), bytes(row.max_key or b"")
    return KnownRange(row.range_id, low, high, bytes(row.looked or b""), row.bases)


def _problem(row: Mapping[str, Any], *, damage: bool) -> Problem:
    of_range = row["reason"] in OF_RANGE
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
        full=row.get("full"),
    )
