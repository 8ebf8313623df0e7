"""Help from the pages that it explains, and the order of what a header offers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mirrors.models import Mirror
from tests.mirrors.factories import make_company

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MIRROR = "/mirrors/analytics-eu/"


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


def test_help_opens_the_part_for_the_page_and_is_searched(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}backlog/")
    olga.get_by_role("banner").get_by_role("link", name="Help").click()
    expect(olga).to_have_url(re.compile(r"/help/guide/troubleshooting/#what-a-commit-lacks$"))
    expect(olga.locator("#what-a-commit-lacks")).to_be_in_viewport()
    olga.get_by_role("main").get_by_label("Search help").fill("failed over")
    olga.keyboard.press("Enter")
    olga.get_by_role("main").locator(".hits a").first.click()
    expect(olga.get_by_role("heading", level=1)).to_be_visible()
    olga.set_viewport_size({"width": 390, "height": 760})
    for address in ("/help/", "/help/guide/concepts/", "/help/guide/troubleshooting/", "/help/deploy/", "/help/pages/"):
        olga.goto(address)
        assert olga.evaluate("document.documentElement.scrollWidth") <= 390, address


def test_the_user_menu_comes_after_the_navigation(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    reached = []
    for _ in range(20):
        olga.keyboard.press("Tab")
        reached.append(olga.evaluate("document.activeElement.innerText.trim() || document.activeElement.id"))
        if reached[-1].startswith("olga"):
            break
    assert reached[0] == "Skip to content" and reached[-1] == "olga"
    assert [reached.index(one) for one in ("Overview", "Mirrors", "search", "Help", "olga")] == sorted(
        reached.index(one) for one in ("Overview", "Mirrors", "search", "Help", "olga")
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_delete_is_never_the_first_action(olga: Page, company: Any, width: int) -> None:
    olga.set_viewport_size({"width": width, "height": 760})
    olga.goto(MIRROR)
    actions = olga.locator("main .head .actions .button:visible")
    expect(actions.last).to_have_text("Delete…")
    boxes = {one.inner_text(): one.bounding_box() for one in actions.all()}
    first = min(boxes, key=lambda name: (boxes[name]["y"], boxes[name]["x"]))  # type: ignore[index]
    assert first != "Delete…"
    if width == 390:
        assert "primary" in str(actions.filter(has_text=first).get_attribute("class"))
