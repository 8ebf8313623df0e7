"""What people do most, by the keyboard alone: every control is reached by Tab and answers to Enter or Space."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mirrors.models import Mirror
from tests.exports.test_pages import failed as a_failed_export
from tests.mirrors.factories import make_company

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MIRROR = "/mirrors/analytics-eu/"
FOCUSED = """() => { const one = document.activeElement
    return [one.innerText, one.id, one.getAttribute('aria-label')].map(text => (text || '').trim()) }"""


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


def reach(page: Page, name: str) -> None:
    """Press Tab until what has that text, id or label is focused, visibly."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if name in page.evaluate(FOCUSED):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", name
            return
    pytest.fail(f"{name} is not reached by Tab")


def press(page: Page, name: str, key: str = "Enter") -> None:
    reach(page, name)
    page.keyboard.press(key)


def test_a_mirror_is_found_and_opened(olga: Page, company: Any) -> None:
    olga.goto("/")
    olga.keyboard.press("/")
    olga.keyboard.type("analytics-e")
    olga.keyboard.press("Enter")
    olga.wait_for_url("**/search/?q=analytics-e")
    press(olga, "analytics-eu")
    expect(olga.get_by_role("heading", level=1)).to_have_text("analytics-eu")


def test_a_mirror_is_paused(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    press(olga, "Pause")
    expect(olga.locator("#notices")).to_contain_text("ause")
    assert Mirror.objects.get(name="analytics-eu").paused


def test_what_blocks_a_mirror_is_opened_and_help_with_it(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    press(olga, "Help: what this means and what to do")
    olga.wait_for_url("**/help/guide/troubleshooting/#*")
    reach(olga, "help-q")
    olga.keyboard.type("replication rule")
    olga.keyboard.press("Enter")
    expect(olga.locator(".hits li").first).to_be_visible()


def test_a_mirror_is_deleted_by_its_typed_name(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/models-eu/")
    press(olga, "Delete…")
    olga.wait_for_url("**/delete/")
    name = str(olga.locator("main form input:visible").first.get_attribute("id"))
    reach(olga, name)
    olga.keyboard.type("models-eu")
    olga.keyboard.press("Enter")
    olga.wait_for_url("**/mirrors/")
    assert not Mirror.objects.exclude(state=Mirror.State.DELETING).filter(name="models-eu").exists()


def test_an_export_that_failed_is_repaired(olga: Page, company: Any) -> None:
    export = a_failed_export()
    olga.goto(f"/exports/{export.pk}/")
    press(olga, "Repair")
    expect(olga.locator("#notices .notice")).to_be_visible()
    export.refresh_from_db()
    assert export.state != "export-failed"
