"""What is wrong at this moment, and how each subject is doing that an alert may be about.

Mirrors and exports are read as their pages read them. What an outage or a silent queue explains is given its `cause`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from core.installations.outages import Service
from core.mirroring.states import NOT_KNOWN, State
from core.notifications.kinds import OF_EXPORTS, OF_MIRRORS, AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.pauses import Pause
from core.text.phrases import sentence
from deployment import config
from exports.models import Export
from exports.status.export import ExportSummary, export_statuses
from installations import contact
from jobs.deployments import disagreements
from jobs.duties import queue_name
from jobs.queue_status import QueueReading, queue_readings
from mirrors.models import Mirror, MirrorDuty
from mirrors.status.fleet import fleet_statuses
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import WAITING, RootCause, cause_of, root_causes

UNSURE = NOT_KNOWN | {State.RETRYING}
"""States of a mirror in which nobody knows whether what was wrong is over."""
UNSURE_EXPORT = frozenset({State.UNKNOWN, State.RETRYING, State.SYNCING})
"""The same of an export: a run that goes on has repaired nothing yet."""
DEPLOYMENTS = "deployments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A condition with what its alert shows: the subject's name, its region, what to do, the page that helps; the keys
    of mirror or export, by which it is seen by who may see these."""

    condition: Condition
    name: str
    link: str
    remedy: str
    region: str = ""
    mirror: int | None = None
    export: int | None = None


@dataclass(slots=True)
class Observation:
    """One look at everything: what is wrong, and how subjects are doing; those that are not in it are gone."""

    troubles: list[Trouble] = field(default_factory=list)
    standings: dict[str, Standing] = field(default_factory=dict)


def observe(now: datetime) -> Observation:
    """Look at regions, queues, deployments, mirrors and exports; raises what a database may raise."""
    seen = Observation()
    readings = fleet_statuses(Mirror.objects.live(), now)
    causes, queues = root_causes(readings, now), queue_readings(now)
    _regions(seen, causes, now)
    _replication(seen, readings)
    _queues(seen, queues)
    _deployments(seen)
    _mirrors(seen, readings, causes, {queue.name for queue in queues if queue.silent})
    exports = export_statuses(list(Export.objects.filter(deleting=False)), now)
    _exports(seen, exports)
    _pauses(seen, readings, exports, now)
    return seen


# --- regions, queues, deployments -------------------------------------------------------------------------------------


def _regions(seen: Observation, causes: Sequence[RootCause], now: datetime) -> None:
    answering = contact.answering(now)
    for region in config.current().regions:
        for service in Service:
            told = str(sentence(f"{service.word} of {region} answers"))
            seen.standings[region_subject(region, service)] = Standing(told, sure=(region, service) in answering)
    for cause in causes:
        kind = AlertKind.REPLICATION_STOPPED if cause.source_region else AlertKind.REGION_DOWN
        subject, told = _subject_of(cause), str(cause.told)
        condition = Condition(kind=kind, subject=subject, sentence=told, since=cause.since)
        name, link = _place_of(cause)
        trouble = Trouble(condition=condition, name=name, link=link, remedy=cause.remedy, region=cause.region)
        seen.troubles.append(trouble)


def _place_of(cause: RootCause) -> tuple[str, str]:
    """What it is about, and the page that helps."""
    if cause.source_region:
        mirrors = urlencode({"from": cause.source_region, "region": cause.region})
        return f"Replication {cause.name}", f"{reverse('mirrors')}?{mirrors}"
    return f"{Service(cause.service).name_alone} of {cause.region}", reverse("installation", args=[cause.region])


def _subject_of(cause: RootCause) -> str:
    """The subject of the alert for what explains why mirrors wait."""
    if cause.source_region:
        return replication_subject(cause.source_region, cause.region)
    return region_subject(cause.region, Service(cause.service))


def replication_subject(source_region: str, region: str) -> str:
    """The replication of objects between two regions, as the subject of an alert."""
    return f"replication/{source_region}/{region}"


def _replication(seen: Observation, readings: Sequence[MirrorStatus]) -> None:
    """Between each two regions with mirrors: nobody knows that objects arrive while one of these is not seen."""
    for reading in readings:
        source_region, region = reading.mirror.source.region, reading.mirror.region
        subject = replication_subject(source_region, region)
        told = str(sentence(f"objects written to {source_region} arrive in {region}"))
        earlier = seen.standings.get(subject)
        sure = reading.state not in UNSURE and (earlier is None or earlier.sure)
        seen.standings[subject] = Standing(told, sure=sure)


def region_subject(region: str, service: Service) -> str:
    """A service of a region, as the subject of an alert."""
    return f"region/{region}/{service}"


def _queues(seen: Observation, queues: Sequence[QueueReading]) -> None:
    for queue in queues:
        subject = queue_subject(queue.name)
        seen.standings[subject] = Standing(queue.trouble or f"The queue {queue.name} has a worker.")
        if queue.trouble:
            kind = AlertKind.QUEUE_SILENT if queue.silent else AlertKind.QUEUE_LATE
            condition = Condition(kind=kind, subject=subject, sentence=queue.trouble, since=queue.oldest_due)
            name, link = f"Queue {queue.name}", reverse("jobs")
            seen.troubles.append(Trouble(condition=condition, name=name, link=link, remedy=kind.remedy))


