"""Sessions that end, two tabs, the back button, mirrors that go: nothing typed is lost and no page shows the past."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from mirrors.models import Mirror
from rbac.models import Session
from tests.browser.conftest import PASSWORD
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment, deployment, replicate_in_order

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

NEW = "/mirrors/new/"
MIRROR = "/mirrors/analytics-eu/"
SETTINGS = f"{MIRROR}settings/"
KEPT = "What you typed before you signed in has been restored"


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        made.lake.commit()
        yield made


def field(page: Page, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def end_session() -> None:
    Session.objects.all().delete()


def sign_in_again(page: Page) -> None:
    """On the page that has come by itself."""
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.fill("#id_username", "olga")
    page.fill("#id_password", PASSWORD)
    press(page, "Sign in")


def poll(page: Page) -> None:
    page.evaluate("htmx.trigger('#live', 'refresh')")


def type_new(page: Page) -> None:
    page.goto(NEW)
    for label, value in (
        ("Repository", "lake"),
        ("Name of the mirror", "lake-eu"),
        ("Storage namespace", "s3://dst/lake"),
        ("Branches to mirror", "release-*\nhotfix"),
    ):
        field(page, label).fill(value)
    field(page, "Mirror tags too").check()


def expect_new(page: Page) -> None:
    expect(page.locator("#notices")).to_contain_text(KEPT)
    expect(page).to_have_url(NEW)
    expect(field(page, "Name of the mirror")).to_have_value("lake-eu")
    expect(field(page, "Storage namespace")).to_have_value("s3://dst/lake")
    expect(field(page, "Branches to mirror")).to_have_value("release-*\nhotfix")
    expect(field(page, "Mirror tags too")).to_be_checked()


# A session that ended in the middle of a form


@pytest.mark.parametrize("name", ["olga", "plain"])
def test_a_new_mirror_that_was_sent_comes_back(name: str, request: pytest.FixtureRequest, lm: Deployment) -> None:
    page = request.getfixturevalue(name)
    type_new(page)
    end_session()
    press(page, "Create mirror")
    sign_in_again(page)
    expect_new(page)
    if name == "olga":
        expect(page.get_by_role("region", name="Checks")).to_contain_text("passed")
    assert not Mirror.objects.exists()
    press(page, "Create mirror")
    press(page, "Create anyway")
    expect(page.get_by_role("heading", level=1)).to_have_text("lake-eu")


def test_a_new_mirror_that_was_being_typed_comes_back(olga: Page, lm: Deployment) -> None:
    type_new(olga)
    expect(olga.locator("#matches")).to_contain_text("branch")
    end_session()
    field(olga, "Branches to leave out").press_sequentially("x")
    sign_in_again(olga)
    expect_new(olga)
    expect(field(olga, "Branches to leave out")).to_have_value("x")
    expect(olga.get_by_role("region", name="Checks")).not_to_contain_text("Nothing has been checked yet")


@pytest.mark.parametrize("name", ["olga", "plain"])
def test_settings_that_were_sent_come_back(name: str, request: pytest.FixtureRequest, company: Any) -> None:
    page = request.getfixturevalue(name)
    page.goto(SETTINGS)
    field(page, "Branches to leave out").fill("tmp-*")
    end_session()
    press(page, "Save")
    sign_in_again(page)
    expect(page.locator("#notices")).to_contain_text(KEPT)
    expect(field(page, "Branches to leave out")).to_have_value("tmp-*")
    press(page, "Save")
    expect(page.locator("#notices")).to_contain_text("Settings saved")
    assert Mirror.objects.get(name="analytics-eu").selected["exclude"] == ["tmp-*"]


def test_settings_that_were_being_typed_come_back_and_others_changes_are_told(olga: Page, company: Any) -> None:
    olga.goto(SETTINGS)
    field(olga, "Branches to leave out").fill("tmp-*")
    field(olga, "Mirror tags too").check()
    end_session()
    Mirror.objects.filter(name="analytics-eu").update(rpo_seconds=60)
    poll(olga)
    sign_in_again(olga)
    expect(olga.locator("#notices")).to_contain_text(KEPT)
    expect(field(olga, "Branches to leave out")).to_have_value("tmp-*")
    expect(field(olga, "Mirror tags too")).to_be_checked()
    press(olga, "Save")
    expect(olga.get_by_role("alert")).to_contain_text("Lag target, in seconds: none → 60")
    press(olga, "Save")
    expect(olga.locator("#notices")).to_contain_text("Settings saved")
    stored = Mirror.objects.get(name="analytics-eu")
    assert (stored.selected["exclude"], stored.tags, stored.rpo_seconds) == (["tmp-*"], True, 60)


def test_settings_that_nobody_touched_are_shown_as_they_are(olga: Page, company: Any) -> None:
    olga.goto(SETTINGS)
    end_session()
    poll(olga)
    Mirror.objects.filter(name="analytics-eu").update(rpo_seconds=60)
    sign_in_again(olga)
    expect(field(olga, "Lag target, in seconds")).to_have_value("60")
    expect(olga.locator("#notices")).not_to_contain_text(KEPT)


def test_who_signs_in_in_another_tab_goes_on_in_the_first(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/models-eu/settings/")  # up to date, so no poll comes in between
    field(olga, "Branches to leave out").fill("tmp-*")
    expect(olga.locator("#matches")).to_contain_text("'tmp-*' matches no branch")
    olga.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    other = olga.context.new_page()
    other.goto("/")
    sign_in_again(other)
    expect(other.get_by_role("heading", level=1)).to_have_text("Overview")
    press(olga, "Save")
    expect(olga.locator("#notices")).to_contain_text(KEPT)
    press(olga, "Save")
    expect(olga.locator("#notices")).to_contain_text("Settings saved")


# Two tabs


def test_settings_edited_in_two_tabs_lose_nothing_of_either(olga: Page, company: Any) -> None:
    other = olga.context.new_page()
    for page in (olga, other):
        page.goto(SETTINGS)
    field(olga, "Lag target, in seconds").fill("900")
    field(other, "Branches to leave out").fill("tmp-*")
    press(olga, "Save")
    expect(olga.locator("#notices")).to_contain_text("Settings saved")
    press(other, "Save")
    expect(other.get_by_role("alert")).to_contain_text("somebody has changed these settings")
    expect(other.get_by_role("alert")).to_contain_text("none → 900")
    expect(field(other, "Branches to leave out")).to_have_value("tmp-*")
    press(other, "Save")
    expect(other.locator("#notices")).to_contain_text("Settings saved")
    stored = Mirror.objects.get(name="analytics-eu")
    assert (stored.rpo_seconds, stored.selected["exclude"]) == (900, ["tmp-*"])


# The back button


@pytest.mark.parametrize("name", ["olga", "plain"])
def test_going_back_shows_the_present_and_sends_nothing(
    name: str, request: pytest.FixtureRequest, company: Any, lm: Deployment
) -> None:
    page = request.getfixturevalue(name)
    posts: list[str] = []
    page.on("request", lambda one: posts.append(one.url) if one.method == "POST" else None)
    page.goto("/mirrors/")
    page.get_by_role("link", name="models-eu").click()
    press(page, "Pause")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    tabs = page.get_by_role("navigation", name="Parts of this mirror")
    tabs.get_by_role("link", name="Runs").click()
    expect(tabs.locator("[aria-current]")).to_have_text("Runs")
    page.go_back()
    expect(tabs.locator("[aria-current]")).to_have_text("Branches")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    while page.url.rstrip("/").rpartition("/")[2] != "mirrors":
        page.go_back()
    expect(page.locator("tbody", has=page.get_by_role("link", name="models-eu"))).to_contain_text("Paused")
    assert len(posts) == 1


def test_going_back_takes_filters_away_one_by_one(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    field(olga, "State").select_option("Paused")
    press(olga, "Show")
    expect(olga.locator("table.mirrors tbody")).to_have_count(1)
    Mirror.objects.filter(name="models-eu").update(paused=True)
    olga.goto("/jobs/")
    olga.go_back()
    expect(olga.locator("table.mirrors tbody")).to_have_count(2)
    olga.go_back()
    expect(olga).to_have_url("/mirrors/")
    expect(olga.locator("table.mirrors tbody")).to_have_count(len(company))


def test_going_back_to_a_form_that_was_sent_makes_no_second_mirror(olga: Page, lm: Deployment) -> None:
    replicate_in_order(lm)
    for branch in ("release-1", "hotfix"):
        lm.lake.repository.branches[branch] = lm.lake.repository.branches["main"]
    type_new(olga)
    press(olga, "Create mirror")
    expect(olga.get_by_role("heading", level=1)).to_have_text("lake-eu")
    olga.go_back()
    expect(olga.get_by_role("heading", level=1)).to_have_text("New mirror")
    olga.go_forward()
    expect(olga.get_by_role("heading", level=1)).to_have_text("lake-eu")
    assert Mirror.objects.count() == 1


def test_two_clicks_send_a_form_once(olga: Page, lm: Deployment) -> None:
    type_new(olga)
    posts: list[str] = []
    olga.on("request", lambda one: posts.append(one.url) if one.is_navigation_request() else None)
    press(olga, "Create mirror")
    posts.clear()
    olga.get_by_role("button", name="Create anyway").dblclick()
    expect(olga.get_by_role("heading", level=1)).to_have_text("lake-eu")
    assert len([url for url in posts if url.endswith(NEW)]) == 1


# A mirror that goes while one looks


def test_a_deleted_mirrors_page_says_so_to_polls_and_clicks(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/models-eu/")
    Mirror.objects.filter(name="models-eu").update(state=Mirror.State.DELETING)
    poll(olga)
    expect(olga.locator(".notice.old")).to_contain_text("or you may no longer see it")
    press(olga, "Sync now")
    expect(olga.locator(".notice.failed")).to_contain_text("Nothing was done: that no longer exists.")
    olga.reload()
    expect(olga.get_by_role("heading", level=1)).to_have_text("Page not found")
    olga.get_by_role("main").get_by_role("link", name="Overview").click()
    expect(olga.get_by_role("heading", level=1)).to_have_text("Overview")


def test_a_click_that_nobody_answers_is_told(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/models-eu/")
    olga.route("**/sync/", lambda route: route.abort())
    press(olga, "Sync now")
    expect(olga.locator(".notice.failed")).to_contain_text("the server can't be reached")
    expect(olga.get_by_role("status")).to_contain_text("It is not known whether that was done")
