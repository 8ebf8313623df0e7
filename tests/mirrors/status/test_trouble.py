"""Mirrors that were tampered with, damaged or frozen: what happened, when, to which branch, one thing to do first."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from core.mirroring.promotion import Why
from db import clock
from mirrors.models import Blocker, Coverage, Mirror, MirrorBranch, MirrorCommit, Promotion, Repository
from mirrors.status.incidents import trouble_of
from mirrors.status.mirror import mirror_status
from rbac.models import User
from tests.mirroring.test_found_by_breaking import lose, mirrored
from tests.mirrors.factories import make_company, make_id
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

TABS = ["", "commits/", "backlog/", "runs/", "settings/", "audit/"]


@pytest.fixture
def company(lm: Deployment) -> dict[str, Mirror]:
    return make_company(clock.now())


def happened(client: Client, address: str) -> str:
    """The list of what happened, in words."""
    page = client.get(address).content.decode()
    found = re.search(r'<ul class="card trouble".*?</ul>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", "", found[0]).split()) if found else ""


def primary(client: Client, address: str) -> list[str]:
    """What is set apart in the head of a mirror's page."""
    page = client.get(address).content.decode()
    head = page[page.index('<div class="actions">') : page.index('<p class="sentence">')]
    return re.findall(r'class="button primary"[^>]*>([^<]*)<', head)


def damage(mirror: Mirror, holder: str, *, minutes: float = 7) -> Blocker:
    seen = clock.now() - timedelta(minutes=minutes)
    return Blocker.objects.create(
        mirror=mirror,
        kind="object",
        holder_id=holder,
        key=make_id(holder),
        address="data/x",
        path="web/1.parquet",
        reason="missing",
        damage=True,
        attempts=3,
        first_seen=seen,
        look_at=seen + timedelta(days=1),
    )


def test_who_wrote_to_a_branch_by_force_is_told_with_its_time_and_undone_with_one_click(
    olga: Client, company: Any
) -> None:
    at = clock.now() - timedelta(minutes=9)
    Promotion.objects.create(mirror=company["lab-eu"], branch="trial", why=Why.WRITTEN, at=at)
    told = happened(olga, "/mirrors/lab-eu/")
    assert told.startswith("trial: Somebody wrote to it without a commit. Seen 9 min ago,")
    assert primary(olga, "/mirrors/lab-eu/") == ["Undo the changes of trial"]
    olga.post("/mirrors/lab-eu/reset-branch/", {"branch": "trial"})
    assert MirrorBranch.objects.get(mirror=company["lab-eu"], name="trial").reset_asked


def test_a_branch_that_somebody_made_is_told_and_looked_at_again(olga: Client, company: Any) -> None:
    lab = company["lab-eu"]
    MirrorBranch.objects.filter(mirror=lab).update(uncommitted=False)
    MirrorBranch.objects.create(mirror=lab, name="strange", head=make_id("x"), stray=True)
    assert happened(olga, "/mirrors/lab-eu/") == "strange: Somebody created it at the mirror. Since when is not known."
    Promotion.objects.create(mirror=lab, branch="strange", why=Why.FOREIGN, at=clock.now() - timedelta(hours=2))
    assert "Seen 2 h ago" in happened(olga, "/mirrors/lab-eu/")
    assert primary(olga, "/mirrors/lab-eu/") == ["Sync now"]


def test_a_branch_that_was_moved_or_deleted_is_told_as_that(olga: Client, company: Any) -> None:
    lab = company["lab-eu"]
    MirrorBranch.objects.filter(mirror=lab).update(uncommitted=False)
    MirrorBranch.objects.filter(mirror=lab, name="trial").update(misplaced=True, proven=False)
    for why, hours in ((Why.BACK, 5), (Why.VANISHED, 3)):
        at = clock.now() - timedelta(hours=hours)
        Promotion.objects.create(mirror=lab, branch="trial", why=why, at=at)
        told = happened(olga, "/mirrors/lab-eu/")
        assert told.startswith("trial: Somebody moved or deleted it at the mirror, or the destination was restored. ")
        assert f"Seen {hours} h ago" in told
    assert primary(olga, "/mirrors/lab-eu/") == ["Sync now"]


