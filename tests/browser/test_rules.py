"""Replication rules in a browser: one is made while everything is said, and what failed is retried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from playwright.sync_api import Page, expect

from audit.models import AuditEvent
from core.errors import Conflict
from rbac.models import User
from replication.models import Link, Rule
from tests.browser.test_accessibility import violations
from tests.fakes import takes_everything
from tests.mirrors.harness import deployment
from tests.replication.factories import in_trouble
from tests.replication.test_deletes import go, look, many
from tests.replication.world import World, refusing, world

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def w(owner: User) -> Iterator[World]:
    """A bucket `src` with some logs, and an empty one `out` in another region."""
    tried = mock.patch("replication.preflight.checks.probe", takes_everything)
    with deployment() as lm, world(lm) as made, tried:
        for key in ("in/a", "in/bad b", "other"):
            made.put(key)
        yield made


def field(page: Page, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def test_a_rule_is_made_and_what_failed_is_retried(olga: Page, w: World) -> None:
    olga.goto("/")
    olga.get_by_role("navigation", name="Pages").get_by_role("link", name="Replication").click()
    olga.get_by_role("link", name="New rule").click()
    checks, state = olga.get_by_role("region", name="Checks"), olga.locator("h1 + .state")
    expect(checks).to_contain_text("Nothing has been checked yet")
    field(olga, "Name").fill("logs")
    field(olga, "Source").fill("s3://src/in")
    target = field(olga, "Target")
    target.fill("s3://absent/in")
    expect(checks).to_contain_text("There is no bucket absent")
    assert w.there() == {}
    field(olga, "Region of the target").select_option("eu-west-1")
    target.fill("s3://out/in")
    field(olga, "Name").focus()
    expect(checks).to_contain_text("Ready: ")
    expect(checks).to_contain_text("Write access was tested")
    assert w.there() == {} and violations(olga) == []
    olga.get_by_text("As API call").click()
    expect(olga.locator("#api-call")).to_contain_text("--source us-east-1 s3://src/in --target eu-west-1 s3://out/in")
    olga.get_by_role("button", name="Create rule").click()
    expect(state).to_have_text("Comparing")
    w.away.before = refusing(Conflict("metadata is too large"), "PUT", keys="in/bad")
    w.work()
    expect(state).to_have_text("Failed")
    assert w.there() == {"in/a": b"data"}
    links = olga.get_by_role("table", name="Targets of this rule, and how each stands")
    expect(links).to_contain_text("1 · eu-west-1")
    olga.get_by_role("link", name="1 object", exact=True).click()
    expect(olga.get_by_role("table")).to_contain_text("metadata is too large")
    olga.get_by_label("Select bad b").check()
    w.away.before = lambda method, bucket, key: None
    olga.get_by_role("button", name="Retry selected").click()
    expect(olga.locator("#notices")).to_contain_text("1 object tried again now")
    w.work()
    assert w.there() == {"in/a": b"data", "in/bad b": b"data"}
    olga.get_by_role("link", name="logs", exact=True).click()
    expect(state).to_have_text("Up to date")
    assert violations(olga) == []


def test_a_rule_is_paused_limited_and_deleted_also_without_scripts(olga: Page, plain: Page) -> None:
    with deployment():
        in_trouble()
        olga.goto("/replication/")
        olga.get_by_role("link", name="orders").click()
        second = olga.locator("#link-2")
        second.get_by_text("Change limits").click()
        second.get_by_label("Objects at once").fill("3")
        second.get_by_role("button", name="Save limits").click()
        expect(olga.locator("#notices")).to_contain_text("Saved")
        expect(second).to_contain_text("At most 3 objects at once")
        second.get_by_role("button", name="Pause link 2").click()
        expect(second.locator(".state")).to_have_text("Paused")
        olga.get_by_role("button", name="Retry TargetRefused of link 2").click()
        expect(olga.locator("#notices")).to_contain_text("tried again now")
        plain.goto("/replication/orders/")
        plain.get_by_role("button", name="Resume link 2").click()
        assert not Link.objects.get(number=2).paused
        plain.get_by_role("button", name="Pause", exact=True).click()
        expect(plain.locator("h1 + .state")).to_have_text("Paused")
        plain.get_by_role("link", name="Delete…").click()
        plain.get_by_role("button", name="Delete rule").click()
        expect(plain.locator("#notices")).to_contain_text("All objects stay where they are")
        assert Rule.objects.get().deleting


def test_deletions_that_wait_are_approved_at_the_second_step(olga: Page, plain: Page, w: World) -> None:
    w.home.buckets["src"].clear()
    keys = many(w)
    go(w, *keys[:3])
    look(w)
    olga.goto("/replication/r/")
    olga.get_by_role("link", name="Deletes waiting").click()
    sure = olga.get_by_role("button", name="Delete 3 objects at eu-west-1")
    expect(sure).not_to_be_visible()
    olga.get_by_text("Delete them…").click()
    expect(olga.locator("#live")).to_contain_text("they are gone for good")
    olga.get_by_label("Reason, for the audit log").fill("cleaned up")
    assert violations(olga) == []
    sure.click()
    expect(olga.locator("#notices")).to_contain_text("Approved: 3 objects are deleted")
    assert AuditEvent.objects.get(verb="approve").reason == "cleaned up"
    w.later(61)
    w.copy()
    assert keys[3:] == sorted(key for key in w.there() if key in keys)
    plain.goto("/replication/r/deletes/")
    expect(plain.locator("#live")).to_contain_text("Approved by olga")


def test_more_targets_are_added_without_scripts(plain: Page) -> None:
    with deployment():
        plain.goto("/replication/new/")
        field(plain, "Name").fill("logs")
        field(plain, "Target").fill("s3://out")
        plain.get_by_role("button", name="Add another target").click()
        field(plain, "Target 2").fill("s3://far")
        expect(field(plain, "Target 1")).to_have_value("s3://out")
        field(plain, "Source").fill("s3://src")
        plain.get_by_role("button", name="Check", exact=True).click()
        expect(plain.get_by_role("region", name="Checks")).to_contain_text("Ready: ")
        field(plain, "Name").press("Enter")
        assert [link.uri for link in Rule.objects.get().links.order_by("number")] == ["s3://out", "s3://far"]
