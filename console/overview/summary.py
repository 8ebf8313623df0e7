"""What needs somebody first, over all mirrors: figures, the worst lag between regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Min

from console.exports_summary import Summary
from console.jobs.workers import WorkerReading
from core.mirroring.explain.blocker_text import count_objects
from core.mirroring.rpo import in_words, worst_lag
from core.mirroring.states import NOT_KNOWN, State, Tone
from core.text.phrases import Phrase, count, say, sentence
from jobs.queue_status import QueueReading
from mirrors.models import Commit, MirrorCommit
from mirrors.models.querysets import UNCHECKED, MirrorQuerySet
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import REPLICATION, RootCause, is_explained, needing
from mirrors.transitions.rpo_breaches import targets

LOOK_AGAIN = (State.LATE, State.BLOCKED, State.DAMAGED)
"""States in which another look at once may be what helps."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure with its name above and a word below."""

    name: str
    figure: str
    below: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """Mirrors from one region in another: how many, the worst lag in seconds (None: unknown), how loud it is."""

    number: int
    lag: float | None
    bad: bool


@dataclass(frozen=True, slots=True)
class Matrix:
    """Source regions down, regions of mirrors across; None where there is no mirror."""

    regions: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, Pair | None]]]]


def is_within(reading: MirrorStatus) -> bool:
    """Whether a mirror is known to be no later than is aimed at, whatever else may be wrong with it. One that is being
    copied for the first time is neither that nor late."""
    known = reading.lag_known and reading.lag is not None and reading.state not in NOT_KNOWN
    return known and not is_beyond(reading) and not reading.first_copy


def is_beyond(reading: MirrorStatus) -> bool:
    """Whether a mirror is later than is aimed at, by as much as is known. A first copy takes what it takes."""
    return (
        not reading.first_copy
        and reading.lag is not None
        and reading.lag > targets(reading.mirror).late_after.total_seconds()
    )


def tell(
    readings: Sequence[MirrorStatus],
    causes: Sequence[RootCause],
    troubles: Sequence[str],
    differing: Sequence[str],
    *,
    others_need: int,
) -> Phrase:
    """One sentence: how many are within their target, and what needs somebody. `troubles` are of queues, `differing` of
    deployments; of exports and rules that need somebody other sentences say how many. Mirrors that only wait for the
    end of an outage are not counted once more."""
    within = sum(is_within(reading) for reading in readings)
    well = f"{within:,} of {count(len(readings), 'mirror is within its', 'mirrors are within their')} target"
    others = [reading for reading in readings if not is_explained(reading, causes)]
    need, not_known = len(needing(others)), [reading for reading in others if _is_unknown(reading)]
    unproven = sum(reading.state is State.UNPROVEN for reading in not_known)
    unknown = len(not_known) - unproven
    first = _first_copies(readings)
    paused = sum(_is_well_paused(reading) for reading in others)
    retrying = sum(reading.state is State.RETRYING for reading in others)
    stops = sum(cause.service == REPLICATION for cause in causes)
    outages = len(causes) - stops
    words = [count(outages, "outage")] if outages else []
    words += [count(stops, "replication has stopped", "replications have stopped")] if stops else []
    words += [count(need, "needs you", "need you")] if need else []
    words += [count(unknown, "is unknown", "are unknown")] if unknown else []
    words += [count(unproven, "is not proven", "are not proven")] if unproven else []
    words += [count(retrying, "is being retried", "are being retried")] if retrying else []
    words += [first] if first else []
    words += [count(len(troubles), "queue is late", "queues are late")] if troubles else []
    words += ["deployments differ"] if differing else []
    words = words or ["no mirror needs you" if others_need else "nothing needs you"]
    words += [count(paused, "is paused", "are paused")] if paused else []
    return sentence(say(well), "; ", ", ".join(words))


def _first_copies(readings: Sequence[MirrorStatus]) -> str:
    """How many are neither within their target nor late yet, or ""."""
    number = sum(reading.first_copy for reading in readings)
    return count(number, "is being copied for the first time", "are being copied for the first time") if number else ""


def _is_unknown(reading: MirrorStatus) -> bool:
    """Of a mirror that needs somebody, or is being retried, that is said."""
    told_otherwise = reading.state.tone is Tone.BAD or reading.state is State.RETRYING
    return not told_otherwise and (reading.lag is None or reading.state in NOT_KNOWN)


def _is_well_paused(reading: MirrorStatus) -> bool:
    """Of one that is paused for too long, or of which nobody knows what waits, that is said."""
    return reading.state is State.PAUSED and not reading.needs_somebody and not _is_unknown(reading)


def tiles(
    readings: Sequence[MirrorStatus],
    queues: Sequence[QueueReading],
    workers: Sequence[WorkerReading],
    oldest: datetime | None,
    exports: Summary,
    now: datetime,
) -> list[Tile]:
    """Four, of what there are facts for: who sees no export is told of the oldest unvalidated commit by itself."""
    last = _exports(exports) if exports.total else _unchecked(oldest, now)
    waiting = _waiting(readings, now)
    if exports.total and oldest is not None:
        waited = in_words((now - oldest).total_seconds())
        waiting = replace(waiting, below=f"{waiting.below} · oldest unvalidated commit {waited}")
    return [_within(readings), waiting, last, _workers(queues, workers)]


