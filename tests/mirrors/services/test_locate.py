"""Where an object can be read: which region is taken, what is told where none gives it, and to whom."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import pytest

from audit.models import AuditEvent
from core.access.documents import Document, allow, policy_document
from core.access.policies import namespace_arn, object_arn, repository_arn
from core.errors import Denied, Unreachable
from core.types import ObjectInfo
from mirrors.models import Coverage, Mirror, MirrorBranch
from mirrors.transitions import duties as mirror_duties
from rbac import services as rbac
from rbac.models import User
from tests.api import Api
from tests.cast import person
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db
AP_NAMESPACE = "s3://far/lake"
AWAY = Unreachable("no answer")


@pytest.fixture
def first(lm: Deployment) -> str:
    """A commit that is at the mirror."""
    commit = lm.lake.commit(files={"a": b"1", "b": b"2"})
    lm.arrive()
    lm.work()
    assert lm.head() == commit
    return commit


def address(**query: Any) -> str:
    return f"/service/replication/v1/repositories/lake/objects/locate?{urlencode({'ref': 'main', 'path': 'a'} | query)}"


def asked(user: User, **query: Any) -> tuple[int, Any]:
    return Api(user).call("GET", address(**query))


def given(user: User, **query: Any) -> Any:
    status, answer = asked(user, **query)
    assert status == 200, answer
    return answer


def allowed_to(name: str, *statements: Document) -> User:
    """Somebody with these statements alone."""
    user = person(name)
    rbac.policy_put(actor="system:tests", document=policy_document(f"P-{name}", *statements))
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_find(f"P-{name}"), user=user)
    return user


def source_down(lm: Deployment, *, store: bool = True) -> None:
    for call in ("get_branch", "get_tag", "get_commit", "get_repository"):
        lm.us.failing[call] = AWAY
    lm.us_store.down = AWAY if store else None


# --- which region ----------------------------------------------------------------------------------------------------


def test_the_deployments_own_region_gives_it_unless_another_is_preferred(
    lm: Deployment, first: str, owner: User
) -> None:
    answer = given(owner)
    where = f"s3://src/lake/{lm.lake.address_of(first, 'a')}"
    assert (answer["region"], answer["address"], answer["size"]) == ("us-east-1", where, 1)
    assert (answer["commit"], answer["fresh"], answer["tried"]) == (first, True, [])
    assert answer["url"].startswith(f"http://store/{where.removeprefix('s3://')}?X-Amz-Expires=900&")
    answer = given(owner, prefer="eu-west-1", seconds=3600)
    assert (answer["region"], answer["address"]) == ("eu-west-1", where.replace("s3://src/lake", NAMESPACE))
    assert "X-Amz-Expires=3600" in answer["url"]


def test_a_preferred_region_that_lacks_it_is_told(lm: Deployment, first: str, owner: User) -> None:
    lm.eu_store.hidden.add(f"{NAMESPACE}/{lm.lake.address_of(first, 'a')}")
    answer = given(owner, prefer="eu-west-1")
    assert (answer["region"], answer["tried"]) == ("us-east-1", [{"region": "eu-west-1", "why": "it is not there"}])


def test_47_with_the_source_down_the_mirrors_region_gives_it(lm: Deployment, first: str, owner: User) -> None:
    lm.lake.commit(files={"a": b"newer"})
    source_down(lm)
    answer = given(owner)
    assert (answer["region"], answer["commit"], answer["fresh"]) == ("eu-west-1", first, False)
    assert answer["tried"][0] == {"region": "us-east-1", "why": "its lakeFS can't be asked: no answer"}


def test_what_has_arrived_of_a_commit_that_is_not_promoted_is_found_there(
    lm: Deployment, first: str, owner: User
) -> None:
    second = lm.lake.commit(files={"a": b"newer", "c": b"3"})
    lm.arrive(lm.lake.address_of(second, "c"))
    lm.work()
    assert lm.head() == first
    lm.us_store.down = AWAY
    answer = given(owner)
    assert (answer["region"], answer["commit"], answer["fresh"]) == ("eu-west-1", second, True)


def test_a_tag_a_commit_and_its_beginning_are_refs_too(lm: Deployment, first: str, owner: User) -> None:
    lm.lake.repository.tags["v1"] = first
    lm.lake.commit(files={"a": b"newer"})
    for ref in ("v1", first, first[:10]):
        assert given(owner, ref=ref)["commit"] == first
    source_down(lm)
    assert given(owner, ref=first)["fresh"] is True
    assert asked(owner, ref="v1")[0] == 503  # the mirror follows no tags


def test_the_furthest_of_several_mirrors_tells_what_a_branch_names(lm: Deployment, first: str, owner: User) -> None:
    second = lm.lake.commit(files={"a": b"newer"})
    lm.arrive()
    lm.work()
    far = Mirror.objects.create(
        name="lake-ap", source=Mirror.objects.get().source, region="ap-southeast-2", storage_namespace=AP_NAMESPACE
    )
    mirror_duties.ensure_mirror_duties(far)
    MirrorBranch.objects.create(mirror=far, name="main", head=first, position=0)
    source_down(lm)
    assert given(owner)["commit"] == second


# --- where nobody gives it -------------------------------------------------------------------------------------------


def test_no_such_path_ref_or_repository_is_not_found(lm: Deployment, first: str, owner: User) -> None:
    assert asked(owner, path="nowhere")[0] == 404
    assert asked(owner, path="a/")[0] == 404
    assert asked(owner, ref="nobranch")[0] == 404
    assert asked(owner, ref="f" * 64)[0] == 404
    status, answer = Api(owner).call("GET", address().replace("/lake/", "/nolake/"))
    assert (status, "nobody mirrors" in answer["message"]) == (404, True)


def test_an_earlier_object_is_never_given_for_a_newer_one(lm: Deployment, first: str, owner: User) -> None:
    second = lm.lake.commit(files={"a": b"newer"})
    lm.us_store.down = None
    lm.arrive(lm.lake.address_of(second, "a"))
    lm.us_store.refused[f"s3://src/lake/{lm.lake.address_of(second, 'a')}"] = AWAY
    status, answer = asked(owner)
    assert status == 409
    assert first[:8] in answer["message"] and second[:8] in answer["message"] and f"ref={first}" in answer["message"]


def test_nobody_can_be_asked(lm: Deployment, first: str, owner: User) -> None:
    source_down(lm)
    lm.eu_store.down = AWAY
    status, answer = asked(owner)
    assert (status, "eu-west-1" in answer["message"]) == (503, True)


def test_an_archived_object_is_a_conflict_with_its_class(lm: Deployment, first: str, owner: User) -> None:
    cold = ObjectInfo("a", 1, "c4ca4238a0b923820dcc509a6f75849b", "GLACIER")
    with (
        mock.patch.object(lm.us_store, "head", return_value=cold),
        mock.patch.object(lm.eu_store, "head", return_value=cold),
    ):
        status, answer = asked(owner)
    assert (status, "GLACIER" in answer["message"]) == (409, True)


def test_another_object_at_the_place_is_not_given(lm: Deployment, first: str, owner: User) -> None:
    """Where a check has not found it, size and ETag are the entry's or it is not the object."""
    Coverage.objects.all().delete()
    lm.eu_store.objects[f"{NAMESPACE}/{lm.lake.address_of(first, 'a')}"] = b"9"
    answer = given(owner, prefer="eu-west-1")
    assert (answer["region"], "ETag" in answer["tried"][0]["why"]) == ("us-east-1", True)


