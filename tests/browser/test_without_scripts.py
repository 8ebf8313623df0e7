"""Everything that people do, in a browser that runs no scripts: a form, a redirect, and the page says what was done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, Response, expect

from jobs.models import Duty
from mirrors.models import Blocker, Mirror, MirrorBranch, Validation
from tests.mirrors.factories import fail, make_company
from tests.mirrors.harness import Deployment, deployment

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MIRROR = "/mirrors/analytics-eu/"


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.fixture(autouse=True)
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


@pytest.fixture(autouse=True)
def answers(plain: Page) -> list[tuple[str, int]]:
    """What each form was answered with."""
    found: list[tuple[str, int]] = []

    def note(answer: Response) -> None:
        if answer.request.method == "POST":
            found.append((answer.url, answer.status))

    plain.on("response", note)
    return found


def press(page: Page, name: str, told: str) -> None:
    """Press a button; the page that comes says what was done."""
    page.get_by_role("button", name=name, exact=True).first.click()
    expect(page.get_by_role("status")).to_contain_text(told)


def redirected(answers: list[tuple[str, int]]) -> bool:
    """Whether every form led to a page of its own, which a reload doesn't send again."""
    return bool(answers) and {status for _, status in answers} == {302}


def test_the_list_is_filtered_and_several_mirrors_are_changed(plain: Page, company: Any, answers: Any) -> None:
    plain.goto("/mirrors/")
    plain.get_by_label("Name of the mirror").fill("-eu")
    plain.get_by_label("Order", exact=True).select_option("name")
    plain.get_by_role("button", name="Show").click()
    here = plain.url
    verbs = {"Pause": "paused", "Resume": "resumed", "Sync now": "Syncing", "Validate": "validated again"}
    for name, told in verbs.items():
        plain.get_by_role("checkbox", name="Select models-eu").check()
        plain.get_by_role("checkbox", name="Select orders-eu").check()
        press(plain, name, told)
        expect(plain).to_have_url(here)
        assert Mirror.objects.filter(paused=True, name__endswith="-eu").count() == (2 if name == "Pause" else 0)
    press(plain, "Pause", "Select at least one mirror")
    plain.get_by_role("link", name="Remove the filter Name holds: -eu").click()
    expect(plain.locator("table.mirrors tbody")).to_have_count(len(company))
    assert redirected(answers)


def test_a_mirror_is_looked_at_checked_paused_and_resumed(plain: Page, company: Any, answers: Any) -> None:
    plain.goto(f"{MIRROR}commits/?branch=main")
    for name, told in (("Sync now", "are checked now"), ("Pause", "is paused"), ("Resume", "is resumed")):
        press(plain, name, told)
        expect(plain).to_have_url(f"{MIRROR}commits/?branch=main")
    press(plain, "Validate", "is validated again")
    expect(plain.get_by_role("row", name="All heads")).to_contain_text("Queued")
    assert Validation.objects.count() == 1
    assert redirected(answers)


def test_what_somebody_wrote_by_force_is_undone(plain: Page, company: Any, answers: Any) -> None:
    plain.goto("/mirrors/lab-eu/?branch=trial")
    press(plain, "Undo the uncommitted changes", "the uncommitted changes of trial are being undone")
    expect(plain).to_have_url("/mirrors/lab-eu/?branch=trial")
    assert MirrorBranch.objects.get(reset_asked=True).name == "trial"
    assert redirected(answers)


def test_what_needs_somebody_is_asked_for_on_the_overview(plain: Page, company: Any, answers: Any) -> None:
    plain.goto("/")
    plain.get_by_role("link", name="Repair… analytics-eu").click()
    press(plain, "Check again", "Checking")
    assert redirected(answers)


