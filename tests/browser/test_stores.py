"""Stores without a lakeFS in a browser: two are added and tested, and a rule leads from one to the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from playwright.sync_api import Page, expect

from installations.models import Installation
from rbac.models import User
from tests.browser.test_accessibility import violations
from tests.fakes import takes_everything
from tests.mirrors.harness import deployment, forget_installations
from tests.replication.world import Store, World, world

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Stores(defaultdict[str, Store]):
    """One in memory for each name that anybody asks for."""

    def __init__(self, known: dict[str, Store]) -> None:
        super().__init__(Store, known)


@pytest.fixture
def w(owner: User) -> Iterator[World]:
    tried = mock.patch("replication.preflight.checks.probe", takes_everything)
    forget_installations()
    with deployment() as lm, world(lm) as made, tried:
        made.stores = Stores(made.stores)
        made.stores["landing"].put_plainly("src", "a", b"data")
        yield made
    forget_installations()


def field(page: Page, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def add(page: Page, name: str) -> None:
    """By the form, with the fields of lakeFS left empty."""
    page.goto("/installations/")
    page.get_by_role("link", name="Add an installation").click()
    field(page, "Region").fill(name)
    field(page, "Store endpoint").fill(f"http://{name}:9000")
    field(page, "Store access key id").fill(f"AKIA{name.upper()}")
    field(page, "Store secret access key").fill(f"secret-of-{name}")


def test_two_stores_are_added_and_a_rule_is_made_between_them(olga: Page, w: World) -> None:
    add(olga, "landing")
    tested = olga.locator("#tested")
    olga.get_by_role("button", name="Test", exact=True).click()
    expect(tested).to_contain_text("has no lakeFS whose repositories would give an address")
    field(olga, "Address to test the store with").fill("s3://src")
    olga.get_by_role("button", name="Test", exact=True).click()
    expect(tested).to_contain_text("The bucket src exists and can be listed")
    expect(tested).not_to_contain_text("lakeFS of landing")
    assert violations(olga) == []
    olga.get_by_role("button", name="Add", exact=True).click()
    expect(olga.get_by_role("main")).to_contain_text("none: a store for replication rules")
    assert violations(olga) == []
    add(olga, "archive")
    olga.get_by_role("button", name="Add", exact=True).click()
    expect(olga.locator("h1")).to_have_text("archive")
    assert set(Installation.objects.values_list("region", "lakefs_endpoint")) == {("landing", ""), ("archive", "")}
    olga.goto("/mirrors/new/")
    expect(olga.get_by_role("main")).not_to_contain_text("landing")
    olga.goto("/replication/new/")
    field(olga, "Name").fill("logs")
    field(olga, "Region of the source").select_option("landing")
    field(olga, "Source").fill("s3://src")
    field(olga, "Region of the target").select_option("archive")
    field(olga, "Target").fill("s3://out")
    field(olga, "Name").focus()
    expect(olga.get_by_role("region", name="Checks")).to_contain_text("Ready: ")
    olga.get_by_role("button", name="Create rule").click()
    expect(olga.locator("h1 + .state")).to_have_text("Comparing")
    w.work()
    assert w.there("archive") == {"a": b"data"}
    expect(olga.locator("h1 + .state")).to_have_text("Up to date")