def _exports(exports: Summary) -> Tile:
    """Those that work, how many somebody has to see to, and how the others are."""
    need = f"{exports.needing:,} {'needs' if exports.needing == 1 else 'need'} attention" if exports.needing else ""
    below = ", ".join(filter(None, [need, exports.others])) or "nothing needs you"
    return Tile("Exports in order", f"{exports.in_order:,} / {exports.total:,}", below, bad=exports.needing > 0)


def _within(readings: Sequence[MirrorStatus]) -> Tile:
    within = sum(is_within(reading) for reading in readings)
    copied = [reading for reading in readings if not reading.first_copy]
    worst = max(copied, key=lambda reading: reading.lag or 0, default=None)
    below = "nothing waits" if all(reading.lag is not None for reading in copied) else "some are unknown"
    below = _first_copies(readings) or below
    below = f"worst: {worst.mirror.name}, {in_words(worst.lag)}" if worst and worst.lag else below
    return Tile("Within target", f"{within:,} / {len(readings):,}", below, bad=any(map(is_beyond, readings)))


def _waiting(readings: Sequence[MirrorStatus], now: datetime) -> Tile:
    number = sum(reading.waiting for reading in readings)
    more = any(reading.waiting_more for reading in readings)
    since = min((reading.waiting_since for reading in readings if reading.waiting_since), default=None)
    states = {reading.state for reading in readings}
    unchecked = sum(reading.is_unchecked for reading in readings)
    below = "as of the last check" if State.UNKNOWN in states else "nothing is missing"
    below = "some are still being checked" if any(reading.first_copy for reading in readings) else below
    below = f"{count(unchecked, 'mirror')} not checked yet" if unchecked else below
    below = "see what is damaged below" if State.DAMAGED in states else below
    below = f"oldest for {in_words((now - since).total_seconds())}" if since else below
    figure = count_objects(number, more=more)
    figure = "not known yet" if unchecked == len(readings) and not number else figure
    return Tile("Missing or wrong", figure, below)


def _workers(queues: Sequence[QueueReading], workers: Sequence[WorkerReading]) -> Tile:
    messages = sum(queue.messages for queue in queues)
    silent, starting = sum(queue.silent for queue in queues), sum(queue.starting for queue in queues)
    alive = sum(not worker.lost for worker in workers)
    lost = len(workers) - alive
    spark, unreachable = _spark(workers)
    queue = f"{count(messages, 'message')} queued" if messages else "queue empty"
    queue = count(starting, "worker is starting", "workers are starting") if starting else queue
    queue = count(silent, "queue not served", "queues not served") if silent else queue
    below = " · ".join(filter(None, [f"{lost:,} lost" if lost else "", spark, queue]))
    return Tile("Workers", f"{alive:,} alive", below, bad=silent > 0 or unreachable or not (alive or starting))


def _spark(workers: Sequence[WorkerReading]) -> tuple[str, bool]:
    """Spark in words, and whether somebody has to see to it."""
    reached = spark_reached(workers)
    if reached is None:
        return "", False
    if any(worker.spark_trouble for worker in workers):
        return "Spark unreachable", True
    return ("Spark reachable" if reached else "Spark is starting"), False


def spark_reached(workers: Sequence[WorkerReading]) -> bool | None:
    """Whether all workers that are alive and run jobs on Spark reach it; None where none of them uses one."""
    users = [worker.row for worker in workers if worker.row and worker.row.spark and not worker.lost]
    return not any(row.spark_trouble for row in users) if users else None


def _unchecked(oldest: datetime | None, now: datetime) -> Tile:
    if oldest is None:
        return Tile("Oldest commit awaiting validation", "none", "all are validated")
    return Tile("Oldest commit awaiting validation", in_words((now - oldest).total_seconds()), "since it was seen")


def oldest_unchecked(visible: MirrorQuerySet) -> datetime | None:
    """When the oldest commit was seen whose data is still to be checked; each mirror's first, by the partial index."""
    rows = MirrorCommit.objects.filter(UNCHECKED, mirror__in=visible.order_by().values("pk"))
    first = rows.order_by().values("mirror_id").annotate(first=Min("commit_id")).values("first")
    seen_at: datetime | None = Commit.objects.filter(pk__in=first).aggregate(at=Min("seen_at"))["at"]
    return seen_at


def matrix(readings: Sequence[MirrorStatus]) -> Matrix:
    """The worst lag between each two regions."""
    between: dict[tuple[str, str], list[MirrorStatus]] = defaultdict(list)
    for reading in readings:
        between[reading.mirror.source.region, reading.mirror.region].append(reading)
    across = sorted({region for _, region in between})
    rows = [
        (origin, [(region, _pair(between.get((origin, region), []))) for region in across])
        for origin in sorted({origin for origin, _ in between})
    ]
    return Matrix(across, rows)


def _pair(readings: Sequence[MirrorStatus]) -> Pair | None:
    if not readings:
        return None
    bad = any(reading.state.tone is Tone.BAD for reading in readings)
    return Pair(len(readings), worst_lag([reading.lag for reading in readings]), bad)
