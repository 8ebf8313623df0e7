"""Ranges get their state from the blockers that are left; commits that waited for them are judged again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models import Q

from core.mirroring.check_planning import Data, settled, verify_again_at
from core.mirroring.object_check import shallower_of
from db import clock
from db.chunks import chunks
from deployment import config
from mirrors.models import Coverage, Mirror, MirrorCommit
from mirrors.models.problem import KEPT_PER_HOLDER
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
        for row in open_ones.filter(range_id__in=some):
            settle_row(mirror, row, damaged=row.range_id in damaged)


def settle_row(mirror: Mirror, row: Coverage, *, damaged: bool) -> None:
    """One range that is in no question any more, by the blockers that it holds."""
    remaining = list(mirror.blockers.held_by([row.range_id]).values_list("gone_at_source", flat=True))
    state = settled(remaining, counted=row.problems, kept=KEPT_PER_HOLDER)
    if state is None or (state is not Data.WAITING and _is_old(row)):
        ask_anew(row, damaged=damaged)
        return
    row.state, row.doubt, row.verify_at = state.value, Coverage.Doubt.NONE, None
    row.problems = max(row.problems, len(remaining)) if state is Data.WAITING else len(remaining)
    if state is not Data.WAITING:
        row.verify_at = next_check(row.range_id, clock.now())
    if state is Data.COMPLETE:
        row.deeper = ""
    row.depth = shallower_of(row.depth, mirror.depth)  # what arrived was looked at no deeper
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
    """The columns of a row that proves nothing any more. It stays, for others may build on what it looked for."""
    return {"state": State.WAITING, "depth": "", "doubt": Coverage.Doubt.NONE, "verify_at": None, "problems": 0}


def reopen(mirror: Mirror, holders: Collection[str]) -> None:
    """Commits that waited for these must be judged again; in one transaction with what makes it so."""
    if not holders:
        return
    wanted = frozenset(holders)
    judged = mirror.commits.filter(data__in=[MirrorCommit.Data.WAITING, MirrorCommit.Data.GONE])
    again = [row for row in judged.only("commit_id", "data", "waits_for") if _may_wait(row.waits_for, wanted)]
    for some in chunks([row.pk for row in again]):
        mirror.commits.filter(pk__in=some).update(data=MirrorCommit.Data.UNKNOWN)
    reset_ancestry(mirror, [row.commit_id for row in again if row.data == MirrorCommit.Data.GONE])


def _may_wait(waits_for: Collection[str], wanted: frozenset[str]) -> bool:
    """A commit names so many of what it waits for, and no more: one that names the most may wait for others too."""
    return len(waits_for) >= WAITS_NAMED or not wanted.isdisjoint(waits_for)


def next_check(range_id: str, now: datetime) -> datetime:
    """When a range that is complete now, or lacks only what both sides lost, is checked again."""
    return verify_again_at(range_id, now, config.current().validator.reverify_after)
