"""Channels: created, changed, tested and deleted by who may, and never a secret in an answer."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from audit.models import AuditEvent
from core.errors import Unreadable
from core.notifications.kinds import AlertKind
from deployment import config
from installations.models import OLD_KEY
from notifications.models import Channel, Delivery
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text
from tests.notifications.receiver import SECRET, Receiver
from tests.notifications.rounds import Rounds, seen, trouble

pytestmark = pytest.mark.django_db
RULE = {"least_severity": "warning", "tell_again_seconds": "0"}
"""What the form sends of it as it is made."""
CHANNELS = "/service/replication/v1/channels"
PAGES = "/notifications/channels"
BODY = {"name": "on-call", "url": "https://hooks.example.com/t0ken", "signing_secret": SECRET}


def audited() -> list[tuple[str, str, Any, Any]]:
    rows = AuditEvent.objects.filter(arn__contains=":channel/").order_by("pk")
    return [(row.action, row.verb, row.before, row.after) for row in rows]


def test_one_is_created_and_shown_without_its_secrets(admin: Api) -> None:
    status, made = admin.call("POST", CHANNELS, BODY)
    assert status == 201 and (made["target"], made["enabled"]) == ("https://hooks.example.com", True)
    everything = str(made) + str(admin.call("GET", CHANNELS)) + str(admin.call("GET", f"{CHANNELS}/on-call"))
    assert "t0ken" not in everything and SECRET not in everything
    row = Channel.objects.get()
    assert "t0ken" not in row.sealed and row.secrets().url == BODY["url"]
    shown = {"name": "on-call", "kind": "webhook", "enabled": True, "target": "https://hooks.example.com"} | {
        "least_severity": "warning",
        "kinds": [],
        "names": [],
        "regions": [],
        "tell_again_seconds": 0,
        "hours": None,
        "labels": [],
    }
    assert audited() == [("auth:CreateChannel", "create", None, shown)]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "a b", "not a valid channel name"),
        ("name", "new", "not 'new'"),
        ("url", "", "may not be blank"),
        ("url", "ftp://x/y", "not the address of a webhook"),
        ("url", "https://olga:pw@x/y", "not contain a name, password"),
        ("url", "https://x:port/y", "not the address of a webhook"),
        ("signing_secret", "short", "16 to 200"),
        ("kind", "pigeon", "not a valid choice"),
    ],
)
def test_what_can_not_be_is_refused_by_its_field(admin: Api, field: str, value: str, words: str) -> None:
    status, failure = admin.call("POST", CHANNELS, BODY | {field: value})
    assert status == 400 and failure["field"] == field and words in failure["message"]
    assert "olga:pw" not in failure["message"] and not Channel.objects.exists()


@pytest.mark.parametrize("field", ["url", "signing_secret"])
def test_a_new_one_needs_both_secrets(admin: Api, field: str) -> None:
    status, failure = admin.call("POST", CHANNELS, {name: value for name, value in BODY.items() if name != field})
    assert status == 400 and failure["field"] == field and "is missing" in failure["message"]


def test_an_address_of_our_network_is_refused_unless_it_is_allowed(admin: Api, tell: Any) -> None:
    tell(private_addresses=False)
    for host in ("127.0.0.1", "localhost", "10.0.0.8", "[::1]", "169.254.169.254"):
        status, failure = admin.call("POST", CHANNELS, BODY | {"url": f"http://{host}/x"})
        assert status == 400 and "notifications.private_addresses" in failure["message"], host
    tell(private_addresses=True)
    assert admin.call("POST", CHANNELS, BODY | {"url": "http://127.0.0.1/x"})[0] == 201


def test_a_name_is_taken_once(admin: Api) -> None:
    admin.call("POST", CHANNELS, BODY)
    status, failure = admin.call("POST", CHANNELS, BODY)
    assert status == 409 and failure["field"] == "name"


def test_a_change_keeps_the_secrets_that_are_not_given(admin: Api) -> None:
    admin.call("POST", CHANNELS, BODY)
    assert admin.call("PUT", f"{CHANNELS}/on-call", {"enabled": False})[0] == 200
    assert Channel.objects.get().secrets().signing_secret == SECRET and not Channel.objects.get().enabled
    other = "another secret of sixteen".replace(" ", "-")
    admin.call("PUT", f"{CHANNELS}/on-call", {"url": "https://other.example.com/x", "signing_secret": other})
    kept = Channel.objects.get().secrets()
    assert (kept.url, kept.signing_secret) == ("https://other.example.com/x", other)
    *_, (_, verb, before, after) = audited()
    assert verb == "change" and before == {"enabled": False, "target": "https://hooks.example.com"}
    assert after["url"] == after["signing_secret"] == "changed" and other not in str(audited())


def test_two_people_do_not_overwrite_each_other(admin: Api) -> None:
    admin.call("POST", CHANNELS, BODY)
    admin.headers["If-Match"] = '"1-0"'
    status, failure = admin.call("PUT", f"{CHANNELS}/on-call", {"enabled": False})
    assert status == 412 and failure["field"] == "If-Match" and Channel.objects.get().enabled


def test_one_is_deleted_with_what_waits(admin: Api, channel: Channel, looks: Rounds) -> None:
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    assert Delivery.objects.count() == 1
    assert admin.call("DELETE", f"{CHANNELS}/pager")[0] == 204
    assert not Delivery.objects.exists() and audited()[-1][1] == "delete"
    assert admin.call("GET", f"{CHANNELS}/pager")[0] == 404


def test_a_test_tells_what_was_answered(admin: Api, channel: Channel, there: Receiver) -> None:
    status, told = admin.call("POST", f"{CHANNELS}/pager/test")
    assert status == 200 and told["ok"] and told["answer"] == "204"
    assert there.taken[0]["event"] == "test" and there.taken[0]["alert"] is None
    there.answers = [401]
    assert admin.call("POST", f"{CHANNELS}/pager/test", {})[1] | {"seconds": 0, "as_of": 0} == {
        "ok": False,
        "answer": "401: said to /***",
        "seconds": 0,
        "as_of": 0,
    }


def test_what_was_sent_is_listed(lm: Deployment, admin: Api, channel: Channel, there: Receiver, looks: Rounds) -> None:
    from tests.notifications.test_delivery import sent

    there.answers = [503]
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED)))
    sent(lm, channel)
    [one] = admin.call("GET", f"{CHANNELS}/pager/deliveries")[1]["results"]
    assert (one["event"], one["state"], one["tries"], one["name"]) == ("opened", "waiting", 1, "lake-eu")
    assert one["id"] == there.ids[0] and one["log"][0]["answer"].startswith("503")
    [told] = admin.call("GET", CHANNELS)[1]["results"]
    assert (told["waiting"], told["last_state"]) == (1, "waiting") and told["last_answer"].startswith("503")


def test_who_may_only_look_at_mirrors_sees_no_channel(viewer: Api, teammate: User, channel: Channel) -> None:
    assert viewer.call("GET", CHANNELS)[0] == viewer.call("POST", f"{CHANNELS}/pager/test", {})[0] == 403
    client = Client()
    client.force_login(teammate)
    assert client.get(f"{PAGES}/pager/").status_code == 403
    assert "pager" not in client.get("/notifications/").content.decode()


# --- pages ------------------------------------------------------------------------------------------------------------


def test_by_page_one_is_created_tested_edited_and_deleted(lm: Deployment, olga: Client, there: Receiver) -> None:
    assert "No channels yet: alerts are only shown on this page." in text(olga.get("/notifications/"))
    form = {"name": "pager", "url": f"{there.url}/t0ken", "signing_secret": SECRET, "enabled": "on"} | RULE
    said = text(olga.post(f"{PAGES}/new/", form, follow=True))
    assert "Channel pager created." in said
    assert "Test message accepted in" in text(olga.post(f"{PAGES}/pager/test/", follow=True))
    page = olga.get(f"{PAGES}/pager/edit/")
    assert b"t0ken" not in page.content and SECRET.encode() not in page.content
    change = {"seen": page.context["form"].initial["seen"]} | RULE
    assert "Disabled: nothing is sent." in text(olga.post(f"{PAGES}/pager/edit/", change, follow=True))
    assert "Channel pager deleted." in text(olga.post(f"{PAGES}/pager/delete/", {"reason": "moved"}, follow=True))
    assert not Channel.objects.exists()


def test_a_wrong_form_says_what_is_wrong_and_shows_no_secret(olga: Client) -> None:
    answer = olga.post(f"{PAGES}/new/", {"name": "a b", "url": "ftp://t0ken", "signing_secret": SECRET} | RULE)
    assert answer.status_code == 400 and "is not a valid channel name" in text(answer)
    assert b"t0ken" not in answer.content and SECRET.encode() not in answer.content


def test_a_form_that_is_no_longer_true_saves_nothing(olga: Client, channel: Channel) -> None:
    answer = olga.post(f"{PAGES}/pager/edit/", {"seen": '"0-0"'} | RULE)
    assert answer.status_code == 412 and Channel.objects.get().enabled
    assert "this channel was changed after you opened it" in text(answer)


def test_a_message_that_is_not_taken_is_told(olga: Client, channel: Channel, there: Receiver) -> None:
    there.answers = [500]
    said = text(olga.post(f"{PAGES}/pager/test/", follow=True))
    assert "Test message not accepted: 500: said to /***" in said


# --- another key ------------------------------------------------------------------------------------------------------


def test_secrets_are_sealed_anew_with_another_key(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from deployment.config_sections import Encrypt

    old = config.from_file()
    new = replace(old, auth=replace(old.auth, encrypt=Encrypt(config.Secret("another key"))))
    monkeypatch.setattr(config, "from_file", lambda: new)
    with pytest.raises(Unreadable, match=r"'pager' were sealed with another auth.encrypt.secret_key.*rotate_secrets"):
        channel.secrets()
    with pytest.raises(CommandError, match="the secrets of 1 channel can't be opened"):
        call_command("rotate_secrets", stdout=StringIO(), stderr=StringIO())
    monkeypatch.setenv(OLD_KEY, old.auth.encrypt.secret_key.reveal())
    said = StringIO()
    call_command("rotate_secrets", stdout=said)
    assert "pager: sealed with the current key" in said.getvalue() and "done: 1 channel" in said.getvalue()
    monkeypatch.delenv(OLD_KEY)
    assert Channel.objects.get().secrets().signing_secret == SECRET
