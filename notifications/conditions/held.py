"""Heads that came without a release, of branches into which merges are held."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.text.phrases import SHORT_ID, count
from mirrors.models import HeldMerge, Mirror
from mirrors.status.mirror import MirrorStatus
from mirrors.transitions.held_merges import ungated_now
from notifications.conditions.observation import Observation, Trouble, of_mirror


def look_at_held(seen: Observation, readings: Sequence[MirrorStatus], now: datetime) -> None:
    """Those of the last day, at mirrors that hold merges; where that was ended nobody has to act any more."""
    mirrors = [reading.mirror for reading in readings if reading.mirror.hold]
    found = ungated_now(mirrors, now)
    for mirror in mirrors:
        told = f"No head of {mirror.source.name} came without a release in the last day."
        if rows := found[mirror.pk]:
            told = _words(mirror, rows)
            seen.troubles.append(_trouble(mirror, rows, told))
        seen.standings[_subject(mirror)] = Standing(told, mirror=mirror.pk)
    for mirror in (reading.mirror for reading in readings if not reading.mirror.hold):
        told = f"No merges into branches of {mirror.source.name} are held for {mirror.name}."
        seen.standings[_subject(mirror)] = Standing(told, mirror=mirror.pk)


def _subject(mirror: Mirror) -> str:
    return f"held-merges/{mirror.name}"


def _words(mirror: Mirror, rows: Sequence[HeldMerge]) -> str:
    last = rows[0]
    return (
        f"{last.branch} of {mirror.source.name} is at {last.commit_id[:SHORT_ID]}, which nobody asked to have in "
        f"{mirror.region} first; {count(len(rows), 'such head')} in the last day."
    )


def _trouble(mirror: Mirror, rows: Sequence[HeldMerge], told: str) -> Trouble:
    kind, since = AlertKind.HEAD_UNGATED, min(row.held_at for row in rows)
    condition = Condition(kind=kind, subject=_subject(mirror), sentence=told, since=since)
    return of_mirror(mirror, condition, "mirror_held")
