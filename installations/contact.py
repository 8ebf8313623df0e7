"""Asks each region every few seconds whether its lakeFS and its store answer, and keeps since when they don't.

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


def look_round() -> None:
    """By each controller: every region that is known is asked."""
    known = set(config.current().regions)
    rows = {(row.region, row.service): row for row in Contact.objects.filter(region__in=known)}
    for region in known:
        for service in Service:
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
    return list(Contact.objects.filter(region__in=config.current().regions).values_list("pk", flat=True))


def ask(lease: Lease) -> DutyOutcome:
    """One round: ask one service, and keep what it said."""
    row = Contact.objects.filter(pk=lease.duty.subject).first()
    if row is None or row.region not in config.current().regions:
        return _forget(lease, row)
    error = _error_of(row.region, Service(row.service))
    kind = outage_kind(Service(row.service), error) if error else None
    if error is None or kind is None:
        _keep(row, answered_at=Now(), failing_since=None, kind="", problem="")
        return DutyOutcome(f"it answers{_look_at_certificate(row)}")
    since = row.failing_since or Now()
    _keep(row, failing_since=since, kind=kind.value, problem=str(error)[:2000])
    return DutyOutcome(f"{kind.value}: {error}", whole=False)


def _forget(lease: Lease, row: Contact | None) -> DutyOutcome:
    """Of a region that is configured no more. Who knows it makes both again."""
    if row is not None:
        row.delete()
    Duty.objects.filter(pk=lease.duty.pk).delete()
    return DutyOutcome("this region no longer exists")


def _keep(row: Contact, **found: object) -> None:
    Contact.objects.filter(pk=row.pk).update(asked_at=Now(), **found)


def _error_of(region: str, service: Service) -> LakeMirrorError | None:
    """What a call of the service ends with; None where it was answered, or where there is nothing to ask."""
    try:
        if service is Service.LAKEFS:
            clients.quick_lakefs(region).server()
        elif place := next((found for place in _places if (found := place(region))), ""):
            clients.quick_objects(region).head(f"{place.rstrip('/')}/dummy")
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
    known = set(config.current().regions)
    return [_outage(row) for row in _sorted(rows) if row.region in known and is_outage(row.failing_since, now)]


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
    """By region, when its lakeFS last answered."""
    rows = Contact.objects.filter(service=Service.LAKEFS.value, answered_at__isnull=False)
    return dict(rows.values_list("region", "answered_at"))


def certificates() -> dict[tuple[str, Service], ServerCertificate | None]:
    """By region and service, the TLS certificate that was last seen of each that was looked at; None: it has none."""
    known = set(config.current().regions)
    rows = Contact.objects.filter(certificate_read_at__isnull=False, region__in=known).order_by("region", "service")
    return {(row.region, Service(row.service)): row.certificate for row in rows}


def answering(now: datetime) -> set[tuple[str, Service]]:
    """Region and service of all that answered when they were asked last, which was lately: nobody knows that the others
    are in order."""
    known = set(config.current().regions)
    rows = Contact.objects.filter(asked_at__gt=now - BELIEVED_FOR, failing_since=None, region__in=known)
    return {(region, Service(service)) for region, service in rows.values_list("region", "service")}