def test_a_damaged_range_in_one_region_is_read_in_another(lm: Deployment, first: str, owner: User) -> None:
    lm.local_cache.get = lambda file_id: None  # type: ignore[method-assign]
    range_id = lm.lake.files_of(first)[1]
    lm.us_store.objects[f"s3://src/lake/_lakefs/{range_id}"] = b"garbage"
    assert given(owner)["commit"] == first


def test_a_source_that_is_another_repository_now_says_nothing(lm: Deployment, first: str, owner: User) -> None:
    theirs = lm.lake.commit(files={"a": b"theirs"})
    info = lm.us.repositories["lake"].info
    other = info.__class__(info.id, info.storage_namespace, "main", info.creation_date + 1)
    lm.us.repositories["lake"].info = other
    answer = given(owner)
    assert (answer["commit"], answer["fresh"]) == (first, False) and theirs != first
    assert "another repository" in answer["tried"][0]["why"]


def test_an_imported_object_is_read_where_it_lies(lm: Deployment, owner: User) -> None:
    lm.us_store.put("s3://elsewhere/raw", b"raw")
    lm.lake.link("raw", "s3://elsewhere/raw", b"raw")
    lm.arrive()
    lm.work()
    answer = given(owner, path="raw")
    assert (answer["region"], answer["address"]) == ("us-east-1", "s3://elsewhere/raw")
    lm.us_store.down = AWAY
    status, answer = asked(owner, path="raw", ref=lm.lake.repository.branches["main"])
    assert (status, "imported" in answer["message"]) == (503, True)


# --- to whom ---------------------------------------------------------------------------------------------------------


