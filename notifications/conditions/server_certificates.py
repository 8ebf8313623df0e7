"""TLS certificates of regions that are about to expire, or have."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django.urls import reverse

from core.installations.outages import Service
from core.installations.server_certificates import ServerCertificate
from core.mirroring.rpo import in_words
from core.notifications.expiry import told_from, urgent_from
from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.text.phrases import sentence
from installations import contact
from notifications.conditions.observation import Observation, Trouble
from notifications.conditions.regions import region_subject


def look_at_certificates(seen: Observation, now: datetime) -> None:
    """As they were last seen. What has expired stays told until another one is seen: the region is down by then."""
    for (region, service), certificate in contact.certificates().items():
        subject = f"{region_subject(region, service)}/certificate"
        told = _told(region, service, certificate, now)
        seen.standings[subject] = Standing(told)
        if certificate is not None:
            seen.troubles.extend(_troubles(region, service, certificate, told, now))


def _told(region: str, service: Service, certificate: ServerCertificate | None, now: datetime) -> str:
    if certificate is None:
        return str(sentence(f"{service.word} of {region} has no TLS certificate any more"))
    until = certificate.valid_until
    at, away = f"{until.astimezone(UTC):%Y-%m-%d %H:%M} UTC", in_words(abs((until - now).total_seconds()))
    end = f"expires in {away}, at {at}" if until > now else f"expired {away} ago, at {at}"
    return str(sentence(f"the TLS certificate of {service.word} of {region} {end}"))


def _troubles(
    region: str, service: Service, certificate: ServerCertificate, told: str, now: datetime
) -> Iterable[Trouble]:
    life = certificate.valid_from, certificate.valid_until
    begins = {AlertKind.TLS_EXPIRING: told_from(*life), AlertKind.TLS_EXPIRING_SOON: urgent_from(*life)}
    subject = f"{region_subject(region, service)}/certificate"
    for kind, since in begins.items():
        if since is not None and since <= now:
            yield Trouble(
                condition=Condition(kind=kind, subject=subject, sentence=told, since=since),
                name=f"TLS certificate of {service.word} of {region}",
                link=reverse("installation", args=[region]),
                remedy=kind.remedy,
                region=region,
            )
