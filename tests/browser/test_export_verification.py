"""A destination is verified by a click, what drifted is read on the page, and repaired after a question."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from db import clock
from exports.models import ExportVerification
from tests.exports.test_pages import a_run, an_export
from tests.exports.test_verification import DONE, drifted

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_verify_is_one_click_and_drift_is_told(olga: Page) -> None:
    export = an_export(**DONE)
    a_run(export, phase="done", outcome="exported-successfully", ended_at=clock.now())
    olga.goto(f"/exports/{export.pk}/")
    olga.get_by_role("button", name="Verify").click()
    expect(olga.locator("#notices")).to_contain_text("Queued: verification of the destination")
    expect(olga.locator(".tiles")).to_contain_text("verifying")
    expect(olga.get_by_role("button", name="Verify")).to_have_count(0)
    ExportVerification.objects.all().delete()
    drifted(export)
    expect(olga.locator(".tiles")).to_contain_text("3 drifted")
    section = olga.get_by_role("region", name="Destination proven")
    expect(section.get_by_role("row")).to_have_count(4)
    expect(section.get_by_role("link", name="All as CSV")).to_have_attribute(
        "href", "/api/v1/repositories/analytics/branches/main/export-drift?format=csv&region=us-east-1"
    )


def test_drift_is_repaired_after_a_question(olga: Page) -> None:
    export = an_export(**DONE)
    a_run(export, phase="done", outcome="exported-successfully", ended_at=clock.now())
    drifted(export)
    olga.goto("/exports/")
    olga.get_by_role("link", name="Repair drift: analytics main").click()
    expect(olga.get_by_role("heading", level=1)).to_have_text("Repair the drift of main?")
    expect(olga.locator("form.card")).to_contain_text("1 missing file: copied again.")
    olga.get_by_label("Remove foreign files that this export wrote").check()
    olga.get_by_role("button", name="Repair drift").click()
    expect(olga.locator("#notices")).to_contain_text("drifted files are copied again")
    expect(olga.locator("h1 + .state")).to_have_text("Repairing")
    assert export.runs.latest("pk").repairs_id
    olga.goto(f"/exports/{export.pk}/edit/")
    expect(olga.get_by_label("Manifest")).to_have_value("daily")
    expect(olga.get_by_label("Also files below _lakefs_actions/")).not_to_be_checked()
