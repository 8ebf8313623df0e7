"""An administrator makes a user, a key and a policy; the user's rights follow, and a 403 page says why."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from rbac import services
from tests.browser.conftest import sign_in
from tests.browser.test_accessibility import violations
from tests.mirrors.factories import make_company

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PASSWORD = "correct horse battery staple"


@pytest.fixture
def company() -> Any:
    return make_company()


def make_ann(page: Page) -> None:
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Access").click()
    page.get_by_role("link", name="New user").click()
    page.get_by_label("Name", exact=True).fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Viewers").check()
    page.get_by_role("button", name="Create user").click()
    expect(page.get_by_role("status")).to_contain_text("Created user ann")


def make_her_key(page: Page) -> None:
    page.get_by_role("link", name="Create access key").click()
    page.get_by_label("Purpose").fill("nightly")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("alert")).to_contain_text("Copy the secret now")
    page.get_by_role("button", name="Copy the secret").click()
    secret = page.get_by_label("Secret", exact=True).inner_text()
    expect(page.locator(".copied")).to_have_count(1)
    assert page.evaluate("navigator.clipboard.readText()") == secret
    assert violations(page) == []
    page.get_by_role("link", name="Done").click()
    expect(page.locator("main")).not_to_contain_text(secret)


def make_a_policy(page: Page) -> None:
    page.get_by_role("link", name="Policies", exact=True).click()
    page.get_by_role("link", name="New policy").click()
    page.get_by_role("link", name="Use the template Mirror administrator").click()
    page.get_by_label("Resources").nth(1).fill("arn:lakefs:fs:::repository/analytics*")
    page.get_by_role("button", name="Review").click()
    expect(page.locator("#review")).to_contain_text("Pause and resume a mirror")
    assert violations(page) == []
    page.get_by_role("button", name="Create policy").click()
    expect(page.get_by_role("status")).to_contain_text("Created MirrorAdministrators")


def test_a_user_a_key_and_a_policy_are_made_and_rights_follow(olga: Page, company: Any) -> None:
    olga.goto("/")
    make_ann(olga)
    make_her_key(olga)
    make_a_policy(olga)
    olga.goto("/access/users/ann/")
    olga.get_by_label("Policy to attach").select_option("MirrorAdministrators")
    olga.get_by_role("button", name="Attach policy").click()
    expect(olga.locator("table.statements")).to_contain_text("arn:lakefs:fs:::repository/analytics*")
    ann = services.user_find("ann")
    assert services.allowed(ann, "fs:MirrorRepository", "arn:lakefs:fs:::repository/analytics")
    olga.context.clear_cookies()
    sign_in(olga, "ann", PASSWORD)
    olga.goto("/access/users/")
    expect(olga.get_by_role("heading", level=1)).to_have_text("Permission denied")
    expect(olga.locator("main")).to_contain_text(re.compile("None of your policies allows it.*olga", re.DOTALL))
    assert violations(olga) == []
