"""When alerts open and close: what lasts is told once, and nothing is told to be over because nobody could look."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import Unreachable
from core.notifications.kinds import AlertKind, Severity
from db import clock
from installations.models import Contact
from jobs.models import Deployment as Announced
from jobs.models import Duty
from mirrors.models import Repository
from notifications import rounds
from notifications.conditions import observe
from notifications.models import Alert, Event
from tests.exports.test_pages import an_export
from tests.installations.test_contact import failing
from tests.mirrors.harness import Deployment
from tests.mirrors.status.test_told_no_better import damage
from tests.notifications.rounds import MIRROR, Rounds, events, open_kinds, seen, trouble

pytestmark = pytest.mark.django_db


def test_what_lasts_for_a_minute_opens_one_alert(looks: Rounds) -> None:
    for seconds in (0, 10, 50):
        looks.at(seconds, seen(trouble()))
        assert not Alert.objects.open() and not events()
    for seconds in (60, 70, 80):
        looks.at(seconds, seen(trouble()))
    assert open_kinds() == ["mirror-late"] and events() == [("mirror-late", "opened")]
    assert Alert.objects.get().since == looks.start


def test_an_alert_opens_after_the_time_that_was_told(looks: Rounds, tell: Any) -> None:
    tell(after=timedelta(seconds=20))
    looks.at(0, seen(trouble()))
    looks.at(10, seen(trouble()))
    assert not events()
    looks.at(20, seen(trouble()))
    assert events() == [("mirror-late", "opened")]


def test_what_is_over_before_is_never_told(looks: Rounds) -> None:
    looks.at(0, seen(trouble()))
    looks.at(10, seen())
    looks.at(60, seen(trouble()))
    assert not Alert.objects.open() and not events()


def test_damage_is_told_at_once(looks: Rounds) -> None:
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    [alert] = Alert.objects.open()
    assert alert.severity == Severity.CRITICAL


def test_an_alert_closes_when_its_cause_is_gone_for_two_rounds(looks: Rounds) -> None:
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    looks.at(10, seen())
    looks.at(20, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    looks.at(30, seen())
    assert open_kinds() == ["mirror-damaged"]
    looks.at(40, seen())
    assert not Alert.objects.open()
    assert events() == [("mirror-damaged", "opened"), ("mirror-damaged", "closed")]
    told = Event.objects.get(verb="closed").message
    assert (told["status"], told["now"]) == ("closed", "Up to date: all is there.")


def test_the_same_trouble_later_is_another_alert(looks: Rounds) -> None:
    for start in (0, 100):
        looks.at(start, seen(trouble(AlertKind.MIRROR_DAMAGED)))
        looks.at(start + 10, seen())
        looks.at(start + 20, seen())
    assert Alert.objects.count() == 2 and len(events()) == 4


def test_nothing_closes_while_nobody_can_look(looks: Rounds) -> None:
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    for seconds in (10, 20, 30):
        looks.at(seconds, seen(sure=False))
    assert open_kinds() == ["mirror-damaged"]


def test_what_is_not_there_any_more_closes(looks: Rounds) -> None:
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    for seconds in (10, 20):
        looks.at(seconds, seen(well="mirror/another"))
    assert Alert.objects.get().closing == "lake-eu no longer exists."


def test_what_an_outage_explains_opens_nothing_of_its_own(looks: Rounds) -> None:
    for seconds in (0, 60, 120):
        looks.at(seconds, seen(trouble(cause="region/eu-west-1/lakefs")))
    assert not Alert.objects.exists()


def test_what_was_open_before_the_outage_stays_open(looks: Rounds) -> None:
    for seconds in (0, 60):
        looks.at(seconds, seen(trouble()))
    looks.at(70, seen(trouble(cause="region/eu-west-1/lakefs")))
    assert Alert.objects.open().get().cause == "region/eu-west-1/lakefs"


def test_that_it_is_unknown_is_no_news_of_what_has_an_alert(looks: Rounds) -> None:
    for seconds in (0, 60):
        looks.at(seconds, seen(trouble()))
    for seconds in (70, 140):
        looks.at(seconds, seen(trouble(AlertKind.MIRROR_UNKNOWN), sure=False))
    assert open_kinds() == ["mirror-late"]


def test_a_round_that_fails_half_way_leaves_neither_alert_nor_event(looks: Rounds) -> None:
    with mock.patch("notifications.outbox.opened", side_effect=RuntimeError), pytest.raises(RuntimeError):
        looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    assert not Alert.objects.exists() and not events()


def test_a_mirror_that_is_made_anew_has_no_alert_of_the_one_before(looks: Rounds) -> None:
    """Nobody would see it: who may see the one of now does not see what is about the other."""
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED, mirror=1), mirror=1))
    unknown = trouble(AlertKind.MIRROR_UNKNOWN, mirror=2)
    looks.at(10, seen(unknown, sure=False, mirror=2))
    assert Alert.objects.get(mirror=1).closing == "lake-eu no longer exists."
    looks.at(70, seen(unknown, sure=False, mirror=2))
    assert open_kinds() == ["mirror-unknown"] and Alert.objects.open().get().mirror == 2
    looks.at(80, seen(trouble(AlertKind.MIRROR_UNKNOWN, mirror=3), sure=False, mirror=3))
    assert [(one.mirror, one.closed_at is None) for one in Alert.objects.order_by("mirror")] == [
        (1, False),
        (2, False),
        (3, True),
    ]


def test_what_somebody_says_while_it_closes_is_kept(looks: Rounds) -> None:
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    looks.at(10, seen())
    last = rounds.Settlement(seen(), looks.start + timedelta(seconds=20))
    Alert.objects.update(acknowledged_by="olga", note="I call the bank")
    last.settle()
    told = Alert.objects.get()
    assert told.closed_at and (told.acknowledged_by, told.note) == ("olga", "I call the bank")


# --- what is seen -----------------------------------------------------------------------------------------------------


def kinds_seen() -> dict[str, str]:
    return {one.condition.subject: one.condition.kind for one in observe(clock.now()).troubles}


def test_a_healthy_deployment_has_no_trouble(lm: Deployment, head: str) -> None:
    assert kinds_seen() == {}


def test_damage_is_seen(lm: Deployment, head: str) -> None:
    damage(lm, head)
    assert kinds_seen() == {MIRROR: "mirror-damaged"}


def test_a_region_that_is_down_explains_the_mirrors_that_wait_for_it(lm: Deployment, head: str) -> None:
    Repository.objects.update(looked_at=clock.now() - timedelta(hours=1))
    failing(lm, seconds=70)
    found = {one.condition.kind: one.condition for one in observe(clock.now()).troubles}
    assert found[AlertKind.REGION_DOWN].subject == "region/eu-west-1/lakefs"
    assert "1 mirror depends on it" in found[AlertKind.REGION_DOWN].sentence
    assert found[AlertKind.MIRROR_UNKNOWN].cause == "region/eu-west-1/lakefs"


def test_a_region_that_nobody_asked_lately_is_not_told_to_be_in_order(lm: Deployment) -> None:
    failing(lm)
    Contact.objects.update(asked_at=clock.now() - timedelta(minutes=5))
    assert not observe(clock.now()).standings["region/eu-west-1/lakefs"].sure


def test_a_region_that_fails_again_is_not_told_to_be_in_order(lm: Deployment) -> None:
    failing(lm, seconds=5)
    observation = observe(clock.now())
    assert not observation.troubles and not observation.standings["region/eu-west-1/lakefs"].sure


def test_a_queue_without_a_worker_is_seen_and_explains_what_waits(lm: Deployment, head: str) -> None:
    past = clock.now() - timedelta(minutes=30)
    Repository.objects.update(looked_at=past)
    for queue in Duty.objects.values_list("queue", flat=True).distinct():
        rows = Duty.objects.filter(queue=queue)
        rows.update(due_at=past, started_at=past, ended_at=past, until=None, woken_at=None)
    found = {one.condition.subject: one.condition for one in observe(clock.now()).troubles}
    queue = Duty.objects.get(kind="promote").queue
    assert found[f"queue/{queue}"].kind is AlertKind.QUEUE_SILENT
    assert found[MIRROR].kind is AlertKind.MIRROR_UNKNOWN and found[MIRROR].cause == f"queue/{queue}"


def test_deployments_that_differ_are_seen(lm: Deployment) -> None:
    Announced.objects.create(
        identity="x", region="eu-west-1", organization="another", key="another", seen_at=clock.now()
    )
    assert kinds_seen()["deployments"] == "deployments-differ"


def test_a_failed_export_is_seen_and_not_over_while_it_is_tried_again(lm: Deployment) -> None:
    export = an_export(repository="lake", state="export-failed", error="no such bucket")
    subject = f"export/{export.pk}"
    assert kinds_seen()[subject] == "export-failed"
    type(export).objects.update(state="in-progress")
    observation = observe(clock.now())
    assert not observation.standings[subject].sure and not observation.troubles


def test_the_duty_does_it_all(lm: Deployment, head: str) -> None:
    rounds.look_round()
    damage(lm, head)
    said = lm.run(Duty.objects.get(kind=rounds.DUTY).pk)
    assert said == "1 open, 1 opened, 0 closed, 0 told again, 0 after maintenance"
    assert open_kinds() == ["mirror-damaged"]


def test_a_look_that_fails_closes_nothing(lm: Deployment, head: str) -> None:
    rounds.look_round()
    damage(lm, head)
    duty = Duty.objects.get(kind=rounds.DUTY).pk
    lm.run(duty)
    for _ in range(3):
        with mock.patch("notifications.rounds.observe", side_effect=Unreachable("the database is away")):
            lm.run(duty)
    assert open_kinds() == ["mirror-damaged"]
