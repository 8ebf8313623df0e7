"""Channels that send mail, and those that send by Apprise."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from notifications.channels.forms import ChannelForm
from notifications.models import Channel, Delivery
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.notifications.apprise_receiver import apprise_receiver
from tests.notifications.mail_server import mail_server
from tests.notifications.rounds import Rounds, seen
from tests.notifications.test_channels import CHANNELS, PAGES, RULE, text
from tests.notifications.test_delivery import DAMAGED, sent

pytestmark = pytest.mark.django_db
SERVER = {"host": "smtp.example.com", "sender": "lm@example.com", "recipients": ["on-call@example.com"]}
MAIL = {"name": "mails", "kind": "mail", "mail": SERVER | {"username": "lm"}, "password": "pass-w0rd"}


def test_mail_tells_what_opened_and_that_it_is_over(lm: Deployment, admin: Api, looks: Rounds) -> None:
    with mail_server() as (real, port):
        server = SERVER | {"host": "127.0.0.1", "port": port, "security": "none"}
        assert admin.call("POST", CHANNELS, {"name": "mails", "kind": "mail", "mail": server})[0] == 201
        looks.at(0, seen(DAMAGED))
        channel = Channel.objects.get()
        assert sent(lm, channel) == "1 sent"
        for seconds in (10, 20):
            looks.at(seconds, seen())
        sent(lm, channel)
        opened, closed = real.taken
    assert opened["Subject"] == "[demo] lake-eu: Mirror damaged" and closed["Subject"].startswith("[demo] Over: ")
    body = opened.get_content()  # type: ignore[attr-defined]
    assert "Main is 9 min behind." in body and "What to do: Open its backlog" in body
    assert str(Delivery.objects.order_by("pk")[0].uid) in opened["Message-ID"]
    assert "Now: Up to date: all is there." in closed.get_content()  # type: ignore[attr-defined]


def test_apprise_tells_the_same(lm: Deployment, admin: Api, looks: Rounds) -> None:
    with apprise_receiver() as there:
        status, made = admin.call("POST", CHANNELS, {"name": "chat", "kind": "apprise", "url": there.apprise_url})
        assert status == 201 and made["target"] == "json://" and made["mail"] is None
        there.answers = [503]
        looks.at(0, seen(DAMAGED))
        assert "503" in sent(lm, Channel.objects.get()) and "t0ken" not in str(Delivery.objects.get().log)
        assert sent(lm, Channel.objects.get()) == "1 sent"
        [one] = there.taken
    assert one["title"] == "[demo] lake-eu: Mirror damaged" and one["type"] == "failure"


def test_a_mail_channel_shows_its_server_and_not_its_password(admin: Api, olga: Client) -> None:
    assert admin.call("POST", CHANNELS, MAIL)[0] == 201
    told = admin.call("GET", f"{CHANNELS}/mails")[1]
    assert told["mail"] == SERVER | {"username": "lm", "port": 587, "security": "starttls"}
    assert told["target"] == "on-call@example.com by smtp.example.com:587"
    pages = [olga.get(f"{PAGES}/mails/"), olga.get(f"{PAGES}/mails/edit/"), olga.get("/notifications/")]
    everything = str(told) + "".join(page.content.decode() for page in pages)
    everything += str(list(AuditEvent.objects.values())) + str(Channel.objects.values().get())
    assert "pass-w0rd" not in everything and "smtp.example.com" in everything


def test_the_password_goes_to_no_other_server(admin: Api) -> None:
    admin.call("POST", CHANNELS, MAIL)
    other = MAIL["mail"] | {"host": "smtp.elsewhere.example"}  # type: ignore[operator]
    status, failure = admin.call("PUT", f"{CHANNELS}/mails", {"mail": other})
    assert (status, failure["field"]) == (400, "password") and "for another server" in failure["message"]
    same = MAIL["mail"] | {"recipients": ["two@example.com"]}  # type: ignore[operator]
    assert admin.call("PUT", f"{CHANNELS}/mails", {"mail": same})[0] == 200
    assert Channel.objects.get().secrets().password == "pass-w0rd"
    assert admin.call("PUT", f"{CHANNELS}/mails", {"mail": other, "password": "another"})[0] == 200
    assert admin.call("PUT", f"{CHANNELS}/mails", {"mail": SERVER})[0] == 200
    assert Channel.objects.get().secrets().password == ""


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"mail": SERVER | {"host": "a b"}}, "host", "not the name of a mail server"),
        ({"mail": SERVER | {"sender": "x"}, "password": None}, "sender", "not a mail address"),
        ({"mail": SERVER | {"recipients": ["a@b.de\nBcc: c@d.de"]}, "password": None}, "recipients", "not a mail"),
        ({"mail": SERVER | {"username": "lm"}, "password": None}, "password", "is missing"),
        ({"mail": SERVER}, "username", "the user name is missing"),
        ({"mail": SERVER | {"username": "lm", "security": "none"}}, "security", "not encrypted"),
        ({"url": "https://example.com"}, "url", "has no such field"),
        ({"mail": None}, "mail", "the mail server is missing"),
    ],
)
def test_mail_that_can_not_be_is_refused_by_its_field(
    admin: Api, change: dict[str, Any], field: str, words: str
) -> None:
    body = {name: value for name, value in (MAIL | change).items() if value is not None}
    status, failure = admin.call("POST", CHANNELS, body)
    assert (status, failure["field"]) == (400, field) and words in failure["message"], failure


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("not-a-url", "not an Apprise URL"),
        ("syslog://", "would reach this machine itself"),
        ("WINDOWS://x", "would reach this machine itself"),
        ("file:///etc/passwd", "would reach this machine itself"),
        ("nosuch-service://a/b", "Apprise does not accept this URL"),
    ],
)
def test_an_apprise_url_that_can_not_be_is_refused(admin: Api, url: str, words: str) -> None:
    status, failure = admin.call("POST", CHANNELS, {"name": "chat", "kind": "apprise", "url": url})
    assert (status, failure["field"]) == (400, "url") and words in failure["message"]


def test_a_private_mail_server_is_refused_unless_it_is_allowed(admin: Api, tell: Any) -> None:
    tell(private_addresses=False)
    body = {"name": "mails", "kind": "mail", "mail": SERVER | {"host": "10.0.0.8"}}
    status, failure = admin.call("POST", CHANNELS, body)
    assert (status, failure["field"]) == (400, "host") and "notifications.private_addresses" in failure["message"]


def test_the_kind_stays(admin: Api) -> None:
    admin.call("POST", CHANNELS, MAIL)
    status, failure = admin.call("PUT", f"{CHANNELS}/mails", {"kind": "apprise", "url": "json://example.com/x"})
    assert (status, failure["field"]) == (400, "kind")


def test_by_page_mail_is_set_up_and_edited(olga: Client) -> None:
    form = {"name": "mails", "kind": "mail", "host": "smtp.example.com", "security": "tls", "username": "lm"} | RULE
    form |= {"password": "pass-w0rd", "sender": "lm@example.com", "recipients": "a@example.com\nb@example.com"}
    said = text(olga.post(f"{PAGES}/new/", form | {"enabled": "on"}, follow=True))
    assert "Email to a@example.com, b@example.com by smtp.example.com:465" in said
    initial = olga.get(f"{PAGES}/mails/edit/").context["form"].initial
    edited = {name: value for name, value in (ChannelForm.of(Channel.objects.get()).initial | RULE).items() if value}
    edited |= {"seen": initial["seen"], "recipients": "c@example.com", "enabled": "on"}
    assert "Channel mails saved." in text(olga.post(f"{PAGES}/mails/edit/", edited, follow=True))
    made = Channel.objects.get()
    assert made.mail_server.recipients == ("c@example.com",) and made.secrets().password == "pass-w0rd"


def test_by_page_an_apprise_url_is_refused_at_its_field_and_not_shown(olga: Client) -> None:
    form = {"name": "chat", "kind": "apprise", "apprise_url": "dbus://t0ken-t0ken"} | RULE
    answer = olga.post(f"{PAGES}/new/", form)
    assert answer.status_code == 400 and b"t0ken" not in answer.content
    assert answer.context["form"].errors["apprise_url"]
