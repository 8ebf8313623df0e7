"""A whole night, from the first outage to the morning: each channel gets one message for what is wrong and one when it
is over, whoever dies while sending."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from core.notifications.hours import DAYS
from db import clock
from jobs.lease import LEASE_SECONDS
from jobs.models import Duty
from notifications import delivery
from notifications.models import Channel, Delivery
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.notifications.apprise_receiver import AppriseReceiver, apprise_receiver
from tests.notifications.mail_server import MailServer, mail_server
from tests.notifications.night import Night, pass_time
from tests.notifications.receiver import SECRET, Receiver, receiver
from tests.notifications.rounds import Rounds, seen
from tests.notifications.test_channels import CHANNELS
from tests.notifications.test_delivery import DAMAGED

pytestmark = pytest.mark.django_db
SITE = "https://lakemirror.example.com"
OUTSIDE = "outside of its hours; 0 messages waiting"
CRITICAL, OF_FILES = {"least_severity": "critical"}, ["mirror-blocked", "mirror-damaged"]
KEY, LABELLED, UNLABELLED = "Access key", "lake-second", ("lake-eu", "lake · main")
REGION, REPLICATION = "lakeFS of eu-west-1", "Replication us-east-1 → eu-west-1"
NIGHT = [
    ("opened", "key-expiring", KEY),
    ("opened", "region-down", REGION),
    ("opened", "export-failed", "lake · main"),
    ("closed", "key-expiring", KEY),
    ("opened", "audit-broken", "Audit"),
    ("closed", "region-down", REGION),
    ("opened", "replication-stopped", REPLICATION),
    ("closed", "audit-broken", "Audit"),
    ("closed", "export-failed", "lake · main"),
    ("opened", "region-down", REGION),
    ("closed", "region-down", REGION),
    ("closed", "replication-stopped", REPLICATION),
    ("opened", "mirror-paused-too-long", LABELLED),
    ("opened", "mirror-blocked", "lake-eu"),
    ("opened", "head-ungated", LABELLED),
    ("closed", "mirror-paused-too-long", LABELLED),
    ("closed", "mirror-blocked", "lake-eu"),
    ("opened", "mirror-damaged", "lake-eu"),
    ("closed", "head-ungated", LABELLED),
    ("closed", "mirror-damaged", "lake-eu"),
]
SENTENCES = {
    "region-down": "The lakeFS of eu-west-1 has not answered for 1 min: 2 mirrors depend on it.",
    "export-failed": "12 tasks failed: access denied",
    "replication-stopped": "have not arrived in eu-west-1: 2 mirrors wait.",
    "mirror-blocked": "object x of ",
    "key-expiring": " (nightly) expires in ",
    "audit-broken": "The audit chain is broken: event 1 ",
    "mirror-paused-too-long": "lake-second was paused by olga",
    "head-ungated": ", which nobody asked to have in eu-west-1 first; 1 such head in the last day.",
    "mirror-damaged": "Damaged: 1 object that was complete before is missing or wrong in eu-west-1 now (a).",
}
ENDINGS = {
    "region-down": "The lakeFS of eu-west-1 answers.",
    "export-failed": "Exported: The destination has matched main",
    "replication-stopped": "Objects written to us-east-1 arrive in eu-west-1.",
    "mirror-blocked": "Damaged: 1 object",
    "key-expiring": "Another key has taken the place of ",
    "audit-broken": "The audit chain is whole.",
    "mirror-paused-too-long": "Up to date: main is up to date",
    "head-ungated": "No head of lake came without a release in the last day.",
    "mirror-damaged": "Up to date: main is up to date",
}
PAGES = {
    "region-down": "/installations/eu-west-1/",
    "replication-stopped": "/mirrors/?from=us-east-1&region=eu-west-1",
    "mirror-blocked": "/mirrors/lake-eu/backlog/",
    "mirror-damaged": "/mirrors/lake-eu/backlog/",
    "audit-broken": "/audit/",
    "mirror-paused-too-long": "/mirrors/lake-second/",
    "head-ungated": "/mirrors/lake-second/held/",
}


@dataclass(frozen=True, slots=True)
class Everybody:
    """Who is told: `pager` of everything, `chat` of damaged files, `office` of the region's, in its hours."""

    pager: Receiver
    chat: AppriseReceiver
    office: MailServer


