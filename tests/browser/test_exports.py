"""The buttons of exports, clicked: each says so at once, and what follows stands on the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from db import clock
from exports.models import Export
from tests.exports.test_pages import HEAD, a_run, an_export, failed
from tests.exports.test_watching import failures
from tests.mirrors.harness import deployment

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_failed_export_is_looked_at_limited_repaired_and_paused(olga: Page) -> None:
    with deployment():
        export = failed()
        failures(export.runs.get(), 80)
        olga.goto("/")
        expect(olga.locator(".needs")).to_contain_text("12 tasks failed")
        olga.get_by_role("link", name="analytics · failing").click()
        notices, table = olga.locator("#notices"), olga.get_by_role("table", name="Files that failed")
        expect(olga.get_by_role("list", name="Steps of this run").get_by_role("listitem")).to_have_count(6)
        olga.get_by_role("link", name="Missing at the source").click()
        expect(table).to_contain_text("part-00003")
        expect(table).not_to_contain_text("Access denied")
        olga.get_by_role("link", name="All reasons").click()
        olga.get_by_role("link", name="Next files").click()
        expect(table.get_by_role("row")).to_have_count(21)
        olga.get_by_text("Speed limits").click()
        olga.get_by_label("Objects per second").fill("many")
        olga.get_by_role("button", name="Save limits").click()
        expect(notices).to_contain_text("'many' is not a whole number")
        olga.get_by_label("Objects per second").fill("250")
        olga.get_by_role("button", name="Save limits").click()
        expect(notices).to_contain_text("Saved")
        expect(olga.locator("main")).not_to_contain_text("at most 250 objects/s")  # it waits for its repair
        olga.get_by_role("button", name="Repair").click()
        expect(notices).to_contain_text("the export restarts")
        expect(olga.locator("h1 + .state")).to_have_text("Exporting")
        expect(olga.locator(".tiles")).to_contain_text("at most 250 objects/s")
        expect(olga.get_by_role("button", name="Repair")).to_have_count(0)
        olga.get_by_role("button", name="Pause").click()
        expect(olga.locator("h1 + .state")).to_have_text("Paused")
        olga.get_by_role("button", name="Resume").click()
        expect(olga.locator("h1 + .state")).to_have_text("Exporting")


def test_the_list_is_searched_and_several_are_changed_also_without_scripts(olga: Page, plain: Page) -> None:
    failed()
    an_export("other")
    olga.goto("/exports/")
    olga.get_by_label("Select all on this page").check()
    olga.locator("#change").get_by_role("button", name="Pause").click()
    expect(olga.locator("#notices")).to_contain_text("Paused: analytics · failing, analytics · other.")
    expect(olga.locator("tbody", has_text="other").locator(".state")).to_have_text("Paused")
    plain.goto("/exports/?find=other")
    plain.get_by_role("button", name="Resume: analytics other").click()
    expect(plain.locator(".state")).to_have_text("New")
    plain.get_by_role("link", name="Remove the filter Holds: other").click()
    plain.get_by_role("button", name="Repair: analytics failing").click()
    expect(plain.locator("tbody", has_text="failing").locator(".state")).to_have_text("Paused")
    plain.get_by_role("link", name="analytics · failing").click()
    plain.get_by_text("Speed limits").click()
    plain.get_by_label("Bytes per second").fill("1,000")
    plain.get_by_role("button", name="Save limits").click()
    expect(plain.locator(".notice")).to_contain_text("Saved")
    assert Export.objects.get(branch="failing").bytes_per_second == 1000


def test_a_run_that_ends_is_seen_without_asking(olga: Page) -> None:
    export = an_export(state="in-progress")
    run = a_run(export, phase="copy", to_copy=100, copied=50)
    olga.goto(f"/exports/{export.pk}/")
    expect(olga.get_by_role("progressbar", name="Files exported")).to_be_visible()
    run.phase, run.outcome, run.ended_at = "done", "exported-successfully", clock.now()
    run.save()
    done = {"state": "exported-successfully", "last_success_ref": HEAD, "path_at_success": export.path}
    Export.objects.update(**done, succeeded_at=clock.now(), head_at=clock.now())
    expect(olga.locator("h1 + .state")).to_have_text("Exported")
    expect(olga.get_by_role("progressbar", name="Files exported")).to_have_count(0)
