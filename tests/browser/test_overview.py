"""What people click on the overview, the list of mirrors and the page of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from playwright.sync_api import Page, expect

from jobs.models import Duty, JobLine
from mirrors.models import Mirror, Run, Validation
from tests.mirrors.factories import fail, make_company
from tests.mirrors.harness import Deployment, deployment

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


def rows(page: Page) -> Any:
    return page.locator("table.mirrors tbody tr")


def test_what_needs_somebody_is_asked_for_again_from_the_overview(olga: Page, company: Any, lm: Deployment) -> None:
    olga.goto("/")
    expect(olga.get_by_role("navigation").get_by_role("link", name="Overview")).to_have_attribute(
        "aria-current", "page"
    )
    olga.get_by_role("link", name="Repair… analytics-eu").click()
    olga.get_by_role("button", name="Check again").click()
    expect(olga.get_by_role("status")).to_contain_text("Checking")
    olga.goto("/")
    expect(olga.locator(".latest li").first).to_contain_text("olga")
    olga.get_by_role("link", name="Open lab-eu").click()
    expect(olga.get_by_role("heading", level=1)).to_have_text("lab-eu")


def test_filters_are_put_on_and_taken_away_one_by_one(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    olga.get_by_label("State").select_option("Paused")
    olga.get_by_label("Name of the mirror").fill("bill")
    olga.get_by_role("button", name="Show").click()
    expect(rows(olga)).to_have_count(1)
    olga.get_by_label("State", exact=True).select_option("Stopped")
    olga.get_by_role("button", name="Show").click()
    olga.get_by_role("link", name="Remove the filter State: Stopped").click()
    olga.get_by_role("link", name="Remove the filter State: Paused").click()
    expect(olga.get_by_label("Name of the mirror")).to_have_value("bill")
    olga.get_by_role("link", name="Remove the filter Name holds: bill").click()
    expect(rows(olga)).to_have_count(len(company))


def test_chosen_mirrors_are_paused_in_place(olga: Page, company: Any, lm: Deployment) -> None:
    olga.goto("/mirrors/")
    for name in ("models-eu", "orders-eu"):
        olga.get_by_role("checkbox", name=f"Select {name}").check()
    olga.route("**/_change/", lambda route: (olga.wait_for_timeout(300), route.continue_()))
    olga.get_by_role("button", name="Pause").click()
    expect(olga.get_by_role("button", name="Queued")).to_be_disabled(timeout=250)
    expect(olga.get_by_role("status")).to_contain_text("Queued: paused: models-eu, orders-eu.")
    for name in ("models-eu", "orders-eu"):
        expect(rows(olga).filter(has_text=name)).to_contain_text("Paused")
        expect(olga.get_by_role("checkbox", name=f"Select {name}")).to_be_checked()
    expect(olga.get_by_role("button", name="Pause")).to_be_enabled()


def test_one_box_chooses_all(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    olga.get_by_role("checkbox", name="Select all on this page").check()
    expect(olga.locator("tbody input:checked")).to_have_count(len(company))


def test_a_failing_duty_is_tried_again_at_once(olga: Page, company: Any, lm: Deployment) -> None:
    duty = fail("copy", company["lab-eu"].pk, "no answer", now=datetime.now(UTC) + timedelta(minutes=5))
    olga.goto("/jobs/")
    olga.get_by_role("button", name="Run now: Copy commits, lab-eu").click()
    expect(olga.get_by_role("status")).to_contain_text("Queued: Copy commits.")
    assert Duty.objects.filter(pk=duty.pk, due_at__lte=Now()).exists()
    olga.get_by_label("State").select_option("Idle")
    olga.get_by_role("button", name="Show").click()
    expect(olga.get_by_text("no answer")).to_have_count(0)


def test_a_check_that_was_asked_for_is_stopped(olga: Page, company: Any, lm: Deployment) -> None:
    mirror = company["models-eu"]
    one = Validation.objects.create(mirror=mirror, what="all", depth="etag", key="k", asked_at=datetime.now(UTC))
    olga.goto("/jobs/")
    olga.get_by_role("button", name=f"Stop validation-{one.pk} of models-eu").click()
    expect(olga.get_by_role("status")).to_contain_text(f"Stopped: validation {one.pk} of models-eu.")
    expect(olga.locator(f"#v-{one.pk}")).to_contain_text("Stopped")
    olga.get_by_role("button", name=f"Check again: validation-{one.pk} of models-eu").click()
    expect(olga.locator(f"#v-{one.pk + 1}")).to_contain_text("Queued")
    run = Run.objects.get(mirror=company["analytics-eu"])
    olga.get_by_role("button", name=f"Stop run-{run.pk} of analytics-eu").click()
    expect(olga.locator(f"#r-{run.pk}")).to_contain_text("Stopping")


def test_what_workers_said_of_a_duty_is_a_click_away(olga: Page, company: Any) -> None:
    duty = fail("copy", company["lab-eu"].pk, "no answer", now=datetime.now(UTC))
    said = {"at": datetime.now(UTC), "level": "WARNING", "worker": "host:1:ab"}
    JobLine.objects.create(duty=duty, text="copy (attempt 3 in a row): no answer", **said)
    olga.goto("/jobs/")
    olga.locator(f"#d-{duty.pk}").get_by_role("link", name="Copy commits").click()
    expect(olga.get_by_role("heading", level=1)).to_have_text("Copy commits · lab-eu")
    expect(olga.locator("table.log tbody")).to_contain_text("copy (attempt 3 in a row): no answer")
