"""Checks that somebody asked for: everything that some commits name, from the bytes, whatever coverage says.

A request is a row. The validator carries it out, some of it in each of its rounds, after the work on new commits; the
ranges that are left are rows too, and go in the transaction that writes down what was found of them. So a worker may
end at any moment. What is missing or wrong becomes damage, as when ranges are checked again by their age.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from django.db.models import F

from core.errors import Fenced, LakeMirrorError, Stopped
from core.mirroring.check_planning import Data, RangeCheck
from core.mirroring.object_check import Depth, shallower_of
from db import clock
from db.chunks import chunks
from jobs.lease import Lease
from mirroring.validate.check_depth import HowDeep, as_found, found_deeper
from mirroring.validate.reverify import within_budget
from mirroring.validate.run_check import CheckWriter, carry_out
from mirrors.models import Coverage, Mirror, Validation, ValidationRange
from mirrors.queries.metaranges import read_afresh
from mirrors.transitions.metarange_states import note_metaranges
from mirrors.transitions.range_states import reopen
from mirrors.transitions.validity import NOTHING, locked_mirror

METARANGES = 50
"""A round reads so many metaranges at most, and then checks what verifying.BATCH and its budget allow."""
BATCH = 200
READERS = 8


# --- carrying out ---------------------------------------------------------------------------------------------------


def is_asked(mirror: Mirror) -> bool:
    """Whether a check on demand has not ended."""
    return mirror.validations.open().exists()


def advance(mirror: Mirror, lease: Lease) -> LakeMirrorError | None:
    """One round's share of what is asked for; gives what it failed of, which must delay no other work.

    One that somebody stops ends there, and everything else goes on.
    """
    validation = mirror.validations.open().first()
    if validation is None:
        return None
    try:
        return _try(mirror, validation, lease)
    except Stopped:
        return None


def _try(mirror: Mirror, validation: Validation, lease: Lease) -> LakeMirrorError | None:
    try:
        _advance(mirror, validation, lease)
    except (Fenced, Stopped):
        raise
    except LakeMirrorError as error:
        _note(validation, lease, failed_at=clock.now(), error=str(error)[:2000])
        return error
    return None


def _advance(mirror: Mirror, validation: Validation, lease: Lease) -> None:
    if validation.started_at is None:
        _note(validation, lease, started_at=clock.now())
    if validation.metaranges:
        _read_metaranges(mirror, validation, lease)
    if not validation.metaranges:
        _check_ranges(mirror, validation, lease)
    done = not validation.metaranges and not validation.left.exists()
    ended = {"ended_at": clock.now()} if done else {}
    if ended or validation.error:
        _note(validation, lease, error="", **ended)


def _note(validation: Validation, lease: Lease, **changes: Any) -> None:
    with lease.transaction():
        _change(validation, **changes)


def _change(validation: Validation, **changes: Any) -> None:
    """Raises Stopped when somebody had it stopped: the transaction takes back what it wrote."""
    if not Validation.objects.filter(pk=validation.pk, ended_at=None).update(**changes):
        raise Stopped("somebody stopped it")


# --- metaranges -----------------------------------------------------------------------------------------------------


def _read_metaranges(mirror: Mirror, validation: Validation, lease: Lease) -> None:
    """Read the next ones from their bytes; their ranges are what is left to look through."""
    ids = validation.metaranges[:METARANGES]
    with ThreadPoolExecutor(min(READERS, len(ids))) as pool:
        read = dict(zip(ids, pool.map(lambda metarange_id: read_afresh(mirror, metarange_id), ids), strict=True))
    with locked_mirror(mirror, lease):
        problems = note_metaranges(mirror, read)
        refs = {ref.id: ref.count for metarange in read.values() for ref in metarange.ranges}
        rows = [
            ValidationRange(validation=validation, range_id=range_id, entries=refs[range_id])
            for range_id in sorted(refs)
        ]
        before = validation.left.count()
        ValidationRange.objects.bulk_create(rows, batch_size=1000, ignore_conflicts=True)
        validation.metaranges = validation.metaranges[METARANGES:]
        _change(
            validation,
            metaranges=validation.metaranges,
            ranges=F("ranges") + validation.left.count() - before,
            problems=F("problems") + len(problems),
        )


# --- ranges ---------------------------------------------------------------------------------------------------------


def _check_ranges(mirror: Mirror, validation: Validation, lease: Lease) -> None:
    """The next ones, as many as a round has the time for: each as deep as asked, or as what found it damaged before."""
    wanted_depth = Depth(validation.depth)
    remaining = list(validation.left.order_by("pk")[:BATCH])
    remaining = within_budget(remaining, [row.entries for row in remaining], wanted_depth)
    covered = mirror.coverage.proving(mirror.depth).filter(range_id__in=[row.range_id for row in remaining])
    before = {row.range_id: row for row in covered}
    deeper = found_deeper(mirror, [row.range_id for row in remaining])
    groups: dict[HowDeep, list[ValidationRange]] = defaultdict(list)
    for row in remaining:
        groups[as_found(wanted_depth, deeper.get(row.range_id, ""))].append(row)
    for look, rows in groups.items():
        carry_out(_OnDemand(validation, mirror, rows, before, lease, look=look))


class _OnDemand(CheckWriter):
    """Writes down what is found of ranges that somebody asked about.

    A check that is less deep than the mirror's own proves nothing complete; what it finds wrong counts all the same.
    """

    job = "validate"

    def __init__(
        self,
        validation: Validation,
        mirror: Mirror,
        rows: Sequence[ValidationRange],
        before: Mapping[str, Coverage],
        lease: Lease,
        *,
        look: HowDeep,
    ) -> None:
        super().__init__(mirror, [RangeCheck(row.range_id, (), row.entries) for row in rows], lease, look=look)
        self.run.validation = validation
        self.validation, self.before = validation, before
        self.bases = {range_id: tuple(before[range_id].bases) if range_id in before else () for range_id in self.checks}
        self.deep_enough = not Depth(mirror.depth).is_deeper_than(look.depth)
        known = [row for some in chunks(list(self.checks)) for row in mirror.blockers.held_by(some)]
        self.had_been_complete = {row.holder_id for row in known if row.damage}
        self.had_been_complete |= {range_id for range_id, row in before.items() if row.may_have_been_complete}

    def is_stopped(self) -> bool:
        return super().is_stopped() or not Validation.objects.filter(pk=self.validation.pk, ended_at=None).exists()

    def state_of(self, row: Mapping[str, Any]) -> Data | None:
        """None: what it was before, for a check that is less deep than the mirror's proves nothing complete."""
        state = super().state_of(row)
        return state if state is Data.WAITING or self.deep_enough else None

    def note(self, rows: list[Mapping[str, Any]]) -> None:
        super().note([row for row in rows if self.state_of(row) is not None])

    def drop_stale_blockers(self, rows: list[Mapping[str, Any]]) -> None:
        if self.deep_enough:
            super().drop_stale_blockers(rows)

    def coverage(self, row: Mapping[str, Any], now: datetime) -> Coverage:
        made, known = super().coverage(row, now), self.before.get(row["range_id"])
        made.state = made.state if row["range_id"] in self.unread else self.state_of(row) or made.state
        if not self.deep_enough and known is None:
            made.depth = NOTHING
        elif not self.deep_enough and known is not None:
            made.problems = max(made.problems, known.problems)
            made.depth, made.checked_at = known.depth, known.checked_at
            if made.state == Data.WAITING:  # looks as deep as the mirror's own will complete it
                made.depth = shallower_of(known.depth, self.mirror.depth)
            if known.state == Coverage.State.WAITING:
                made.verify_at, made.doubt = known.verify_at, known.doubt
        return made

    def settle(self, rows: list[Mapping[str, Any]]) -> None:
        """Tell those that depend on the ranges, and the request; in the transaction that wrote the ranges down."""
        now = {row["range_id"]: self.state_of(row) for row in rows}
        changed = {range_id for range_id, state in now.items() if state is not None}
        reopen(self.mirror, changed - {row.range_id for row in self.before.values() if row.state == Data.COMPLETE})
        self.validation.left.filter(range_id__in=list(now)).delete()
        _change(
            self.validation,
            ranges_done=F("ranges_done") + len(rows),
            entries=F("entries") + sum(row["entries"] for row in rows),
            problems=F("problems") + sum(row["problems"] for row in rows),
        )
