"""What is known to be missing is brought in line with what is waived, and ranges and commits with that."""

from __future__ import annotations

from db.chunks import chunks
from mirrors.models import Blocker, Mirror, WaivedObject
from mirrors.models.waived import is_full, waived_addresses
from mirrors.transitions.range_states import reopen, settle_ranges


def is_out_of_step(mirror: Mirror) -> bool:
    """Whether a thing that is waived does not say so, or the other way round: as an older version leaves it."""
    return bool(_to_flag(mirror) or _to_unflag(mirror))


def settle_waived(mirror: Mirror) -> int:
    """Mark what is waived, unmark what is not, and judge anew all that holds it; how many holders that are.

    Inside of a transaction that holds the mirror. Nothing is looked for, and no branch is moved.
    """
    flagged, unflagged = _to_flag(mirror), _to_unflag(mirror)
    for some in chunks(flagged):
        Blocker.objects.filter(pk__in=some).update(waived=True)
    for some in chunks(unflagged):
        Blocker.objects.filter(pk__in=some).update(waived=False)
    holders: set[str] = set()
    damaged: set[str] = set()
    for some in chunks([*flagged, *unflagged]):
        rows = Blocker.objects.filter(pk__in=some).values_list("holder_id", "damage")
        for holder, damage in rows:
            holders.add(holder)
            damaged |= {holder} if damage else set()
    settle_ranges(mirror, holders, damaged=damaged)
    reopen(mirror, holders)
    return len(holders)


def _to_flag(mirror: Mirror) -> list[int]:
    """Rows of waived objects that don't say so. None is read where nothing is waived."""
    known = waived_addresses(mirror).known
    found: list[int] = []
    for some in chunks(sorted({name for name, _ in known})):
        rows = mirror.blockers.filter(kind=Blocker.Kind.OBJECT, address_hash__in=some, waived=False)
        found += [row.pk for row in rows if (row.address_hash, is_full(row)) in known]
    return found


def _to_unflag(mirror: Mirror) -> list[int]:
    known = waived_addresses(mirror).known
    rows = mirror.blockers.filter(waived=True)
    return [row.pk for row in rows if (row.address_hash, is_full(row)) not in known]


def forget_withdrawn(mirror: Mirror) -> None:
    """An older version that withdraws a waiver leaves its objects behind: they count for nothing, and make room."""
    WaivedObject.objects.filter(mirror=mirror).exclude(waiver__in=mirror.waivers.all()).delete()
