"""The page on which a mirror is made, without a browser: what it says while somebody types."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterator

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from core.access.policies import namespace_arn, repository_arn
from core.errors import Unreachable
from core.types import ReplicationRule
from mirrors.models import Mirror
from rbac import services
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment, deployment
from tests.mirrors.views.test_pages import TYPED, text

pytestmark = pytest.mark.django_db

NEW = "/mirrors/new/"


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """Two regions between which everything is in order, and no mirror yet."""
    with deployment() as made:
        made.lake.commit()
        for branch in ("dev", "tmp-1", "tmp-2"):
            made.lake.repository.branches[branch] = made.lake.repository.branches["main"]
        made.us_store.bucket_versioning["src"] = made.eu_store.bucket_versioning["dst"] = "Enabled"
        made.us_store.rules["src"] = [ReplicationRule("to-eu", True, "", "dst")]
        yield made


def part(client: Client, target: str, **typed: str) -> HttpResponse:
    answer = client.post(NEW, TYPED | typed, headers={"HX-Request": "true", "HX-Target": target})
    assert answer.status_code == 200
    assert "<html" not in answer.content.decode()
    return answer


def call_of(answer: HttpResponse) -> list[str]:
    """The words of the API call, as a shell takes them."""
    found = re.search(r"<pre[^>]*><code>(curl .*?)</code>", answer.content.decode(), re.DOTALL)
    assert found
    return shlex.split(html.unescape(found[1]).replace("\\\n", ""))


def test_checks_are_said_while_one_types_and_nothing_is_made(olga: Client, lm: Deployment) -> None:
    answer = part(olga, "preflight")
    assert "Ready: " in text(answer)
    assert "9 rights not tested" in text(answer)
    assert not Mirror.objects.exists()


def test_what_failed_comes_first_with_its_fix(olga: Client, lm: Deployment) -> None:
    said = text(part(olga, "preflight", storage_namespace="s3://src/lake/in"))
    assert re.search(r"\d of \d+ checks failed: see below for what to do", said)
    order = [
        "overlaps the source's s3://src/lake",
        "Choose a namespace of its own",
        "passed",
        "nothing has been changed",
    ]
    assert [said.index(words) for words in order] == sorted(said.index(words) for words in order)


def test_nothing_is_asked_before_the_repository_is_named(olga: Client, lm: Deployment) -> None:
    assert "Nothing has been checked yet" in text(part(olga, "preflight", source_repository=""))
    assert "once the repository is entered" in text(part(olga, "matches", source_repository=" "))
    assert "Nothing has been checked yet" in text(olga.get(NEW))
    assert lm.us.calls == lm.eu.calls == []


def test_half_of_the_fields_are_checked_too(olga: Client, lm: Deployment) -> None:
    said = text(part(olga, "preflight", name="", storage_namespace=""))
    assert "'lake' exists, and main is at" in said


@pytest.fixture
def others(teammate: User, client: Client) -> Client:
    """The browser of somebody who may create mirrors of another repository."""
    of_others = allow(["fs:MirrorRepository", "fs:CreateRepository"], repository_arn("others*"))
    places = allow(["fs:AttachStorageNamespace"], namespace_arn("s3://others/*"))
    policy = services.policy_put(actor="system:tests", document=policy_document("Others", of_others, places))
    services.policy_attach(actor="system:tests", policy=policy, user=teammate)
    client.force_login(teammate)
    return client


def test_who_may_not_make_it_is_told_which_right_is_missing(others: Client, lm: Deployment) -> None:
    assert "tom may not fs:CreateRepository" in text(part(others, "preflight"))
    assert "tom may not fs:MirrorRepository" in text(part(others, "matches"))
    assert lm.us.calls == lm.eu.calls == []


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({}, "4 of 4 branches would be mirrored: dev, main, tmp-1, tmp-2."),
        ({"exclude": "tmp-*"}, "2 of 4 branches would be mirrored: dev, main. Left out: tmp-1, tmp-2."),
        ({"include": "main\nrelease-*"}, "include: 'release-*' matches no branch now"),
        ({"exclude": "main"}, "the default branch 'main' can't be excluded"),
        ({"source_repository": "nothing"}, "repository not found"),
        ({"source_repository": "No Name"}, "there is no repository 'No Name' in us-east-1"),
    ],
)
def test_the_branches_that_globs_match_are_named(
    olga: Client, lm: Deployment, typed: dict[str, str], words: str
) -> None:
    assert words in text(part(olga, "matches", **typed))


def test_of_many_branches_the_first_are_named(olga: Client, lm: Deployment) -> None:
    lm.lake.repository.branches |= {f"b{n:04}": lm.lake.repository.branches["main"] for n in range(1200)}
    said = text(part(olga, "matches", include="b*"))
    assert "1,201 of 1,204 branches would be mirrored: b0000," in said and "and 1,191 more." in said


def test_the_cost_is_told_while_one_types(olga: Client, lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1", "b": b"22"})
    lm.us.calls.clear()
    said = text(part(olga, "cost", name="", storage_namespace=""))
    for words in (
        "Commits 3",
        "Ranges 2 in 2 metaranges",
        "Entries 4",
        "Bytes 7 bytes",
        "first check",
        "all of them read",
    ):
        assert words in said
    assert "more than" not in said and "nothing has been changed" in said
    assert not Mirror.objects.exists() and lm.eu.calls == []


def test_a_cost_that_was_not_counted_to_the_end_says_so(
    olga: Client, lm: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm.lake.commit(files={"a": b"1", "b": b"22"})
    monkeypatch.setattr("mirrors.preflight.cost.MOST_HEADS", 1)
    monkeypatch.setattr("mirrors.preflight.cost_sample.MOST_COMMITS", 1)
    said = text(part(olga, "cost"))
    for words in ("Commits more than 3", "counting stopped there", "Entries more than", "1 of 2 heads was read"):
        assert words in said


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"source_repository": ""}, "Counted once the repository is entered"),
        ({"source_repository": "nothing"}, "there is no repository 'nothing' in us-east-1. Check the name"),
        ({"source_repository": "No Name"}, "there is no repository 'No Name' in us-east-1. Check the name"),
        ({"source_region": "mars"}, "mars"),
        ({"exclude": "main"}, "the default branch 'main' can't be excluded"),
    ],
)
def test_a_cost_that_can_not_be_told_says_what_to_do(
    olga: Client, lm: Deployment, typed: dict[str, str], words: str
) -> None:
    assert words in text(part(olga, "cost", **typed))


def test_a_source_that_does_not_answer_is_named_in_place_of_the_cost(olga: Client, lm: Deployment) -> None:
    lm.us.failing["get_repository"] = Unreachable("http://us did not answer", hint="Start it")
    said = text(part(olga, "cost"))
    assert "the source us-east-1 can't be asked: http://us did not answer. Start it" in said
    assert "Counted again" in said


def test_who_may_not_mirror_a_repository_learns_nothing_of_its_size(others: Client, lm: Deployment) -> None:
    assert "tom may not fs:MirrorRepository" in text(part(others, "cost"))
    assert lm.us.calls == lm.eu.calls == []


def test_a_source_that_can_not_be_asked_is_said_in_place_of_branches(olga: Client, lm: Deployment) -> None:
    lm.us.failing["list_branches"] = Unreachable("http://us did not answer")
    assert "http://us did not answer" in text(part(olga, "matches"))


def test_check_without_scripts_keeps_what_was_typed_and_makes_nothing(olga: Client, lm: Deployment) -> None:
    typed = TYPED | {
        "name": "Not A Name",
        "exclude": "tmp-*\nx",
        "tags": "on",
        "region": "ap-southeast-2",
        "check": "1",
    }
    answer = olga.post(NEW, typed)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "'Not A Name' is not a valid mirror name" in html.unescape(
        page
    ) and "'x' matches no branch now" in html.unescape(page)
    assert 'value="Not A Name"' in page and "tmp-*\nx</textarea>" in page
    assert re.search(r'name="tags"[^>]*checked', page)
    assert re.search(r'name="region" value="ap-southeast-2"[^>]*checked', page)
    assert "of them read" in text(answer)
    assert 'role="alert"' not in page
    assert not Mirror.objects.exists()


def test_what_fails_is_asked_about_before_a_mirror_is_created(olga: Client, lm: Deployment) -> None:
    lm.eu_store.bucket_versioning["dst"] = ""
    answer = olga.post(NEW, TYPED)
    page = answer.content.decode()
    assert answer.status_code == 409 and "Create anyway" in page and "check failed" in text(answer)
    assert re.findall(r'hx-trigger="[^"]*from:#(\S+), load"', page) == ["what", "check"]  # branches and cost; no check
    assert not Mirror.objects.exists()
    assert olga.post(NEW, TYPED | {"anyway": "1"}).status_code == 302
    created = AuditEvent.objects.get(verb="create", subject="mirror/lake-eu")
    assert "destination-versioning" in created.after["failed_checks"]


def test_what_passes_is_created_at_once(olga: Client, lm: Deployment) -> None:
    assert olga.post(NEW, TYPED).status_code == 302
    assert "failed_checks" not in AuditEvent.objects.get(verb="create", subject="mirror/lake-eu").after


def test_an_api_call_may_require_that_no_check_fails(api: Api, lm: Deployment) -> None:
    body = {name: TYPED[name] for name in ("name", "region", "storage_namespace")}
    lm.eu_store.bucket_versioning["dst"] = ""
    status, told = api.call("POST", MIRRORS, body | {"require_checks": True})
    assert status == 409 and "destination-versioning" in told["message"]
    assert not Mirror.objects.exists()
    assert api.call("POST", MIRRORS, body)[0] == 201


def test_the_api_call_says_what_was_typed_and_can_be_pasted(olga: Client, lm: Deployment) -> None:
    words = call_of(
        part(olga, "preflight", storage_namespace="s3://dst/it's", exclude="tmp-*", source_region="eu-west-1")
    )
    assert words[-1] == "http://testserver/service/replication/v1/repositories/lake/mirrors"
    assert json.loads(words[words.index("-d") + 1]) == {
        "name": "lake-eu",
        "region": "eu-west-1",
        "storage_namespace": "s3://dst/it's",
        "source_region": "eu-west-1",
        "branches": {"include": ["*"], "exclude": ["tmp-*"]},
    }
    assert call_of(olga.get(NEW))[-1].endswith("/repositories/REPOSITORY/mirrors")


@pytest.mark.parametrize("name", ["a/b", "ü", "$(reboot)", "%2F", "'; x"])
def test_a_call_can_hold_whatever_was_typed(olga: Client, lm: Deployment, name: str) -> None:
    words = call_of(part(olga, "preflight", source_repository=name, name=name))
    assert len(words) == 8 and json.loads(words[words.index("-d") + 1])["name"] == name


def test_regions_are_shown_with_what_is_known_of_them(olga: Client) -> None:
    make_company()
    said = text(olga.get(NEW))
    assert re.search(r"us-east-1 127.0.0.1:\d+ · 7 repositories mirrored from here, checked \d+ s ago", said)
    assert re.search(r"eu-west-1 127.0.0.1:\d+ · 7 mirrors there, checked \d+ s ago", said)
    assert "no mirror there yet" in said


def test_the_page_costs_the_same_whatever_there_is(olga: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            olga.get(NEW)
        return len(asked)

    before = queries()
    make_company()
    assert queries() == before


def test_a_refused_form_keeps_the_chosen_region(olga: Client, lm: Deployment) -> None:
    page = olga.post(NEW, TYPED | {"name": "", "region": "ap-southeast-2"}).content.decode()
    assert re.search(r'name="region" value="ap-southeast-2"[^>]*checked', page)


# What helps to fill it in


def test_what_is_still_empty_is_no_failure(olga: Client, lm: Deployment) -> None:
    said = text(part(olga, "preflight", name="", storage_namespace=""))
    assert "''" not in said and "is not a valid mirror name" not in said and "is not a storage namespace" not in said
    assert "Fill in the name of the mirror and the storage namespace for the rest." in said
    assert "Fill in the storage namespace for the rest." in text(part(olga, "preflight", storage_namespace=""))


def test_repositories_and_buckets_are_suggested(olga: Client, lm: Deployment) -> None:
    page = part(olga, "picks", source_repository="").content.decode()
    assert '<option value="lake">' in page and "load" not in page
    assert 'hx-trigger="load, change' in olga.get(NEW).content.decode()
    lm.us.down = True
    assert part(olga, "picks").status_code == 200


def test_only_what_one_may_mirror_and_use_is_suggested(others: Client, olga: Client, lm: Deployment) -> None:
    lm.eu.add_repository("other", "s3://vault/other")
    seen = part(olga, "picks").content.decode()
    assert '<option value="lake">' in seen and "s3://vault/" in seen
    seen = part(others, "picks").content.decode()
    assert '<option value="lake">' not in seen and "s3://vault/" not in seen


def test_a_refused_form_is_checked_again_at_once(olga: Client, lm: Deployment) -> None:
    page = olga.post(NEW, {**TYPED, "name": ""})
    assert page.status_code == 400 and page.content.decode().count(", load") == 3


def test_depth_lag_target_and_adoption_are_chosen_on_the_page(olga: Client, lm: Deployment) -> None:
    chosen = {"depth": "size", "rpo_seconds": "900"}
    call = " ".join(call_of(part(olga, "preflight", adopt="on", **chosen)))
    assert '"adopt": true' in call and '"validation_depth": "size"' in call and '"rpo_seconds": 900' in call
    assert olga.post(NEW, {**TYPED, **chosen}).status_code == 302
    mirror = Mirror.objects.get()
    assert (mirror.depth, mirror.rpo_seconds) == ("size", 900)


def test_on_a_phone_the_checks_stand_before_the_button(olga: Client, lm: Deployment) -> None:
    page = olga.get(NEW).content.decode()
    assert page.index('id="preflight"') < page.index("Create mirror</button>")
    assert '<button class="button primary" form="new-mirror">' in page
