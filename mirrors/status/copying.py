"""What LakeMirror copies for a mirror now, in which lanes, how fast, what is left of it, and how much it has copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from core.bringing import ObjectReplication
from core.text.eta import expected_end, per_second
from core.text.phrases import count
from mirrors.models import Blocker, Mirror, Run
from mirrors.queries.missing_counts import COUNTED
from mirrors.status.runs import is_held
from mirrors.transitions.bringing import LASTS, asked_for, asked_since, refused, to_replace
from web.serializers import rfc3339


@dataclass(frozen=True, slots=True)
class Lane:
    """Objects of one size, of the run at work: `waiting` have not had their turn, `in_flight` are copied now, `failed`
    had it and were not copied, for want of time or for a reason that is told of each."""

    name: str
    lacking: int
    waiting: int
    in_flight: int
    copied: int
    failed: int


@dataclass(frozen=True, slots=True)
class Going:
    """The run at work: of the objects that it found missing so far, `left` are not here. Rates are those since it
    began; bytes count as soon as they have passed, so that a large object counts while it is copied."""

    run: Run
    lanes: Sequence[Lane]
    objects_per_second: float | None
    bytes_per_second: float | None
    ends_at: datetime | None

    @property
    def left(self) -> int:
        """How many objects."""
        return self.run.lacking - self.run.copied

    @property
    def in_flight(self) -> int:
        """In all lanes together."""
        return sum(lane.in_flight for lane in self.lanes)

    @property
    def failed(self) -> int:
        """How many had their turn and were not copied."""
        return sum(lane.failed for lane in self.lanes)


@dataclass(frozen=True, slots=True)
class Copying:
    """`total` objects, of so many bytes, were copied since there is the mirror. `going`: None where nothing is found to
    be copied at the moment."""

    paused: bool
    total: int
    total_bytes: int
    going: Going | None = None


def copying_of(mirror: Mirror, now: datetime) -> Copying | None:
    """Of a mirror whose objects LakeMirror copies; None where the stores do."""
    if mirror.object_replication != ObjectReplication.MANAGED:
        return None
    return Copying(mirror.copying_paused, mirror.copied, mirror.copied_bytes, going_on(mirror, now))


def going_on(mirror: Mirror, now: datetime) -> Going | None:
    """What is copied now, if anything is."""
    run = mirror.runs.filter(ended_at=None, lacking__gt=0).first()
    if run is None or not is_held(mirror, now):
        return None
    passed = sum(lane["passed_bytes"] for lane in run.lanes.values())
    return Going(
        run,
        [_lane(name, run.lanes[name]) for name in Run.LANES if name in run.lanes],
        per_second(run.copied, run.started_at, now),
        per_second(max(run.copied_bytes, passed), run.started_at, now),
        expected_end(run.copied, run.lacking, run.started_at, now),
    )


def _lane(name: str, counts: dict[str, int]) -> Lane:
    return Lane(
        name,
        lacking=counts["lacking"],
        waiting=counts["lacking"] - counts["begun"],
        in_flight=counts["begun"] - counts["ended"],
        copied=counts["copied"],
        failed=counts["ended"] - counts["copied"],
    )


# --- on request -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asked, when. It ends a day later at the latest."""

    by: str
    at: datetime

    @property
    def ends_at(self) -> datetime:
        """At the latest."""
        return self.at + LASTS


@dataclass(frozen=True, slots=True)
class OnRequest:
    """What LakeMirror copies once of a mirror whose objects the stores replicate: `everything` that was missing when
    somebody asked, or chosen objects; `last`: who asked last. `all`: who asked for everything, where that has another
    end, since somebody has asked for chosen objects later. So many that are known are still `missing`, or `wrong` and
    to be replaced: COUNTED of each at most. `held`: nothing is copied at the moment."""

    last: Asking
    all: Asking | None
    everything: bool
    missing: int
    wrong: int
    held: bool

    @property
    def what(self) -> str:
        """As it goes on after "LakeMirror": "copies what is missing (3 objects left)"."""
        left = f" ({count(self.missing, 'object')} left)" if self.missing else ""
        chosen = f"copies {count(self.missing, 'missing object')}" if self.missing else ""
        copies = f"copies what is missing{left}" if self.everything else chosen
        replaces = f"replaces {count(self.wrong, 'object')}" if self.wrong else ""
        return " and ".join(filter(None, (copies, replaces)))

    @property
    def is_of_one(self) -> bool:
        """Whether nobody can have asked for a part of it earlier."""
        return self.everything and not self.wrong


def on_request(mirror: Mirror, now: datetime) -> OnRequest | None:
    """None where nobody has asked for anything, or all of it has ended."""
    at = mirror.bring_at or mirror.bring_all_at
    if at is None or at + LASTS <= now or mirror.object_replication == ObjectReplication.MANAGED:
        return None
    last, all_ = Asking(mirror.bring_by, at), _asking_for_all(mirror, at, now)
    if all_ is not None and all_.at < at and not asked_since(mirror, all_.at):
        last = all_
    refused_ones = refused(mirror)
    told = OnRequest(
        last=last,
        all=all_ if all_ is not None and all_.at < last.at else None,
        everything=all_ is not None,
        missing=_count(asked_for(mirror) | refused_ones.filter(bring_asked_at__isnull=False)),
        wrong=_count(to_replace(mirror) | refused_ones.filter(replace_asked_at__isnull=False)),
        held=not mirror.brings_on_request,
    )
    return told if told.what else None


def _asking_for_all(mirror: Mirror, last_at: datetime, now: datetime) -> Asking | None:
    if mirror.bring_all_at is None or mirror.bring_all_at + LASTS <= now:
        return None
    by = mirror.bring_by if mirror.bring_all_at == last_at else mirror.bring_all_by
    return Asking(by, mirror.bring_all_at)


def _count(rows: QuerySet[Blocker]) -> int:
    return rows.order_by().values("kind", "key").distinct()[:COUNTED].count()


def on_request_json(mirror: Mirror, now: datetime) -> dict[str, Any] | None:
    """The same as JSON."""
    told = on_request(mirror, now)
    if told is None:
        return None
    return {
        "what": "all" if told.everything else "chosen",
        "missing": told.missing,
        "wrong": told.wrong,
        **_asking_json(told.last),
        "all": _asking_json(told.all) if told.all else None,
        "held": told.held,
    }


def _asking_json(one: Asking) -> dict[str, Any]:
    return {"asked_by": one.by or None, "asked_at": rfc3339(one.at), "ends_at": rfc3339(one.ends_at)}
