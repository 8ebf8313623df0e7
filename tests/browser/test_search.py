"""What people type into the box of the header."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mirrors.models import Mirror
from tests.mirrors.factories import make_company

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


def test_the_box_of_the_header_leads_to_what_was_found(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    box = olga.get_by_role("banner").get_by_role("searchbox", name="Search everything")
    box.fill("orders/")
    box.press("Enter")
    expect(olga.locator("#missing li")).to_have_count(2)
    olga.locator("#missing").get_by_role("link", name="analytics-eu").click()
    expect(olga.get_by_label("Path begins with")).to_have_value("orders/")
    expect(olga.locator("table.things tbody tr")).to_have_count(3)


def test_a_whole_id_is_opened_and_a_part_is_chosen_from(olga: Page, company: Any) -> None:
    sha = company["models-eu"].commits.values_list("commit__sha", flat=True)[0]
    olga.goto("/")
    box = olga.get_by_role("banner").get_by_role("searchbox")
    box.fill(sha)
    box.press("Enter")
    expect(olga).to_have_url(re.compile(f"/commits/{sha}/$"))
    olga.locator("main").get_by_role("link", name="models-eu").click()
    expect(olga).to_have_url(re.compile(f"/mirrors/models-eu/commits/{sha}/$"))
    box.fill(sha[:9])
    box.press("Enter")
    expect(olga.get_by_label("Search for")).to_have_value(sha[:9])
    olga.locator("#commits").get_by_role("link", name="models-eu").click()
    expect(olga).to_have_url(re.compile(f"/mirrors/models-eu/commits/{sha}/$"))


def test_on_a_narrow_screen_the_box_is_in_the_menu(olga: Page, company: Any) -> None:
    olga.set_viewport_size({"width": 390, "height": 760})
    olga.goto("/")
    olga.locator("summary").first.click()
    box = olga.get_by_role("banner").get_by_role("searchbox")
    box.fill("features")
    box.press("Enter")
    olga.locator("#branches").get_by_role("link", name="analytics-eu").click()
    expect(olga.locator("table.branches")).to_contain_text("features_v2")