def test_an_imported_object_is_given_to_who_may_import_from_there(lm: Deployment) -> None:
    """Whoever may stage an entry names any address: LakeMirror's key would read it for them."""
    lm.us_store.put("s3://elsewhere/raw", b"raw")
    lm.lake.link("raw", "s3://elsewhere/raw", b"raw")
    lm.arrive()
    lm.work()
    reader = allowed_to("rita", allow(["fs:ReadObject"], object_arn("lake", "*")))
    status, answer = asked(reader, path="raw")
    assert (status, "fs:ImportFromStorage" in answer["message"]) == (403, True), answer
    assert "namespace/s3://elsewhere/raw" in answer["message"]
    importer = allowed_to(
        "ira",
        allow(["fs:ReadObject"], object_arn("lake", "*")),
        allow(["fs:ImportFromStorage"], namespace_arn("s3://elsewhere/*")),
    )
    assert asked(importer, path="raw")[0] == 200


def test_the_right_is_on_the_object(lm: Deployment, first: str) -> None:
    reader = allowed_to("rita", allow(["fs:ReadObject"], object_arn("lake", "a*")))
    assert given(reader, path="a")["commit"] == first
    status, answer = asked(reader, path="b")
    assert (status, object_arn("lake", "b") in answer["message"]) == (403, True)


def test_who_may_not_learns_nothing_of_what_is_there(lm: Deployment, first: str, outsider: User) -> None:
    told = {asked(outsider, path=path, ref=ref)[0] for path in ("a", "nowhere") for ref in ("main", "nobranch")}
    assert told == {403}
    assert lm.us.calls.count("get_branch") == 0


def test_a_denial_of_the_mirrors_object_keeps_its_region_out(lm: Deployment, first: str) -> None:
    reader = allowed_to(
        "rita", allow(["fs:ReadObject"]), allow(["fs:ReadObject"], object_arn("lake-eu", "*")) | {"effect": "deny"}
    )
    answer = given(reader, prefer="eu-west-1")
    assert answer["region"] == "us-east-1" and "policy denies" in answer["tried"][0]["why"]
    lm.us_store.down = AWAY
    assert asked(reader)[0] == 503


def test_of_a_mirror_that_a_denial_hides_nothing_is_told(lm: Deployment, first: str) -> None:
    hidden = allow(["fs:ReadRepository"], repository_arn("lake-eu")) | {"effect": "deny"}
    reader = allowed_to("rita", allow(["fs:ReadObject"]), hidden)
    assert asked(reader) == (404, {"message": "nobody mirrors a repository 'lake' of us-east-1"})
    Mirror.objects.create(
        name="lake-ap", source=Mirror.objects.get().source, region="ap-southeast-2", storage_namespace=AP_NAMESPACE
    )
    answer = given(reader, prefer="eu-west-1")
    assert answer["region"] == "us-east-1" and "eu-west-1" not in str(answer)
    source_down(lm)
    status, answer = asked(reader)
    assert (status, "eu-west-1" in str(answer)) == (503, False)


def test_it_is_written_down_without_the_address(
    lm: Deployment, first: str, owner: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        given(owner)
        status, _ = asked(owner, redirect="true")
    assert status == 307
    event = AuditEvent.objects.filter(verb="locate").last()
    assert event is not None and event.action == "fs:ReadObject" and event.arn == object_arn("lake", "a")
    assert event.after == {"ref": "main", "commit": first, "path": "a", "region": "us-east-1"}
    kept = caplog.text + json.dumps(list(AuditEvent.objects.values("after", "before", "arn", "reason")))
    assert "zq-signature" not in kept


def test_redirect_leads_to_the_address_and_nothing_keeps_it(lm: Deployment, first: str, owner: User) -> None:
    api = Api(owner)
    answer = api.client.get(address(redirect="true"), headers=api.headers)
    assert (answer.status_code, answer["Cache-Control"]) == (307, "no-store")
    assert "X-Amz-Signature" in answer["Location"] and not answer.content


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"path": ""}, "path"),
        ({"ref": ""}, "ref"),
        ({"path": "a\0"}, "path"),
        ({"path": "x" * 1025}, "path"),
        ({"prefer": "mars"}, "prefer"),
        ({"seconds": "3601"}, "seconds"),
        ({"seconds": "0"}, "seconds"),
        ({"seconds": "soon"}, "seconds"),
        ({"redirect": "perhaps"}, "redirect"),
        ({"source_region": "mars"}, "source_region"),
    ],
)
def test_bad_questions_are_named(lm: Deployment, first: str, owner: User, query: dict[str, str], field: str) -> None:
    status, answer = asked(owner, **query)
    assert (status, answer.get("field")) == (400, field), answer


def test_a_store_without_credentials_gives_no_address(
    lm: Deployment, first: str, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Any:
        raise Denied("no credentials")

    sign: Callable[..., Any] = refuse
    monkeypatch.setattr(lm.us_store, "presigned", sign)
    assert given(owner)["region"] == "eu-west-1"