@pytest.fixture
def told(admin: Api, there: Receiver) -> Iterator[Everybody]:
    """A channel of each kind, each with another rule."""
    with apprise_receiver() as chat, mail_server() as (office, port):
        server = {"host": "127.0.0.1", "port": port, "security": "none"}
        server |= {"sender": "lm@example.com", "recipients": ["office@example.com"]}
        for channel in (
            {"name": "pager", "url": f"{there.url}/hook", "signing_secret": SECRET},
            {"name": "chat", "kind": "apprise", "url": chat.apprise_url, "kinds": OF_FILES} | CRITICAL,
            {"name": "office", "kind": "mail", "mail": server, "regions": ["eu-*"], "hours": hours()},
        ):
            assert admin.call("POST", CHANNELS, channel)[0] == 201
        yield Everybody(there, chat, office)


@pytest.fixture
def sales(admin: Api, told: Everybody) -> Iterator[Receiver]:
    """A channel of the sales team: of its mirrors, by their labels."""
    with receiver() as made:
        channel = {"name": "sales", "url": f"{made.url}/hook", "signing_secret": SECRET, "labels": ["team=s*"]}
        assert admin.call("POST", CHANNELS, channel)[0] == 201
        yield made


def morning() -> datetime:
    """When the office opens: not now."""
    return (clock.now() + timedelta(hours=6)).replace(minute=0, second=0, microsecond=0)


def hours() -> dict[str, Any]:
    start = morning()
    return {
        "days": list(DAYS),
        "start": f"{start:%H:%M}",
        "end": f"{start + timedelta(hours=8):%H:%M}",
        "time_zone": "UTC",
    }


def play(night: Night, head: str) -> None:
    """What happens, in order. The region goes down once more while replication has stopped."""
    night.key_nears_its_end()
    night.turn()
    night.lakefs_goes_down()
    night.lm.lake.commit(files={"c": b"3"})
    night.turn()
    night.export_fails()
    night.key_is_replaced()
    night.turn(2)
    night.lakefs_comes_back()
    night.audit_is_changed("nothing of the kind")
    night.export_is_tried_again()
    night.turn()
    night.replicates = False
    night.lm.lake.commit(files={"d": b"4"})
    night.turn(2)
    night.audit_is_changed("")
    night.export_succeeds()
    night.lakefs_goes_down()
    night.turn(2)
    night.lakefs_comes_back()
    night.turn()
    night.replicates = True
    night.turn(2)
    night.commit_that_lacks("x")
    night.pauses(59.0)
    night.turn(3)
    night.nobody_needs("x")
    night.resumes()
    night.turn()
    night.lose_what_was_there(head, "a")
    night.a_head_comes_without_asking(head)
    night.turn(2)
    night.bring_back()
    night.that_head_is_of_yesterday()
    night.turn(2)


def test_in_a_night_each_cause_is_told_once_and_once_that_it_is_over(
    lm: Deployment, head: str, told: Everybody, sales: Receiver, owner: User, olga: Client, tell: Any
) -> None:
    tell(site_url=SITE)
    night = Night(lm, owner)
    play(night, head)
    assert [(one["event"], one["alert"]["kind"], name_of(one)) for one in told.pager.taken] == NIGHT
    assert not told.pager.wrong and len(set(told.pager.ids)) == len(NIGHT)
    alerts = {one["alert"]["id"]: one["alert"] for one in told.pager.taken}
    assert len(alerts) == len(NIGHT) / 2 and not {one["cause"] for one in alerts.values()} - {None}
    for one in told.pager.taken:
        check(one)
    for url in {alert["url"] for alert in alerts.values()}:
        assert olga.get(url.removeprefix(SITE)).status_code == 200
    check_chat(told)
    check_sales(told, sales)
    assert not told.office.taken
    for said in in_the_morning(night):
        assert said in ("0 sent", "9 sent")
    check_office(told)
    assert not Delivery.objects.waiting() and night.send() == ["0 sent", "0 sent", OUTSIDE, "0 sent"]


def name_of(message: dict[str, Any]) -> str:
    """Whom it is about; of a key without its id."""
    name = str(message["alert"]["name"])
    return KEY if name.startswith(f"{KEY} ") else name


def check(message: dict[str, Any]) -> None:
    """It says what is wrong or how things are since, from when on, and which page helps."""
    alert, closed = message["alert"], message["event"] == "closed"
    kind = alert["kind"]
    assert SENTENCES[kind] in alert["reason"] or (closed and kind == "region-down")
    if closed:
        assert alert["now"].startswith(ENDINGS[kind]), alert
    else:
        assert alert["now"] is None and alert["remedy"], alert
    assert alert["url"] == SITE + PAGES.get(kind, alert["url"].removeprefix(SITE))
    since, at = datetime.fromisoformat(alert["since"]), datetime.fromisoformat(message["at"])
    if kind == "key-expiring":
        return
    lasted, critical = (at - since).total_seconds(), alert["severity"] == "critical"
    assert (0 if critical else 60) <= lasted < (1200 if closed else 120), (kind, lasted)


