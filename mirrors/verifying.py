"""Checking again, in the background, what had been complete: objects may be lost after they arrived.

Nothing is demoted for it. Commits that were promoted, or passed, stay judged as they were; what is found is a blocker,
said on the page, and only commits that are still to be promoted wait for it as for anything else that is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from core.presence import Depth
from core.sensing import FirstSync
from core.validation import RangeCheck
from lakemirror_site import config
from mirrors import clock
from mirrors.checks import CheckWriter, carry_out
from mirrors.duties import Lease
from mirrors.judging import NOTHING
from mirrors.models import Coverage, Mirror, MirrorCommit
from mirrors.querysets import CoverageQuerySet
from mirrors.rechecks import reopen

T = TypeVar("T")

BATCH = 200
MOST_LOOKS = {Depth.CONTENT: 500}
LOOKS = 20_000
"""A round takes so many ranges, and looks at about so many objects, at most: new commits must not wait for long."""


def verify(mirror: Mirror, lease: Lease, *, busy: bool) -> int:
    """Check ranges again whose time has come, while `busy` only those in question; gives how many."""
    rows = _due(mirror, busy=busy)
    if rows:
        carry_out(_Verifier(mirror, rows, lease))
    return len(rows)


def has_more(mirror: Mirror) -> bool:
    """Whether there are ranges to check again by now."""
    return _doubted(mirror).exists() or _aged(mirror).exists()


class _Verifier(CheckWriter):
    """Writes down what is found of ranges that had been complete: what is wrong now is damage.

    Those that are in question are looked through by themselves, others on their bases, which have a turn of their own.
    """

    job = "verify"
    damage = True

    def __init__(self, mirror: Mirror, rows: Sequence[Coverage], lease: Lease) -> None:
        bases = usable_bases(mirror, rows)
        self.doubted = {row.range_id for row in rows if row.state == Coverage.State.WAITING}
        checks = [
            RangeCheck(row.range_id, () if row.range_id in self.doubted else bases[row.range_id], row.entries)
            for row in rows
        ]
        super().__init__(mirror, checks, lease, depth=_depth_of(mirror, rows[0]))
        self.bases = bases

    def settle(self, rows: list[Mapping[str, Any]]) -> None:
        checked = {row["range_id"] for row in rows}
        settle(self.mirror, checked, reopened=checked & self.doubted, alone=checked & self.doubted, deeper=self.deeper)


def _known(mirror: Mirror) -> CoverageQuerySet:
    """Without the rows of a depth that only a newer version knows."""
    return mirror.coverage.filter(depth__in=[NOTHING, *Depth], deeper__in=["", *Depth])


def _doubted(mirror: Mirror) -> CoverageQuerySet:
    return _known(mirror).doubted()


def _aged(mirror: Mirror) -> CoverageQuerySet:
    after = config.current().validator.reverify_after
    return _known(mirror).aged(clock.now(), after)


def _depth_of(mirror: Mirror, row: Coverage) -> Depth:
    """How deep a range is looked at again: as deep as what found it damaged."""
    return Depth(row.deeper or mirror.depth)


def _due(mirror: Mirror, *, busy: bool) -> list[Coverage]:
    """Those in question go first, for they are looked through without what they were built on."""
    doubted = list(_doubted(mirror).order_by("pk")[:BATCH])
    rows = doubted if busy or doubted else list(_aged(mirror)[:BATCH])
    if not rows:
        return []
    depth = _depth_of(mirror, rows[0])
    rows = [row for row in rows if _depth_of(mirror, row) is depth]
    return within_budget(rows, [row.entries if doubted else row.looked_up for row in rows], depth)


def within_budget(rows: Sequence[T], looks: Iterable[int], depth: Depth) -> list[T]:
    """The first of some rows whose looks one round has the time for, one at least."""
    most = MOST_LOOKS.get(depth, LOOKS)
    return list(rows[: max(1, sum(number <= most for number in accumulate(looks)))])


def usable_bases(mirror: Mirror, rows: Iterable[Coverage]) -> dict[str, tuple[str, ...]]:
    """For each range the bases that it was first built on, so far as they are complete.

    Only older rows: two ranges that build on each other would leave out what they share.
    """
    asked = sorted({base for row in rows for base in row.bases})
    complete: dict[str, int] = {}
    for start in range(0, len(asked), 500):
        found = mirror.coverage.proving(mirror.depth).filter(
            range_id__in=asked[start : start + 500], state=Coverage.State.COMPLETE
        )
        complete.update(found.values_list("range_id", "pk"))
    return {row.range_id: tuple(b for b in row.bases if complete.get(b, row.pk) < row.pk) for row in rows}


def settle(mirror: Mirror, checked: set[str], *, reopened: set[str], alone: set[str], deeper: str = "") -> None:
    """Ranges found damaged put in question what shares objects with them, and the commits that are to be promoted.

    `reopened` had not been complete: commits may wait for them. `alone` were looked through without their bases, which
    may name the damaged object too. `deeper`: the depth of the check, if that is more than the mirror's own.
    """
    reopen(mirror, reopened)
    now_bad = mirror.coverage.filter(range_id__in=checked, state=Coverage.State.WAITING)
    damaged = dict(now_bad.values_list("range_id", "bases"))
    if damaged:
        beneath = {base for range_id, bases in damaged.items() if range_id in alone for base in bases}
        _doubt(mirror, _built_upon(mirror, damaged.keys()) | _complete(mirror, beneath), deeper)
        judge_again(mirror)


def judge_again(mirror: Mirror) -> None:
    """Commits that are complete and still to be promoted may need what was found damaged."""
    ahead = mirror.commits.filter(data=MirrorCommit.Data.COMPLETE, promoted_at=None, superseded_at=None)
    seen = {} if mirror.first_sync == FirstSync.INFERRED else {"commit__candidacies__position__gte": 0}
    ahead.filter(commit__candidacies__isnull=False, **seen).update(data=MirrorCommit.Data.UNKNOWN)


def _built_upon(mirror: Mirror, damaged: Collection[str]) -> set[int]:
    """Direct dependents are read again without that base; they go on to theirs if they name the damaged object too."""
    rows = mirror.coverage.filter(state=Coverage.State.COMPLETE).values_list("pk", "bases")
    return {pk for pk, bases in rows.iterator() if not set(bases).isdisjoint(damaged)}


def _complete(mirror: Mirror, range_ids: Iterable[str]) -> set[int]:
    asked = sorted(range_ids)
    found: set[int] = set()
    for start in range(0, len(asked), 500):
        rows = mirror.coverage.filter(range_id__in=asked[start : start + 500], state=Coverage.State.COMPLETE)
        found.update(rows.values_list("pk", flat=True))
    return found


def _doubt(mirror: Mirror, keys: set[int], deeper: str) -> None:
    asked, now = sorted(keys), clock.now()
    for start in range(0, len(asked), 500):
        rows = mirror.coverage.filter(pk__in=asked[start : start + 500])
        rows.update(state=Coverage.State.WAITING, verify_at=now, deeper=deeper)
