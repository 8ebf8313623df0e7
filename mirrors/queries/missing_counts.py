"""How much does a mirror wait for in all? Counted as far as it can be read at once; beyond that, there is more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from core.mirroring.facts import Waiting
from core.mirroring.object_check import WAIVABLE
from db.raw_sql import moment
from mirrors.models import Blocker, Coverage, Mirror, MirrorCommit
from mirrors.models.problem import KEPT_PER_HOLDER
from mirrors.models.querysets import UNCHECKED
from mirrors.queries.missing import OPEN_COMMITS
from mirrors.queries.tables import fetch

COUNTED = 10_000
"""So many rows of a mirror are counted, those that were missed first; with more of them, a figure is a least one."""
END = 2**63 - 1

# Until it was looked for a second time it may turn out to be gone at the source too, as what is collected there is.
# An imported object that a mirror allowed before has not changed: the mirror's setting has.
_DAMAGE = Q(damage=True, attempts__gt=1) & ~Q(reason="imported") & ~Q(waived=True, reason__in=sorted(WAIVABLE))
_WAIVABLE = ", ".join(f"'{reason}'" for reason in sorted(WAIVABLE))
_IS_DAMAGE = "AND blocker.damage AND blocker.attempts > 1 AND blocker.reason <> 'imported'"

# A join with a list of values: of each mirror the rows below a key are entered by the index, which no plan can miss.
_COUNTS = """
WITH bound (mirror_id, beyond) AS (VALUES {bounds})
SELECT bound.mirror_id, blocker.kind, count(DISTINCT blocker.key), min(blocker.first_seen), min(blocker.path)
FROM bound JOIN {blocker} blocker ON blocker.mirror_id = bound.mirror_id AND blocker.id < bound.beyond
WHERE NOT blocker.gone_at_source AND NOT blocker.unneeded
AND NOT (blocker.waived AND blocker.reason IN ({waivable})) {only}
GROUP BY bound.mirror_id, blocker.kind
"""


@dataclass(frozen=True, slots=True)
class _Count:
    """Different things by their kind, since when, and the path of one."""

    kinds: Mapping[str, int]
    since: datetime | None
    path: str

    @property
    def number(self) -> int:
        return sum(self.kinds.values())


def waiting_at(mirrors: Sequence[Mirror]) -> dict[int, Waiting]:
    """How many different things each mirror waits for; one that several ranges name counts once."""
    ends, lost_ends = _ends(mirrors)
    if not ends:
        return {}
    waiting = _count(ends, *_but_waived(list(ends)))
    lost = _count(lost_ends, _IS_DAMAGE)
    more = _cut_short(mirrors) | {mirror for mirror, end in ends.items() if end != END}
    more_lost = {mirror for mirror, end in lost_ends.items() if end != END}
    nothing = _Count({}, None, "")
    return {
        mirror: Waiting(
            number=count.number,
            kind=next(iter(count.kinds)) if len(count.kinds) == 1 and ends[mirror] == END else "",
            more=mirror in more,
            since=count.since,
            damaged=lost.get(mirror, nothing).number,
            more_damaged=mirror in more_lost,
            example=lost.get(mirror, nothing).path,
        )
        for mirror, count in waiting.items()
    }


def _ends(mirrors: Sequence[Mirror]) -> tuple[dict[int, int], dict[int, int]]:
    """Of each mirror that waits for something, and of each where some of it had been complete, the key of the first row
    that is not counted any more."""
    waited_for = Blocker.objects.needed().filter(mirror=OuterRef("pk"), gone_at_source=False).order_by("pk")
    damaged = waited_for.filter(damage=True)
    beyond = [Subquery(rows.values("pk")[COUNTED : COUNTED + 1]) for rows in (waited_for, damaged)]
    waiting = Mirror.objects.filter(Exists(waited_for), pk__in=[mirror.pk for mirror in mirrors]).order_by()
    rows = list(waiting.values_list("pk", beyond[0], Exists(damaged), beyond[1]))
    ends = {mirror: end or END for mirror, end, _, _ in rows}
    return ends, {mirror: end or END for mirror, _, some, end in rows if some}


def _count(ends: Mapping[int, int], only: str = "", given: Sequence[object] = ()) -> dict[int, _Count]:
    if not ends:
        return {}
    bounds = ", ".join(f"({mirror:d}, {end:d})" for mirror, end in ends.items())
    kinds: dict[int, dict[str, int]] = defaultdict(dict)
    since: dict[int, datetime] = {}
    paths: dict[int, str] = defaultdict(str)
    query = _COUNTS.replace("{only}", only)
    for mirror, kind, number, first, path in fetch(query, given, bounds=bounds, waivable=_WAIVABLE):
        kinds[mirror][kind] = number
        seen = moment(first)
        since[mirror] = min(seen, since.get(mirror, seen))
        paths[mirror] = paths[mirror] or path
    return {mirror: _Count(numbers, since[mirror], paths[mirror]) for mirror, numbers in kinds.items()}


def _but_waived(mirrors: Sequence[int]) -> tuple[str, list[object]]:
    """A condition, and what it is given: not what only waived commits wait for."""
    condition, given = "", []
    for mirror, holders in _only_waived(mirrors).items():
        if holders:
            marks = ", ".join(["%s"] * len(holders))
            condition += f" AND NOT (blocker.mirror_id = %s AND NOT blocker.damage AND blocker.holder_id IN ({marks}))"
            given += [mirror, *sorted(holders)]
    return condition, given


def _only_waived(mirrors: Sequence[int]) -> dict[int, set[str]]:
    """What only waived commits wait for, by mirror: nobody waits for that any more, although it is looked for.

    While a first copy waits for so much that it isn't gone through, all of it counts.
    """
    waived = MirrorCommit.objects.filter(UNCHECKED, mirror__in=mirrors, waiver__isnull=False)
    held = _waited_for(waived)
    if not held:
        return {}
    others = MirrorCommit.objects.filter(mirror__in=list(held), waiver=None, data=MirrorCommit.Data.WAITING)
    if others.count() > OPEN_COMMITS:
        return {}
    needed = _waited_for(others)
    return {mirror: holders - needed.get(mirror, set()) for mirror, holders in held.items()}


def _waited_for(rows: QuerySet[MirrorCommit]) -> dict[int, set[str]]:
    holders: dict[int, set[str]] = defaultdict(set)
    for mirror, waits_for in rows.order_by("-commit_id").values_list("mirror_id", "waits_for")[:OPEN_COMMITS]:
        holders[mirror].update(waits_for)
    return holders


def damage_at(mirrors: Iterable[Mirror]) -> QuerySet[Blocker]:
    """What had been complete, and is missing or wrong now."""
    return Blocker.objects.needed().filter(_DAMAGE, mirror__in=mirrors)


def is_cut_short(mirror: Mirror) -> bool:
    """Whether it has ranges of which not all problems are kept by name."""
    return bool(_cut_short([mirror]))


def _cut_short(mirrors: Sequence[Mirror]) -> set[int]:
    """Mirrors with ranges of which not all problems are kept by name."""
    waiting = Coverage.objects.filter(mirror__in=mirrors, state=Coverage.State.WAITING).exclude(depth="")
    rows = waiting.filter(problems__gt=KEPT_PER_HOLDER)
    return set(rows.order_by().values_list("mirror_id", flat=True).distinct())
