"""Deletions that wait for somebody, by the API and on the page; targets and sources that are confirmed."""

from __future__ import annotations

import pytest
from django.test import Client

from audit.models import AuditEvent
from replication.models import Link
from tests.api import Api
from tests.mirrors.views.test_pages import text
from tests.replication.test_deletes import copied, follow, go, look, many
from tests.replication.world import World

pytestmark = pytest.mark.django_db
RULE = "/service/replication/v1/rules/r"


def waiting(w: World, api: Api) -> tuple[list[str], int]:
    """Three of twenty have gone, and wait."""
    keys = many(w)
    go(w, *keys[:3])
    look(w)
    (one,) = api.call("GET", f"{RULE}/approvals?state=waiting")[1]["results"]
    assert (one["objects"], one["of_objects"], one["left"], one["first_keys"]) == (3, 20, 3, keys[:3])
    return keys, one["id"]


def test_deletions_that_wait_are_told_and_approved(w: World, api: Api, olga: Client) -> None:
    keys, number = waiting(w, api)
    rule = api.call("GET", RULE)[1]
    assert (rule["state"], rule["word"]) == ("frozen", "Deletes waiting")
    assert rule["links"][0]["deletes_to_approve"] == rule["links"][0]["deletes_waiting"] == 3
    csv = olga.get(f"{RULE}/approvals/{number}?format=csv").getvalue().decode()
    assert all(key in csv for key in keys[:3])
    assert keys[0].encode() in olga.get("/replication/r/deletes/").content
    status, answer = api.call("POST", f"{RULE}/approvals/{number}/approve", {"reason": "cleaned up"})
    assert (status, answer["state"]) == (200, "approved")
    event = AuditEvent.objects.latest("pk")
    assert (event.verb, event.after["objects"], event.reason) == ("approve", 3, "cleaned up")
    w.later(61)
    w.copy()
    assert len(w.there()) == 17
    assert api.call("POST", f"{RULE}/approvals/{number}/approve", {})[0] == 409
    assert api.call("POST", f"{RULE}/approvals/{number}/reject", {})[0] == 409
    assert api.call("POST", f"{RULE}/approvals/99/reject", {})[0] == 404


def test_deletions_are_rejected_and_decided_on_the_page(w: World, api: Api, olga: Client) -> None:
    _, number = waiting(w, api)
    olga.post(f"/replication/r/deletes/{number}/reject/", {"reason": "no"})
    assert api.call("GET", f"{RULE}/approvals/{number}")[1]["state"] == "rejected"
    assert AuditEvent.objects.latest("pk").verb == "reject"
    w.later(61)
    w.copy()
    assert len(w.there()) == 20


def test_the_page_of_what_is_copied_while_deletions_wait_asks_often(w: World, api: Api, olga: Client) -> None:
    waiting(w, api)
    page = "/replication/r/"
    assert 'hx-trigger="every 60s' in olga.get(page).content.decode()
    w.later(301)
    w.put("new")
    w.scan()
    assert 'hx-trigger="every 3s' in olga.get(page).content.decode()
    api.call("POST", f"{RULE}/pause", {})
    assert 'hx-trigger="every 60s' in olga.get(page).content.decode()


def test_what_waits_for_approval_has_no_next_try(w: World, api: Api, olga: Client) -> None:
    waiting(w, api)
    opened = api.call("GET", f"{RULE}/links/1/open")[1]["results"]
    assert [one["next_try_at"] for one in opened] == [None] * 3
    said = text(olga.get("/replication/r/open/"))
    assert "0 skipped, 3 to delete." in said and "days" not in said
    assert "It expires in 6 days." in text(olga.get("/replication/r/deletes/"))


def test_deletions_that_have_expired_are_not_approved(w: World, api: Api) -> None:
    _, number = waiting(w, api)
    w.later(7 * 86400 + 1)
    assert api.call("POST", f"{RULE}/approvals/{number}/approve", {})[0] == 409
    w.copy()
    assert len(w.there()) == 20


def test_a_target_is_confirmed_and_everything_copied_again(w: World, api: Api, olga: Client) -> None:
    copied(w, "a", "b")
    assert api.call("POST", f"{RULE}/links/1/confirm-target", {})[0] == 409
    w.away.buckets["out"] = {}
    look(w)
    w.copy()
    assert api.call("GET", RULE)[1]["links"][0]["word"] == "Stale"
    assert "Confirm target" in olga.get("/replication/r/").content.decode()
    assert api.call("POST", f"{RULE}/links/1/confirm-target", {})[0] == 200
    look(w)
    w.copy()
    assert set(w.there()) == {"a", "b"}


def test_a_source_is_confirmed_by_who_may_approve(w: World, api: Api, olga: Client) -> None:
    copied(w, "a", "b")
    assert api.call("POST", f"{RULE}/links/1/confirm-source", {})[0] == 409
    go(w, "a", "b")
    follow(w)
    assert api.call("GET", RULE)[1]["links"][0]["frozen_code"] == "SourceEmpty"
    olga.post("/replication/r/links/1/confirm-source/")
    assert Link.objects.get().frozen_since is None
    follow(w)
    assert w.there() == {}


def test_bounds_and_following_are_settings(w: World, api: Api) -> None:
    copied(w, "a", "b", "c", markers=False)
    for body, field in (({"delete_percent": 101}, "delete_percent"), ({"delete_most": -1}, "delete_most")):
        status, answer = api.call("PATCH", RULE, body)
        assert status == 400 and field in str(answer)
    go(w, "a")
    assert api.call("PATCH", RULE, {"markers": True, "delete_percent": 100})[1]["markers"] is True
    follow(w)
    assert set(w.there()) == {"a", "b", "c"}, "it went before deletions were followed"
    go(w, "b")
    look(w)
    assert w.names() == ["b"]
    assert api.call("PATCH", RULE, {"markers": False})[0] == 200
    w.later(3600)
    w.work()
    assert set(w.there()) == {"a", "b", "c"} and w.names() == []
