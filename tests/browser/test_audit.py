"""Who did what, looked for as people do."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from audit import refusals, rounds
from rbac import services
from rbac.models import User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_events_are_found_by_clicking_and_by_typing(olga: Page, teammate: User) -> None:
    services.audit(
        actor="ann", right=("fs:MirrorRepository", "arn:lakefs:fs:::repository/lake"), verb="change", reason="too dear"
    )
    refusals.refused(teammate, "fs:DeleteRepository", "arn:lakefs:fs:::repository/lake-eu")
    rounds.look_round()
    olga.goto("/")
    olga.get_by_role("navigation", name="Pages").get_by_role("link", name="Audit").click()
    rows = olga.locator("table.audit tbody tr[id^=event]")
    expect(olga.get_by_text("Audit chain verified up to event")).to_be_visible()
    everything = rows.count()
    olga.get_by_label("Refused only").check()
    olga.get_by_role("button", name="Search").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("fs:DeleteRepository")
    olga.get_by_role("link", name="Remove the filter refused").click()
    expect(rows).to_have_count(everything)
    rows.get_by_role("link", name="ann", exact=True).click()
    expect(rows).to_contain_text("reason: too dear")
    olga.get_by_label("Text").fill("no such thing")
    olga.get_by_role("button", name="Search").click()
    expect(olga.get_by_text("No events match")).to_be_visible()
    olga.set_viewport_size({"width": 390, "height": 760})
    olga.goto("/audit/")
    assert olga.evaluate("document.documentElement.scrollWidth <= innerWidth")
