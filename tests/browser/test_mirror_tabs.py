"""What people click on a commit's page and on the parts of a mirror's page."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mirrors.models import Blocker, Commit, Mirror
from mirrors.services import settings
from tests.mirrors.factories import make_company, make_measures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MIRROR = "/mirrors/analytics-eu/"
PARTS = ["commits/", "backlog/", "runs/", "metrics/", "settings/", "audit/"]


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


def commit_page(message: str) -> str:
    return f"{MIRROR}commits/{Commit.objects.get(message=message).sha}/"


def tab(page: Page, word: str) -> Any:
    return page.get_by_role("navigation", name="Parts of this mirror").get_by_role("link", name=word)


def test_an_id_opens_its_commit(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    sha = Commit.objects.get(message="nightly orders load").sha
    olga.locator(".state-cell").get_by_role("link", name=sha[:8]).click()
    expect(olga).to_have_url(commit_page("nightly orders load"))
    expect(olga.get_by_role("heading", level=1)).to_contain_text("nightly orders load")
    expect(olga.locator(".ladder .blocked")).to_contain_text("3 objects missing")


def test_a_list_s_command_is_copied_with_its_filters(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}commits/?branch=main")
    olga.get_by_text("As API call, as command").click()
    olga.get_by_role("button", name="Copy the command").click()
    copied = olga.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("lakemirror mirror commits analytics-eu --branch main --repository analytics --url http")


def test_what_is_opened_stays_open_while_the_page_updates(olga: Page, company: Any) -> None:
    olga.goto(commit_page("nightly orders load"))
    olga.get_by_text("As API call").click()
    with olga.expect_response(lambda answer: answer.request.method == "GET"):
        olga.evaluate("htmx.trigger('#live', 'refresh')")
    expect(olga.locator("#live.htmx-request")).to_have_count(0)
    expect(olga.get_by_text("/prioritise")).to_be_visible()


def test_a_click_on_retry_is_answered_at_once_and_carried_out(olga: Page, company: Any) -> None:
    thing = Blocker.objects.get(path__endswith="part-00017.parquet")
    olga.goto(f"{MIRROR}backlog/")
    button = olga.locator(f"#blocker-{thing.pk} button[value='one-{thing.pk}']")
    button.click()
    expect(button).to_have_text("Queued")
    expect(olga.locator("#notices")).to_contain_text("Checking 1 object again now.")
    assert Blocker.objects.get(pk=thing.pk).look_at < thing.look_at
    assert Blocker.objects.exclude(pk=thing.pk).filter(look_at=thing.look_at).count() == 2


def test_a_repair_is_planned_in_place_outlives_a_poll_and_is_run(olga: Page, company: Any) -> None:
    olga.goto(commit_page("nightly orders load"))
    olga.get_by_role("link", name="Plan repair").click()
    plan = olga.get_by_role("region", name="Repair plan")
    expect(plan).to_contain_text("3 objects have not reached eu-west-1")
    with olga.expect_response(lambda answer: answer.request.method == "GET"):
        olga.evaluate("htmx.trigger('#live', 'refresh')")
    plan.get_by_role("button", name="Check again").click()
    expect(olga.locator("#notices")).to_contain_text("Checking 3 objects again now")
    expect(olga).to_have_url(commit_page("nightly orders load"))


def test_a_selection_outlives_a_poll_and_is_what_is_retried(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}backlog/")
    for part in ("part-00018.parquet", "part-00019.parquet"):
        olga.get_by_role("checkbox", name=part).check()
    with olga.expect_response(lambda answer: answer.request.method == "GET"):
        olga.evaluate("htmx.trigger('#live', 'refresh')")
    expect(olga.get_by_role("checkbox", name="part-00018.parquet")).to_be_checked()
    olga.get_by_role("button", name="Retry selected").click()
    expect(olga.locator("#notices")).to_contain_text("Checking 2 objects again now.")


def test_the_parts_follow_each_other_in_place_and_have_addresses(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}?branch=main")
    olga.evaluate("window.stays = true")
    tab(olga, "Backlog").click()
    expect(olga.get_by_role("heading", name="By reason")).to_be_visible()
    expect(olga).to_have_url(f"{MIRROR}backlog/")
    expect(tab(olga, "Backlog")).to_have_attribute("aria-current", "page")
    tab(olga, "Runs").click()
    expect(olga.get_by_role("progressbar")).to_be_visible()
    tab(olga, "Branches").click()
    expect(olga.locator("tr.inside")).to_have_count(0)
    expect(olga).to_have_url(MIRROR)
    assert olga.evaluate("window.stays")
    olga.go_back()
    expect(olga.get_by_role("progressbar")).to_be_visible()


def test_settings_are_saved(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}settings/")
    olga.get_by_label("Lag target, in seconds").fill("900")
    olga.get_by_role("button", name="Save").click()
    expect(olga.locator("#notices")).to_contain_text("Settings saved, applying")
    expect(olga.get_by_label("Lag target, in seconds")).to_have_value("900")
    tab(olga, "Audit").click()
    expect(olga.get_by_role("row", name="Changed settings")).to_contain_text("rpo seconds: none → 900")


def test_a_poll_takes_nothing_that_is_being_typed_and_a_stale_form_comes_back_with_it(
    olga: Page, company: Any, owner: Any
) -> None:
    olga.goto(f"{MIRROR}settings/")
    olga.get_by_label("Branches to leave out").fill("tmp-*")
    settings.mirror_update(actor=owner, mirror=company["analytics-eu"], changes={"rpo_seconds": 60})
    with olga.expect_response(lambda answer: answer.request.method == "GET"):
        olga.evaluate("htmx.trigger('#live', 'refresh')")
    olga.get_by_role("button", name="Save").click()
    expect(olga.get_by_role("alert")).to_contain_text("Lag target, in seconds: none → 60")
    expect(olga.get_by_label("Branches to leave out")).to_have_value("tmp-*")
    olga.get_by_role("button", name="Save").click()
    expect(olga.locator("#notices")).to_contain_text("Settings saved")
    assert Mirror.objects.get(name="analytics-eu").rpo_seconds == 60


def test_the_webhook_file_is_copied_whole(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}settings/")
    olga.get_by_role("button", name="Copy the file").click()
    expect(olga.locator("#changes")).to_have_text("Copied")
    copied = olga.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("name: tell LakeMirror") and "Bearer" in copied


def test_a_chart_says_its_values_where_one_points_and_by_the_arrow_keys(olga: Page, company: Any) -> None:
    make_measures(company["analytics-eu"], now=datetime.now(UTC), days=2)
    olga.goto(f"{MIRROR}metrics/")
    points = olga.locator("#plot-lag .point")
    expect(points.last.locator("text")).to_be_hidden()
    points.nth(40).locator("rect").hover()
    expect(points.nth(40).locator("text")).to_be_visible()
    expect(points.nth(40).locator("text")).to_have_text(re.compile(r"^\S+( \S+)? · \d\d:\d\d$"))
    olga.mouse.move(0, 0)
    olga.locator("#plot-lag .point[tabindex='0']").focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight"):
        olga.keyboard.press(key)
    expect(points.nth(points.count() - 2)).to_be_focused()
    expect(points.nth(points.count() - 2).locator("text")).to_be_visible()
    olga.keyboard.press("Home")
    expect(points.first).to_be_focused()


def test_a_chart_says_its_values_without_scripts(plain: Page, company: Any) -> None:
    make_measures(company["analytics-eu"], now=datetime.now(UTC), days=2)
    plain.goto(f"{MIRROR}metrics/")
    last = plain.locator("#plot-lag .point").last
    last.locator("rect").hover()
    expect(last.locator("text")).to_be_visible()


def test_the_metrics_are_pictures_and_a_table_that_stays_open(olga: Page, company: Any) -> None:
    make_measures(company["analytics-eu"], now=datetime.now(UTC), days=7)
    olga.goto(MIRROR)
    tab(olga, "Metrics").click()
    expect(olga.get_by_role("group", name="Worst lag")).to_be_visible()
    olga.get_by_role("link", name="7d").click()
    expect(olga).to_have_url(f"{MIRROR}metrics/?period=7d")
    expect(olga.locator("figure.plot")).to_have_count(6)
    olga.get_by_text("All values as a table").click()
    expect(olga.get_by_role("columnheader", name="Worst lag")).to_be_visible()
    with olga.expect_response(lambda answer: answer.request.method == "GET"):
        olga.evaluate("htmx.trigger('#live', 'refresh')")
    expect(olga.locator("#live.htmx-request")).to_have_count(0)
    expect(olga.locator("table.measures tbody tr")).not_to_have_count(0)
    expect(olga.get_by_role("columnheader", name="Worst lag")).to_be_visible()
    with olga.expect_download() as saved:
        olga.get_by_role("link", name="CSV").click()
    assert saved.value.suggested_filename == "analytics-eu-metrics-7d.csv"


def test_validate_is_queued_and_seen_among_the_runs(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}runs/")
    olga.get_by_role("button", name="Validate").click()
    expect(olga.locator("#notices")).to_contain_text("is validated again")
    expect(olga.get_by_role("row", name="All heads")).to_contain_text("Queued")


def test_a_commit_is_waived_once_its_id_is_typed_and_the_waiver_withdrawn(olga: Page, company: Any) -> None:
    olga.goto(commit_page("nightly orders load"))
    olga.get_by_role("link", name="Waive").click()
    expect(olga.locator(".impact")).to_contain_text("3 objects, 57.5 MB")
    olga.get_by_label("Why may it stay unreadable?").fill("the disk is gone")
    olga.get_by_role("button", name="Waive this commit").click()
    expect(olga.get_by_role("alert")).to_contain_text("Nothing was waived")
    olga.get_by_label("Type ").fill(Commit.objects.get(message="nightly orders load").sha[:8])
    olga.get_by_role("button", name="Waive this commit").click()
    expect(olga.locator("#notices")).to_contain_text("is waived")
    olga.get_by_role("link", name="All waivers").click()
    expect(olga.get_by_role("row", name="the disk is gone")).to_contain_text("olga")
    olga.get_by_role("button", name="Withdraw").click()
    expect(olga.locator("#notices")).to_contain_text("is withdrawn")
    expect(olga.get_by_role("main")).to_contain_text("No waivers")


def test_what_somebody_wrote_by_force_is_undone_from_the_head_of_the_page(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/lab-eu/commits/")
    happened = olga.get_by_role("list", name="What happened")
    expect(happened).to_contain_text("trial: Somebody wrote to it without a commit")
    olga.get_by_role("button", name="Undo the changes of trial").click()
    expect(olga.locator("#notices")).to_contain_text("the uncommitted changes of trial are being undone")


def test_without_scripts_links_and_forms_do_the_same(plain: Page, company: Any) -> None:
    plain.goto(MIRROR)
    tab(plain, "Backlog").click()
    plain.get_by_role("checkbox", name="part-00018.parquet").check()
    plain.get_by_role("button", name="Retry selected").click()
    expect(plain.locator("#notices")).to_contain_text("Checking 1 object again now.")
    expect(plain).to_have_url(f"{MIRROR}backlog/")
    plain.goto(commit_page("nightly orders load"))
    plain.get_by_role("button", name="Prioritise").click()
    expect(plain.locator(".actions")).to_have_text(re.compile("Prioriti[sz]ed"))
    plain.get_by_role("link", name="Plan repair").click()
    plain.get_by_role("button", name="Check again").click()
    expect(plain.locator("#notices")).to_contain_text("Checking 3 objects again now")
    expect(plain).to_have_url(commit_page("nightly orders load") + "repair/")


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_wider_than_a_telephone(olga: Page, company: Any, part: str) -> None:
    olga.set_viewport_size({"width": 390, "height": 800})
    olga.goto(MIRROR + part)
    assert olga.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
