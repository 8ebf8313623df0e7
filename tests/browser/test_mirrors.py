"""What people click on the pages of mirrors, and what changes before their eyes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from deployment import preparation
from mirrors.models import Mirror, MirrorBranch, MirrorCommit, SourceBranch
from rbac.models import Session
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment, deployment

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MIRROR = "/mirrors/analytics-eu/"
PAGES = [
    "/",
    "/jobs/",
    "/mirrors/?state=blocked",
    "/mirrors/",
    MIRROR,
    f"{MIRROR}?branch=main&branch=experiments",
    "/mirrors/new/",
    f"{MIRROR}delete/",
    "/docs/api",
    "/nix/",
]


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


def row(page: Page, branch: str) -> Any:
    return page.locator("tr.branch", has=page.get_by_role("rowheader", name=branch))


def toggle(page: Page, branch: str) -> Any:
    return page.get_by_role("link", name=f"Commits of {branch}")


def promote(mirror: Mirror, branch: str) -> None:
    """What the engine does when everything has arrived."""
    source = SourceBranch.objects.get(repository=mirror.source, name=branch)
    now = datetime.now(UTC)
    MirrorCommit.objects.filter(mirror=mirror).update(data="complete", record="accepted", history=True)
    place = {"head": source.head, "position": source.position, "advanced_at": now}
    MirrorBranch.objects.filter(mirror=mirror, name=branch).update(**place)


# The rail


def test_every_dot_of_every_rail_is_drawn(olga: Page, company: Any) -> None:
    """A rule for a word of forms once hid those of commits that are being validated."""
    olga.goto(MIRROR)
    rails = olga.locator("svg.rail")
    expect(rails.first).to_be_visible()
    stages = rails.locator("g").evaluate_all(
        "dots => dots.map(d => [d.getAttribute('class'), getComputedStyle(d).visibility])"
    )
    assert {"head", "checking", "waiting", "blocked"} <= {stage for stage, _ in stages}
    assert {seen for _, seen in stages} == {"visible"}


# In and out


def test_signing_in_leads_to_the_page_that_was_asked_for(page: Page, owner: Any, company: Any) -> None:
    page.goto(MIRROR)
    page.fill("#id_username", "olga")
    page.fill("#id_password", "wrong")
    page.click("button:has-text('Sign in')")
    expect(page.get_by_role("alert")).to_contain_text("Wrong name or password.")
    page.fill("#id_password", "correct horse battery staple")
    page.click("button:has-text('Sign in')")
    expect(page.get_by_role("heading", level=1)).to_have_text("analytics-eu")


def test_signing_out_ends_the_session(olga: Page) -> None:
    olga.goto("/")
    olga.locator(".menu summary").click()
    olga.get_by_role("button", name="Sign out").click()
    expect(olga).to_have_url("/login/")
    olga.goto("/mirrors/")
    expect(olga).to_have_url("/login/?next=/mirrors/")


# Looking


def test_from_the_list_to_a_mirror_to_the_commits_of_a_branch(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/")
    olga.get_by_role("link", name="analytics-eu").click()
    toggle(olga, "main").click()
    expect(olga.locator(".commits tr", has_text="nightly orders load")).to_contain_text("3 objects missing")
    expect(olga.locator(".things")).to_contain_text("orders/day=2026-11-20/part-00017.parquet")
    expect(toggle(olga, "main")).to_have_attribute("aria-expanded", "true")


def test_an_opened_branch_is_in_the_address_and_survives_a_reload(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    toggle(olga, "main").click()
    toggle(olga, "backfill/2024-q4").click()
    expect(olga.locator("tr.inside")).to_have_count(2)
    expect(olga).to_have_url(f"{MIRROR}?branch=main&branch=backfill%2F2024-q4")
    olga.reload()
    expect(olga.locator("tr.inside")).to_have_count(2)
    toggle(olga, "main").click()
    expect(olga.locator("tr.inside")).to_have_count(1)


def test_a_copy_button_copies_the_whole_id(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    whole = SourceBranch.objects.get(repository__name="analytics", name="main").head
    row(olga, "main").hover()
    olga.get_by_role("button", name=f"Copy source head id {whole[:8]}").click()
    assert olga.evaluate("navigator.clipboard.readText()") == whole


def test_the_skip_link_is_first_and_leads_to_the_content(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    olga.keyboard.press("Tab")
    expect(olga.get_by_role("link", name="Skip to content")).to_be_focused()
    olga.keyboard.press("Enter")
    expect(olga.locator("main")).to_be_focused()


# Live


def test_a_commit_goes_from_pending_to_promoted_while_one_looks(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}?branch=experiments")
    expect(row(olga, "experiments")).to_contain_text("Validating")
    promote(company["analytics-eu"], "experiments")
    expect(row(olga, "experiments")).to_contain_text("Up to date", timeout=8000)
    expect(olga.locator("tr.inside")).to_contain_text("Nothing: the mirror has what the source has.")


def test_an_update_leaves_focus_selection_and_nodes_alone(olga: Page, company: Any) -> None:
    olga.goto(f"{MIRROR}?branch=main")
    toggle(olga, "experiments").focus()
    olga.evaluate(
        "window.kept = document.querySelector('.things th code'); getSelection().selectAllChildren(window.kept)"
    )
    selected = olga.evaluate("String(getSelection())")
    before = olga.locator(".as-of").inner_text()
    expect(olga.locator(".as-of")).not_to_have_text(before, timeout=8000)
    expect(toggle(olga, "experiments")).to_be_focused()
    expect(olga.locator(".about")).to_contain_text("About this mirror")
    assert olga.evaluate("window.kept.isConnected && String(getSelection())") == selected


def test_rows_keep_their_places_while_one_looks(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    names = olga.locator("tr.branch > th")
    before = names.all_inner_texts()
    assert before[0].startswith("main")
    promote(company["analytics-eu"], "main")
    expect(row(olga, "main")).to_contain_text("Up to date", timeout=8000)
    assert names.all_inner_texts() == before
    olga.reload()
    assert names.all_inner_texts() != before


def test_a_new_branch_appears_at_the_end_and_a_deleted_one_goes(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    source = company["analytics-eu"].source
    source.branches.filter(name="release-12").update(gone_at=datetime.now(UTC))
    main = source.branches.get(name="main")
    source.branches.create(name="aaa", head=main.head, position=-1, changed_at=main.changed_at)
    expect(olga.locator("tr.branch").last).to_contain_text("aaa", timeout=8000)
    expect(olga.get_by_role("rowheader", name="release-12")).to_have_count(0)


def test_a_change_of_state_is_announced_once_and_polls_are_not(olga: Page, company: Any) -> None:
    olga.goto("/mirrors/analytics-eu/")
    expect(olga.locator("#changes")).to_be_empty()
    Mirror.objects.filter(name="analytics-eu").update(paused=True)
    expect(olga.get_by_role("status")).to_contain_text("analytics-eu: Paused", timeout=8000)
    expect(olga).to_have_title("Paused · analytics-eu · LakeMirror")


def test_a_failed_update_is_told_and_taken_back(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    olga.route("**/mirrors/**", lambda route: route.abort())
    expect(olga.locator(".notice.old")).to_contain_text("The last update failed", timeout=8000)
    olga.unroute("**/mirrors/**")
    expect(olga.locator(".notice.old")).to_have_count(0, timeout=8000)


def test_a_page_that_nobody_sees_does_not_ask(olga: Page, company: Any) -> None:
    olga.add_init_script("Object.defineProperty(document, 'hidden', {get: () => window.unseen ?? false})")
    olga.goto(MIRROR)
    asked: list[str] = []
    olga.on("request", lambda request: asked.append(request.url) if request.headers.get("hx-request") else None)
    olga.evaluate("window.unseen = true")
    olga.wait_for_timeout(3600)
    assert asked == []
    olga.evaluate("window.unseen = false; document.dispatchEvent(new Event('visibilitychange'))")
    olga.wait_for_timeout(500)
    assert len(asked) == 1


def test_a_session_that_ended_leads_to_sign_in_and_back(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    Session.objects.all().delete()
    expect(olga).to_have_url(f"/login/?next={MIRROR}", timeout=8000)


# Doing


def test_sync_now_is_answered_at_once(olga: Page, company: Any, lm: Deployment) -> None:
    olga.goto(MIRROR)
    olga.route("**/sync/", lambda route: (olga.wait_for_timeout(300), route.continue_()))
    olga.get_by_role("button", name="Sync now").click()
    expect(olga.get_by_role("button", name="Queued")).to_be_disabled(timeout=250)
    expect(olga.get_by_role("status")).to_contain_text("Syncing analytics-eu")
    expect(olga.get_by_role("button", name="Sync now")).to_be_enabled()


def test_a_mirror_is_paused_and_resumed_in_place(olga: Page, company: Any, lm: Deployment) -> None:
    olga.goto(MIRROR)
    for verb, state, other in (("Pause", "is paused", "Resume"), ("Resume", "is resumed", "Pause")):
        olga.get_by_role("button", name=verb, exact=True).click()
        expect(olga.get_by_role("status")).to_contain_text(f"analytics-eu {state}")
        expect(olga.get_by_role("button", name=other, exact=True)).to_be_enabled()
        expect(olga.get_by_role("button", name=verb, exact=True)).to_have_count(0)
        assert Mirror.objects.get(name="analytics-eu").paused is (verb == "Pause")
        expect(olga.locator("#calls")).to_contain_text(f"lakemirror mirror {other.lower()} analytics-eu")
        expect(olga.locator(".about")).to_contain_text("About this mirror")


def test_a_mirror_is_paused_without_scripts(plain: Page, company: Any, lm: Deployment) -> None:
    plain.goto(MIRROR)
    plain.get_by_role("button", name="Pause", exact=True).click()
    expect(plain.get_by_role("status")).to_contain_text("analytics-eu is paused")
    expect(plain.get_by_role("button", name="Resume")).to_be_visible()


def test_a_form_makes_a_mirror_after_its_error_was_mended(olga: Page, lm: Deployment) -> None:
    olga.goto("/mirrors/")
    olga.get_by_role("link", name="Create the first mirror").click()
    olga.get_by_label("Repository", exact=True).fill("lake")
    olga.get_by_label("Name of the mirror").fill("Lake EU")
    olga.get_by_label("Storage namespace").fill("s3://dst/lake")
    olga.get_by_role("button", name="Create mirror").click()
    expect(olga.get_by_role("alert")).to_contain_text("is not a valid mirror name")
    expect(olga.get_by_label("Storage namespace")).to_have_value("s3://dst/lake")
    olga.get_by_label("Name of the mirror").fill("lake-eu")
    olga.get_by_role("button", name="Create mirror").click()
    olga.get_by_role("button", name="Create anyway").click()
    expect(olga.get_by_role("heading", level=1)).to_have_text("lake-eu")
    expect(olga.get_by_role("status")).to_contain_text("Mirror lake-eu created")


def test_a_made_mirror_catches_up_before_ones_eyes(olga: Page, lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    mirror = lm.add_mirror()
    olga.goto(f"/mirrors/{mirror.name}/")
    expect(olga.locator(".head .state")).to_have_text("New")
    lm.arrive()
    lm.work()
    expect(olga.locator(".head .state")).to_have_text("Up to date", timeout=8000)
    expect(row(olga, "main")).to_contain_text(lm.head()[:8])


def test_deleting_asks_for_the_name(olga: Page, company: Any, lm: Deployment) -> None:
    olga.goto(MIRROR)
    olga.get_by_role("link", name="Delete").click()
    olga.get_by_role("button", name="Delete mirror").click()
    expect(olga.get_by_role("alert")).to_contain_text("Nothing was deleted")
    olga.get_by_label("Type the mirror's name").fill("analytics-eu")
    olga.get_by_role("button", name="Delete mirror").click()
    expect(olga.get_by_role("status")).to_contain_text("analytics-eu is being deleted")
    expect(olga.get_by_role("link", name="analytics-eu")).to_have_count(0)


# Without scripts, narrow, dark


def test_everything_works_without_scripts(plain: Page, company: Any, lm: Deployment) -> None:
    plain.goto(MIRROR)
    toggle(plain, "main").click()
    expect(plain.locator(".things")).to_contain_text("part-00017.parquet")
    expect(plain.locator(".copy").first).to_be_hidden()
    plain.get_by_role("button", name="Sync now").click()
    expect(plain.get_by_role("status")).to_contain_text("Syncing")
    plain.goto("/mirrors/new/")
    plain.get_by_label("Repository", exact=True).fill("lake")
    plain.get_by_label("Name of the mirror").fill("lake-eu")
    plain.get_by_label("Storage namespace").fill("s3://dst/lake")
    plain.get_by_role("button", name="Create mirror").click()
    plain.get_by_role("button", name="Create anyway").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("lake-eu")


@pytest.mark.parametrize("width", [320, 390, 860, 1280])
def test_no_page_scrolls_sideways(olga: Page, company: Any, width: int) -> None:
    olga.set_viewport_size({"width": width, "height": 760})
    wide = {}
    for path in [*PAGES, *(f"/mirrors/{name}/" for name in company)]:
        olga.goto(path)
        if (needed := olga.evaluate("document.documentElement.scrollWidth")) > width:
            wide[path] = needed
    assert wide == {}


def test_what_one_clicks_is_large_enough(olga: Page, company: Any) -> None:
    """WCAG 2.2, 2.5.8: 24 by 24 pixels, links inside of a sentence excepted."""
    for path in PAGES:
        olga.goto(path)
        small = olga.evaluate(
            """[...document.querySelectorAll('button, .button, summary, nav a, .toggle, input, select')]
            .map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect()])
            .filter(([, r]) => r.width && (r.width < 24 || r.height < 24)).map(([html]) => html)"""
        )
        assert small == []


def test_a_narrow_page_has_its_navigation_behind_one_button(olga: Page, company: Any) -> None:
    olga.set_viewport_size({"width": 390, "height": 760})
    olga.goto(MIRROR)
    expect(olga.get_by_role("navigation").get_by_role("link", name="Mirrors")).to_be_hidden()
    olga.get_by_text("Menu").click()
    olga.get_by_role("navigation").get_by_role("link", name="Mirrors").click()
    expect(olga.get_by_role("heading", level=1)).to_have_text("Mirrors")


def test_the_page_is_dark_where_the_system_is(olga: Page, company: Any) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        olga.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        olga.goto(MIRROR)
        grounds.append(olga.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(246, 247, 249)", "rgb(15, 18, 23)"]


def test_times_are_in_utc_and_ones_own_on_pointing_at_them(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    first = olga.locator("time").first
    assert datetime.fromisoformat(str(first.get_attribute("datetime"))) < datetime.now(UTC) + timedelta(seconds=5)
    first.hover()
    expect(first).to_have_attribute("title", re.compile("your time"))


def test_what_is_being_prepared_goes_away_by_itself(olga: Page, company: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [preparation.Stage("spark", "Spark", "running", "installing")]
    monkeypatch.setattr(preparation, "status", lambda: preparation.Preparation(tuple(stages)))
    olga.goto("/mirrors/models-eu/")
    expect(olga.get_by_label("Preparation")).to_contain_text("Spark: running installing")
    stages[0] = preparation.Stage("spark", "Spark", "ready")
    expect(olga.get_by_label("Preparation")).to_have_count(0, timeout=8000)


def test_two_branches_clicked_at_once_are_both_opened(olga: Page, company: Any) -> None:
    olga.goto(MIRROR)
    olga.evaluate("for (const b of ['main', 'experiments']) document.querySelector(`[data-branch=${b}]`).click()")
    expect(olga.locator("tr.inside")).to_have_count(2)


# A long list


def test_a_branch_among_many_is_found_and_opened(olga: Page, company: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrors.views.mirror.PAGE", 2)
    olga.goto(MIRROR)
    expect(olga.locator("tr.branch")).to_have_count(2)
    olga.get_by_role("link", name="Next").click()
    expect(olga).to_have_url(f"{MIRROR}?page=2")
    olga.get_by_role("searchbox", name="Find branches by name").fill("features")
    olga.get_by_role("button", name="Find").click()
    expect(olga.locator("tr.branch")).to_have_count(1)
    toggle(olga, "features_v2").click()
    expect(toggle(olga, "features_v2")).to_have_attribute("aria-expanded", "true")
    expect(olga.locator("tr.branch")).to_have_count(1)
