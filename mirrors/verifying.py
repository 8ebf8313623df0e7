"""Checking again, in the background, what had been complete: objects may be lost after they arrived.

Nothing is demoted for it. Commits that were promoted, or passed, stay judged as they were; what is found is a blocker,
said on the page, and only commits that are still to be promoted wait for it as for anything else that is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate

from core.presence import Depth
from core.sensing import FirstSync
from core.validation import RangeCheck
from lakemirror_site import config
from mirrors.checks import run_checks
from mirrors.duties import Lease
from mirrors.models import Coverage, Mirror, MirrorCommit
from mirrors.querysets import CoverageQuerySet
from mirrors.rechecks import reopen

BATCH = 200
MOST_LOOKS = {Depth.CONTENT: 500}
LOOKS = 20_000
"""A round takes so many ranges, and looks at about so many objects, at most: new commits must not wait for long."""


def verify(mirror: Mirror, lease: Lease, *, busy: bool) -> int:
    """Check ranges again whose time has come, while `busy` only those in question; gives how many."""
    rows = _due(mirror, busy=busy)
    if rows:
        doubted = {row.range_id for row in rows if row.state == Coverage.State.WAITING}
        run_checks(mirror, _plan(mirror, rows), lease, again=lambda ids: _settle(mirror, ids, ids & doubted))
    return len(rows)


def has_more(mirror: Mirror) -> bool:
    """Whether there are ranges to check again by now."""
    return _doubted(mirror).exists() or _aged(mirror).exists()


def _doubted(mirror: Mirror) -> CoverageQuerySet:
    return mirror.coverage.doubted()


def _aged(mirror: Mirror) -> CoverageQuerySet:
    after = config.current().validator.reverify_after
    return mirror.coverage.aged(datetime.now(UTC), after)


def _due(mirror: Mirror, *, busy: bool) -> list[Coverage]:
    """Those in question go first, for they are looked through without what they were built on."""
    doubted = list(_doubted(mirror).order_by("pk")[:BATCH])
    rows = doubted if busy or doubted else list(_aged(mirror)[:BATCH])
    most = MOST_LOOKS.get(Depth(mirror.depth), LOOKS)
    looks = accumulate(row.entries if doubted else row.looked_up for row in rows)
    few = sum(number <= most for number in looks)
    return rows[: max(1, few)]


def _plan(mirror: Mirror, rows: Sequence[Coverage]) -> list[RangeCheck]:
    """Each on the bases it was first built on: those are checked again in their turn, so everything is looked at once.

    Only on complete and older rows: two ranges that build on each other would leave out what they share.
    """
    asked = sorted({base for row in rows for base in row.bases})
    complete: dict[str, int] = {}
    for start in range(0, len(asked), 500):
        found = mirror.coverage.proving(mirror.depth).filter(
            range_id__in=asked[start : start + 500], state=Coverage.State.COMPLETE
        )
        complete.update(found.values_list("range_id", "pk"))
    return [
        RangeCheck(row.range_id, tuple(b for b in row.bases if complete.get(b, row.pk) < row.pk), row.entries)
        for row in rows
    ]


def _settle(mirror: Mirror, checked: set[str], doubted: set[str]) -> None:
    """Ranges found damaged put in question what builds on them, and the commits that are still to be promoted."""
    reopen(mirror, doubted)
    now_bad = mirror.coverage.filter(range_id__in=checked, state=Coverage.State.WAITING)
    damaged = set(now_bad.values_list("range_id", flat=True))
    if damaged:
        _doubt_built_upon(mirror, damaged)
        ahead = mirror.commits.filter(data=MirrorCommit.Data.COMPLETE, promoted_at=None, superseded_at=None)
        seen = {} if mirror.first_sync == FirstSync.INFERRED else {"commit__candidacies__position__gte": 0}
        ahead.filter(commit__candidacies__isnull=False, **seen).update(data=MirrorCommit.Data.UNKNOWN)


def _doubt_built_upon(mirror: Mirror, damaged: set[str]) -> None:
    """Direct dependents are read again without that base; they go on to theirs if they name the damaged object too."""
    rows = mirror.coverage.filter(state=Coverage.State.COMPLETE).values_list("pk", "bases")
    upon = [pk for pk, bases in rows.iterator() if not damaged.isdisjoint(bases)]
    now = datetime.now(UTC)
    for start in range(0, len(upon), 500):
        keys = upon[start : start + 500]
        Coverage.objects.filter(pk__in=keys).update(state=Coverage.State.WAITING, verify_at=now)