def queue_subject(name: str) -> str:
    """A queue, as the subject of an alert."""
    return f"queue/{name}"


def _deployments(seen: Observation) -> None:
    seen.standings[DEPLOYMENTS] = Standing("All deployments on this database are told the same.")
    if differing := disagreements():
        kind = AlertKind.DEPLOYMENTS_DIFFER
        condition = Condition(kind=kind, subject=DEPLOYMENTS, sentence=" ".join(differing))
        seen.troubles.append(Trouble(condition=condition, name="Deployments", link=reverse("home"), remedy=kind.remedy))


# --- mirrors ----------------------------------------------------------------------------------------------------------


def _mirrors(
    seen: Observation, readings: Sequence[MirrorStatus], causes: Sequence[RootCause], silent: set[str]
) -> None:
    queues = _QueuesOfRegions(silent)
    for reading in readings:
        mirror = reading.mirror
        subject = f"mirror/{mirror.name}"
        told = _with_state(reading.state.word, reading.sentence)
        seen.standings[subject] = Standing(told, sure=reading.state not in UNSURE, mirror=mirror.pk)
        kind = OF_MIRRORS.get(reading.state)
        if kind is None:
            continue
        condition = Condition(
            kind=kind, subject=subject, sentence=reading.sentence, cause=_cause(reading, causes, queues)
        )
        trouble = Trouble(
            condition=condition,
            name=mirror.name,
            link=_page_of(mirror, kind),
            remedy=kind.remedy,
            region=mirror.region,
            mirror=mirror.pk,
        )
        seen.troubles.append(trouble)


def _page_of(mirror: Mirror, kind: AlertKind) -> str:
    backlog = kind in (AlertKind.MIRROR_BLOCKED, AlertKind.MIRROR_DAMAGED)
    return reverse("mirror_backlog" if backlog else "mirror", args=[mirror.name])


def _cause(reading: MirrorStatus, causes: Sequence[RootCause], queues: _QueuesOfRegions) -> str:
    """The subject of what explains that a mirror waits, or ""."""
    if cause := cause_of(reading, causes):
        return _subject_of(cause)
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


# --- exports ----------------------------------------------------------------------------------------------------------


def _exports(seen: Observation, readings: Sequence[ExportSummary]) -> None:
    for reading in readings:
        export, told = reading.export, reading.told
        subject = f"export/{export.pk}"
        words = _with_state(told.word, str(told.sentence))
        seen.standings[subject] = Standing(words, told.state not in UNSURE_EXPORT, export.succeeded_at)
        kind = OF_EXPORTS.get(told.state)
        if kind is None:
            continue
        trouble = Trouble(
            condition=Condition(kind=kind, subject=subject, sentence=str(told.sentence)),
            name=f"{export.repository} · {export.branch}",
            link=reverse("export", args=[export.pk]),
            remedy=kind.remedy,
            region=export.region,
            export=export.pk,
        )
        seen.troubles.append(trouble)


# --- pauses -----------------------------------------------------------------------------------------------------------


def _pauses(
    seen: Observation, mirrors: Sequence[MirrorStatus], exports: Sequence[ExportSummary], now: datetime
) -> None:
    """Subjects of their own: that a mirror is resumed is known also while nobody knows how it is doing."""
    for one in mirrors:
        mirror, subject = one.mirror, f"mirror/{one.mirror.name}/pause"
        words = _with_state(one.state.word, one.sentence)
        seen.standings[subject] = Standing(words, mirror=mirror.pk)
        if one.paused_too_long:
            about = {"name": mirror.name, "link": reverse("mirror", args=[mirror.name]), "mirror": mirror.pk}
            kind = AlertKind.MIRROR_PAUSED_TOO_LONG
            seen.troubles.append(_overdue(kind, subject, mirror.pause, now, region=mirror.region, **about))
    for each in exports:
        export, subject = each.export, f"export/{each.export.pk}/pause"
        seen.standings[subject] = Standing(_with_state(each.told.word, str(each.told.sentence)))
        if each.paused_too_long:
            about = {"name": f"{export.repository} · {export.branch}", "export": export.pk}
            kind, link = AlertKind.EXPORT_PAUSED_TOO_LONG, reverse("export", args=[export.pk])
            seen.troubles.append(_overdue(kind, subject, export.pause, now, link=link, region=export.region, **about))


def _overdue(kind: AlertKind, subject: str, pause: Pause | None, now: datetime, **about: Any) -> Trouble:
    pause = pause or Pause()
    told = str(pause.overdue(about["name"], now))
    condition = Condition(kind=kind, subject=subject, sentence=told, since=pause.until)
    return Trouble(condition=condition, remedy=kind.remedy, **about)


def _with_state(word: str, told: str) -> str:
    """A sentence after the state that it explains, unless it begins with that itself."""
    return told if told.startswith(f"{word}: ") else f"{word}: {told}"


def by_key(troubles: Sequence[Trouble]) -> Mapping[tuple[str, str], Trouble]:
    """By what makes an alert the same: its kind and subject."""
    return {(trouble.condition.kind.value, trouble.condition.subject): trouble for trouble in troubles}
