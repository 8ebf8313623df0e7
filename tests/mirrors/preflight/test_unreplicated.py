"""What was at the source before the replication rule: counted, and named in a manifest; by API, pages and command."""

from __future__ import annotations

import csv
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from core.errors import Denied, RemoteFailure, Unreachable
from core.text.sizes import size_in_words
from core.types import ObjectVersion
from mirrors.models import Mirror
from mirrors.preflight import unreplicated as module
from rbac.models import KeyedCall, User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.harness import NAMESPACE, Deployment, deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db

OF_MIRROR = f"{MIRRORS}/lake-eu/unreplicated"
OF_PLAN = f"{MIRRORS}/unreplicated"
TYPED = BODY | {"source_repository": "lake", "source_region": "us-east-1"}


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """A source with two files, of which one is not at the destination, nor a metarange."""
    with deployment() as made:
        made.lake.commit(files={"a": b"1", "b": b"22"})
        made.arrive()
        made.lake.commit(files={"c, d+ü": b"333"})
        yield made


@pytest.fixture
def mirror(lm: Deployment) -> Mirror:
    return lm.add_mirror()


@pytest.fixture
def api(owner: User, lm: Deployment) -> Api:
    return Api(owner)


def lacking(lm: Deployment) -> set[str]:
    """Keys of the source's bucket that are not at the destination."""
    there = {uri.replace("s3://dst/", "s3://src/") for uri in lm.eu_store.objects}
    return {uri.removeprefix("s3://src/") for uri in lm.us_store.objects if uri not in there}


def manifest(api: Api, path: str = OF_MIRROR, body: Any = None, query: str = "") -> list[list[str]]:
    method = "GET" if body is None else "POST"
    answer = api.client.generic(
        method,
        f"{path}?format=csv{query}",
        b"" if body is None else str(body).replace("'", '"').encode(),
        content_type="application/json",
        headers=api.headers,
    )
    assert answer.status_code == 200, answer.content
    assert "lake-eu-manifest.csv" in answer["Content-Disposition"]
    return list(csv.reader(answer.getvalue().decode().splitlines()))


def test_objects_and_bytes_that_were_never_sent_are_counted(lm: Deployment, mirror: Mirror, api: Api) -> None:
    status, told = api.call("GET", OF_MIRROR)
    keys = lacking(lm)
    assert len(keys) == 3, "an object, a range and a metarange"
    size = sum(len(lm.us_store.objects[f"s3://src/{key}"]) for key in keys)
    assert (status, told["objects"], told["bytes"], told["at_least"]) == (200, 3, size, False)
    assert told["looked_at"] == len(lm.us_store.objects)
    lm.arrive()
    assert api.call("GET", OF_MIRROR)[1]["objects"] == 0


def test_the_manifest_names_each_with_bucket_key_and_version(lm: Deployment, mirror: Mirror, api: Api) -> None:
    rows = manifest(api)
    assert {(bucket, key) for bucket, key, _ in rows} == {("src", key) for key in lacking(lm)}
    assert all(version.startswith("v-") for *_, version in rows)
    plain = manifest(api, query="&versions=false")
    assert [row[:2] for row in rows] == plain
    lm.arrive()
    assert manifest(api) == []


def test_of_a_plan_the_same_is_told_and_nothing_stored(lm: Deployment, api: Api) -> None:
    status, told = api.call("POST", OF_PLAN, BODY)
    assert (status, told["objects"]) == (200, 3)
    assert len(manifest(api, OF_PLAN, BODY)) == 3
    assert not Mirror.objects.exists()
    assert api.call("POST", OF_PLAN, BODY | {"storage_namespace": "nowhere"})[0] == 400
    assert api.call("POST", OF_PLAN.replace("/lake/", "/none/"), BODY)[0] == 404


@pytest.mark.parametrize("name", ["a\r\nSet-Cookie: x=y", 'a"; filename="b', "ü"])
def test_a_plan_whose_name_can_be_none_gets_no_file_of_that_name(lm: Deployment, api: Api, name: str) -> None:
    status, told = api.call("POST", f"{OF_PLAN}?format=csv", BODY | {"name": name})
    assert (status, told["field"]) == (400, "name")


def test_a_manifest_that_is_asked_for_with_a_key_is_made_anew(lm: Deployment, api: Api) -> None:
    api.headers = {**api.headers, "Idempotency-Key": "once"}
    assert len(manifest(api, OF_PLAN, BODY)) == len(manifest(api, OF_PLAN, BODY)) == 3
    assert not KeyedCall.objects.exists()


def test_a_mirror_of_that_name_keeps_its_address(lm: Deployment, mirror: Mirror, api: Api) -> None:
    Mirror.objects.update(name="unreplicated")
    assert api.call("GET", OF_PLAN)[1]["name"] == "unreplicated"


def test_who_may_only_look_may_not_have_it_listed(lm: Deployment, mirror: Mirror, teammate: User) -> None:
    lm.us_store.heads = lm.eu_store.heads = 0
    for method, path, body in (("GET", OF_MIRROR, None), ("POST", OF_PLAN, BODY)):
        assert Api(teammate).call(method, path, body)[0] == 403
    assert lm.us_store.heads == lm.eu_store.heads == 0


