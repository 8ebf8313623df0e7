"""What is known of installations, those of the file and those of the database alike; never a secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from core.errors import NotFound
from core.installations.outages import Outage, Service, outage_phrase, outage_remedy
from core.installations.preflight import Check, CheckOutcome
from core.installations.server_certificates import ServerCertificate
from core.installations.settings import Access, Wish
from core.notifications.expiry import is_told
from core.text.phrases import Phrase, say, sentences
from db import clock
from deployment import config
from deployment.overlay import Together
from installations import contact
from installations.check_groups import CheckGroups, grouped
from installations.connection_test import is_of_now, passed
from installations.models import Installation, InstallationTest
from installations.region_usage import RegionFacts, region_facts
from installations.services import etag_of, usage, usage_words
from web.serializers import rfc3339

FILE, DATABASE = "file", "database"


@dataclass(frozen=True, slots=True)
class InstallationReading:
    """One of them: where it stands (`origin`), what it is, what needs it, what the last test found."""

    wish: Wish
    origin: str
    problem: str
    used: Mapping[str, int]
    facts: RegionFacts
    test: InstallationTest | None
    etag: str = ""
    doubled: bool = False
    answered_at: datetime | None = None
    outages: Sequence[Outage] = ()
    certificates: Mapping[Service, ServerCertificate] = field(default_factory=dict)

    @property
    def region(self) -> str:
        return self.wish.region

    @property
    def in_file(self) -> bool:
        return self.origin == FILE

    @property
    def used_by(self) -> str:
        """In words; "" by nothing."""
        return usage_words(self.used)

    @property
    def last_contact(self) -> datetime | None:
        """When its lakeFS last answered something that is kept; where there is none, its store."""
        answered = self.test.tested_at if self.test and self.test.reachable else None
        times = (self.answered_at, answered, self.facts.received_at, self.facts.looked_at)
        return max((at for at in times if at), default=None)

    @property
    def failing(self) -> list[Phrase]:
        """What does not answer now: a sentence each, and what to do."""
        now = clock.now()
        return [sentences(outage_phrase(one, 0, now), say(outage_remedy(one))) for one in self.outages]

    @property
    def shown_certificates(self) -> list[tuple[str, datetime, bool]]:
        """Of each service with a TLS certificate its name, when that ends, and whether it is about to."""
        now = clock.now()
        return [
            (service.name_alone, seen.valid_until, is_told(seen.valid_from, seen.valid_until, now))
            for service, seen in self.certificates.items()
        ]

    @property
    def version(self) -> str:
        """Of lakeFS, as of the last test that got an answer; "" if it isn't known."""
        return self.test.lakefs_version if self.test else ""

    @property
    def groups(self) -> CheckGroups:
        """The checks of the last test."""
        stored = self.test.checks if self.test else []
        return grouped(Check(**{**check, "state": CheckOutcome(check["state"])}) for check in stored)

    @property
    def outcome(self) -> CheckOutcome:
        """Of the last test as a whole."""
        if self.problem:
            return CheckOutcome.FAILED
        if self.test is None:
            return CheckOutcome.UNKNOWN
        if passed(self.test):
            return CheckOutcome.OK
        failed = any(check.state is CheckOutcome.FAILED for check in self.groups.urgent)
        return CheckOutcome.FAILED if failed else CheckOutcome.UNKNOWN


def installation_readings() -> list[InstallationReading]:
    """All that this deployment knows, the file's first; eight queries and one for each other kind of user."""
    known = config.current()
    rows = {row.region: row for row in Installation.objects.all()}
    tests = {test.region: test for test in InstallationTest.objects.all() if is_of_now(test)}
    used, facts = usage(), {fact.name: fact for fact in region_facts(known.regions)}
    answered, failing, certificates = contact.answered_at(), contact.outages(), contact.certificates()
    readings = [
        _reading(known, region, rows.get(region), used.get(region, Counter()), facts[region], tests.get(region))
        for region in known.regions
    ]
    return [
        replace(
            reading,
            answered_at=answered.get(reading.region),
            outages=[outage for outage in failing if outage.region == reading.region],
            certificates={
                service: seen for (region, service), seen in certificates.items() if seen and region == reading.region
            },
        )
        for reading in readings
    ]


def installation_reading(region: str) -> InstallationReading:
    """One of them. Raises NotFound."""
    reading = next((reading for reading in installation_readings() if reading.region == region), None)
    if reading is None:
        raise NotFound(f"there is no installation '{region[:80]}'")
    return reading


def _reading(
    known: config.Config,
    region: str,
    row: Installation | None,
    used: Mapping[str, int],
    facts: RegionFacts,
    test: InstallationTest | None,
) -> InstallationReading:
    added = known.added.get(region) if isinstance(known, Together) else None
    if added is None or row is None:
        return InstallationReading(
            _wish_of_file(known, region), FILE, "", used, facts, test, etag_of(row) if row else "", row is not None
        )
    problem = f"{added.problem}. {added.remedy}" if added.problem else ""
    return InstallationReading(row.wish, DATABASE, problem, used, facts, test, etag_of(row))


def _wish_of_file(known: config.Config, region: str) -> Wish:
    installation, lakefs = known.installation(region), known.lakefs(region)
    keys = installation.store.credentials.access_key_id
    return Wish(
        region=region,
        lakefs_endpoint=lakefs.url if lakefs else "",
        lakefs_access_key_id=lakefs.keys.access_key_id if lakefs else "",
        served_by=known.region if region in known.served else "",
        store_endpoint=installation.store.endpoint,
        store_region=installation.store.region,
        store_path_style=installation.store.force_path_style,
        store_access=(Access.KEYS if keys else Access.CHAIN).value,
        store_access_key_id=keys,
    )


def installation_json(reading: InstallationReading) -> dict[str, Any]:
    """For the API."""
    test = reading.test
    return asdict(reading.wish) | {
        "origin": reading.origin,
        "problem": reading.problem or None,
        "used_by": [{"what": what, "number": number} for what, number in reading.used.items()],
        "lakefs_version": reading.version or None,
        "last_contact_at": rfc3339(reading.last_contact),
        "outages": [_outage_json(outage) for outage in reading.outages],
        **{f"{service}_certificate_until": _end_of(reading, service) for service in Service},
        "tested_at": rfc3339(test.tested_at) if test else None,
        "ok": passed(test) if test else None,
    }


def _end_of(reading: InstallationReading, service: Service) -> str | None:
    seen = reading.certificates.get(service)
    return rfc3339(seen.valid_until) if seen else None


def _outage_json(outage: Outage) -> dict[str, Any]:
    return {
        "service": outage.service.value,
        "status": outage.kind.value,
        "since": rfc3339(outage.since),
        "problem": outage.problem,
    }
