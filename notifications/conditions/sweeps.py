"""Sweeps of mirrors that follow their source's garbage collection: those that ask somebody, and those that may delete
nothing."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max

from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.text.phrases import sentence
from mirrors.models import Mirror, Sweep
from mirrors.status.mirror import MirrorStatus
from notifications.conditions.observation import Observation, Trouble, of_mirror

_KINDS = {Sweep.State.WAITING: AlertKind.DELETIONS_WAITING, Sweep.State.FROZEN: AlertKind.DELETIONS_FROZEN}


def look_at_sweeps(seen: Observation, readings: Sequence[MirrorStatus]) -> None:
    """The last sweep of each mirror that follows it. A mirror that is paused or stopped tells of that itself."""
    mirrors = {reading.mirror.pk: reading.mirror for reading in readings if reading.mirror.follow_gc}
    newest = Sweep.objects.filter(mirror__in=mirrors).order_by().values("mirror").annotate(last=Max("pk"))
    rows = Sweep.objects.filter(pk__in=newest.values("last")) if mirrors else ()
    last = {sweep.mirror_id: sweep for sweep in rows}
    for key, mirror in mirrors.items():
        told = f"{mirror.name} follows the garbage collection of {mirror.source.name}; nothing waits for anybody."
        sweep_now = last.get(key)
        kind = _KINDS.get(Sweep.State(sweep_now.state)) if sweep_now and mirror.sweeps_now else None
        if sweep_now is not None and kind is not None:
            told = str(sentence(_words(mirror, sweep_now)))
            seen.troubles.append(_trouble(mirror, sweep_now, kind, told))
        seen.standings[_subject(mirror)] = Standing(told, mirror=key)


def _subject(mirror: Mirror) -> str:
    return f"mirror/{mirror.name}/sweeps"


def _words(mirror: Mirror, sweep: Sweep) -> str:
    if sweep.state == Sweep.State.WAITING:
        return f"garbage collection at {mirror.name} waits for approval: {sweep.reason}"
    return f"nothing is deleted at {mirror.name}, which follows garbage collection: {sweep.reason}"


def _trouble(mirror: Mirror, sweep: Sweep, kind: AlertKind, told: str) -> Trouble:
    since = sweep.looked_at if kind is AlertKind.DELETIONS_WAITING else sweep.began_at
    condition = Condition(kind=kind, subject=_subject(mirror), sentence=told, since=since)
    return of_mirror(mirror, condition, "mirror_sweeps")
