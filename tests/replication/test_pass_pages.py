"""Pages of passes: what they show, and what is clicked there."""

from __future__ import annotations

import pytest
from django.test import Client

from rbac.models import User
from replication.models import Pass, Rule
from tests.replication.factories import a_pass, a_rule
from tests.replication.test_pages import TYPED, body
from tests.replication.test_passes import keys_of, through
from tests.replication.world import World

pytestmark = pytest.mark.django_db


def test_a_resync_is_begun_on_the_page_and_shows_how_far_it_is(w: World, olga: Client) -> None:
    keys_of(w, 5)
    w.rule()
    empty = body(olga, "/replication/r/passes/")
    assert "There was no pass yet" in empty and 'name="kind" value="resync"' in empty
    given = {"kind": "resync", "link": "1", "what": "all", "older_than": "0", "prefix": "k"}
    assert olga.post("/replication/r/passes/begin/", given).status_code == 302
    made = Pass.objects.get()
    assert (made.kind, made.what, made.prefix, made.link_id) == ("resync", "all", "k", w.link().pk)
    again = olga.post("/replication/r/passes/begin/", given, headers={"HX-Request": "true"}).content.decode()
    assert f"a resync of link 1 goes on: pass {made.pk}" in again
    running = body(olga, f"/replication/passes/{made.pk}/")
    assert 'hx-trigger="every 3s' in running and 'id="pass-cancel"' in running and "time left unknown" in running
    through(w, made)
    done = body(olga, f"/replication/passes/{made.pk}/")
    assert "5 objects copied" in done and 'id="pass-cancel"' not in done and "No object has failed" in done
    assert 'max="5" value="5"' in done
    listed = body(olga, "/replication/r/passes/")
    assert f'href="/replication/passes/{made.pk}/"' in listed and "Completed" in listed


def test_an_age_that_is_no_number_begins_no_pass_of_everything(w: World, olga: Client) -> None:
    w.rule()
    for age in ("²", "-1", "week", "9" * 30):
        answer = olga.post("/replication/r/passes/begin/", {"kind": "resync", "link": "1", "older_than": age})
        assert answer.status_code == 400 and not Pass.objects.exists()


def test_a_dry_run_shows_its_rows_and_is_canceled(w: World, olga: Client) -> None:
    w.rule()
    made = a_pass(Rule.objects.get())
    page = body(olga, f"/replication/passes/{made.pk}/")
    assert "a b+c%2F#?.csv" in page and "its key would be longer than 1,024 bytes" in page
    assert f"/service/replication/v1/passes/{made.pk}/report?format=parquet" in page
    olga.post("/replication/r/passes/begin/", {"kind": "dry-run", "link": "1", "older_than": "604800"})
    going = Pass.objects.first()
    assert going is not None and going.is_dry and going.older_than is not None
    assert olga.post(f"/replication/passes/{going.pk}/cancel/").status_code == 302
    going.refresh_from_db()
    assert going.state == "canceled" and "Canceled by olga" in body(olga, f"/replication/passes/{going.pk}/")
    assert olga.get("/replication/passes/999/").status_code == 404


def test_a_new_rule_is_tried_and_reckoned_before_it_is_created(w: World, olga: Client) -> None:
    for key in ("in/a", "in/b"):
        w.put(key)
    page = olga.post("/replication/new/", TYPED | {"cost": "1"})
    told = page.content.decode()
    assert page.status_code == 200 and "All 2 objects were looked at" in told and "No prices are configured" in told
    wrong = olga.post("/replication/new/", TYPED | {"dry_run": "1", "target_0_uri": "s3://src/in/x"})
    assert wrong.status_code == 400 and b"lies in the source" in wrong.content
    begun = olga.post("/replication/new/", TYPED | {"dry_run": "1"})
    made = Pass.objects.get()
    assert (begun.status_code, begun["Location"]) == (302, f"/replication/passes/{made.pk}/")
    through(w, made)
    shown = body(olga, f"/replication/passes/{made.pk}/")
    assert "copies, not created" in shown and "Nothing is written" in shown and not Rule.objects.exists()


def test_cost_of_a_rule_is_told_on_its_page_or_why_not(w: World, olga: Client) -> None:
    keys_of(w, 2)
    w.rule()
    assert "All 2 objects were looked at" in body(olga, "/replication/r/passes/?cost=1")
    Rule.objects.update(versions="all")
    page = body(olga, "/replication/r/passes/?cost=1")
    assert "what all versions cost is not estimated" in page and "Everything, again" not in page


def test_who_may_not_see_a_rule_begins_and_cancels_nothing(olga: Client, outsider: User) -> None:
    made = a_pass(a_rule())
    client = Client()
    client.force_login(outsider)
    assert client.post("/replication/logs/passes/begin/", {"kind": "dry-run"}).status_code == 403
    assert client.get(f"/replication/passes/{made.pk}/").status_code == 404
    assert client.post(f"/replication/passes/{made.pk}/cancel/").status_code == 404
