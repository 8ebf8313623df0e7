"""What happened to a mirror in a period, to be marked on its charts: pauses, lateness, moves by force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Q

from audit.models import AuditEvent
from audit.verbs import Verb
from core.mirroring.promotion import MOVED_BY_OTHERS, Why
from mirrors.models import Mirror

MOST = 100
"""So many of each kind, the newest."""


class Kind(StrEnum):
    """What is marked."""

    PAUSE = "pause"
    LATE = "late"
    FORCE = "force"
    OTHERS = "others"

    @property
    def word(self) -> str:
        """As people read it."""
        return _WORDS[self]


_WORDS = {
    Kind.PAUSE: "Paused",
    Kind.LATE: "Later than target",
    Kind.FORCE: "Moved by force",
    Kind.OTHERS: "Changed by others",
}
_FORCED = {Why.REPAIRED: "put back", Why.UNDONE: "uncommitted changes undone", Why.REWOUND: "reset, as at the source"}
_OTHERS = {
    Why.FOREIGN: "moved by somebody",
    Why.BACK: "moved back: by somebody, a restore or a late call",
    Why.VANISHED: "deleted by somebody, or restored",
    Why.WRITTEN: "written to by somebody",
}
assert set(_OTHERS) == {*MOVED_BY_OTHERS, Why.WRITTEN}


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing; `until` is when it was over: None for a moment, and for what goes on."""

    kind: Kind
    at: datetime
    words: str
    until: datetime | None = None
    goes_on: bool = False


def happenings(mirror: Mirror, since: datetime) -> list[Happening]:
    """All of them that reach into the time from `since` on, the newest first. Three queries."""
    found = [*_pauses(mirror, since), *_breaches(mirror, since), *_moves(mirror, since)]
    return sorted(found, key=lambda one: one.at, reverse=True)


def _pauses(mirror: Mirror, since: datetime) -> Iterator[Happening]:
    """By the record of who paused and who resumed it; the newest of them first."""
    verbs = [Verb.PAUSE, Verb.RESUME]
    events = AuditEvent.objects.filter(subject=mirror.audit_name, verb__in=verbs, refused=False).order_by("-pk")
    until: datetime | None = None
    for event in events[: 2 * MOST]:
        if event.verb == Verb.RESUME:
            until = event.at
            continue
        if until is None or until > since:
            why = f": “{event.reason}”" if event.reason else ""
            yield Happening(Kind.PAUSE, event.at, f"by {event.actor}{why}", until, goes_on=until is None)
        if event.at < since:
            return


def _breaches(mirror: Mirror, since: datetime) -> Iterator[Happening]:
    rows = mirror.breaches.filter(Q(ended_at=None) | Q(ended_at__gt=since)).order_by("-began_at", "-pk")
    for row in rows[:MOST]:
        yield Happening(Kind.LATE, row.began_at, row.branch, row.ended_at, goes_on=row.ended_at is None)


def _moves(mirror: Mirror, since: datetime) -> Iterator[Happening]:
    rows = mirror.promotions.filter(at__gte=since, is_tag=False, why__in=[*_FORCED, *_OTHERS]).order_by("-at", "-pk")
    for row in rows[:MOST]:
        why = Why(row.why)
        kind, words = (Kind.FORCE, _FORCED[why]) if why in _FORCED else (Kind.OTHERS, _OTHERS[why])
        yield Happening(kind, row.at, f"{row.branch}: {words}")
