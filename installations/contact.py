"""Asks each region every few seconds whether its lakeFS, if it has one, and its store answer, and keeps since when they
don't.

One duty for each of them, worked on by the deployment that works for the region: what it sees is what mirrors see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.db.models.functions import Now

from core.errors import LakeMirrorError
from core.installations.outages import Outage, OutageKind, Service, is_outage, outage_kind
from core.installations.server_certificates import ServerCertificate
from db import clock
from deployment import config
from deployment.wiring import clients
from installations.models import Contact
from jobs import duties
from jobs.deployments import working_for
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty

DUTY = "contact"
SECONDS = 10.0
READ_EVERY = timedelta(minutes=5)
BELIEVED_FOR = timedelta(seconds=90)
"""What was found is of now for so long: a few rounds, and the take-over of a duty that nobody works on."""
_places: list[Callable[[str], str]] = []


def register_place(place: Callable[[str], str]) -> None:
    """Let an app say an address in a region's store that our key may ask for; "" if it works with none."""
    _places.append(place)


def services() -> list[tuple[str, Service]]:
    """Region and service of all that there is: a store everywhere, a lakeFS where there is one."""
    told = config.current()
    of_lakefs = set(told.lakefs_regions)
    return [
        (region, service)
        for region in told.regions
        for service in Service
        if service is Service.STORE or region in of_lakefs
    ]


def look_round() -> None:
    """By each controller: every service that is known is asked."""
    known = services()
    stored = Contact.objects.filter(region__in={region for region, _ in known})
    rows = {(row.region, row.service): row for row in stored}
    for region, service in known:
        if (region, service.value) not in rows:
            row, _ = Contact.objects.get_or_create(region=region, service=service.value)
            rows[region, service.value] = row
    present = set(Duty.objects.filter(kind=DUTY).values_list("subject", flat=True))
    for row in rows.values():
        if row.pk not in present:
            duties.ensure(DUTY, row.pk, _worked_for_by(row.region))


def _worked_for_by(region: str) -> str:
    """The region itself where a deployment works for it, else our own: somebody has to ask."""
    home = config.current()
    return region if region in home.served or working_for(region) else home.region


def needed(regions: list[str]) -> list[int]:
    """The subjects that a deployment may take up: those of the regions that it knows."""
    return [row.pk for row in _known_rows(Contact.objects.all())]


def _known_rows(rows: Iterable[Contact]) -> list[Contact]:
    """Those of services that there are, in order."""
    known = set(services())
    return [row for row in _sorted(rows) if (row.region, Service(row.service)) in known]


def ask(lease: Lease) -> DutyOutcome:
    """One round: ask one service, and keep what it said."""
    row = Contact.objects.filter(pk=lease.duty.subject).first()
    if row is None or not _known_rows([row]):
        return _forget(lease, row)
    question = _question_for(row.region, Service(row.service))
    if question is None:
        _keep(row, failing_since=None, kind="", problem="")
        return DutyOutcome(f"nothing is done there that it could be asked about{_look_at_certificate(row)}")
    error = _error_of(question)
    kind = outage_kind(Service(row.service), error) if error else None
    if error is None or kind is None:
        _keep(row, answered_at=Now(), failing_since=None, kind="", problem="")
        return DutyOutcome(f"it answers{_look_at_certificate(row)}")
    since = row.failing_since or Now()
    _keep(row, failing_since=since, kind=kind.value, problem=str(error)[:2000])
    return DutyOutcome(f"{kind.value}: {error}", whole=False)


def _forget(lease: Lease, row: Contact | None) -> DutyOutcome:
    """Of a region, or a lakeFS, that is configured no more. Who knows it makes it again."""
    if row is not None:
        row.delete()
    Duty.objects.filter(pk=lease.duty.pk).delete()
    return DutyOutcome("this region no longer exists")


def _keep(row: Contact, **found: object) -> None:
    Contact.objects.filter(pk=row.pk).update(asked_at=Now(), **found)


Question = Callable[[], object]


def _question_for(region: str, service: Service) -> Question | None:
    """What a service is asked; None for a store in which nobody works with any place."""
    if service is Service.LAKEFS:
        return lambda: clients.quick_lakefs(region).server()
    place = next((found for place in _places if (found := place(region))), "")
    return (lambda: clients.quick_objects(region).head(f"{place.rstrip('/')}/dummy")) if place else None


def _error_of(question: Question) -> LakeMirrorError | None:
    """What a call of the service ends with; None where it was answered."""
    try:
        question()
    except LakeMirrorError as error:
        return error
    return None


def _look_at_certificate(row: Contact) -> str:
    """Every few minutes, by a connection of its own; gives why it could not be read, as the end of a sentence. What was
    seen before counts until it is read again."""
    if row.certificate_read_at and clock.now() - row.certificate_read_at < READ_EVERY:
        return ""
    read = clients.lakefs_certificate if row.service == Service.LAKEFS else clients.store_certificate
    try:
        seen = read(row.region)
    except LakeMirrorError as error:
        Contact.objects.filter(pk=row.pk).update(certificate_read_at=Now())
        return f"; {error}"
    begins, ends = (seen.valid_from, seen.valid_until) if seen else (None, None)
    Contact.objects.filter(pk=row.pk).update(certificate_from=begins, certificate_until=ends, certificate_read_at=Now())
    return ""


# --- what is known ----------------------------------------------------------------------------------------------------


def outages(now: datetime | None = None) -> list[Outage]:
    """Every service of a known region that has been failing for long enough to be told, by region; one query."""
    now = now or clock.now()
    rows = Contact.objects.filter(failing_since__isnull=False, asked_at__gt=now - BELIEVED_FOR)
    return [_outage(row) for row in _known_rows(rows) if is_outage(row.failing_since, now)]


def _sorted(rows: Iterable[Contact]) -> list[Contact]:
    return sorted(rows, key=lambda row: (row.region, row.service))


def _outage(row: Contact) -> Outage:
    assert row.failing_since is not None
    return Outage(
        region=row.region,
        service=Service(row.service),
        kind=OutageKind(row.kind),
        since=row.failing_since,
        problem=row.problem,
    )


def answered_at() -> dict[str, datetime]:
    """By region, when its lakeFS last answered; where there is none, its store."""
    rows = _known_rows(Contact.objects.filter(answered_at__isnull=False))
    of_lakefs = {region for region, service in services() if service is Service.LAKEFS}
    told = (row for row in rows if row.service == Service.LAKEFS or row.region not in of_lakefs)
    return {row.region: row.answered_at for row in told if row.answered_at}


def certificates() -> dict[tuple[str, Service], ServerCertificate | None]:
    """By region and service, the TLS certificate that was last seen of each that was looked at; None: it has none."""
    rows = _known_rows(Contact.objects.filter(certificate_read_at__isnull=False))
    return {(row.region, Service(row.service)): row.certificate for row in rows}


def answering(now: datetime) -> set[tuple[str, Service]]:
    """Region and service of all that answered when they were asked last, which was lately: nobody knows that the others
    are in order."""
    rows = _known_rows(Contact.objects.filter(asked_at__gt=now - BELIEVED_FOR, failing_since=None))
    return {(row.region, Service(row.service)) for row in rows}
