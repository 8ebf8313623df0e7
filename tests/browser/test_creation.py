"""Making a mirror in a browser: what one types is checked as one types it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.types import ReplicationRule
from mirrors.models import Mirror
from tests.mirrors.harness import Deployment, deployment

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

NEW = "/mirrors/new/"


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """Two regions between which everything is in order, and no mirror yet."""
    with deployment() as made:
        made.lake.commit()
        made.lake.repository.branches["tmp-1"] = made.lake.repository.branches["main"]
        made.us_store.bucket_versioning["src"] = made.eu_store.bucket_versioning["dst"] = "Enabled"
        made.us_store.rules["src"] = [ReplicationRule("to-eu", True, "", "dst")]
        yield made


def field(page: Page, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def checks(page: Page) -> Any:
    return page.get_by_role("region", name="Checks")


def test_a_namespace_that_overlaps_is_said_with_its_fix_while_one_types(olga: Page, lm: Deployment) -> None:
    olga.goto(NEW)
    expect(checks(olga)).to_contain_text("Nothing has been checked yet")
    field(olga, "Repository").fill("lake")
    field(olga, "Name of the mirror").fill("lake-eu")
    namespace = field(olga, "Storage namespace")
    namespace.press_sequentially("s3://src/lake/in")
    expect(checks(olga)).to_contain_text("overlaps the source's s3://src/lake")
    expect(checks(olga)).to_contain_text("Choose a namespace of its own for the mirror")
    expect(namespace).to_be_focused()
    olga.locator("#checks-good summary").click()
    namespace.fill("s3://dst/lake")
    expect(checks(olga)).to_contain_text("Ready: ")
    expect(olga.locator("#checks-good")).to_have_attribute("open", "")
    expect(namespace).to_have_value("s3://dst/lake")


def test_the_manifest_of_what_was_there_before_is_saved_from_beside_its_check(olga: Page, lm: Deployment) -> None:
    olga.goto(NEW)
    field(olga, "Repository").fill("lake")
    field(olga, "Name of the mirror").fill("lake-eu")
    field(olga, "Storage namespace").fill("s3://dst/lake")
    with olga.expect_download() as saved:
        checks(olga).get_by_role("button", name="Download the manifest").click()
    assert saved.value.suggested_filename == "lake-eu-manifest.csv"
    assert len(saved.value.path().read_text().splitlines()) == len(lm.us_store.objects)
    expect(olga).to_have_url(NEW)


def test_the_branches_that_globs_match_are_named_while_one_types(olga: Page, lm: Deployment) -> None:
    olga.goto(NEW)
    field(olga, "Repository").fill("lake")
    expect(olga.locator("#matches")).to_contain_text("2 of 2 branches would be mirrored: main, tmp-1.")
    field(olga, "Branches to leave out").press_sequentially("tmp-*")
    expect(olga.locator("#matches")).to_contain_text("1 of 2 branches would be mirrored: main.")
    expect(olga.locator("#matches")).to_contain_text("Left out: tmp-1.")
    field(olga, "Branches to mirror").press_sequentially("release-*")
    expect(olga.locator("#matches")).to_contain_text("include: 'release-*' matches no branch now")
    expect(field(olga, "Branches to mirror")).to_be_focused()


def test_the_cost_follows_what_is_typed(olga: Page, lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1", "b": b"22"})
    olga.goto(NEW)
    cost = olga.get_by_role("region", name="What this mirror would cost")
    expect(cost).to_contain_text("Counted once the repository is entered")
    field(olga, "Repository").fill("lake")
    expect(cost).to_contain_text("2 heads of 2 branches, all of them read")
    field(olga, "Branches to leave out").fill("tmp-*")
    expect(cost).to_contain_text("1 head of 1 branch, all of them read")


def test_the_call_follows_what_is_typed_and_creating_ends_on_the_mirrors_page(olga: Page, lm: Deployment) -> None:
    olga.goto(NEW)
    olga.get_by_text("As API call").click()
    field(olga, "Repository").fill("lake")
    field(olga, "Name of the mirror").fill("lake-eu")
    field(olga, "Storage namespace").fill("s3://dst/lake")
    expect(olga.locator("#api-call")).to_contain_text('"storage_namespace": "s3://dst/lake"')
    olga.get_by_role("button", name="Copy the call").click()
    assert "repositories/lake/mirrors" in olga.evaluate("navigator.clipboard.readText()")
    olga.get_by_role("button", name="Check").click()
    expect(checks(olga)).to_contain_text("Ready: ")
    assert not Mirror.objects.exists()
    olga.get_by_role("button", name="Create mirror").click()
    expect(olga.get_by_role("heading", level=1)).to_have_text("lake-eu")
    expect(olga).to_have_url("/mirrors/lake-eu/")
