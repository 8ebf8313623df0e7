"""The map of regions: which mirrors go from where to where, how well, drawn and as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.installations.outages import Service
from core.mirroring.rpo import in_words, worst_lag
from core.mirroring.states import NOT_KNOWN, State, Tone
from core.text.phrases import count
from core.text.region_map import LABEL, NODE, Edge, Node, lay_out
from db import clock
from mirrors.models import Mirror
from mirrors.status.fleet import fleet_statuses
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import RootCause, root_causes
from mirrors.views.tabs import may_see
from web.pages import whole_or_part


class Health(StrEnum):
    """How a connection is doing: by the worst of its mirrors. The first is the loudest."""

    BAD = "bad"
    UNKNOWN = "unknown"
    BEHIND = "behind"
    PAUSED = "paused"
    GOOD = "good"

    @property
    def word(self) -> str:
        """As people read it."""
        return _WORDS[self]

    @property
    def sign(self) -> str:
        """A sign that tells it without colour."""
        return _SIGNS[self]


_WORDS = {
    Health.BAD: "needs attention",
    Health.UNKNOWN: "unknown",
    Health.BEHIND: "catching up",
    Health.PAUSED: "paused",
    Health.GOOD: "up to date",
}
_SIGNS = {Health.BAD: "✕", Health.UNKNOWN: "?", Health.BEHIND: "◐", Health.PAUSED: "‖", Health.GOOD: "✓"}
_LOUDEST = list(Health)


@dataclass(frozen=True, slots=True)
class Connection:
    """The mirrors of sources in one region at another. `lag` in seconds, None where nobody knows; `up_to_date` of
    them are."""

    origin: str
    region: str
    mirrors: int
    up_to_date: int
    lag: float | None
    health: Health

    @property
    def query(self) -> str:
        """Of the list of its mirrors."""
        return urlencode({"from": self.origin, "region": self.region, "sort": "lag"})

    @property
    def label(self) -> str:
        """What stands on the map."""
        return f"{self.health.sign} {self.mirrors:,} · {in_words(self.lag)}"

    @property
    def words(self) -> str:
        """The same for who doesn't see it."""
        mirrors = f"{count(self.mirrors, 'mirror')}, {self.up_to_date:,} up to date"
        lag = "lag unknown" if self.lag is None else f"worst lag {in_words(self.lag)}"
        return f"{self.origin} to {self.region}: {self.health.word}; {mirrors}; {lag}"


@dataclass(frozen=True, slots=True)
class DrawnRegion:
    """A region's box: how many mirrors are there, and what is wrong with the region itself."""

    node: Node
    mirrors: int
    outage: str

    @property
    def words(self) -> str:
        """Below its name."""
        return self.outage or (count(self.mirrors, "mirror") if self.mirrors else "source")


def connections(readings: Sequence[MirrorStatus]) -> list[Connection]:
    """Those that need somebody first, then by name."""
    between: dict[tuple[str, str], list[MirrorStatus]] = defaultdict(list)
    for reading in readings:
        between[reading.mirror.source.region, reading.mirror.region].append(reading)
    made = [_connection(*pair, some) for pair, some in between.items()]
    return sorted(made, key=lambda one: (_LOUDEST.index(one.health), one.origin, one.region))


def _connection(origin: str, region: str, readings: Sequence[MirrorStatus]) -> Connection:
    return Connection(
        origin,
        region,
        len(readings),
        sum(reading.state is State.UP_TO_DATE for reading in readings),
        worst_lag([reading.lag for reading in readings]),
        min(map(health_of, readings), key=_LOUDEST.index),
    )


def health_of(reading: MirrorStatus) -> Health:
    """Of one mirror."""
    if reading.state.tone is Tone.BAD:
        return Health.BAD
    if reading.state is State.PAUSED:
        return Health.PAUSED
    if reading.lag is None or reading.state in NOT_KNOWN:
        return Health.UNKNOWN
    return Health.GOOD if reading.state is State.UP_TO_DATE else Health.BEHIND


@never_cache
@require_safe
@may_see
def region_map(request: HttpRequest) -> HttpResponse:
    """Regions and the connections between them; a table says the same, and alone where a map could not be read."""
    now = clock.now()
    readings = fleet_statuses(Mirror.objects.visible_to(request.user), now)
    listed = connections(readings)
    context = {
        "section": "overview",
        "now": now,
        "as_of": min((reading.as_of for reading in readings), default=now),
        "connections": listed,
        "active": any(reading.active for reading in readings),
        "summary": _summary(listed),
        "changes": "; ".join(one.words for one in listed if one.health is Health.BAD),
        "box": NODE,
        "label": LABEL,
    }
    context |= _drawn(listed, root_causes(readings, now))
    return render(request, whole_or_part(request, "overview/map.html", "overview/_map.html"), context)


def _drawn(listed: Sequence[Connection], causes: Sequence[RootCause]) -> dict[str, object]:
    """Nothing where a map could not be read."""
    ordered = sorted(listed, key=lambda one: (one.origin, one.region))
    drawn = lay_out([(one.origin, one.region) for one in ordered])
    if drawn is None:
        return {"regions": [], "edges": []}
    by_pair = {(one.origin, one.region): one for one in ordered}
    edges: list[tuple[Edge, Connection]] = [(edge, by_pair[edge.pair]) for edge in drawn.edges]
    wrong = {cause.region: _word(cause) for cause in reversed(causes)}  # an outage before replication that stopped
    there: dict[str, int] = defaultdict(int)
    for one in listed:
        there[one.region] += one.mirrors
    regions = [DrawnRegion(node, there[node.region], wrong.get(node.region, "")) for node in drawn.nodes]
    return {"regions": regions, "edges": edges}


def _word(cause: RootCause) -> str:
    """What is wrong with a region, in its box."""
    return cause.word if cause.source_region else f"{Service(cause.service).name_alone}: {cause.word.lower()}"


def _summary(listed: Sequence[Connection]) -> str:
    """One sentence for all."""
    if not listed:
        return "There is no mirror yet."
    number = {health: sum(one.health is health for one in listed) for health in Health}
    told = [f"{number[health]:,} {health.word}" for health in Health if number[health]]
    return f"{count(len(listed), 'connection')} between regions: {', '.join(told)}."
