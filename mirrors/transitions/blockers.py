"""What stands in the way: noted once, counted at each look, deleted when it has arrived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from core.mirroring.check_planning import pause_before_look
from core.mirroring.doubt import Suspect
from core.mirroring.facts import ARRIVING
from core.mirroring.object_check import address_hash
from db import clock
from db.chunks import chunks
from deployment import config
from mirrors.models import Blocker, Mirror
from mirrors.models.problem import FOUND_BY_READING, Problem
from mirrors.models.waived import stored_address, waived_addresses
from mirrors.transitions.doubt import doubt_sharers

DETAIL = 2000
"""So many characters of a detail are kept."""
FRESH = timedelta(minutes=15)
"""So long a thing counts as on its way: what S3's replication promises. After that it is looked for less often."""


Identity = tuple[str, str, str]
"""What tells problems of a mirror apart: kind, holder and key."""


class _Known(NamedTuple):
    """What stays of a problem that was noted before."""

    first_seen: datetime
    attempts: int
    must_read: bool


def note_blocker(mirror: Mirror, kind: str, holder_id: str, *, address: str, reason: str, detail: str = "") -> None:
    """Note a single problem."""
    note_problems(mirror, [Problem(kind, holder_id, address, reason, detail=detail)])


def note_problems(mirror: Mirror, problems: Iterable[Problem]) -> None:
    """Write problems down; those that are known keep their first sight and count one more look.

    The first one of an object puts in question every other range that may name it: inside of a transaction that holds
    the mirror. When those are read each notes it too, which is no news to the others.
    """
    by_identity = {(p.kind, p.holder_id, p.key): p for p in problems}
    known, waived = _known(mirror, by_identity), waived_addresses(mirror)
    now = clock.now()
    new = _unheard_of(mirror, [p for identity, p in by_identity.items() if identity not in known])
    Blocker.objects.bulk_create(
        [_row(mirror, p, known.get(identity), now, waived=waived.have(p)) for identity, p in by_identity.items()],
        batch_size=400,
        update_conflicts=True,
        unique_fields=["mirror", "kind", "holder_id", "key"],
        update_fields=["reason", "detail", "gone_at_source", "waived", "must_read", "unneeded", "attempts", "look_at"],
    )
    _doubt_sharers(mirror, new)


def _known(mirror: Mirror, identities: Collection[Identity]) -> dict[Identity, _Known]:
    known: dict[Identity, _Known] = {}
    for some in chunks(sorted({holder for _, holder, _ in identities})):
        rows = mirror.blockers.held_by(some).order_by()
        names = ("kind", "holder_id", "key", "first_seen", "attempts", "must_read")
        for *identity, first_seen, attempts, must_read in rows.values_list(*names).iterator():
            if (mine := tuple(identity)) in identities:
                known[mine] = _Known(first_seen, attempts, must_read)
    return known


def _unheard_of(mirror: Mirror, problems: Iterable[Problem]) -> list[Problem]:
    """Those of objects that no range was known to lack, at this path: who may name the others was asked before."""
    objects = [problem for problem in problems if problem.kind == Blocker.Kind.OBJECT]
    known: set[str] = set()
    for some in chunks(sorted({problem.suspect.crc for problem in objects})):
        rows = mirror.blockers.filter(kind=Blocker.Kind.OBJECT, crc__in=some).order_by()
        known.update(rows.values_list("key", flat=True))
    return [problem for problem in objects if problem.key not in known]


def _doubt_sharers(mirror: Mirror, new: Iterable[Problem]) -> None:
    """Ranges that lack the same things put others in question by one look at what these may name."""
    suspects: dict[str, list[Suspect]] = defaultdict(list)
    for problem in new:
        suspects[problem.holder_id].append(problem.suspect)
    holders: dict[frozenset[Suspect], list[str]] = defaultdict(list)
    for holder, own in suspects.items():
        holders[frozenset(own)].append(holder)
    for lacking in holders.values():
        doubt_sharers(mirror, lacking, suspects[lacking[0]])


def _row(mirror: Mirror, problem: Problem, known: _Known | None, now: datetime, *, waived: bool) -> Blocker:
    attempts = known.attempts + 1 if known else 1
    first_seen = known.first_seen if known else now
    most = longest_pause(problem, fresh=now - first_seen < FRESH)
    return Blocker(
        mirror=mirror,
        kind=problem.kind,
        holder_id=problem.holder_id,
        key=problem.key,
        address=stored_address(problem.address),
        address_hash=address_hash(problem.address),
        path=problem.path.decode("utf-8", "backslashreplace").replace("\0", "\\x00"),
        size=problem.size,
        etag=problem.etag,
        reason=problem.reason,
        detail=problem.detail[:DETAIL],
        full=problem.full,
        crc=problem.suspect.crc if problem.kind == Blocker.Kind.OBJECT else None,
        gone_at_source=problem.gone_at_source,
        waived=waived,
        must_read=problem.must_read or problem.reason in FOUND_BY_READING or bool(known and known.must_read),
        unneeded=problem.unneeded,
        damage=problem.damage,
        first_seen=first_seen,
        attempts=attempts,
        look_at=now + timedelta(seconds=pause_before_look(attempts - 1, most=most)),
    )


def longest_pause(problem: Problem, *, fresh: bool) -> float:
    """The longest pause until a thing is looked at again, in seconds: shorter while it may just be arriving."""
    settings = config.current().validator
    own = {
        Blocker.Kind.METARANGE: settings.metarange_presence_cache.cooldown,
        Blocker.Kind.RANGE: settings.range_presence_cache.cooldown,
        Blocker.Kind.OBJECT: settings.object_presence_cache.cooldown,
    }.get(Blocker.Kind(problem.kind))
    arriving = fresh and problem.reason in ARRIVING and not problem.gone_at_source
    most = min(own, settings.cooldown_on_missing) if own and arriving else settings.cooldown_on_missing
    return most.total_seconds()


LOOKED_FOR = (Blocker.Kind.METARANGE, Blocker.Kind.RANGE, Blocker.Kind.OBJECT)
