"""Ranges that were just found complete, and are in question all the same: for what others lack, or bases of theirs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from core.mirroring.doubt import unpack
from core.mirroring.object_check import Depth, deeper_of
from db import clock
from db.chunks import chunks
from mirrors.models import Blocker, Coverage, Mirror
from mirrors.models.problem import KEPT_PER_HOLDER

MOST_ASKED = 5000
"""So many checksums are looked up among what is missing; for more of them all that is missing is read."""


def question_built_on_doubt(mirror: Mirror, rows: Sequence[Coverage], built_on: Mapping[str, Sequence[str]]) -> None:
    """A base may have come into question since this check began, or by this very check, for what was left out on its
    account: then the range that was checked on it (`built_on`) is read, too, and so is what was checked on that one.

    Where a base lacks more than is known by name, reading tells too little: all of the range is looked through.
    """
    complete = {row.range_id: row for row in rows if row.state == Coverage.State.COMPLETE}
    base_ids = sorted({base for range_id in complete for base in built_on[range_id]} - {row.range_id for row in rows})
    names = ("range_id", "state", "doubt", "problems")
    bases = [row for some in chunks(base_ids) for row in mirror.coverage.filter(range_id__in=some).values_list(*names)]
    bases += [(row.range_id, row.state, row.doubt, row.problems) for row in rows]
    whole = {range_id for range_id, state, _, _ in bases if state == Coverage.State.COMPLETE} - complete.keys()
    is_unnamed = any(doubt == Coverage.Doubt.WHOLE or problems > KEPT_PER_HOLDER for _, _, doubt, problems in bases)
    while fallen := [range_id for range_id in complete if not (whole | complete.keys()).issuperset(built_on[range_id])]:
        for range_id in fallen:
            row = complete.pop(range_id)
            row.doubt = Coverage.Doubt.WHOLE if is_unnamed else Coverage.Doubt.FRESH
            row.state, row.verify_at = Coverage.State.WAITING, clock.now()


def question_shared(mirror: Mirror, rows: Iterable[Coverage]) -> None:
    """A range that was found complete may name what others found missing or wrong: it is read to find out, and what was
    missing is looked for at once, for it may have arrived since."""
    complete = [row for row in rows if row.state == Coverage.State.COMPLETE]
    if not complete or not mirror.blockers.filter(kind=Blocker.Kind.OBJECT).exists():
        return
    missing = _missing_of(mirror, [crc for row in complete for crc in unpack(row.looked or b"")])
    if not missing:
        return
    for row in complete:
        if not missing.isdisjoint(unpack(row.looked or b"")):
            row.state, row.doubt, row.verify_at = Coverage.State.WAITING, Coverage.Doubt.FRESH, clock.now()
    for some in chunks(sorted(missing)):
        mirror.blockers.filter(crc__in=some).update(look_at=clock.now())


def question_unnamed(mirror: Mirror, rows: Iterable[Coverage], depths: Collection[str]) -> None:
    """Where a look of these `depths` found more in a range than is kept by name, each object that it looked for may be
    what is wrong: a range that was found complete by less, and names one of them, is looked through as deep."""
    complete = {row.range_id: set(unpack(row.looked or b"")) for row in rows if row.state == Coverage.State.COMPLETE}
    unnamed = mirror.coverage.found_deeper().filter(deeper__in=depths, problems__gt=KEPT_PER_HOLDER)
    for range_id, looked, deeper in unnamed.values_list("range_id", "looked", "deeper") if complete else ():
        suspects = unpack(looked or b"")
        for row in rows:
            if row.range_id != range_id and not complete.get(row.range_id, set()).isdisjoint(suspects):
                row.state, row.doubt, row.verify_at = Coverage.State.WAITING, Coverage.Doubt.WHOLE, clock.now()
                row.deeper = deeper_of(Depth(deeper), row.deeper).value


def _missing_of(mirror: Mirror, checksums: Sequence[int]) -> set[int]:
    """Which of these checksums are those of objects that are missing or wrong: asked for by the shorter way."""
    missing = (
        mirror.blockers.filter(kind=Blocker.Kind.OBJECT, crc__isnull=False).order_by().values_list("crc", flat=True)
    )
    if len(checksums) > MOST_ASKED:
        return set(missing.iterator()).intersection(checksums)
    return {crc for some in chunks(checksums) for crc in missing.filter(crc__in=some)}
