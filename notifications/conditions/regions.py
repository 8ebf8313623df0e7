"""Regions, the replication between them, queues, deployments: what concerns more than one mirror."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.urls import reverse
from django.utils.http import urlencode

from core.installations.outages import Service
from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.text.phrases import sentence
from installations import contact
from jobs.deployments import disagreements
from jobs.queue_status import QueueReading
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import RootCause
from notifications.conditions.observation import UNSURE, Observation, Trouble

DEPLOYMENTS = "deployments"


def look_at_regions(seen: Observation, causes: Sequence[RootCause], now: datetime) -> None:
    answering = contact.answering(now)
    for region, service in contact.services():
        told = str(sentence(f"{service.word} of {region} answers"))
        seen.standings[region_subject(region, service)] = Standing(told, sure=(region, service) in answering)
    for cause in causes:
        kind = AlertKind.REPLICATION_STOPPED if cause.source_region else AlertKind.REGION_DOWN
        subject, told = subject_of_cause(cause), str(cause.told)
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


def subject_of_cause(cause: RootCause) -> str:
    """The subject of the alert for what explains why mirrors wait."""
    if cause.source_region:
        return replication_subject(cause.source_region, cause.region)
    return region_subject(cause.region, Service(cause.service))


def replication_subject(source_region: str, region: str) -> str:
    """The replication of objects between two regions, as the subject of an alert."""
    return f"replication/{source_region}/{region}"


def look_at_replication(seen: Observation, readings: Sequence[MirrorStatus]) -> None:
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


def look_at_queues(seen: Observation, queues: Sequence[QueueReading]) -> None:
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


def look_at_deployments(seen: Observation) -> None:
    """Whether all on this database are told the same."""
    seen.standings[DEPLOYMENTS] = Standing("All deployments on this database have the same settings.")
    if differing := disagreements():
        kind = AlertKind.DEPLOYMENTS_DIFFER
        condition = Condition(kind=kind, subject=DEPLOYMENTS, sentence=" ".join(differing))
        seen.troubles.append(Trouble(condition=condition, name="Deployments", link=reverse("home"), remedy=kind.remedy))