def test_a_frozen_mirror_says_when_the_source_was_last_in_order(olga: Client, company: Any) -> None:
    looked_at = clock.now() - timedelta(hours=5)
    Repository.objects.filter(name="models").update(frozen_reason="the source repository is gone", looked_at=looked_at)
    assert "all branches stay where they are. That was 5 h ago," in happened(olga, "/mirrors/models-eu/")
    assert primary(olga, "/mirrors/models-eu/") == ["Create a new mirror"]


def test_damage_is_told_with_its_branches_and_looked_for_with_one_click(
    olga: Client, lm: Deployment, head: str
) -> None:
    mirror, [_, *ranges] = Mirror.objects.get(), lm.lake.files_of(head)
    thing = damage(mirror, ranges[0])
    told = happened(olga, "/mirrors/lake-eu/")
    assert told.startswith("main: 1 object that was complete is missing or wrong. Seen 7 min ago,")
    assert primary(olga, "/mirrors/lake-eu/") == ["Repair…"], "to Backlog, where it is brought or replaced"
    assert "Check again" in text(olga.get("/mirrors/lake-eu/"))
    answer = olga.post("/mirrors/lake-eu/backlog/retry/", {"which": "all"}, follow=True)
    assert "Checking 1 object again now" in text(answer)
    assert Blocker.objects.get(pk=thing.pk).look_at < thing.look_at


def test_damage_beside_tampering_is_told_too(olga: Client, company: Any) -> None:
    damage(company["lab-eu"], make_id("another range"))
    told = happened(olga, "/mirrors/lab-eu/")
    assert "trial: Somebody wrote" in told and "1 object that was complete is missing or wrong" in told
    assert primary(olga, "/mirrors/lab-eu/") == ["Undo the changes of trial"]


def test_damage_of_older_commits_is_shown_by_no_branch(olga: Client, lm: Deployment, head: str) -> None:
    damage(Mirror.objects.get(), make_id("another range"))
    assert "no branch is known to be affected now" in happened(olga, "/mirrors/lake-eu/")


def test_where_metaranges_are_not_at_hand_it_is_not_known(
    olga: Client, lm: Deployment, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(Mirror.objects.get(), make_id("another range"))
    monkeypatch.setattr("mirrors.status.incidents.ranges_named", lambda mirror, metarange_id: None)
    assert "which branches are affected is not known" in happened(olga, "/mirrors/lake-eu/")


@pytest.mark.parametrize("part", TABS)
@pytest.mark.parametrize("mirror", ["lab-eu", "archive-eu", "analytics-eu", "models-eu"])
def test_each_part_of_the_page_sets_one_action_apart(olga: Client, company: Any, mirror: str, part: str) -> None:
    assert len(primary(olga, f"/mirrors/{mirror}/{part}")) == 1


def test_a_mirror_that_is_well_has_no_such_list(olga: Client, company: Any) -> None:
    assert happened(olga, "/mirrors/models-eu/") == ""
    assert primary(olga, "/mirrors/models-eu/") == ["Sync now"]


def test_who_may_only_look_is_told_and_offered_nothing(teammate: User, client: Client, company: Any) -> None:
    client.force_login(teammate)
    assert "Somebody wrote to it without a commit" in happened(client, "/mirrors/lab-eu/")
    assert primary(client, "/mirrors/lab-eu/") == []


def test_a_head_that_never_was_whole_is_told_with_its_branch(lm: Deployment) -> None:
    """As an adopted mirror may show one: nothing of it was complete before."""
    head = mirrored(lm, a=b"1")
    lose(lm, head, "a")
    MirrorBranch.objects.update(proven=False)
    MirrorCommit.objects.update(data="unknown", history=False, validated_at=None)
    Coverage.objects.all().delete()
    lm.work(3)
    [told] = trouble_of(mirror_status(Mirror.objects.get())).happened
    assert (told.text, told.branches) == ("An object of its head is missing or wrong", ["main"])