def check_chat(told: Everybody) -> None:
    """It hears of what is critical of the kinds that it asked for, and of nothing else."""
    opened, closed = told.chat.taken
    title = "lake-eu: Mirror damaged"
    assert (opened["title"], opened["type"]) == (f"[demo] {title}", "failure")
    assert (closed["title"], closed["type"]) == (f"[demo] Over: {title}", "info")
    messages = [one for one in told.pager.taken if one["alert"]["kind"] == "mirror-damaged"]
    for heard, message in zip(told.chat.taken, messages, strict=True):
        says_all(heard["message"], message)


def check_sales(told: Everybody, sales: Receiver) -> None:
    """It hears of the team's own mirror, and of what concerns more than one; of no other mirror or export."""
    heard = [one for one in told.pager.taken if one["alert"]["name"] not in UNLABELLED]
    assert sales.taken == [one | {"id": sent["id"]} for one, sent in zip(heard, sales.taken, strict=True)]
    labelled = [one["alert"] for one in heard if one["alert"]["labels"]]
    assert len(labelled) == 4 and {(one["name"], one["labels"]["team"]) for one in labelled} == {(LABELLED, "sales")}


def check_office(told: Everybody) -> None:
    """In the morning it gets all of the region's, of each alert in order; nothing of an export elsewhere."""
    heard = [one for one in told.pager.taken if one["alert"]["kind"] != "export-failed"]
    assert len(told.office.taken) == len(heard)
    for number in {one["alert"]["id"] for one in heard}:
        of_one = [mail.get_content() for mail in told.office.taken if f"Alert {number} · " in mail.get_content()]
        messages = [one for one in heard if one["alert"]["id"] == number]
        assert [one["event"] for one in messages] == ["opened", "closed"] and len(of_one) == 2
        for text, message in zip(of_one, messages, strict=True):
            says_all(text, message)


def says_all(text: str, message: dict[str, Any]) -> None:
    """To a person the same is told: the sentence, since when, the page, and how things stand when it is over."""
    alert = message["alert"]
    unfolded = " ".join(text.split())
    told = [alert["reason"], f"since {alert['since']}", alert["url"], f"Alert {alert['id']} · message "]
    told += [f"Was: {alert['reason']}", f"Now: {alert['now']}"] if message["event"] == "closed" else []
    for words in told:
        assert " ".join(words.split()) in unfolded


def in_the_morning(night: Night) -> list[str]:
    """The office opens; what each channel says in two rounds."""
    assert night.send()[2] == "outside of its hours; 18 messages waiting"
    opens = morning() + timedelta(minutes=1)
    with mock.patch("db.clock.now", lambda: opens):
        return night.send() + night.send()


# --- whoever dies while sending ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dies_in", ["send", "_note"], ids=["before it sends", "before it notes what was taken"])
def test_a_worker_that_dies_in_a_delivery_loses_none(
    lm: Deployment, told: Everybody, looks: Rounds, dies_in: str
) -> None:
    Channel.objects.update(hours={})
    looks.at(0, seen(DAMAGED))
    delivery.look_round()
    duties = list(Duty.objects.filter(kind=delivery.DUTY).values_list("pk", flat=True))
    for duty in duties:
        with mock.patch.object(delivery, dies_in, side_effect=SystemExit), pytest.raises(SystemExit):
            lm.run(duty)
    taken = 1 if dies_in == "_note" else 0
    assert {len(ids) for ids in ids_of(told)} == {taken}
    for seconds in (10, 20):
        looks.at(seconds, seen())
    assert {lm.run(duty, "worker-2") for duty in duties} == {"not due, or run by another worker"}
    pass_time(LEASE_SECONDS + 1)
    for _ in range(3):
        said = [lm.run(duty, "worker-2") for duty in duties]
    assert set(said) == {"0 sent"} and len(duties) == 3
    for ids in ids_of(told):
        opened, *again, closed = ids
        assert again == [opened] * taken and closed != opened
    assert set(Delivery.objects.values_list("event__verb", "state", "tries")) == {
        ("opened", "sent", 2),
        ("closed", "sent", 1),
    }


def ids_of(told: Everybody) -> tuple[list[str], list[str], list[str]]:
    """The ids of the messages that each has taken, in order."""
    chat = [one["message"].rpartition("message ")[2] for one in told.chat.taken]
    return told.pager.ids, chat, [mail["LakeMirror-Delivery"] for mail in told.office.taken]
