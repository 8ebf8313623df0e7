"""Waiving on the pages: what follows is told first, nothing happens by a slip, and it can be withdrawn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from mirrors.models import Blocker, Commit, Mirror, MirrorCommit, WaivedObject, Waiver
from mirrors.services.waivers import waiver_give
from rbac.models import User
from tests.mirrors.factories import block, make_company
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

MIRROR = "/mirrors/analytics-eu/"
WHY = "the disk is gone"


@pytest.fixture
def company(lm: Deployment) -> dict[str, Mirror]:
    return make_company()


def sha_of(message: str) -> str:
    return Commit.objects.get(message=message).sha


def page_of(message: str, part: str = "") -> str:
    return f"{MIRROR}commits/{sha_of(message)}/{part}"


def waive(client: Client, message: str = "nightly orders load", **typed: str) -> Any:
    form = {"reason": WHY, "typed": sha_of(message)[:8]} | typed
    return client.post(page_of(message, "waive/"), form, follow=True)


def test_what_follows_is_told_before_anything_is_asked(olga: Client, company: Any) -> None:
    said = text(olga.get(page_of("nightly orders load", "waive/")))
    for words in (
        "3 objects, 57.5",
        "orders/day=2026-11-20/part-00017.parquet",
        "no branch of the mirror is ever moved to it",
        f"main could move on to {sha_of('returns')[:8]}",
        "Only this one, by etl",
    ):
        assert words in said
    assert "experiments" not in said


def test_a_branch_that_waits_for_other_commits_too_would_still_wait(olga: Client, company: Any) -> None:
    block(company["analytics-eu"], Commit.objects.get(message="prices"), "p/1", now=datetime.now(UTC), ago=60)
    said = text(olga.get(page_of("nightly orders load", "waive/")))
    assert f"main would still wait for {sha_of('prices')[:8]}" in said
    of_prices = text(olga.get(page_of("prices", "waive/")))
    assert f"Not what it descends from: {sha_of('nightly orders load')[:8]}" in of_prices


def test_it_is_waived_with_its_reason_and_an_entry_in_the_audit_trail(olga: Client, company: Any) -> None:
    answer = waive(olga)
    assert answer.redirect_chain == [(page_of("nightly orders load"), 302)]
    assert "is waived: commits that descend from it" in text(answer) and WHY in text(answer)
    sha = sha_of("nightly orders load")
    assert MirrorCommit.objects.get(commit__sha=sha, mirror=company["analytics-eu"]).waiver.reason == WHY
    audited = AuditEvent.objects.get(after__commits=[sha])
    assert (audited.actor, audited.reason) == ("olga", WHY)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"typed": ""}, "exactly as shown. Nothing was waived."),
        ({"typed": "1234567"}, "exactly as shown. Nothing was waived."),
        ({"typed": "models-eu"}, "exactly as shown. Nothing was waived."),
        ({"reason": " "}, "Give a reason for those who come across this commit later."),
    ],
)
def test_nothing_is_waived_by_a_slip(olga: Client, company: Any, typed: dict[str, str], words: str) -> None:
    answer = waive(olga, **typed)
    assert answer.status_code == 400
    assert words in text(answer)
    assert not Waiver.objects.exists()


def test_the_mirror_s_name_will_do(olga: Client, company: Any) -> None:
    waive(olga, typed="analytics-eu")
    assert Waiver.objects.exists()


def test_an_object_is_waived_on_its_page_for_all_commits(olga: Client, company: Any) -> None:
    thing = Blocker.objects.filter(mirror=company["analytics-eu"], kind="object").first()
    address = f"{MIRROR}object/?address={thing.address}"
    said = text(olga.get(address))
    assert "1 commit in eu-west-1 lacks it" in said and sha_of("nightly orders load")[:8] in said
    assert olga.post(address, {"reason": WHY, "typed": "models-eu"}).status_code == 400
    assert not Waiver.objects.exists()
    answer = olga.post(address, {"reason": WHY, "typed": "analytics-eu"}, follow=True)
    assert "It is waived: history may lack it" in text(answer) and WHY in text(answer)
    assert WaivedObject.objects.get().address == thing.address
    assert thing.path in text(olga.get(f"{MIRROR}waivers/"))
    assert olga.get(f"{MIRROR}object/?address=data/nothing").status_code == 404


def test_a_head_can_not_be_waived_and_the_page_says_why(olga: Client, company: Any) -> None:
    said = text(olga.get(page_of("f5", "waive/")))
    assert "is the head of features_v2 at 'analytics-eu'" in said and "Type " not in said
    assert waive(olga, "f5").status_code == 409
    assert "Waive" not in text(olga.get(page_of("f5")))


def test_what_is_waived_is_not_waived_again(olga: Client, company: Any) -> None:
    waive(olga)
    assert "is waived already" in text(olga.get(page_of("nightly orders load", "waive/")))
    assert "Waive …" not in text(olga.get(page_of("nightly orders load")))


def test_what_is_gone_at_both_sides_keeps_nobody_back(olga: Client, company: Any) -> None:
    Blocker.objects.filter(mirror=company["analytics-eu"]).update(gone_at_source=True)
    MirrorCommit.objects.filter(commit__sha=sha_of("nightly orders load")).update(data="gone")
    assert "Waive …" in text(olga.get(page_of("nightly orders load")))
    assert "gone at both sides, which is in no descendant's way" in text(
        olga.get(page_of("nightly orders load", "waive/"))
    )


def test_waivers_are_listed_and_withdrawn(olga: Client, company: Any, owner: User) -> None:
    assert "No waivers" in text(olga.get(f"{MIRROR}waivers/"))
    waive(olga)
    waiver = Waiver.objects.get()
    assert f"{MIRROR}waivers/" in olga.get(f"{MIRROR}commits/").content.decode()
    listed = text(olga.get(f"{MIRROR}waivers/"))
    assert sha_of("nightly orders load")[:8] in listed and WHY in listed
    answer = olga.post(f"{MIRROR}waivers/{waiver.pk}/withdraw/", {"back": f"{MIRROR}waivers/"}, follow=True)
    assert f"Waiver {waiver.pk} is withdrawn. No branch moves back" in text(answer)
    assert not Waiver.objects.exists()
    assert olga.post(f"{MIRROR}waivers/{waiver.pk}/withdraw/").status_code == 404
    assert olga.post(f"{MIRROR}waivers/{10**20}/withdraw/").status_code == 404


def test_of_a_long_waiver_the_first_commits_are_named_and_queries_stay(
    olga: Client, company: Any, owner: User, django_assert_max_num_queries: Any
) -> None:
    mirror = company["analytics-eu"]
    many = [sha_of(message) for message in ("first load", "customers", "f1", "f2", "f3", "f4")]
    waiver_give(actor=owner, mirror=mirror, commits=many, reason="old")
    for message in ("start of the backfill", "before"):
        MirrorCommit.objects.filter(commit__sha=sha_of(message), mirror=mirror).update(
            waiver=Waiver.objects.create(mirror=mirror, reason=message, given_by="tom", given_at=mirror.created_at)
        )
    with django_assert_max_num_queries(14):
        said = text(olga.get(f"{MIRROR}waivers/"))
    assert "the first of 6 commits" in said and "start of the backfill" in said


def test_who_may_only_look_can_neither_waive_nor_withdraw(
    teammate: User, client: Client, company: Any, owner: User
) -> None:
    waiver = waiver_give(
        actor=owner, mirror=company["analytics-eu"], commits=[sha_of("nightly orders load")], reason="x"
    )
    client.force_login(teammate)
    assert "Withdraw waiver" not in client.get(f"{MIRROR}waivers/").content.decode()
    assert "Waive …" not in text(client.get(page_of("prices")))
    assert client.get(page_of("prices", "waive/")).status_code == 403
    assert client.post(f"{MIRROR}waivers/{waiver.pk}/withdraw/").status_code == 403
    assert Waiver.objects.exists()


def test_what_follows_comes_true(olga: Client, lm: Deployment) -> None:
    old = lm.lake.commit(files={"a": b"old"})
    head = lm.lake.commit(files={"a": b"new"})
    lm.arrive(lm.lake.address_of(old, "a"))
    lm.work()
    page = f"/mirrors/lake-eu/commits/{old}/waive/"
    assert f"main could move on to {head[:8]}" in text(olga.get(page))
    olga.post(page, {"reason": WHY, "typed": "lake-eu"})
    lm.work()
    assert lm.head() == head
