"""Checking again, in the background, what had been complete: objects may be lost after they arrived.

No branch is moved back for it. What is found is a blocker, and puts in question everything that names it
(mirrors/transitions/doubt.py). New commits are no reason to leave it out: it has a share of each round.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from core.errors import Fenced, LakeMirrorError, Stopped
from core.mirroring.check_planning import RangeCheck
from core.mirroring.object_check import Depth
from db import clock
from db.chunks import chunks
from deployment import config
from jobs.lease import Lease
from mirroring.validate.check_depth import HowDeep, as_found
from mirroring.validate.run_check import CheckWriter, carry_out
from mirrors.models import Coverage, MetarangeCoverage, Mirror
from mirrors.models.querysets import CoverageQuerySet
from mirrors.queries.metaranges import load_metaranges
from mirrors.transitions.metarange_states import note_metaranges
from mirrors.transitions.range_states import reopen
from mirrors.transitions.validity import locked_mirror

log = logging.getLogger("lakemirror.verify")
T = TypeVar("T")

BATCH = 200
METARANGES = 50
MOST_LOOKS = {Depth.CONTENT: 500}
LOOKS = 20_000
BUSY_SHARE = 4
"""A round takes so many ranges, and looks at about so many objects, at most: new commits must not wait for long. While
there are new ones, it takes that part of it."""


@dataclass(frozen=True, slots=True)
class Verified:
    """How many ranges were checked again; what some that are in question `failed` of, which delays no others."""

    ranges: int = 0
    failed: LakeMirrorError | None = None


def verify(mirror: Mirror, lease: Lease, *, busy: bool) -> Verified:
    """Check ranges and metaranges again whose time has come, or which are in question."""
    doubted = _some(mirror, _doubted(mirror), busy=busy)
    failed = _verify(mirror, doubted, lease) if doubted else None
    aged = _some(mirror, _aged(mirror), busy=busy or bool(doubted))
    if aged:
        error = _verify(mirror, aged, lease)
        failed = failed or error
    elif not doubted and _due_metaranges(mirror):
        verify_metaranges(mirror, lease)
    return Verified(len(doubted) + len(aged), failed)


def _verify(mirror: Mirror, rows: Sequence[Coverage], lease: Lease) -> LakeMirrorError | None:
    """Gives what it failed of; what had been found by then was written down."""
    try:
        verify_metaranges(mirror, lease)
        carry_out(_Verifier(mirror, rows, lease))
    except (Fenced, Stopped):
        raise
    except LakeMirrorError as error:
        _put_behind(mirror, rows, lease)
        return error
    return None


def _put_behind(mirror: Mirror, rows: Sequence[Coverage], lease: Lease) -> None:
    """Those that got no answer have their next turn after all others that are due."""
    now = clock.now()
    with lease.transaction():
        mirror.coverage.filter(pk__in=[row.pk for row in rows], verify_at__lte=now).update(verify_at=now)


def has_more(mirror: Mirror) -> bool:
    """Whether there are ranges to check again, or to read, by now."""
    return mirror.coverage.to_read().exists() or _doubted(mirror).exists() or _aged(mirror).exists()


def verify_metaranges(mirror: Mirror, lease: Lease) -> None:
    """Read the metaranges whose time has come; ask for those of the heads, the longest unseen first, by HEAD."""
    due = _due_metaranges(mirror)
    ids = [*due, *_of_heads(mirror)][:METARANGES]
    if not ids:
        return
    failed: dict[str, LakeMirrorError] = {}
    metaranges = load_metaranges(mirror, ids, afresh=due, failed=failed)
    with locked_mirror(mirror, lease):
        note_metaranges(
            mirror, {metarange_id: metaranges[metarange_id] for metarange_id in ids if metarange_id in metaranges}
        )
    for metarange_id, error in failed.items():
        log.warning("%s: metarange %s could not be looked for: %s", mirror.name, metarange_id[:8], error)


def _due_metaranges(mirror: Mirror) -> list[str]:
    due = mirror.metaranges.filter(verify_at__lte=clock.now()).order_by("verify_at")
    return list(due.values_list("metarange_id", flat=True)[:METARANGES])


def _of_heads(mirror: Mirror) -> list[str]:
    """Those that readers need now: they are asked for whenever anything is verified."""
    heads = mirror.branches.filter(stray=False).values("head")
    named = mirror.source.commits.filter(sha__in=heads).values("metarange_id")
    rows = mirror.metaranges.filter(metarange_id__in=named, state=MetarangeCoverage.State.COMPLETE)
    return list(rows.order_by("checked_at").values_list("metarange_id", flat=True)[:METARANGES])


class _Verifier(CheckWriter):
    """Writes down what is found of ranges that had been complete: what is wrong now is damage.

    Those that are in question are looked through by themselves, others on their bases, which have a turn of their own.
    """

    job = "verify"

    def __init__(self, mirror: Mirror, rows: Sequence[Coverage], lease: Lease) -> None:
        bases = usable_bases(mirror, rows)
        self.doubted = {row.range_id for row in rows if row.state == Coverage.State.WAITING}
        checks = [
            RangeCheck(row.range_id, () if row.range_id in self.doubted else bases[row.range_id], row.entries)
            for row in rows
        ]
        super().__init__(mirror, checks, lease, look=_look_at(mirror, rows[0]))
        self.bases = bases
        self.had_been_complete = {row.range_id for row in rows if row.may_have_been_complete}

    def settle(self, rows: list[Mapping[str, Any]]) -> None:
        """Commits may have waited for those that had been in question."""
        reopen(self.mirror, {row["range_id"] for row in rows} & self.doubted)


def _known(mirror: Mirror) -> CoverageQuerySet:
    """Without the rows of a depth that only a newer version knows, and those that prove nothing."""
    return mirror.coverage.filter(depth__in=list(Depth), deeper__in=["", *Depth])


def _doubted(mirror: Mirror) -> CoverageQuerySet:
    return _known(mirror).to_check_anew().order_by("verify_at", "pk")


def _aged(mirror: Mirror) -> CoverageQuerySet:
    after = config.current().validator.reverify_after
    return _known(mirror).aged(clock.now(), after)


def _look_at(mirror: Mirror, row: Coverage) -> HowDeep:
    """How deep a range is looked at again: as deep as the mirror's checks are now, or as what found it damaged."""
    return as_found(Depth(mirror.depth), row.deeper)


