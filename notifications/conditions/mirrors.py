"""Mirrors, as their pages read them; what an outage or a silent queue explains is given its cause."""

from __future__ import annotations

from collections.abc import Sequence

from core.notifications.kinds import OF_MIRRORS, AlertKind
from core.notifications.lifecycle import Condition, Standing
from jobs.duties import queue_name
from mirrors.models import MirrorDuty
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import WAITING, RootCause, cause_of
from notifications.conditions.observation import UNSURE, Observation, of_mirror, with_state
from notifications.conditions.regions import queue_subject, subject_of_cause


def look_at_mirrors(
    seen: Observation, readings: Sequence[MirrorStatus], causes: Sequence[RootCause], silent: set[str]
) -> None:
    queues = _QueuesOfRegions(silent)
    for reading in readings:
        mirror = reading.mirror
        subject = f"mirror/{mirror.name}"
        told = with_state(reading.state.word, reading.sentence)
        seen.standings[subject] = Standing(told, sure=reading.state not in UNSURE, mirror=mirror.pk)
        kind = OF_MIRRORS.get(reading.state)
        if kind is None:
            continue
        condition = Condition(
            kind=kind, subject=subject, sentence=reading.sentence, cause=_cause(reading, causes, queues)
        )
        backlog = kind in (AlertKind.MIRROR_BLOCKED, AlertKind.MIRROR_DAMAGED)
        seen.troubles.append(of_mirror(mirror, condition, "mirror_backlog" if backlog else "mirror"))


def _cause(reading: MirrorStatus, causes: Sequence[RootCause], queues: _QueuesOfRegions) -> str:
    """The subject of what explains that a mirror waits, or ""."""
    if cause := cause_of(reading, causes):
        return subject_of_cause(cause)
    if reading.state in WAITING:
        return next(map(queue_subject, queues.silent_of(reading.mirror.region)), "")
    return ""


class _QueuesOfRegions:
    """The silent ones of those that work for a region; asked for each region once."""

    def __init__(self, silent: set[str]) -> None:
        self._silent = silent
        self._known: dict[str, list[str]] = {}

    def silent_of(self, region: str) -> list[str]:
        if self._silent and region not in self._known:
            names = [queue_name(kind, region) for kind in (MirrorDuty.PROMOTE, MirrorDuty.VALIDATE)]
            self._known[region] = [name for name in names if name in self._silent]
        return self._known.get(region, [])
