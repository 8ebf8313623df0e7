"""Which mirrors a list shows, in which order, from where on: all of it stands in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from core.mirroring.states import State
from db.labels import with_labels
from mirrors.models.querysets import MirrorQuerySet
from mirrors.status.mirror import MirrorStatus
from web.labels import wanted_labels
from web.serializers import rfc3339

LAST = 10**11
"""After every moment in Unix seconds."""

COLUMNS: Mapping[str, Callable[[MirrorStatus], Any]] = {
    "name": lambda reading: reading.mirror.name,
    "status": lambda reading: reading.state.word,
    "reason_code": lambda reading: reading.reason_code,
    "reason": lambda reading: reading.sentence,
    "outages": lambda reading: "; ".join(outage.brief for outage in reading.outages),
    "source_repository": lambda reading: reading.mirror.source.name,
    "source_region": lambda reading: reading.mirror.source.region,
    "region": lambda reading: reading.mirror.region,
    "branches": lambda reading: reading.staying,
    "branches_up_to_date": lambda reading: reading.caught_up,
    "pending_commits": lambda reading: reading.pending,
    "lag_seconds": lambda reading: None if reading.lag is None else round(reading.lag, 3),
    "labels": lambda reading: " ".join(reading.mirror.label_words),
    "waiting_for": lambda reading: reading.waiting_words,
    "last_validated_at": lambda reading: rfc3339(reading.mirror.last_validated_at),
    "as_of": lambda reading: rfc3339(reading.as_of),
}
"""Of the list as CSV."""


def _by_lag(reading: MirrorStatus) -> int:
    """Since when it is behind, which stays the same while it waits; then those that are not, and those unknown."""
    if not reading.lag:
        return LAST if reading.lag is None else LAST - 1
    return int(reading.as_of.timestamp() - reading.lag)


ORDERS: Mapping[str, tuple[str, Callable[[MirrorStatus], int]]] = {
    "urgency": ("worst first", lambda reading: -reading.state.severity),
    "lag": ("longest behind first", _by_lag),
    "name": ("by name", lambda reading: 0),
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is on: what it says, and the query without it."""

    label: str
    value: str
    without: str


def query_without(query: QueryDict, key: str, value: str = "") -> str:
    """A list's query without a filter, or one value of it. Whatever is filtered otherwise begins at its beginning."""
    changed = query.copy()
    changed.setlist(key, [other for other in query.getlist(key) if value and other != value])
    for name in ("after", "page"):
        changed.pop(name, None)
    return "?" + changed.urlencode()


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What the address asks for. Values that mean nothing are left out, so an old link still opens a list."""

    query: QueryDict
    states: Sequence[State] = field(default_factory=tuple)
    source: str = ""
    origin: str = ""
    region: str = ""
    find: str = ""
    labels: Sequence[str] = field(default_factory=tuple)
    sort: str = "urgency"
    after: tuple[int, str] | None = None

    @classmethod
    def of(cls, query: QueryDict) -> ListQuery:
        """From the query of a request."""
        known = {state.value for state in State}
        sort = query.get("sort", "")
        return cls(
            query=query,
            states=[State(value) for value in dict.fromkeys(query.getlist("state")) if value in known],
            source=query.get("source", "").strip(),
            origin=query.get("from", "").strip(),
            region=query.get("region", "").strip(),
            find=query.get("find", "").strip(),
            labels=wanted_labels(query.getlist("label")),
            sort=sort if sort in ORDERS else "urgency",
            after=_cursor(query.get("after", "")),
        )

    def narrow(self, mirrors: MirrorQuerySet) -> MirrorQuerySet:
        """Those that the tables alone can tell."""
        wanted = {
            "source__name": self.source,
            "source__region": self.origin,
            "region": self.region,
            "name__icontains": self.find,
        }
        exactly = {column: value for column, value in wanted.items() if value}
        narrowed: MirrorQuerySet = with_labels(mirrors.filter(**exactly), self.labels)
        return narrowed

    def select(self, readings: Sequence[MirrorStatus]) -> list[MirrorStatus]:
        """Those in the states that are asked for, in the order that is."""
        chosen = [reading for reading in readings if not self.states or reading.state in self.states]
        return sorted(chosen, key=self._key)

    def page(self, readings: Sequence[MirrorStatus], amount: int) -> tuple[list[MirrorStatus], str]:
        """The next few after the cursor, and the query of those that follow, "" if none do."""
        rest = [reading for reading in readings if self.after is None or self._key(reading) > self.after]
        page = rest[:amount]
        if len(rest) <= amount:
            return page, ""
        rank, name = self._key(page[-1])
        return page, self._with(after=f"{rank}:{name}")

    def _key(self, reading: MirrorStatus) -> tuple[int, str]:
        return ORDERS[self.sort][1](reading), reading.mirror.name

    @property
    def chips(self) -> list[Chip]:
        """Filters that are on."""
        chips = [Chip("State", state.word, query_without(self.query, "state", state.value)) for state in self.states]
        chips += [Chip("Label", label, query_without(self.query, "label", label)) for label in self.labels]
        named = {"source": "Source", "from": "From", "region": "To", "find": "Name holds"}
        values = {"source": self.source, "from": self.origin, "region": self.region, "find": self.find}
        return chips + [
            Chip(named[key], value, query_without(self.query, key)) for key, value in values.items() if value
        ]

    @property
    def csv(self) -> str:
        """The query of the same list as CSV."""
        return self._with(format="csv")

    @property
    def first(self) -> str:
        """The query of the list's beginning."""
        return query_without(self.query, "after")

    def _with(self, **values: str) -> str:
        query = self.query.copy()
        for key, value in values.items():
            query[key] = value
        return "?" + query.urlencode()


def _cursor(given: str) -> tuple[int, str] | None:
    rank, colon, name = given.partition(":")
    return (int(rank), name) if colon and rank.lstrip("-").isascii() and rank.lstrip("-").isdigit() else None
