"""The page of one commit, and the list of a mirror's commits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from mirrors.models import Blocker, Commit, MetarangeCoverage, Mirror, MirrorCommit, Validation
from mirrors.queries.certificates import certify
from rbac.models import User
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

MIRROR = "/mirrors/analytics-eu/"


@pytest.fixture
def company(lm: Deployment) -> dict[str, Mirror]:
    return make_company()


def sha_of(message: str) -> str:
    return Commit.objects.get(message=message).sha


def page_of(message: str) -> str:
    return f"{MIRROR}commits/{sha_of(message)}/"


def test_a_blocked_commit_says_what_it_lacks_and_what_to_do(olga: Client, company: Any) -> None:
    said = text(olga.get(page_of("nightly orders load")))
    for words in (
        "nightly orders load",
        "Blocked",
        "3 objects of",
        "have not reached eu-west-1. Check that the bucket replication from us-east-1 runs",
        "orders/day=2026-11-20/part-00017.parquet",
        "Attempts",
        "What blocks it 3",
        "Record copied",
        "+1.2 s",
        "3 objects of it are missing or wrong",
    ):
        assert words in said
    assert "Certificate" not in said


def test_a_prefix_is_enough_and_a_wrong_one_is_told(olga: Client, company: Any) -> None:
    assert olga.get(f"{MIRROR}commits/{sha_of('prices')[:8]}/").status_code == 200
    assert olga.get(f"{MIRROR}commits/{'0' * 12}/").status_code == 404
    short = olga.get(f"{MIRROR}commits/{sha_of('prices')[:3]}/")
    assert (short.status_code, "too short" in text(short)) == (400, True)


def test_a_commit_that_waits_for_its_ancestors_shows_what_blocks_them(olga: Client, company: Any) -> None:
    said = text(olga.get(page_of("returns")))
    assert "It waits for a commit that it descends from: 3 objects of" in said
    assert "part-00018.parquet" in said


def test_a_pause_is_told_of_a_commit_that_waits_and_not_of_one_that_is_there(olga: Client, company: Any) -> None:
    Mirror.objects.filter(name="analytics-eu").update(paused=True)
    assert "Paused: no branch moves until somebody resumes it." in text(olga.get(page_of("prices")))
    assert "Paused" not in text(olga.get(page_of("f5")))


def test_parents_lead_to_their_pages(olga: Client, company: Any) -> None:
    assert page_of("orders 2026-11-19") in olga.get(page_of("nightly orders load")).content.decode()


def test_a_head_has_a_certificate_with_its_digest(olga: Client, lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1", "b": b"22"})
    lm.arrive()
    lm.work()
    answer = olga.get(f"/mirrors/lake-eu/commits/{commit[:10]}/")
    said = text(answer)
    assert "main points to it in eu-west-1. All of it has arrived" in said
    assert "1 of 1 checked" in said and "2 of 2 checked" in said and "by etag" in said
    assert certify(Mirror.objects.get(), Commit.objects.get(sha=commit)).digest() in said
    assert "Prioritise" not in said


def test_a_certificate_that_cannot_be_gathered_is_no_error(olga: Client, company: Any) -> None:
    MetarangeCoverage.objects.all().delete()
    answer = olga.get(page_of("f5"))
    assert answer.status_code == 200
    assert re.search("It can't be shown now: .* its metarange is unknown", text(answer))


def test_what_blocks_it_comes_in_pages(olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.pages.ROWS", 2)
    first = olga.get(page_of("nightly orders load")).content.decode()
    second_key = Blocker.objects.order_by("pk")[1].pk
    assert first.count('<tr id="blocker-') == 2
    assert f"?after={second_key}" in first
    last = olga.get(page_of("nightly orders load"), {"after": second_key}).content.decode()
    assert last.count('<tr id="blocker-') == 1
    assert 'rel="next"' not in last


def test_those_on_the_page_are_looked_for_now(olga: Client, company: Any) -> None:
    ids = list(Blocker.objects.filter(mirror=company["analytics-eu"]).values_list("pk", flat=True))
    before = Blocker.objects.get(pk=ids[2]).look_at
    form = {"which": "selected", "thing": ids[:2], "back": page_of("nightly orders load")}
    answer = olga.post(f"{MIRROR}backlog/retry/", form, follow=True)
    assert answer.redirect_chain == [(page_of("nightly orders load"), 302)]
    assert "Checking 2 objects again now." in text(answer)
    assert Blocker.objects.get(pk=ids[0]).look_at < before == Blocker.objects.get(pk=ids[2]).look_at


def test_a_way_back_that_leads_elsewhere_is_not_taken(olga: Client, company: Any) -> None:
    answer = olga.post(f"{MIRROR}backlog/retry/", {"which": "all", "back": "https://evil.example/"})
    assert answer["Location"] == MIRROR


def test_a_pending_commit_can_be_put_first(olga: Client, company: Any) -> None:
    sha = sha_of("nightly orders load")
    assert "Prioritise" in text(olga.get(page_of("nightly orders load")))
    answer = olga.post(f"{MIRROR}prioritise/", {"commit": sha, "back": page_of("nightly orders load")}, follow=True)
    assert f"Queued: {sha[:8]} and what it needs" in text(answer)
    assert "Prioritised" in text(answer)
    assert MirrorCommit.objects.get(mirror=company["analytics-eu"], commit__sha=sha).urgency == 1


@pytest.mark.parametrize("commit", ["", "\0", "main", "0" * 64])
def test_what_is_no_commit_there_can_not_be_put_first(olga: Client, company: Any, commit: str) -> None:
    assert olga.post(f"{MIRROR}prioritise/", {"commit": commit}).status_code == 404


@pytest.mark.parametrize("query", ["?after=x", "?after=-1", "?after=99999999999999999999"])
@pytest.mark.parametrize("part", ["commits/", "backlog/", "runs/", "audit/"])
def test_an_offset_that_is_none_is_refused(olga: Client, company: Any, part: str, query: str) -> None:
    assert olga.get(f"{MIRROR}{part}{query}").status_code == 400


def test_who_may_only_look_gets_no_buttons_and_no_deeds(teammate: User, client: Client, company: Any) -> None:
    client.force_login(teammate)
    page = client.get(page_of("nightly orders load")).content.decode()
    assert "orders/day=2026-11-20" in page
    assert 'name="which"' not in page and 'id="prioritise"' not in page
    assert client.post(f"{MIRROR}backlog/retry/", {"which": "all"}).status_code == 403
    assert client.post(f"{MIRROR}prioritise/", {"commit": sha_of("prices")}).status_code == 403
    assert client.post(f"{MIRROR}validate/").status_code == 403
    assert not AuditEvent.objects.filter(actor="tom", refused=False).exists() and not Validation.objects.exists()


def test_messages_are_escaped(olga: Client, company: Any) -> None:
    path = page_of("prices")
    Commit.objects.filter(message="prices").update(message="<img src=x onerror=alert(2)>", committer="<b>eve</b>")
    page = olga.get(path).content.decode()
    assert "<img src=x" not in page and "<b>eve" not in page


def test_a_poll_gets_only_the_part(olga: Client, company: Any) -> None:
    part = olga.get(page_of("prices"), headers={"HX-Request": "true", "HX-Target": "live"}).content.decode()
    assert part.count('id="live"') == 1 and "<html" not in part and "every 3s" in part


# The list


def test_commits_are_listed_with_their_ladders(olga: Client, company: Any) -> None:
    said = text(olga.get(f"{MIRROR}commits/"))
    for words in (
        "nightly orders load",
        "3 objects missing for",
        "waits for its ancestors",
        "superseded",
        "mirror head",
    ):
        assert words in said


def test_the_list_may_be_of_a_branch_and_of_a_stage(olga: Client, company: Any) -> None:
    of_main = text(olga.get(f"{MIRROR}commits/", {"branch": "main"}))
    assert "returns" in of_main and "model 42" not in of_main
    promoted = text(olga.get(f"{MIRROR}commits/", {"branch": "main", "stage": "promoted"}))
    assert "orders 2026-11-19" in promoted and "customers" not in promoted
    assert "has no branch 'nowhere'" in text(olga.get(f"{MIRROR}commits/", {"branch": "nowhere"}))
    assert "No commits match these filters." in text(
        olga.get(f"{MIRROR}commits/", {"branch": "features_v2", "stage": "seen"})
    )


def test_the_list_comes_in_pages(olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.pages.ROWS", 3)
    first = olga.get(f"{MIRROR}commits/", {"branch": "main"})
    assert "returns" in text(first) and "customers" not in text(first)
    assert "?branch=main&amp;after=4" in first.content.decode()
    assert "customers" in text(olga.get(f"{MIRROR}commits/", {"branch": "main", "after": "4"}))


def test_ids_on_the_mirror_s_page_lead_to_commits(olga: Client, company: Any) -> None:
    page = olga.get(f"{MIRROR}?branch=main").content.decode()
    for message in ("nightly orders load", "returns", "orders 2026-11-19"):
        assert page_of(message) in page


def test_the_number_of_queries_does_not_grow_with_the_rows(
    olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    for rows in (3, 50):
        monkeypatch.setattr("web.pages.ROWS", rows)
        with django_assert_max_num_queries(40):
            olga.get(f"{MIRROR}commits/")
