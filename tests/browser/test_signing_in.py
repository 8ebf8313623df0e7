"""Sessions and passwords, as people click."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

NEW = "a wholly new secret"


def test_another_browser_is_signed_out_and_the_password_is_changed(page: Page, owner: Any) -> None:
    other = Client(headers={"user-agent": "Mozilla/5.0 (Windows NT 10.0) Firefox/140.0"})
    other.post("/login/", {"username": "olga", "password": PASSWORD})
    sign_in(page, "olga")
    page.locator(".menu summary").click()
    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("row")).to_have_count(3)
    page.get_by_role("button", name="End the session of Firefox on Windows").click()
    expect(page.locator(".notice")).to_contain_text("Session ended")
    expect(page.get_by_role("row")).to_have_count(2)
    assert other.get("/account/sessions/").status_code == 302

    page.get_by_role("main").get_by_role("link", name="Change password").click()
    for label, text in (("Old password", "wrong"), ("New password", NEW), ("Repeat password", NEW)):
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_role("alert")).to_contain_text("That is not your password")
    for label, text in (("Old password", PASSWORD), ("New password", NEW), ("Repeat password", NEW)):
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Change password").click()
    expect(page.locator(".notice")).to_contain_text("Password changed")
    page.get_by_role("button", name="Sign out here").click()
    sign_in(page, "olga", NEW)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