def test_without_the_right_to_list_versions_it_is_said_what_to_do(
    lm: Deployment, mirror: Mirror, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(uri: str) -> Iterator[ObjectVersion]:
        raise Denied("403")
        yield

    monkeypatch.setattr(lm.us_store, "list_versions", refused)
    status, told = api.call("GET", f"{OF_MIRROR}?format=csv")
    assert status == 502 and "Allow s3:ListBucketVersions on src" in told["message"]
    assert len(manifest(api, query="&versions=false")) == 3


def test_a_store_that_does_not_answer_gives_no_number_and_no_manifest(lm: Deployment, mirror: Mirror, api: Api) -> None:
    lm.eu_store.down = Unreachable("http://eu did not answer")
    for path in (OF_MIRROR, f"{OF_MIRROR}?format=csv"):
        assert api.call("GET", path) == (503, {"message": "http://eu did not answer"})


def test_a_listing_that_breaks_off_breaks_the_manifest_off(
    lm: Deployment, mirror: Mirror, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(lm.us_store.list_versions("s3://src/lake/"))

    def broken(uri: str) -> Iterator[ObjectVersion]:
        yield from whole[:2]
        raise RemoteFailure("broke off")

    monkeypatch.setattr(lm.us_store, "list_versions", broken)
    answer = api.client.get(f"{OF_MIRROR}?format=csv", headers=api.headers)
    with pytest.raises(RemoteFailure):
        answer.getvalue()


def test_only_so_many_manifests_are_made_at_a_time(lm: Deployment, mirror: Mirror, api: Api) -> None:
    def ask() -> Any:
        return api.client.get(f"{OF_MIRROR}?format=csv", headers=api.headers)

    begun = [ask() for _ in range(module.MOST_AT_ONCE)]
    refused = ask()
    assert refused.status_code == 503 and "2 manifests are being made" in refused.json()["message"]
    for closes in begun[0]._resource_closers:  # what a server does whose reader has gone
        closes()
    again = ask()
    assert again.status_code == 200
    for answer in (*begun[1:], again):
        assert len(answer.getvalue().splitlines()) == 3
    lm.eu_store.down = Unreachable("down")
    assert [ask().status_code for _ in range(4)] == [503] * 4
    lm.eu_store.down = None
    assert len(manifest(api)) == 3


def test_a_manifest_that_is_dropped_keeps_nobody_out(lm: Deployment, mirror: Mirror, owner: User) -> None:
    route = module.route_of_mirror(actor=owner, mirror=mirror)
    for _ in range(2 * module.MOST_AT_ONCE):
        made = module.manifest(route, versions=True)
        assert next(made)
        del made
        gc.collect()


def test_what_there_was_no_time_for_is_not_taken_for_arrived(lm: Deployment, mirror: Mirror, owner: User) -> None:
    lm.arrive()
    found = module.count_unreplicated(module.route_of_mirror(actor=owner, mirror=mirror), seconds=-1.0)
    assert (found.objects, found.looked, found.whole) == (0, 0, False)


@pytest.mark.parametrize("query", ["?versions=maybe", "?format=xml"])
def test_a_parameter_that_says_nothing_is_refused(lm: Deployment, mirror: Mirror, api: Api, query: str) -> None:
    assert api.call("GET", OF_MIRROR + query)[0] in (400, 404)


# --- pages ------------------------------------------------------------------------------------------------------------


def test_the_backlog_counts_it_and_links_to_the_manifest(lm: Deployment, mirror: Mirror, olga: Client) -> None:
    page = olga.get("/mirrors/lake-eu/backlog/").content.decode()
    assert f'href="{OF_MIRROR}?format=csv"' in page
    answer = olga.post("/mirrors/lake-eu/unreplicated/", follow=True)
    size = size_in_words(sum(len(lm.us_store.objects[f"s3://src/{key}"]) for key in lacking(lm)))
    assert f"3 ({size}) are not in {NAMESPACE}." in text(answer)
    rows = csv.reader(olga.get(f"{OF_MIRROR}?format=csv").getvalue().decode().splitlines())
    assert len(list(rows)) == 3


def test_who_may_only_look_sees_neither_button_nor_manifest(lm: Deployment, mirror: Mirror, teammate: User) -> None:
    client = Client()
    client.force_login(teammate)
    page = client.get("/mirrors/lake-eu/backlog/")
    assert page.status_code == 200 and "Never replicated" not in page.content.decode()
    assert client.post("/mirrors/lake-eu/unreplicated/").status_code == 403


def test_new_mirror_says_how_much_and_gives_the_manifest(lm: Deployment, olga: Client) -> None:
    said = olga.post("/mirrors/new/", TYPED, headers={"HX-Request": "true", "HX-Target": "preflight"})
    assert "are not in s3://dst/lake" in text(said) and "Download the manifest" in text(said)
    answer = olga.post("/mirrors/new/", TYPED | {"manifest": "1"})
    assert answer["Content-Type"].startswith("text/csv")
    assert len(answer.getvalue().decode().splitlines()) == 3
    assert not Mirror.objects.exists()
    refused = olga.post("/mirrors/new/", TYPED | {"manifest": "1", "source_repository": "none"})
    assert refused.status_code == 404 and "there is no repository" in text(refused)
