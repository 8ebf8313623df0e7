"""What the header's switch does to the times of a page, and what keys do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from mirrors.models import Mirror
from tests.browser.conftest import sign_in
from tests.mirrors.factories import make_company, make_measures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MIRROR = "/mirrors/analytics-eu/"
AHEAD = timedelta(hours=5, minutes=30)


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.fixture
def away(browser: Browser, live_server: Any, owner: Any) -> Iterator[Page]:
    """Olga's page on a journey to Kolkata, five and a half hours ahead of UTC."""
    context = browser.new_context(base_url=live_server.url, timezone_id="Asia/Kolkata")
    context.set_default_timeout(10_000)
    page = context.new_page()
    sign_in(page, "olga")
    yield page
    context.close()


def switch(page: Page) -> Any:
    return page.get_by_role("banner").locator("[data-zone]:visible")


def stands(time: Any) -> str:
    """What a time says."""
    return str(time.inner_text())


def own(time: Any) -> set[str]:
    """A moment in Kolkata as a page may write it."""
    at = datetime.fromisoformat(str(time.get_attribute("datetime"))) + AHEAD
    return {f"{at:%H:%M:%S}", f"{at:%Y-%m-%d %H:%M}"}


def utc(time: Any) -> set[str]:
    """The same in UTC."""
    at = datetime.fromisoformat(str(time.get_attribute("datetime")))
    return {f"{at:%H:%M:%S}", f"{at:%Y-%m-%d %H:%M}"}


def refresh(page: Page) -> None:
    """A poll, and what it brings."""
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
        page.evaluate("htmx.trigger('#live', 'refresh')")
    expect(page.locator("#live.htmx-request")).to_have_count(0)


def test_times_turn_to_ones_own_zone_and_back(away: Page, company: Any) -> None:
    away.goto(MIRROR)
    last, long_ago = away.locator(".as-of time").first, away.locator(".as-of time").last
    words = stands(long_ago)
    assert stands(last) in utc(last)
    switch(away).click()
    expect(switch(away)).to_have_text("Your time")
    expect(away.locator(".as-of")).to_contain_text("your time")
    assert stands(last) in own(last)
    assert stands(long_ago) == words
    last.hover()
    assert str(last.get_attribute("title")).startswith(
        f"{datetime.fromisoformat(last.get_attribute('datetime')):%F %T} UTC"
    )
    refresh(away)
    assert stands(last) in own(last)
    switch(away).click()
    assert stands(last) in utc(last)
    expect(away.locator(".as-of")).to_contain_text("UTC")


def test_the_zone_is_remembered_on_every_page_and_in_every_tab(away: Page, company: Any) -> None:
    away.goto(MIRROR)
    other = away.context.new_page()
    other.goto("/jobs/")
    switch(away).click()
    expect(switch(other)).to_have_text("Your time")
    other.goto("/mirrors/")
    as_of = other.locator(".as-of time")
    assert stands(as_of) in own(as_of)


def test_the_switch_is_in_the_menu_of_a_narrow_page(away: Page, company: Any) -> None:
    away.set_viewport_size({"width": 390, "height": 760})
    away.goto(MIRROR)
    away.get_by_text("Menu").click()
    switch(away).click()
    expect(away.locator(".as-of")).to_contain_text("your time")


# Keys


