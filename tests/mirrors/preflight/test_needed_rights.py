"""What our user needs at both sides of a mirror, and at an installation: by the API, as policies."""

from __future__ import annotations

from typing import Any

import pytest

from core.access.policies import evaluate, namespace_arn, parse_policy, repository_arn
from core.errors import Unreachable
from deployment.wiring import clients
from exports.models import Export
from mirrors.models import Mirror, Repository
from rbac import services
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.exports.test_pages import an_export
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db

INSTALLATIONS = "/service/replication/v1/installations"
PLANNED = "region=eu-west-1&storage_namespace=s3://dst/new"


def may(policies: Any, action: str, arn: str) -> bool:
    return evaluate([parse_policy(policies["lakefs"])], action, arn, "replication").allowed


def on(policies: Any) -> set[str]:
    """The resources of the store's policy."""
    return {arn for statement in policies["store"]["Statement"] for arn in statement["Resource"]}


def test_a_mirrors_policies_are_for_its_source_and_its_place(api: Api, lm: Deployment) -> None:
    status, told = api.call("GET", f"{MIRRORS}/lake-eu/policy")
    assert (status, told["mirror"], told["planned"]) == (200, "lake-eu", False)
    assert (told["source"]["region"], told["destination"]["region"]) == ("us-east-1", "eu-west-1")
    assert may(told["source"], "fs:ReadCommit", repository_arn("lake"))
    assert not may(told["source"], "fs:CreateCommit", repository_arn("lake"))
    assert may(told["destination"], "fs:AttachStorageNamespace", namespace_arn("s3://dst/lake"))
    assert not may(told["destination"], "fs:CreateTag", repository_arn("lake-eu/tag/v"))
    assert "arn:aws:s3:::dst/lake/_lakemirror/*" in on(told["destination"])
    assert "arn:aws:s3:::src/lake/*" in on(told["source"])


def test_a_planned_mirror_has_policies_before_anything_is_allowed(api: Api, lm: Deployment) -> None:
    status, told = api.call("GET", f"{MIRRORS}/lake-new/policy?{PLANNED}&tags=true")
    assert (status, told["planned"]) == (200, True)
    assert may(told["destination"], "fs:CreateTag", repository_arn("lake-new/tag/v"))
    assert may(told["destination"], "fs:AttachStorageNamespace", namespace_arn("s3://dst/new"))
    assert "arn:aws:s3:::src/lake/*" in on(told["source"])

    def refuse(region: str) -> Any:
        raise Unreachable("no answer")

    Mirror.objects.all().delete()
    Repository.objects.all().delete()
    assert "arn:aws:s3:::src/lake/*" in on(api.call("GET", f"{MIRRORS}/lake-new/policy?{PLANNED}")[1]["source"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, "quick_lakefs", refuse)
        told = api.call("GET", f"{MIRRORS}/lake-new/policy?{PLANNED}")[1]
    assert told["source"]["store"] is None and told["source"]["lakefs"]["statement"]


def test_deleting_is_for_who_follows_the_garbage_collection(api: Api, lm: Deployment) -> None:
    def deletes(path: str) -> set[str]:
        status, told = api.call("GET", f"{MIRRORS}/{path}")
        assert status == 200, told
        store = told["destination"]["store"]["Statement"]
        return {arn for one in store if "s3:DeleteObject" in one["Action"] for arn in one["Resource"]}

    managed, marks = f"{PLANNED}&object_replication=managed", "_lakemirror/uploads/"
    assert deletes(f"lake-new/policy?{PLANNED}") == set()
    assert deletes(f"lake-new/policy?{managed}") == {f"arn:aws:s3:::dst/new/{marks}*"}
    assert deletes(f"lake-new/policy?{managed}&follow_gc=true") == {"arn:aws:s3:::dst/new/*"}
    assert api.call("GET", f"{MIRRORS}/lake-eu/policy?follow_gc=true")[1]["field"] == "follow_gc"
    Mirror.objects.update(object_replication="managed")
    assert deletes("lake-eu/policy") == {f"arn:aws:s3:::dst/lake/{marks}*"}
    assert deletes("lake-eu/policy?follow_gc=true") == {"arn:aws:s3:::dst/lake/*"}
    Mirror.objects.update(follow_gc=True)
    assert deletes("lake-eu/policy") == {"arn:aws:s3:::dst/lake/*"}
    told = api.call("GET", f"{INSTALLATIONS}/eu-west-1/policy")[1]
    assert "s3:DeleteObject" in str(told["store"]) and may(told, "fs:ListTags", repository_arn("lake-eu"))


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("lake/mirrors/lake-new/policy", 404, None),
        ("lake/mirrors/lake-new/policy?region=mars&storage_namespace=s3://dst/new", 400, "region"),
        ("lake/mirrors/lake-new/policy?region=eu-west-1&storage_namespace=dst", 400, "storage_namespace"),
        ("lake/mirrors/lake-new/policy?region=eu-west-1", 400, "storage_namespace"),
        ("lake/mirrors/New*/policy?" + PLANNED, 400, "name"),
        ("%2A/mirrors/lake-new/policy?" + PLANNED, 400, "repository"),
        ("lake/mirrors/lake-new/policy?tags=maybe", 400, "tags"),
        (f"lake/mirrors/lake-new/policy?{PLANNED}&follow_gc=true", 400, "follow_gc"),
        (f"lake/mirrors/lake-new/policy?{PLANNED}&follow_gc=maybe", 400, "follow_gc"),
    ],
)
def test_what_cant_be_a_plan_is_told(api: Api, lm: Deployment, path: str, status: int, field: str | None) -> None:
    found, told = api.call("GET", f"/service/replication/v1/repositories/{path}")
    assert (found, told.get("field")) == (status, field), told


