"""Uncommitted changes on a mirror's branches: found by a few looks in each round, undone on an operator's word.

Somebody who writes to a read-only repository by force leaves them. They survive a hard reset, and readers see them.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q

from core.errors import NotFound
from core.ports import LakeFS
from mirrors import clock
from mirrors.duties import Lease
from mirrors.loops.manage import fence
from mirrors.models import Mirror, MirrorBranch

log = logging.getLogger("lakemirror.uncommitted")

LOOKS_PER_ROUND = 10
"""Each look is a call: with more branches than these, each of them has its turn every few rounds."""
LOOK_AGAIN_AFTER = timedelta(seconds=30)


def branches_to_look_at(mirror: Mirror) -> list[MirrorBranch]:
    """Those that an operator wants cleaned, that were just moved, or were not looked at for longest."""
    due = Q(reset_asked=True) | Q(looked_at=None) | Q(looked_at__lt=clock.now() - LOOK_AGAIN_AFTER)
    rows = mirror.branches.filter(due, stray=False).exclude(head="")
    return list(rows.order_by("-reset_asked", F("looked_at").asc(nulls_first=True), "name")[:LOOKS_PER_ROUND])


def look_for_uncommitted(mirror: Mirror, row: MirrorBranch, lakefs: LakeFS, lease: Lease) -> None:
    """Note whether readers of the branch see more than its head; undo that first if an operator has said so."""
    at = clock.now()
    MirrorBranch.objects.filter(pk=row.pk).update(looked_at=at)
    try:
        if row.reset_asked:
            fence(mirror, lakefs, lease)
            lakefs.drop_uncommitted(mirror.name, row.name)
        found = lakefs.has_uncommitted(mirror.name, row.name)
    except NotFound:  # it went in the meantime
        return
    if found and not row.uncommitted:
        log.error("%s: somebody wrote to %s by force", mirror.name, row.name)
    with transaction.atomic():
        lease.hold()
        done = {"reset_asked": False} if row.reset_asked else {}
        MirrorBranch.objects.filter(pk=row.pk).update(uncommitted=found, **done)
