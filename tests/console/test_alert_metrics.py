"""Open alerts are counted for Prometheus: those that the user's page has, and no 0 for what nobody knows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.access.documents import allow
from core.access.policies import repository_arn
from core.notifications.kinds import AlertKind
from db import clock
from jobs.models import Duty
from mirrors.models import Mirror
from notifications import rounds
from notifications.models import Alert
from rbac.models import User
from tests.cast import person
from tests.console.test_metrics import samples
from tests.mirrors.factories import make_mirror
from tests.mirrors.harness import Deployment
from tests.notifications.rounds import Rounds, seen, trouble
from tests.rbac.test_one_mirror import given

pytestmark = pytest.mark.django_db
DAMAGED, TAMPERED = ("mirror-damaged", "critical"), ("mirror-tampered", "critical")
BLOCKED, REGION = ("mirror-blocked", "error"), ("region-down", "error")


def counted(user: User) -> dict[tuple[str, ...], float]:
    """How many alerts are open, by kind and severity."""
    return {key[1:]: value for key, value in samples(user).items() if key[0] == "lakemirror_open_alerts"}


@pytest.fixture
def open_alerts(lm: Deployment) -> None:
    """A look was just taken: two mirrors are damaged and a region is down; what was tampered with is over."""
    looks = Rounds(clock.now())
    rounds.look_round()
    lm.run(Duty.objects.get(kind=rounds.DUTY).pk)
    first = Mirror.objects.get()
    second = make_mirror("lake-second", first.source, now=clock.now())
    damaged = trouble(AlertKind.MIRROR_DAMAGED, mirror=first.pk)
    other = trouble(AlertKind.MIRROR_DAMAGED, "mirror/lake-second", mirror=second.pk)
    region = trouble(AlertKind.REGION_DOWN, "region/eu-west-1/lakefs")
    tampered = trouble(AlertKind.MIRROR_TAMPERED, "mirror/lake-second", mirror=second.pk)
    looks.at(0, seen(damaged, other, region, tampered, well=""))
    for seconds in (60, 70):
        looks.at(seconds, seen(damaged, other, region, well=""))
    Alert.objects.filter(kind=AlertKind.REGION_DOWN).update(acknowledged_at=clock.now())


def test_open_alerts_are_counted_by_kind_and_severity(open_alerts: None, teammate: User) -> None:
    found = counted(teammate)
    assert {key for key, number in found.items() if number} == {DAMAGED, REGION}
    assert (found[DAMAGED], found[REGION], found[TAMPERED]) == (2, 1, 0)
    assert set(found) == {(kind.value, kind.severity.value) for kind in AlertKind}


def test_who_sees_one_mirror_is_told_of_its_alerts_and_nothing_of_regions(open_alerts: None) -> None:
    lara = given(person("lara"), allow(["fs:ReadRepository"], repository_arn("lake-eu")))
    found = counted(lara)
    assert (found[DAMAGED], found[BLOCKED]) == (1, 0) and REGION not in found


def test_while_nobody_looks_there_is_no_figure(open_alerts: None, teammate: User) -> None:
    Duty.objects.filter(kind=rounds.DUTY).update(succeeded_at=clock.now() - timedelta(minutes=3))
    assert counted(teammate) == {}
