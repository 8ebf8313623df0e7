"""Making an export in a browser: everything is said while one types, and what writes is tried when a field is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect

from exports.models import Export
from rbac.models import User
from tests.browser.test_accessibility import violations
from tests.exports.world import World, world
from tests.mirrors.harness import deployment
from tests.s3_double import running_moto

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def w(owner: User) -> Iterator[World]:
    """A branch with two days of logs, and an empty bucket `out`."""
    with running_moto() as endpoint, deployment() as lm:
        requests.post(f"{endpoint}/moto-api/reset", timeout=5)
        with world(lm, endpoint) as made:
            made.owner = owner
            made.lake.commit(files={f"logs/day=0{n}/part-1": b"12345" for n in (1, 2)} | {"top": b"1"})
            yield made


def field(page: Page, label: str) -> Any:
    return page.get_by_label(label, exact=True)


def test_an_export_is_made_while_everything_is_said(olga: Page, w: World) -> None:
    olga.goto("/exports/new/")
    checks, trial = olga.get_by_role("region", name="Checks"), olga.locator("#trial")
    expect(checks).to_contain_text("Nothing has been checked yet")
    field(olga, "Repository").fill("lake")
    field(olga, "Branch").fill("main")
    expect(trial).to_contain_text("0 of 4 directories")
    patterns = field(olga, "Directories with a success file")
    patterns.press_sequentially(r".*/day=(\d+")
    expect(trial).to_contain_text("missing ), at character 8")
    patterns.press_sequentially(")/")
    expect(trial).to_contain_text("2 of 4 directories would get a _lakefs_success: logs/day=01/, logs/day=02/.")
    expect(patterns).to_be_focused()
    path = field(olga, "Export path")
    path.press_sequentially("s3://src/lake/in")
    expect(checks).to_contain_text("own storage namespace s3://src/lake overlap")
    path.fill("s3://out/latest")
    expect(checks).to_contain_text("Write access is tested when you leave a field")
    assert w.there("") == {}
    field(olga, "Export every commit").focus()
    expect(checks).to_contain_text("Ready: ")
    expect(olga.get_by_role("region", name="What the first run would copy")).to_contain_text("Files3")
    olga.get_by_text("As API call").click()
    expect(olga.locator("#api-call")).to_contain_text("--path s3://out/latest --continuous --prefix-regex")
    assert w.there("") == {}
    assert violations(olga) == []
    olga.get_by_role("button", name="Export", exact=True).click()
    expect(olga.get_by_role("heading", level=1)).to_contain_text("s3://out/latest")
    olga.goto(f"/exports/{Export.objects.get().pk}/edit/")
    field(olga, "Export path").fill("s3://out/other")
    expect(olga.get_by_role("region", name="What the first run would copy")).to_contain_text("Everything")
    expect(olga.get_by_role("region", name="What this change will do")).to_contain_text("Everything is exported again")


def test_a_missing_bucket_is_told_made_and_repaired_by_five_clicks(olga: Page, w: World) -> None:
    state = olga.locator("h1 + .state")
    olga.goto("/exports/")
    olga.get_by_role("link", name="New export").click()
    field(olga, "Repository").fill("lake")
    field(olga, "Branch").fill("main")
    field(olga, "Export path").fill("s3://absent/latest")
    field(olga, "Status path").fill("s3://absent/states")
    field(olga, "Directories with a success file").fill(r".*/day=\d+/")
    expect(olga.get_by_role("region", name="Checks")).to_contain_text("There is no bucket absent")
    olga.get_by_role("button", name="Export", exact=True).click()
    expect(olga.get_by_role("alert")).to_contain_text("failed, so the export was not created")
    olga.get_by_role("button", name="Export anyway").click()
    expect(state).to_have_text("New")
    w.work(2)
    expect(state).to_have_text("Failed")
    expect(olga.locator("p.sentence")).to_contain_text("bucket 'absent' does not exist. Create it, then click Repair")
    expect(olga.get_by_role("region", name="Status file")).to_contain_text("It could not be written.")
    w.client.create_bucket(Bucket="absent")
    olga.get_by_role("button", name="Repair").click()
    expect(state).to_have_text("Exporting")
    told = []
    for _ in range(4):
        w.work(1)
        found = w.client.list_objects_v2(Bucket="absent", Prefix="states/lake-main-")["Contents"]
        told.append(w.client.get_object(Bucket="absent", Key=found[0]["Key"])["Body"].read().decode().split(",")[0])
    assert (told[0], told[-1]) == ("status: export-repaired", "status: exported-successfully")
    expect(state).to_have_text("Exported")
    markers = w.client.list_objects_v2(Bucket="absent", Prefix="latest/logs/")["Contents"]
    assert [one["Key"].removeprefix("latest/logs/") for one in markers if one["Size"] == 0] == [
        f"day=0{n}/_lakefs_success" for n in (1, 2)
    ]
