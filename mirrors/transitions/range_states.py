"""Ranges get their state from the blockers that are left; commits that waited for them are judged again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from django.db.models import BigIntegerField, Case, Count, F, Q, Value, When

from core.mirroring.check_planning import Data, settled, verify_again_at
from core.mirroring.object_check import shallower_of
from db import clock
from db.chunks import chunks
from deployment import config
from mirrors.models import Coverage, Mirror, MirrorCommit
from mirrors.models.problem import KEPT_PER_HOLDER
from mirrors.models.querysets import ACCEPTED
from mirrors.transitions.ancestry import reset_ancestry

State = Coverage.State
WAITS_NAMED = 100
"""So many of the ranges that a commit waits for are kept with it by name."""


def settle_ranges(mirror: Mirror, range_ids: Iterable[str], *, damaged: Collection[str]) -> None:
    """Ranges of which something was looked for again. Those in question stay so until they were read.

    When nothing more can come of the problems that were kept by name a range is looked through anew: those that are
    `damaged` (had been complete) for themselves, for no commit asks for them any more.
    """
    in_no_question = Q(state=State.WAITING, verify_at=None) | Q(state=State.GONE)
    open_ones = mirror.coverage.filter(in_no_question).exclude(depth="")
    for some in chunks(sorted(set(range_ids))):
        settle_rows(mirror, list(open_ones.filter(range_id__in=some)), damaged=damaged)


def settle_rows(mirror: Mirror, rows: Sequence[Coverage], *, damaged: Collection[str]) -> None:
    """Ranges that are in no question any more, by the blockers that each holds."""
    left = _left(mirror, [row.range_id for row in rows])
    for row in rows:
        _settle(row, *left[row.range_id], damaged=row.range_id in damaged)


def _left(mirror: Mirror, range_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """For each range the number of problems that are left, and how many of them history may lack."""
    left = dict.fromkeys(range_ids, (0, 0))
    for some in chunks(range_ids):
        held = mirror.blockers.held_by(some).order_by().values_list("holder_id")
        counts = held.annotate(number=Count("pk"), gone=Count("pk", filter=ACCEPTED))
        left.update((range_id, (number, gone)) for range_id, number, gone in counts)
    return left


def _settle(row: Coverage, left: int, gone: int, *, damaged: bool) -> None:
    state = settled(left, gone, counted=row.problems, kept=KEPT_PER_HOLDER)
    if state is None or (state is not Data.WAITING and _is_old(row)):
        ask_anew(row, damaged=damaged)
        return
    row.state, row.doubt, row.verify_at = state.value, Coverage.Doubt.NONE, None
    row.problems = max(row.problems, left) if state is Data.WAITING else left
    if state is not Data.WAITING:
        row.verify_at = next_check(row.range_id, row.checked_at)
    if state is Data.COMPLETE:
        row.deeper = ""
    row.depth = shallower_of(row.depth, row.mirror.depth)  # what arrived was looked at no deeper
    row.save(update_fields=["state", "depth", "doubt", "verify_at", "problems", "deeper"])


def _is_old(row: Coverage) -> bool:
    """Whether its check was so long ago that other things of it may have been lost while it waited."""
    return row.checked_at <= clock.now() - config.current().validator.reverify_after


def ask_anew(row: Coverage, *, damaged: bool) -> None:
    """Have all of a range looked for anew: for itself, or by the commits that wait for it.

    If it was taken down before and nobody has asked for it since, no commit waits for it: it was checked on demand.
    """
    changes = taken_down()
    if damaged or not row.depth:
        changes = {"state": State.WAITING, "doubt": Coverage.Doubt.WHOLE, "verify_at": clock.now()}
        changes["depth"] = row.depth or row.mirror.depth
    Coverage.objects.filter(pk=row.pk).update(**changes)


def taken_down() -> dict[str, object]:
    """The columns of a row that proves nothing any more. It stays, for others may build on what it looked for, and
    what a deeper look found in it stays known."""
    counted = Case(When(deeper="", then=Value(0)), default=F("problems"), output_field=BigIntegerField())
    return {"state": State.WAITING, "depth": "", "doubt": Coverage.Doubt.NONE, "verify_at": None, "problems": counted}


def reopen(mirror: Mirror, holders: Collection[str]) -> None:
    """Commits that waited for these must be judged again; in one transaction with what makes it so."""
    if not holders:
        return
    wanted = frozenset(holders)
    judged = mirror.commits.filter(data__in=[MirrorCommit.Data.WAITING, MirrorCommit.Data.GONE])
    rows = judged.values_list("pk", "commit_id", "data", "waits_for").iterator()
    again = [(pk, key, data) for pk, key, data, waits_for in rows if _may_wait(waits_for, wanted)]
    for some in chunks([pk for pk, _, _ in again]):
        mirror.commits.filter(pk__in=some).update(data=MirrorCommit.Data.UNKNOWN)
    reset_ancestry(mirror, [key for _, key, data in again if data == MirrorCommit.Data.GONE])


def _may_wait(waits_for: Collection[str], wanted: frozenset[str]) -> bool:
    """A commit names so many of what it waits for, and no more: one that names the most may wait for others too."""
    return len(waits_for) >= WAITS_NAMED or not wanted.isdisjoint(waits_for)


def next_check(range_id: str, checked_at: datetime) -> datetime:
    """When a range that is complete, or lacks only what both sides lost, is checked again."""
    return verify_again_at(range_id, checked_at, config.current().validator.reverify_after)
