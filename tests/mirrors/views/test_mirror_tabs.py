"""The parts of a mirror's page that have addresses of their own: runs, audit, the figures above the branches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.access.policies import repository_arn
from installations.models import Contact
from mirrors.models import Commit, LagBreach, Mirror, Repository, Run, SourceBranch, Validation
from mirrors.services import settings
from rbac.models import User
from tests.mirrors.factories import Line, make_company
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

MIRROR = "/mirrors/analytics-eu/"
TABS = ["", "commits/", "backlog/", "runs/", "metrics/", "settings/", "audit/"]


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.mark.parametrize("tab", TABS)
def test_each_part_has_an_address_and_leads_to_the_others(olga: Client, company: Any, tab: str) -> None:
    page = olga.get(MIRROR + tab).content.decode()
    assert page.count('aria-current="page"') == 3  # the two menus, and the tab
    for other in TABS:
        assert f'href="{MIRROR}{other}"' in page
    part = olga.get(MIRROR + tab, headers={"HX-Request": "true", "HX-Target": "live"}).content.decode()
    assert part.count('id="live"') == 1 and "<html" not in part


@pytest.mark.parametrize("name", ["fresh-eu", "archive-eu", "billing-us", "lab-eu", "events-eu"])
@pytest.mark.parametrize("tab", TABS)
def test_no_part_says_none(olga: Client, company: Any, name: str, tab: str) -> None:
    said = text(olga.get(f"/mirrors/{name}/{tab}"))
    assert "None" not in said


@pytest.mark.parametrize("tab", [*TABS, "commits/abcdef123456/"])
def test_outsiders_and_strangers_see_none_of_it(outsider: User, client: Client, company: Any, tab: str) -> None:
    assert client.get(MIRROR + tab).status_code == 302
    client.force_login(outsider)
    assert client.get(MIRROR + tab).status_code == 403


# Runs


def test_what_a_store_told_of_missing_objects_is_not_shown_once_they_are_there(olga: Client, company: Any) -> None:
    cause = {"cause": "Replicating", "number": 49, "message": "it is on its way", "fix": ""}
    told = {"as_of": datetime.now(UTC).isoformat(), "store": "minio", "causes": [cause]}
    Mirror.objects.update(replication=told)
    page = "Why replication has not brought it"
    assert page in text(olga.get("/mirrors/analytics-eu/")), "which lacks some"
    company["analytics-eu"].blockers.all().delete()
    assert page not in text(olga.get("/mirrors/analytics-eu/"))


def test_a_running_check_has_progress_and_an_end(olga: Client, company: Any) -> None:
    Run.objects.update(started_at=datetime.now(UTC) - timedelta(seconds=60), entries=6000)
    said = text(olga.get(f"{MIRROR}runs/"))
    assert "Running" in said and "12 of 31 ranges" in said and "done in 1 min" in said
    assert "100" in said


def test_a_check_whose_worker_is_gone_is_lost_not_running(olga: Client, company: Any) -> None:
    now = datetime.now(UTC)
    Run.objects.create(mirror=company["models-eu"], job="check", started_at=now, ranges=4, ranges_done=1)
    said = text(olga.get("/mirrors/models-eu/runs/"))
    assert "Lost" in said and "Running" not in said


def test_validate_asks_for_all_heads_and_shows_how_far_it_is(olga: Client, company: Any) -> None:
    answer = olga.post(f"{MIRROR}validate/", {"back": f"{MIRROR}runs/"}, follow=True)
    said = text(answer)
    assert "Queued: everything that the heads refer to is validated again" in said
    assert "All heads" in said and "Queued — 0 0 —" in said and "by olga" in said
    began = datetime.now(UTC) - timedelta(seconds=60)
    Validation.objects.update(started_at=began, ranges=40, ranges_done=10, metaranges=[], problems=2)
    said = text(olga.get(f"{MIRROR}runs/"))
    assert "10 of 40 ranges" in said and "in 3 min" in said


def test_a_mirror_without_heads_has_nothing_to_validate(olga: Client, company: Any) -> None:
    htmx = {"HX-Request": "true", "HX-Target": "notices"}
    assert "there is nothing to validate" in text(olga.post("/mirrors/fresh-eu/validate/", headers=htmx))


# Audit


def test_what_people_did_is_told_with_before_and_after(olga: Client, owner: User, company: Any) -> None:
    mirror = company["analytics-eu"]
    settings.mirror_update(actor=owner, mirror=mirror, changes={"rpo_seconds": 600, "tags": True})
    olga.post(f"{MIRROR}sync/")
    said = text(olga.get(f"{MIRROR}audit/"))
    assert "Changed settings" in said and "rpo seconds: none → 600" in said and "tags: false → true" in said
    assert said.index("Synced") < said.index("Changed settings")
    assert "Nobody has done anything" in text(olga.get("/mirrors/models-eu/audit/"))


def test_events_of_another_mirror_of_the_source_are_not_told(olga: Client, owner: User, company: Any) -> None:
    mirror = company["analytics-eu"]
    other = Mirror.objects.create(
        name="analytics-ap", source=mirror.source, region="ap-southeast-2", storage_namespace="s3://x/y"
    )
    settings.mirror_update(actor=owner, mirror=other, changes={"paused": True})
    assert "Changed settings" not in text(olga.get(f"{MIRROR}audit/"))
    assert "paused: false → true" in text(olga.get("/mirrors/analytics-ap/audit/"))


def test_events_of_the_version_before_are_told_by_their_details(olga: Client, company: Any) -> None:
    mirror = company["analytics-eu"]
    arn, named = repository_arn(mirror.source.name), {"mirror": mirror.name}
    for before, after in (
        (None, {"sync": mirror.name}),
        ({"waiver": 7, **named}, None),
        (None, {"storage_namespace": "s3://x", **named}),
        ({"rpo_seconds": None, **named}, {"rpo_seconds": 60, **named}),
        (None, {"sync": "analytics-xy"}),
    ):
        AuditEvent.objects.create(actor="ann", action="fs:MirrorRepository", arn=arn, before=before, after=after)
    said = text(olga.get(f"{MIRROR}audit/"))
    assert [words for words in ("Changed settings", "Created it", "Withdrew a waiver", "Synced") if words in said] == [
        "Changed settings",
        "Created it",
        "Withdrew a waiver",
        "Synced",
    ]
    assert said.count("Synced") == 1


# Figures


def test_the_figures_tell_the_target_and_what_would_be_lost(olga: Client, company: Any) -> None:
    mirror, now = company["analytics-eu"], datetime.now(UTC)
    Mirror.objects.filter(pk=mirror.pk).update(watched_since=now - timedelta(days=1), rpo_seconds=600)
    LagBreach.objects.create(mirror=mirror, branch="main", began_at=now - timedelta(minutes=5))
    said = text(olga.get(MIRROR))
    assert "Worst lag · target 10 min" in said
    assert "within target 96" in said
    assert "If us-east-1 failed now, 18 commits by backfill, etl, maria and 1 other would be lost" in said


def test_what_nobody_measured_is_not_told(olga: Client, company: Any) -> None:
    assert "within target" not in text(olga.get(MIRROR))
    assert "no commit seen so far would be lost" in text(olga.get("/mirrors/models-eu/"))


def test_what_was_committed_since_the_last_look_is_told_as_not_known(olga: Client, company: Any) -> None:
    mine = Repository.objects.filter(name="models")
    told = "us-east-1 was last read {} ago; what was committed there after that is not known."
    assert "was last read" not in text(olga.get("/mirrors/models-eu/"))
    mine.update(looked_at=datetime.now(UTC) - timedelta(minutes=10))
    said = text(olga.get("/mirrors/models-eu/"))
    assert f"no commit seen so far would be lost. {told.format('10 min')}" in said
    assert "up to date · as of the last check" in said
    mine.update(looked_at=datetime.now(UTC) - timedelta(seconds=33))
    assert "was last read" not in text(olga.get("/mirrors/models-eu/")), "the next look is due in half a minute"
    failing = {"asked_at": datetime.now(UTC), "failing_since": datetime.now(UTC) - timedelta(seconds=40)}
    Contact.objects.update_or_create(region="us-east-1", service="lakefs", defaults={"kind": "unreachable", **failing})
    assert told.format("33 s") in text(olga.get("/mirrors/models-eu/"))


def test_a_branch_that_seems_to_be_deleted_is_told_alike_above_and_below(olga: Client, company: Any) -> None:
    """Nothing says that the mirror has all, beside a commit that would be lost."""
    mirror = company["models-eu"]
    main = SourceBranch.objects.get(repository=mirror.source, name="main")
    line = Line(mirror.source, "gone", datetime.now(UTC))
    parent = Commit.objects.get(repository=mirror.source, sha=main.head)
    line.commit("late", ago=5, committer="etl", parents=[parent])
    SourceBranch.objects.filter(pk=line.branch.pk).update(missing_since=datetime.now(UTC))
    said = text(olga.get("/mirrors/models-eu/"))
    assert "has every commit that was seen" not in said
    assert "1 branch is deleted at the source; 1 commit seen there had not reached eu-west-1." in said
    only = "1 commit by etl would be lost (only on branches that the last check did not find there any more)"
    assert only in said


def test_who_may_only_look_gets_no_buttons_that_would_be_refused(
    teammate: User, olga: Client, client: Client, company: Any
) -> None:
    client.force_login(teammate)
    verbs = ("sync", "pause", "validate", "delete")
    for browser, shown in ((client, False), (olga, True)):
        page = browser.get("/mirrors/analytics-eu/").content.decode()
        assert [f"/mirrors/analytics-eu/{verb}/" in page for verb in verbs] == [shown] * 4


def test_last_validated_leads_to_the_certificate_of_the_default_branch(olga: Client, company: Any) -> None:
    page = olga.get("/mirrors/analytics-eu/").content.decode()
    head = company["analytics-eu"].branches.get(name="main").head
    assert f'<a href="/mirrors/analytics-eu/commits/{head}/">certificate of main</a>' in page
    assert olga.get(f"/mirrors/analytics-eu/commits/{head}/").status_code == 200
    assert "certificate of" not in olga.get("/mirrors/fresh-eu/").content.decode()