def test_a_mirror_is_checked_and_made(plain: Page, lm: Deployment, answers: Any) -> None:
    lm.lake.commit()
    plain.goto("/mirrors/new/")
    plain.get_by_label("Repository", exact=True).fill("lake")
    plain.get_by_label("Branches to leave out").fill("tmp-*")
    plain.get_by_role("button", name="Check").click()
    expect(plain.get_by_role("region", name="Checks")).to_contain_text("checks failed")
    expect(plain.locator("#matches")).to_contain_text("1 of 1 branch would be mirrored: main")
    expect(plain.get_by_label("Branches to leave out")).to_have_value("tmp-*")
    plain.get_by_label("Name of the mirror").fill("new")
    plain.get_by_label("Storage namespace").fill("s3://dst/lake")
    plain.get_by_role("button", name="Create mirror").click()
    expect(plain.get_by_role("alert")).to_contain_text("/mirrors/new/ is a page of LakeMirror's own")
    plain.get_by_label("Name of the mirror").fill("lake-eu")
    answers.clear()
    plain.get_by_role("button", name="Create mirror").click()
    expect(plain.get_by_role("alert")).to_contain_text("failed, so the mirror was not created")
    answers.clear()
    press(plain, "Create anyway", "Mirror lake-eu created")
    assert redirected(answers)


def test_settings_are_saved_once_it_is_said_what_becomes_of_branches(plain: Page, company: Any, answers: Any) -> None:
    plain.goto(f"{MIRROR}settings/")
    plain.get_by_label("Branches to leave out").fill("experiments")
    plain.get_by_label("Lag target, in seconds").fill("900")
    plain.get_by_role("button", name="Save").click()
    expect(plain.get_by_role("alert")).to_contain_text("1 branch would no longer be mirrored")
    plain.get_by_label("Branches no longer selected").select_option("keep")
    answers.clear()
    press(plain, "Save", "Settings saved")
    expect(plain.get_by_label("Lag target, in seconds")).to_have_value("900")
    assert redirected(answers)


def test_the_backlog_is_chosen_from_and_retried(plain: Page, company: Any, answers: Any) -> None:
    plain.goto(f"{MIRROR}backlog/")
    plain.get_by_label("Path begins with").fill("orders/")
    plain.get_by_role("button", name="Show").click()
    plain.get_by_role("region", name="By reason").get_by_role("link").first.click()
    here = plain.url
    assert "prefix=orders" in here and "reason=" in here
    thing = Blocker.objects.get(path__endswith="part-00018.parquet")
    press(plain, f"Retry {thing.path}", "Checking 1 object again now.")
    plain.get_by_role("checkbox", name="part-00017.parquet").check()
    press(plain, "Retry selected", "Checking 1 object again now.")
    for name in ("Retry all of this reason", "Retry all"):
        press(plain, name, "Checking 3 objects again now.")
        expect(plain).to_have_url(here)
    assert redirected(answers)


def test_a_commit_is_put_first_and_what_it_lacks_retried(plain: Page, company: Any, answers: Any) -> None:
    plain.goto(MIRROR)
    plain.locator(".state-cell").get_by_role("link").first.click()
    press(plain, "Retry now", "Checking 3 objects again now.")
    press(plain, "Prioritise", "are copied and validated first")
    expect(plain.locator(".actions")).to_have_text(re.compile("Prioriti[sz]ed"))
    assert redirected(answers)


def test_a_duty_is_done_now(plain: Page, company: Any, answers: Any) -> None:
    duty = fail("copy", company["lab-eu"].pk, "no answer", now=datetime.now(UTC) + timedelta(minutes=5))
    plain.goto("/jobs/")
    plain.get_by_label("Mirror, export or rule").fill("lab")
    plain.get_by_role("button", name="Show").click()
    here = plain.url
    press(plain, "Run now: Copy commits, lab-eu", "Queued: Copy commits.")
    expect(plain).to_have_url(here)
    assert Duty.objects.get(pk=duty.pk).due_at < duty.due_at
    assert redirected(answers)


def test_a_mirror_is_deleted_by_its_name(plain: Page, company: Any, answers: Any) -> None:
    plain.goto("/mirrors/models-eu/")
    plain.get_by_role("link", name="Delete").click()
    plain.get_by_label("Type the mirror's name").fill("models-eu")
    press(plain, "Delete mirror", "models-eu is being deleted")
    expect(plain.get_by_role("link", name="models-eu")).to_have_count(0)
    assert redirected(answers)


def test_nothing_is_offered_that_only_scripts_can_do(plain: Page, company: Any) -> None:
    for address in ("/", "/mirrors/", MIRROR, f"{MIRROR}settings/", "/jobs/", "/mirrors/new/"):
        plain.goto(address)
        expect(plain.locator(":is([data-zone], [data-keys], .copy, [data-all]):visible")).to_have_count(0)
        expect(plain.get_by_role("banner")).to_contain_text("UTC")
