"""Checks that found problems and have no state of a mirror or an export that says so: the audit's chain, rules of
garbage collection that a mirror's repository has of its own, the last test of an installation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.urls import reverse

from audit.models import AuditChain
from core.installations.preflight import CheckOutcome
from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.text.phrases import count, sentence
from deployment import config
from installations import contact
from installations.connection_test import is_of_now
from installations.models import InstallationTest
from mirrors.status.mirror import MirrorStatus
from notifications.conditions.observation import Observation, Trouble, of_mirror
from notifications.conditions.regions import region_subject

AUDIT = "audit"


def look_at_audit(seen: Observation) -> None:
    """The chain over the audit trail is read again all the time; what was wrong stays so until all of it was read."""
    head = AuditChain.objects.filter(pk=1).first()
    wrong = head.wrong if head else ""
    seen.standings[AUDIT] = Standing("The audit chain is whole.")
    if wrong:
        kind = AlertKind.AUDIT_BROKEN
        told = str(sentence(f"the audit chain is broken: {wrong}"))
        condition = Condition(kind=kind, subject=AUDIT, sentence=told)
        seen.troubles.append(Trouble(condition=condition, name="Audit", link=reverse("audit"), remedy=kind.remedy))


def look_at_gc_rules(seen: Observation, readings: Sequence[MirrorStatus]) -> None:
    """A mirror's repository has rules of its own. Where they can't be read nobody knows whether that is over."""
    for reading in readings:
        mirror, subject = reading.mirror, f"mirror/{reading.mirror.name}/gc-rules"
        told = str(sentence(f"the repository {mirror.name} has no garbage-collection rules of its own"))
        seen.standings[subject] = Standing(told, sure=not reading.unread_rules, mirror=mirror.pk)
        if reading.own_rules:
            kind = AlertKind.MIRROR_GARBAGE_COLLECTION
            condition = Condition(kind=kind, subject=subject, sentence=str(sentence(reading.own_rules)))
            seen.troubles.append(of_mirror(mirror, condition))


def test_subject(region: str) -> str:
    """The last test of a region, as the subject of an alert."""
    return f"region/{region}/test"


def look_at_tests(seen: Observation, now: datetime) -> None:
    """The last test of each region that there is; what only an outage explains is told with that."""
    regions = set(config.current().regions)
    down = {outage.region: region_subject(outage.region, outage.service) for outage in contact.outages(now)}
    for region in regions:
        told = f"The settings of {region} have changed since its last test, or were removed."
        seen.standings[test_subject(region)] = Standing(told)
    for test in filter(is_of_now, InstallationTest.objects.filter(region__in=regions).order_by("region")):
        subject = test_subject(test.region)
        seen.standings[subject] = Standing(f"The last test of {test.region} found nothing that has failed.")
        failed = [check["message"] for check in test.checks if check["state"] == CheckOutcome.FAILED]
        if failed:
            kind = AlertKind.REGION_TEST_FAILED
            told = f"the last test of {test.region} found {count(len(failed), 'problem')}: {failed[0].rstrip('.')}"
            cause, words = down.get(test.region, ""), str(sentence(told))
            condition = Condition(kind=kind, subject=subject, sentence=words, since=test.tested_at, cause=cause)
            link, name = reverse("installation", args=[test.region]), f"Test of {test.region}"
            seen.troubles.append(
                Trouble(condition=condition, name=name, link=link, remedy=kind.remedy, region=test.region)
            )