def test_an_installations_policies_are_for_all_that_is_done_there(api: Api, lm: Deployment) -> None:
    status, told = api.call("GET", f"{INSTALLATIONS}/ap-southeast-2/policy")
    assert (status, told["store"], told["left_out"]) == (200, None, 0)
    assert may(told, "fs:CreateRepository", repository_arn("any"))
    export = an_export(repository="lake")
    Export.objects.filter(pk=export.pk).update(region="us-east-1", storage_namespace="s3://src/lake")
    told = api.call("GET", f"{INSTALLATIONS}/us-east-1/policy")[1]
    assert may(told, "fs:ReadBranch", repository_arn("lake/branch/main"))
    assert not may(told, "fs:CreateRepository", repository_arn("lake"))
    assert {"arn:aws:s3:::src/lake/*", f"arn:aws:s3:::{export.path.removeprefix('s3://')}/*"} <= on(told)
    assert "arn:aws:s3:::dst/lake/*" in on(api.call("GET", f"{INSTALLATIONS}/eu-west-1/policy")[1])
    assert api.call("GET", f"{INSTALLATIONS}/mars/policy")[0] == 404


def test_what_somebody_may_not_see_is_counted_and_left_out(lm: Deployment, outsider: User) -> None:
    export = an_export(repository="lake")
    Export.objects.filter(pk=export.pk).update(region="us-east-1")
    statement = [{"effect": "allow", "action": ["fs:ListInstallations"], "resource": "*"}]
    policy = services.policy_create(actor="system:tests", document={"id": "See", "statement": statement})
    services.policy_attach(actor="system:tests", policy=policy, user=outsider)
    their = Api(outsider)
    status, told = their.call("GET", f"{INSTALLATIONS}/us-east-1/policy")
    assert (status, told["left_out"]) == (200, 2)
    assert [one["action"] for one in told["lakefs"]["statement"]] == [["fs:ListRepositories"]]
    assert told["store"] is None
    assert their.call("GET", f"{MIRRORS}/lake-eu/policy")[0] == 403
