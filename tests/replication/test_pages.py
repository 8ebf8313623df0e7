"""The pages of replication rules, in every state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from adapters.s3.write_probe import TRIED, Probed
from audit.models import AuditEvent
from core.errors import Denied
from core.replicating.states import Health, OpenStatus
from db import clock
from rbac.models import User
from replication.models import Link, OpenObject, Rule
from tests.mirrors.harness import Deployment
from tests.replication.factories import a_rule, assert_counted, in_trouble, open_object
from tests.replication.world import World

pytestmark = pytest.mark.django_db
TYPED = {
    "name": "copies",
    "region": "us-east-1",
    "uri": "s3://src/in/",
    "existing": "on",
    "new": "on",
    "scan_every": "300",
    "target_0_region": "eu-west-1",
    "target_0_uri": "s3://out/in",
}


def body(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:500]
    text = answer.content.decode()
    assert "None" not in text
    return text


def test_without_rules_the_list_says_how_to_begin(olga: Client) -> None:
    page = body(olga, "/replication/")
    assert "Create a rule" in page and 'href="/replication/" aria-current="page"' in page


def test_the_worst_stand_first(olga: Client) -> None:
    a_rule("calm")
    in_trouble()
    a_rule("fresh", full_ended_at=None, full_began_at=None)
    page = body(olga, "/replication/")
    names = ['href="/replication/orders/"', 'href="/replication/fresh/"', 'href="/replication/calm/"']
    places = [page.index(name) for name in names]
    assert places == sorted(places)
    assert "1 rule needs attention: <strong>orders</strong>. 1 of 3 are up to date." in page
    only = body(olga, "/replication/?state=blocked&find=dst")
    assert names[0] in only and names[2] not in only
    assert "No rules match these filters" in body(olga, "/replication/?find=nowhere")


def test_a_rule_in_trouble_says_why_and_offers_what_helps(olga: Client) -> None:
    in_trouble()
    page = body(olga, "/replication/orders/")
    for told in (
        "1 of 2 targets is blocked",
        "s3 answered 403 to put: access denied",
        "2 objects could not be copied",
        "the target&#x27;s store refuses to take it",
        "it is archived at the source",
        'href="/replication/?label=team%3Dsales"',
        "Nothing is deleted anywhere",
    ):
        assert told in page, told
    assert 'id="retry-2-failed-TargetRefused"' in page and 'id="rule-retry"' in page


@pytest.mark.parametrize(
    ("rule", "link", "word"),
    [
        ({}, {}, "Up to date"),
        ({"paused": True}, {}, "Paused"),
        ({}, {"paused": True}, "Paused"),
        ({"full_ended_at": None}, {}, "Comparing"),
        ({}, {"health": Health.DOWN.value, "health_message": "no answer"}, "Down"),
        ({}, {"health": Health.BLOCKED.value, "health_message": "403"}, "Blocked"),
        ({"error": "access denied"}, {}, "Unknown"),
        ({}, {"listing_error": "access denied"}, "Unknown"),
        ({}, {"overflowed": True}, "Copying"),
    ],
)
def test_every_state_has_its_word(olga: Client, rule: dict[str, Any], link: dict[str, Any], word: str) -> None:
    made = a_rule(**rule)
    Link.objects.filter(rule=made).update(**link)
    assert f"</svg>{word}</span>" in body(olga, "/replication/logs/")


def test_what_is_copied_shows_how_much_is_left_and_how_fast(olga: Client) -> None:
    link = a_rule().links.get()
    open_object(link, "a", size=2048)
    Link.objects.filter(pk=link.pk).update(
        oldest_at=clock.now() - timedelta(minutes=5), pace_objects=12.5, pace_bytes=1e6
    )
    page = body(olga, "/replication/logs/")
    assert "1 object to go, the oldest for 5 min" in page and "12.5/s" in page and 'hx-trigger="every 3s' in page


def test_a_rule_is_made_on_the_page(lm: Deployment, olga: Client) -> None:
    assert "Create rule" in body(olga, "/replication/new/")
    wrong = olga.post("/replication/new/", TYPED | {"uri": "nowhere", "name": "Copies!"})
    assert wrong.status_code == 400 and b"is not a valid rule name" in wrong.content
    inside = olga.post("/replication/new/", TYPED | {"target_0_uri": "s3://src/in/deeper"})
    assert inside.status_code == 400 and b"s3://src/in/deeper lies in the source" in inside.content
    more = olga.post("/replication/new/", TYPED | {"add": "1"})
    assert b'name="target_1_uri"' in more.content and b"s3://out/in" in more.content
    made = olga.post("/replication/new/", TYPED | {"labels": "team=sales", "anyway": "1"})
    rule = Rule.objects.get()
    assert (made.status_code, made["Location"]) == (302, "/replication/copies/"), made.content
    assert (rule.uri, rule.labels, rule.scan_every) == ("s3://src/in", {"team": "sales"}, 300)
    assert list(rule.links.values_list("number", "region", "uri")) == [(1, "eu-west-1", "s3://out/in")]
    again = olga.post("/replication/new/", TYPED | {"target_0_uri": "s3://elsewhere", "anyway": "1"})
    assert again.status_code == 409 and b"a rule named" in again.content


def test_an_error_of_a_target_stands_beside_its_field(lm: Deployment, olga: Client) -> None:
    three = {f"target_{at}_region": "eu-west-1" for at in range(3)}
    typed = TYPED | three | {"target_1_uri": "", "target_2_uri": "s3://out/in/below"}
    page = olga.post("/replication/new/", typed | {"anyway": "1"}).content.decode()
    assert 'href="#id_target_2_uri"' in page and "another target" in page


def test_a_check_that_fails_keeps_it_from_being_made(lm: Deployment, olga: Client) -> None:
    denied = Probed(dict.fromkeys(TRIED, Denied("s3 answered 403")))
    with mock.patch("replication.preflight.checks.probe", return_value=denied):
        refused = olga.post("/replication/new/", TYPED)
        assert refused.status_code == 409 and b"so the rule was not created" in refused.content
        assert b"s3 answered 403" in refused.content and not Rule.objects.exists()
        assert olga.post("/replication/new/", TYPED | {"anyway": "1"}).status_code == 302
    made = AuditEvent.objects.get(verb="create", subject="replication/copies")
    assert "target-1-right:s3:PutObject" in made.after["failed_checks"]


def test_a_target_that_is_not_empty_is_taken_only_by_who_insists(w: World, olga: Client) -> None:
    w.away.buckets["out"] = {"in/a": b"theirs"}
    refused = olga.post("/replication/new/", TYPED)
    assert refused.status_code == 409 and b"s3://out/in holds 1 object already" in refused.content
    assert not Rule.objects.exists()
    assert olga.post("/replication/new/", TYPED | {"anyway": "1"}).status_code == 302
    after = AuditEvent.objects.get(verb="create", subject="replication/copies").after
    assert after["overwrite"] is True and "target-1-content" in after["failed_checks"]


def test_settings_are_changed_unless_somebody_else_did(olga: Client) -> None:
    rule = a_rule()
    page = body(olga, "/replication/logs/edit/")
    seen = page.split('name="seen" value="')[1].split('"')[0].replace("&quot;", '"')
    changed = olga.post("/replication/logs/edit/", {"new": "on", "scan_every": "900", "labels": "", "seen": seen})
    rule.refresh_from_db()
    assert (changed.status_code, rule.existing, rule.scan_every, rule.scan_wanted) == (302, False, 900, True)
    late = olga.post("/replication/logs/edit/", {"new": "on", "scan_every": "60", "labels": "", "seen": seen})
    assert late.status_code == 412 and b"have changed since" in late.content
    nothing = olga.post("/replication/logs/edit/", {"scan_every": "900", "labels": "no label!"})
    assert nothing.status_code == 400 and b"is no key of a label" in nothing.content
    nothing = olga.post("/replication/logs/edit/", {"scan_every": "900", "labels": ""})
    assert nothing.status_code == 400 and b"neither existing nor new" in nothing.content


def test_clicks_do_what_they_say(olga: Client) -> None:
    rule = in_trouble()
    second = rule.links.get(number=2)
    olga.post("/replication/orders/pause/", {"reason": "new disks"})
    rule.refresh_from_db()
    assert (rule.paused, rule.pause_reason, rule.paused_by) == (True, "new disks", "olga")
    assert "new disks" in body(olga, "/replication/orders/")
    refused = olga.post("/replication/orders/scan/", headers={"HX-Request": "true"})
    assert b"is paused. Resume it first" in refused.content
    olga.post("/replication/orders/resume/")
    olga.post("/replication/orders/scan/")
    olga.post("/replication/orders/links/2/pause/")
    rule.refresh_from_db()
    second.refresh_from_db()
    assert (rule.paused, rule.scan_wanted, second.paused) == (False, True, True)
    olga.post("/replication/orders/links/2/resume/")
    limits = {"workers": "4", "bytes_per_second": "", "objects_per_second": "1,000"}
    olga.post("/replication/orders/links/2/limits/", limits)
    second.refresh_from_db()
    assert (second.paused, second.workers, second.bytes_per_second, second.objects_per_second) == (False, 4, None, 1000)
    wrong = olga.post("/replication/orders/links/2/limits/", limits | {"workers": ""}, headers={"HX-Request": "true"})
    assert b"workers" in wrong.content and Link.objects.get(pk=second.pk).workers == 4
    told = olga.post("/replication/orders/links/2/retry/", {"code": "TargetRefused"}, headers={"HX-Request": "true"})
    assert b"Queued: 2 objects tried again now." in told.content
    assert not OpenObject.objects.filter(link=second, status=OpenStatus.FAILED.value).exists()
    assert_counted(second)
    olga.post("/replication/orders/retry/")
    assert not OpenObject.objects.filter(status=OpenStatus.SKIPPED.value).exists()
    assert_counted(second)


def test_open_objects_are_filtered_and_retried(olga: Client) -> None:
    rule = in_trouble()
    second = rule.links.get(number=2)
    first = body(olga, "/replication/orders/open/")
    assert "a/1" in first and "waits" not in first
    page = body(olga, "/replication/orders/open/?link=2")
    for told in ("a b+c%2F#?.csv", "é/2", "metadata is too large", "TargetRefused", "1 to copy, 2 failed,", "deep"):
        assert told in page, told
    failed = body(olga, "/replication/orders/open/?link=2&status=failed")
    assert "é/2" in failed and ">deep<" not in failed and "links/2/open?status=failed&amp;format=csv" in failed
    below = body(olga, "/replication/orders/open/?link=2&prefix=%C3%A9/")
    assert "é/2" in below and ">waits<" not in below
    assert "Nothing matches these filters" in body(olga, "/replication/orders/open/?link=2&prefix=zz")
    row = OpenObject.objects.get(link=second, key="é/2".encode())
    told = olga.post(
        "/replication/orders/open/retry/",
        {"which": "selected", "item": [row.pk], "link": "2"},
        headers={"HX-Request": "true"},
    )
    row.refresh_from_db()
    assert b"Queued: 1 object tried again now." in told.content and row.status == OpenStatus.PENDING.value
    assert_counted(second)
    olga.post("/replication/orders/open/retry/", {"which": "reason", "code": "TargetRefused", "link": "2"})
    assert not OpenObject.objects.filter(link=second, status=OpenStatus.FAILED.value).exists()
    assert olga.post("/replication/orders/open/retry/", {"which": "some"}).status_code == 400
    assert olga.get("/replication/orders/open/?link=3").status_code == 404


def test_a_rule_is_deleted_and_its_objects_stay(olga: Client) -> None:
    rule = a_rule()
    assert "Every object at <code>s3://dst-logs/in</code>" in body(olga, "/replication/logs/delete/")
    gone = olga.post("/replication/logs/delete/", {"reason": "no longer read"})
    rule.refresh_from_db()
    assert (gone["Location"], rule.deleting) == ("/replication/", True)
    assert olga.get("/replication/logs/").status_code == 404
    assert "logs" not in body(olga, "/replication/").split("<main")[1]


def test_who_may_not_sees_nothing_and_does_nothing(outsider: User, teammate: User) -> None:
    rule = a_rule()
    stranger, tom = Client(), Client()
    stranger.force_login(outsider)
    tom.force_login(teammate)
    for path in ("", "logs/", "logs/open/", "logs/edit/", "new/"):
        assert stranger.get(f"/replication/{path}").status_code == 403, path
    page = body(tom, "/replication/logs/")
    assert "rule-pause" not in page and "Edit" not in page.split("<main")[1] and "Change limits" not in page
    assert tom.post("/replication/logs/pause/").status_code == 403
    assert 'href="/replication/"' not in body(stranger, "/exports/")
    rule.refresh_from_db()
    assert not rule.paused


def test_a_reason_that_can_be_none_is_refused(olga: Client) -> None:
    in_trouble()
    answer = olga.post("/replication/orders/links/2/retry/", {"code": "a\0b"}, follow=True)
    assert answer.status_code < 500 and b"NUL" in answer.content
