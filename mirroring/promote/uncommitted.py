"""Uncommitted changes on a mirror's branches: found by a few looks in each round, undone on a word or by setting.

Somebody who writes to a read-only repository by force leaves them. They survive a hard reset, and readers see them.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta

from django.db.models import F, Q

from core.errors import LakeMirrorError, NotFound
from core.mirroring.promotion import Repair, Why
from core.ports import LakeFS
from db import clock
from jobs.lease import Lease
from mirroring.manage import fence
from mirrors.models import Mirror, MirrorBranch

log = logging.getLogger("lakemirror.uncommitted")

LOOKS_PER_ROUND = 10
"""Each look is a call: with more branches than these, each of them has its turn every few rounds."""
LOOK_AGAIN_AFTER = timedelta(seconds=30)
AGAIN_PER_ROUND = LOOKS_PER_ROUND // 2
"""So many of the looks go to branches of which the last look got no answer, if there are others: nobody should wait for
a whole turn to hear that it is over, nor for branches that never answer."""


def branches_to_look_at(mirror: Mirror) -> list[MirrorBranch]:
    """Those that an operator wants cleaned, that were just moved, or were not looked at for longest."""
    due = Q(reset_asked=True) | Q(looked_at=None) | Q(looked_at__lt=clock.now() - LOOK_AGAIN_AFTER)
    rows = mirror.branches.filter(due, stray=False).exclude(head="")
    rows = rows.order_by("-reset_asked", F("looked_at").asc(nulls_first=True), "name")
    again = list(rows.exclude(unlooked_since=None)[:AGAIN_PER_ROUND])
    others = rows.exclude(pk__in=[row.pk for row in again])
    return [*again, *others[: LOOKS_PER_ROUND - len(again)]]


def look_for_uncommitted(mirror: Mirror, row: MirrorBranch, lakefs: LakeFS, lease: Lease) -> None:
    """Note whether readers of the branch see more than its head; undo that if an operator or the setting says so."""
    MirrorBranch.objects.filter(pk=row.pk).update(looked_at=clock.now())
    with suppress(NotFound):  # it went in the meantime
        found = _ask(mirror, row, lakefs)
        _note_found(mirror, row, lease, found=found)
        if _is_to_be_undone(row, found=found):
            fence(mirror, lakefs, lease, lambda: _is_to_be_undone(row, found=found))
            lakefs.drop_uncommitted(mirror.name, row.name)
            remains = lakefs.has_uncommitted(mirror.name, row.name)
            _note_undone(mirror, row, lease, found=found, remains=remains)


def _ask(mirror: Mirror, row: MirrorBranch, lakefs: LakeFS) -> bool:
    """Whether there are such changes. Who gets no answer writes down since when."""
    try:
        return lakefs.has_uncommitted(mirror.name, row.name)
    except NotFound:
        raise
    except LakeMirrorError as error:
        since = row.unlooked_since or clock.now()
        MirrorBranch.objects.filter(pk=row.pk).update(unlooked_since=since, look_error=error.message)
        raise


def _note_found(mirror: Mirror, row: MirrorBranch, lease: Lease, *, found: bool) -> None:
    """Before anything is undone: that may fail, and readers see the changes until then."""
    with lease.transaction():
        if found and not row.uncommitted:
            log.error("%s: somebody wrote to %s by force", mirror.name, row.name)
            _note(mirror, row, Why.WRITTEN)
        rows = MirrorBranch.objects.filter(pk=row.pk)
        rows.update(uncommitted=found, unlooked_since=None, look_error="")


def _note_undone(mirror: Mirror, row: MirrorBranch, lease: Lease, *, found: bool, remains: bool) -> None:
    with lease.transaction():
        if found and not remains:
            _note(mirror, row, Why.UNDONE)
        done = {"reset_asked": False} if row.reset_asked else {}
        MirrorBranch.objects.filter(pk=row.pk).update(uncommitted=remains, **done)


def _is_to_be_undone(row: MirrorBranch, *, found: bool) -> bool:
    """By an operator's word, or by the setting as it is now."""
    auto = Q(mirror__repair_tampering=Repair.AUTO) if found else Q(pk__in=[])
    return MirrorBranch.objects.filter(auto | Q(reset_asked=True), pk=row.pk).exists()


def _note(mirror: Mirror, row: MirrorBranch, why: Why) -> None:
    """Into the branch's history, although no commit of it has changed."""
    at = clock.now()
    mirror.promotions.create(branch=row.name, from_commit=row.head, to_commit=row.head, why=why, at=at)