def test_keys_go_from_row_to_row_and_open_one(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    names = olga.locator("tbody .name a").all_inner_texts()
    for key, name in (("j", names[0]), ("j", names[1]), ("j", names[2]), ("k", names[1])):
        olga.keyboard.press(key)
        expect(olga.get_by_role("link", name=name)).to_be_focused()
    olga.keyboard.press("Enter")
    expect(olga.get_by_role("heading", level=1)).to_have_text(names[1])


def test_keys_open_branches_and_choose_what_is_missing(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    olga.keyboard.press("j")
    olga.keyboard.press("Enter")
    expect(olga.locator("tr.inside")).to_have_count(1)
    olga.goto(f"{MIRROR}backlog/?kind=object&reason=missing")
    olga.keyboard.press("k")
    posts: list[str] = []
    olga.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    olga.locator(".pick input").first.focus()
    olga.keyboard.press("Enter")
    expect(olga.locator(".pick input").first).to_be_checked()
    olga.keyboard.press("j")
    expect(olga.locator(".pick input").nth(1)).to_be_focused()
    assert posts == []


def test_a_slash_goes_to_the_search_and_what_is_typed_there_is_no_key(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    olga.keyboard.press("/")
    field = olga.get_by_label("Name of the mirror")
    expect(field).to_be_focused()
    olga.keyboard.type("j/k?")
    expect(field).to_have_value("j/k?")
    expect(olga.get_by_role("dialog")).to_have_count(0)
    olga.keyboard.press("Enter")
    expect(olga.get_by_text("No mirrors match these filters")).to_be_visible()


def test_on_a_page_without_a_search_of_its_own_a_slash_goes_to_the_one_above_all(olga: Page, company: Any) -> None:
    olga.goto("/installations/")
    olga.keyboard.press("/")
    expect(olga.locator("#search")).to_be_focused()
    olga.set_viewport_size({"width": 390, "height": 760})
    olga.goto("/installations/")
    olga.keyboard.press("/")
    expect(olga.locator("#search-narrow")).to_be_focused()


def test_the_tab_counts_what_needs_somebody(olga: Page, company: Any) -> None:
    olga.goto("/")
    expect(olga).to_have_title("(3) Overview · LakeMirror")
    Mirror.objects.filter(name="archive-eu").delete()
    olga.evaluate("refresh()")
    expect(olga).to_have_title("(2) Overview · LakeMirror")
    assert "alarm" in (olga.locator("link[rel=icon]").get_attribute("href") or "")


def test_a_question_mark_shows_the_keys_and_they_can_be_turned_off(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    olga.keyboard.press("?")
    dialog = olga.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    olga.keyboard.press("j")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    dialog.get_by_label("Use single-key shortcuts").uncheck()
    olga.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    olga.keyboard.press("/")
    olga.reload()
    olga.keyboard.press("/")
    expect(olga.get_by_label("Name of the mirror")).not_to_be_focused()
    olga.locator(".menu summary").click()
    olga.get_by_role("button", name="Keyboard shortcuts").click()
    expect(dialog.get_by_label("Use single-key shortcuts")).not_to_be_checked()


def test_no_key_changes_anything(olga: Page, company: Any) -> None:
    """All that a page may do to a mirror is asked for by POST: no single key sends one."""
    posts: list[str] = []
    olga.on("request", lambda request: posts.append(request.url) if request.method != "GET" else None)
    for address in ("/mirrors/", MIRROR, f"{MIRROR}backlog/", "/jobs/"):
        olga.goto(address)
        for key in "abcdefghijklmnopqrstuvwxyz0123456789./":
            olga.keyboard.press(key)
    assert posts == []


def test_charts_turn_to_ones_own_zone_and_name_it(away: Page, company: Any) -> None:
    make_measures(company["analytics-eu"], now=datetime.now(UTC), days=2)
    away.goto("/mirrors/analytics-eu/metrics/")
    mark = away.locator("#plot-lag tspan[data-form='hour']").first
    before = mark.text_content()
    switch(away).click()
    at = datetime.fromisoformat(str(mark.get_attribute("data-at")))
    assert (before, mark.text_content()) == (f"{at:%H:%M}", f"{at + AHEAD:%H:%M}")
    expect(away.locator(".times")).to_contain_text("Times in your time (Asia/")
    peak = away.locator("#plot-lag figcaption time")
    at = datetime.fromisoformat(str(peak.get_attribute("datetime")))
    expect(peak).to_have_text(f"{at + AHEAD:%H:%M}")
