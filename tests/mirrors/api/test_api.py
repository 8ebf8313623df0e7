"""The replication API as programs use it: rights, statuses, messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.errors import Unreachable
from deployment import config
from mirrors.models import Mirror
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.harness import Deployment, deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


@pytest.fixture
def api(owner: User, lm: Deployment) -> Api:
    return Api(owner)


def test_a_mirror_says_when_its_source_was_looked_at(api: Api, lm: Deployment) -> None:
    made = api.call("POST", MIRRORS, BODY)[1]
    assert made["source_looked_at"] is None
    lm.work()
    shown = api.call("GET", f"{MIRRORS}/lake-eu")[1]
    assert made["as_of"] <= shown["source_looked_at"] <= shown["as_of"]
    assert made["as_of"] <= shown["destination_looked_at"] <= shown["as_of"]


def test_a_mirror_is_created_listed_shown_and_deleted(api: Api, lm: Deployment) -> None:
    status, made = api.call("POST", MIRRORS, BODY)
    assert status == 201
    assert {key: made[key] for key in ("id", "source_repository", "source_region", "region", "storage_namespace")} == {
        "id": "lake-eu",
        "source_repository": "lake",
        "source_region": "us-east-1",
        "region": "eu-west-1",
        "storage_namespace": "s3://dst/lake",
    }
    assert made["as_of"].endswith("Z")
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    status, listed = api.call("GET", MIRRORS)
    assert (status, [m["id"] for m in listed["results"]]) == (200, ["lake-eu"])
    assert listed["pagination"] == {"has_more": False, "next_offset": "", "max_per_page": 1000, "results": 1}
    status, shown = api.call("GET", f"{MIRRORS}/lake-eu")
    assert status == 200
    assert shown["branches"][0]["name"] == "main"
    assert api.call("DELETE", f"{MIRRORS}/lake-eu") == (204, None)
    assert api.call("GET", f"{MIRRORS}/lake-eu")[0] == 404
    assert api.call("DELETE", f"{MIRRORS}/lake-eu")[0] == 404
    status, answer = api.call("POST", MIRRORS, BODY)
    assert status == 409
    assert "being deleted" in answer["message"] or "overlaps" in answer["message"]
    lm.work()
    assert not Mirror.objects.exists()
    assert api.call("POST", MIRRORS, BODY)[0] == 201
    actions = list(AuditEvent.objects.filter(actor="olga").values_list("action", flat=True))
    assert actions.count("fs:MirrorRepository") == 2
    assert actions.count("fs:DeleteRepository") == 1


def test_a_mirror_s_depth_is_chosen_at_its_creation(api: Api, lm: Deployment) -> None:
    status, made = api.call("POST", MIRRORS, BODY | {"validation_depth": "content", "content_sample": 0.05})
    assert (status, made["validation_depth"], made["content_sample"]) == (201, "content", 0.05)
    mirror = Mirror.objects.get()
    assert (mirror.depth, mirror.content_sample) == ("content", 0.05)


def test_imported_objects_are_allowed_at_a_mirror_s_creation(api: Api, lm: Deployment) -> None:
    status, made = api.call("POST", MIRRORS, BODY | {"imported": "allow"})
    assert (status, made["imported"], Mirror.objects.get().imported) == (201, "allow", "allow")


def test_a_mirror_is_checked_by_etag_and_without_imports_unless_told_otherwise(api: Api, lm: Deployment) -> None:
    _, made = api.call("POST", MIRRORS, BODY)
    assert (made["validation_depth"], made["imported"]) == ("etag", "block")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("validation_depth", "deep"),
        ("validation_depth", None),
        ("content_sample", 0),
        ("content_sample", 1.5),
        ("imported", "copy"),
    ],
)
def test_a_depth_that_is_none_is_refused_by_its_field(api: Api, lm: Deployment, field: str, value: Any) -> None:
    status, answer = api.call("POST", MIRRORS, BODY | {field: value})
    assert status == 400
    assert field in answer["message"]
    assert not Mirror.objects.exists()


def test_what_a_blocked_mirror_lacks_is_named(api: Api, lm: Deployment) -> None:
    api.call("POST", MIRRORS, BODY)
    commit = lm.lake.commit(files={"wanted/file.csv": b"1"})
    held = lm.lake.address_of(commit, "wanted/file.csv")
    lm.arrive(held)
    lm.work()
    text = json.dumps(api.call("GET", f"{MIRRORS}/lake-eu")[1])
    assert held in text
    assert "wanted/file.csv" in text
    assert "missing" in text


@pytest.mark.parametrize(
    ("method", "action", "arn"),
    [
        ("POST", "fs:CreateRepository", "arn:lakefs:fs:::repository/lake-eu"),
        ("GET", "fs:ListRepositories", "*"),
        ("DELETE", "fs:DeleteRepository", "arn:lakefs:fs:::repository/lake-eu"),
    ],
)
def test_without_the_right_the_answer_names_action_and_arn(
    outsider: User, lm: Deployment, method: str, action: str, arn: str
) -> None:
    lm.add_mirror()
    path = f"{MIRRORS}/lake-eu" if method == "DELETE" else MIRRORS
    status, answer = Api(outsider).call(method, path, BODY if method == "POST" else None)
    assert status == 403
    assert action in answer["message"]
    assert arn in answer["message"]


def test_a_viewer_may_look_and_nothing_else(teammate: User, lm: Deployment) -> None:
    api = Api(teammate)
    assert api.call("GET", MIRRORS)[0] == 200
    assert api.call("POST", MIRRORS, BODY)[0] == 403


def test_wrong_or_no_credentials_are_told_apart_from_missing_rights(api: Api) -> None:
    for header in ("", "Basic bm9ib2R5Ondyb25n", "Basic !!!", "Bearer x"):
        api.headers = {"Authorization": header} if header else {}
        status, answer = api.call("GET", MIRRORS)
        assert status == 401
        assert answer["message"]


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"name": "UPPER"}, 400, "name"),
        ({"name": "new"}, 400, "/mirrors/new/ is a page of LakeMirror's own"),
        ({"name": "x"}, 400, "name"),
        ({"name": "a" * 64}, 400, "name"),
        ({"name": "läke"}, 400, "name"),
        ({"name": ""}, 400, "name"),
        ({"name": 7.5}, 400, "name"),
        ({"name": ["a"]}, 400, "name"),
        ({"name": None}, 400, "name"),
        ({"region": "mars"}, 400, "region"),
        ({"region": ""}, 400, "region"),
        ({"source_region": "mars"}, 400, "region"),
        ({"storage_namespace": "dst/lake"}, 400, "storage_namespace"),
        ({"storage_namespace": "gs://dst/lake"}, 400, "storage_namespace"),
        ({"storage_namespace": "s3://src/lake"}, 400, "source"),
        ({"storage_namespace": "s3://src/lake/inside"}, 400, "source"),
        ({"storage_namespace": "s3://src"}, 400, "source"),
        ({"storage_namespace": "s3://" + "d" * 2000}, 400, "storage_namespace"),
        ({"colour": "blue"}, 400, "colour"),
    ],
)
def test_bad_fields_are_named(api: Api, change: dict[str, Any], status: int, says: str) -> None:
    got, answer = api.call("POST", MIRRORS, BODY | change)
    assert got == status, answer
    assert says in answer["message"]
    assert not Mirror.objects.exists()


@pytest.mark.parametrize("missing", ["name", "region", "storage_namespace"])
def test_missing_fields_are_named(api: Api, missing: str) -> None:
    status, answer = api.call("POST", MIRRORS, {k: v for k, v in BODY.items() if k != missing})
    assert status == 400
    assert missing in answer["message"]


@pytest.mark.parametrize("body", ["{", "[]", '"text"', "7", "", b"\xff\xfe"])
def test_a_body_that_is_no_object_is_told_so(api: Api, body: Any) -> None:
    status, answer = api.call("POST", MIRRORS, body)
    assert status == 400
    assert answer["message"]


def test_a_body_of_two_megabytes_is_refused(api: Api) -> None:
    status, answer = api.call("POST", MIRRORS, json.dumps(BODY | {"name": "x" * 2_000_000}))
    assert status in (400, 413)
    assert answer["message"]


def test_an_unknown_source_is_not_found(api: Api) -> None:
    status, answer = api.call("POST", MIRRORS.replace("lake", "nowhere", 1), BODY)
    assert status == 404
    assert "nowhere" in answer["message"]


def test_a_name_is_taken_by_a_mirror_or_by_any_repository(api: Api, lm: Deployment) -> None:
    assert api.call("POST", MIRRORS, BODY)[0] == 201
    status, answer = api.call("POST", MIRRORS, BODY | {"storage_namespace": "s3://dst/other"})
    assert status == 409
    assert "lake-eu" in answer["message"]
    lm.eu.add_repository("theirs", "s3://dst/theirs")
    status, answer = api.call("POST", MIRRORS, BODY | {"name": "theirs", "storage_namespace": "s3://dst/mine"})
    assert status == 409
    assert "theirs" in answer["message"]


def test_an_existing_read_only_repository_is_adopted_when_asked_to(api: Api, lm: Deployment) -> None:
    there = lm.eu.add_repository("lake-eu", "s3://dst/lake", read_only=True)
    there.branches["main"] = lm.lake.repository.branches["main"]
    status, answer = api.call("POST", MIRRORS, BODY)
    assert (status, "adopt" in answer["message"]) == (409, True)
    status, answer = api.call("POST", MIRRORS, BODY | {"adopt": "perhaps"})
    assert (status, "adopt" in answer["message"]) == (400, True)
    status, answer = api.call("POST", MIRRORS, BODY | {"adopt": True})
    assert (status, answer["id"]) == (201, "lake-eu")


@pytest.mark.parametrize("namespace", ["s3://dst/lake", "s3://dst/lake/", "s3://dst/lake/deeper", "s3://dst"])
def test_a_used_namespace_is_taken(api: Api, namespace: str) -> None:
    assert api.call("POST", MIRRORS, BODY)[0] == 201
    status, answer = api.call("POST", MIRRORS, BODY | {"name": "second", "storage_namespace": namespace})
    assert status == 409
    assert "lake-eu" in answer["message"]


@pytest.mark.parametrize("side", ["us", "eu"])
def test_an_installation_that_can_not_be_asked_is_a_503_and_nothing_is_stored(
    api: Api, lm: Deployment, side: str
) -> None:
    getattr(lm, side).failing["get_repository"] = Unreachable("no answer within 15 s")
    status, answer = api.call("POST", MIRRORS, BODY)
    assert status == 503
    assert "no answer" in answer["message"]
    assert not Mirror.objects.exists()


def test_lists_come_in_pages(api: Api) -> None:
    for n in range(3):
        api.call("POST", MIRRORS, BODY | {"name": f"lake-{n}", "storage_namespace": f"s3://dst/l{n}"})
    status, first = api.call("GET", f"{MIRRORS}?amount=2")
    assert (status, first["pagination"]["has_more"], first["pagination"]["next_offset"]) == (200, True, "lake-1")
    rest = api.call("GET", f"{MIRRORS}?amount=2&after=lake-1")[1]
    assert [m["id"] for m in rest["results"]] == ["lake-2"]
    for amount in ("-2", "x", "5000", "²"):
        assert api.call("GET", f"{MIRRORS}?amount={amount}")[0] == 400


def test_a_webhook_makes_the_sensor_look_at_once(lm: Deployment) -> None:
    lm.add_mirror()
    body = json.dumps({"event_type": "post-commit", "repository_id": "lake", "branch_id": "main"})
    secret = str(config.current().hook_secret("us-east-1"))
    client = Client()

    def deliver(path: str, text: str, token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return client.post(path, text, content_type="application/json", headers=headers).status_code

    path = "/service/replication/v1/hooks/lakefs/us-east-1"
    assert deliver(path, body, secret) == 202
    assert deliver("/hooks/lakefs/us-east-1", body, secret) == 202
    assert deliver(path, body, "wrong") == 401
    assert deliver(path, body, "") == 401
    assert deliver("/service/replication/v1/hooks/lakefs/mars", body, secret) == 401
    for bad in ("{", "[]", "{}", "7"):
        assert deliver(path, bad, secret) == 400


def test_uncommitted_changes_of_a_mirrors_branch_are_undone_when_asked_for(api: Api, lm: Deployment) -> None:
    api.call("POST", MIRRORS, BODY)
    lm.work()
    there = lm.eu.repositories["lake-eu"]
    there.uncommitted.add("main")
    assert api.call("POST", f"{MIRRORS}/lake-eu/reset-branch", {"branch": "main"})[0] == 202
    lm.work(1)
    assert not there.uncommitted
    assert AuditEvent.objects.filter(after__reset_branch="main").exists()


@pytest.mark.parametrize(("body", "status"), [({"branch": "nowhere"}, 404), ({}, 400), ([], 400)])
def test_a_branch_to_undo_has_to_be_named(api: Api, lm: Deployment, body: Any, status: int) -> None:
    api.call("POST", MIRRORS, BODY)
    lm.work()
    assert api.call("POST", f"{MIRRORS}/lake-eu/reset-branch", body)[0] == status


def test_nothing_is_undone_on_a_stopped_mirror_or_for_an_outsider(api: Api, lm: Deployment, outsider: User) -> None:
    api.call("POST", MIRRORS, BODY)
    lm.work()
    assert Api(outsider).call("POST", f"{MIRRORS}/lake-eu/reset-branch", {"branch": "main"})[0] == 403
    Mirror.objects.update(state="stopped")
    assert api.call("POST", f"{MIRRORS}/lake-eu/reset-branch", {"branch": "main"})[0] == 409


def test_the_moves_of_a_mirrors_branches_are_listed_page_by_page(api: Api, lm: Deployment) -> None:
    api.call("POST", MIRRORS, BODY)
    lm.work()
    there = lm.eu.repositories["lake-eu"]
    first, second = lm.lake.repository.branches["main"], lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    there.branches["main"] = first
    lm.work()
    status, page = api.call("GET", f"{MIRRORS}/lake-eu/promotions?amount=3&branch=main")
    assert status == 200
    assert [(move["why"], move["from"], move["to"]) for move in page["results"]] == [
        ("put-back", first, second),
        ("back-where-it-was", second, first),
        ("advanced", first, second),
    ]
    last = api.call("GET", f"{MIRRORS}/lake-eu/promotions?after={page['pagination']['next_offset']}")[1]
    assert [(move["why"], move["from"]) for move in last["results"]] == [("first-promotion", None)]
    assert not last["pagination"]["has_more"]
    assert api.call("GET", f"{MIRRORS}/lake-eu/promotions?branch=nowhere")[1]["results"] == []
    assert api.call("GET", f"{MIRRORS}/lake-eu/promotions?after=x")[0] == 400