def _some(mirror: Mirror, due: CoverageQuerySet, *, busy: bool) -> list[Coverage]:
    """The first of those that are due, of one depth, as many as a round has the time for."""
    rows = list(due[: BATCH // BUSY_SHARE if busy else BATCH])
    if not rows:
        return []
    look = _look_at(mirror, rows[0])
    rows = [row for row in rows if _look_at(mirror, row) == look]
    looks = [row.entries if row.state == Coverage.State.WAITING else row.looked_up for row in rows]
    return within_budget(rows, looks, look.depth, share=BUSY_SHARE if busy else 1)


def within_budget(rows: Sequence[T], looks: Iterable[int], depth: Depth, *, share: int = 1) -> list[T]:
    """The first of some rows whose looks one round has the time for, one at least."""
    most = MOST_LOOKS.get(depth, LOOKS) // share
    return list(rows[: max(1, sum(number <= most for number in accumulate(looks)))])


def usable_bases(mirror: Mirror, rows: Iterable[Coverage]) -> dict[str, tuple[str, ...]]:
    """For each range the bases that it was first built on, so far as they are complete.

    Only older rows: two ranges that build on each other would leave out what they share.
    """
    base_ids = sorted({base for row in rows for base in row.bases})
    complete: dict[str, int] = {}
    for some in chunks(base_ids):
        covered = mirror.coverage.proving(mirror.depth).filter(range_id__in=some, state=Coverage.State.COMPLETE)
        complete.update(covered.values_list("range_id", "pk"))
    return {row.range_id: tuple(b for b in row.bases if complete.get(b, row.pk) < row.pk) for row in rows}
