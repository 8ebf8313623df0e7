"""Promises of the API that belong to no single call: which right, which page of a list, what stays as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from deployment import config
from jobs.models import Duty
from mirrors.models import Mirror
from rbac import services as rbac
from rbac.models import Policy, User
from tests.api import BODY, MIRRORS, Api
from tests.fakes import Lake
from tests.mirrors.harness import NAMESPACE, Deployment, deployment

pytestmark = pytest.mark.django_db

V1 = "/service/replication/v1"
MIRROR = f"{MIRRORS}/lake-eu"
OF_A_MIRROR = [
    *("branches", "commits", "blockers", "blockers?group_by=reason", "runs", "promotions", "tags"),
    *("lag", "loss", "gc-safety", "validations", "waivers"),
]
LISTS = [MIRRORS, f"{V1}/mirrors", *(f"{MIRROR}/{one}" for one in OF_A_MIRROR)]
NEEDS = {
    "fs:CreateRepository": "arn:lakefs:fs:::repository/lake-eu",
    "fs:MirrorRepository": "arn:lakefs:fs:::repository/lake",
    "fs:AttachStorageNamespace": "arn:lakefs:fs:::namespace/s3://dst/lake",
}


@pytest.fixture
def unmirrored() -> Iterator[Deployment]:
    """A deployment without any mirror."""
    with deployment() as made:
        yield made


def allow(user: User, rights: dict[str, str]) -> None:
    """A policy of their own with these actions, each on its resource."""
    statements = [{"effect": "allow", "action": [action], "resource": arn} for action, arn in rights.items()]
    document = {"id": "Some", "statement": statements}
    rbac.policy_put(actor="system:tests", document=document)
    rbac.policy_attach(actor="system:tests", policy=Policy.objects.get(name="Some"), user=user)


# --- rights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", NEEDS)
def test_making_a_mirror_needs_each_of_three_rights(outsider: User, unmirrored: Deployment, missing: str) -> None:
    allow(outsider, {action: arn for action, arn in NEEDS.items() if action != missing})
    status, answer = Api(outsider).call("POST", MIRRORS, BODY)
    assert status == 403
    assert f"{missing} on {NEEDS[missing]}" in answer["message"]
    assert not Mirror.objects.exists()


def test_those_three_rights_are_enough(outsider: User, unmirrored: Deployment) -> None:
    allow(outsider, NEEDS)
    assert Api(outsider).call("POST", MIRRORS, BODY)[0] == 201


@pytest.mark.parametrize("address", [*LISTS, MIRROR])
def test_whatever_is_read_needs_the_right_to_list_repositories(outsider: User, lm: Deployment, address: str) -> None:
    status, answer = Api(outsider).call("GET", address)
    assert (status, "fs:ListRepositories on *" in answer["message"]) == (403, True)


# --- lists ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", LISTS)
def test_every_list_comes_in_pages_and_says_when_it_was_true(api: Api, lm: Deployment, head: str, address: str) -> None:
    status, answer = api.call("GET", address)
    assert status == 200
    assert answer["pagination"].keys() == {"has_more", "next_offset", "max_per_page", "results"}
    assert answer["pagination"]["results"] == len(answer["results"])
    assert answer["as_of"].endswith("Z")


# --- what stays as it was ---------------------------------------------------------------------------------------------


def test_deleting_a_mirror_takes_its_repository_and_no_object(api: Api, lm: Deployment, head: str) -> None:
    before = dict(lm.eu_store.objects)
    assert any(uri.startswith(f"{NAMESPACE}/data/") for uri in before)
    assert api.call("DELETE", MIRROR)[0] == 204
    lm.work()
    assert "lake-eu" not in lm.eu.repositories
    assert lm.eu_store.objects.items() >= before.items()


def test_changing_other_settings_resumes_nothing(api: Api, lm: Deployment) -> None:
    assert api.call("POST", f"{MIRROR}/pause")[1]["paused"] is True
    status, changed = api.call("PATCH", MIRROR, {"rpo_seconds": 600})
    assert (status, changed["rpo_seconds"], changed["paused"], changed["status"]) == (200, 600, True, "Paused")


def test_a_webhook_that_comes_again_does_nothing_more(lm: Deployment) -> None:
    text = json.dumps({"event_type": "post-commit", "repository_id": "lake", "branch_id": "main"})
    headers = {"Authorization": f"Bearer {config.current().hook_secret('us-east-1')}"}
    for _ in range(3):
        answer = Client().post(f"{V1}/hooks/lakefs/us-east-1", text, content_type="application/json", headers=headers)
        assert answer.status_code == 202
    assert Duty.objects.filter(kind="sense").count() == 1
    assert Mirror.objects.count() == 1


# --- where the source is ----------------------------------------------------------------------------------------------


def test_a_source_in_another_region_than_the_deployments_is_named_by_its_region(
    api: Api, unmirrored: Deployment
) -> None:
    Lake(unmirrored.eu, unmirrored.eu_store, "orders", "s3://dst/orders").commit()
    orders = MIRRORS.replace("/lake/", "/orders/")
    body: dict[str, Any] = {"name": "orders-us", "region": "us-east-1", "storage_namespace": "s3://src/orders"}
    assert api.call("POST", orders, body)[0] == 404
    status, made = api.call("POST", orders, body | {"source_region": "eu-west-1"})
    assert (status, made["source_region"], made["region"]) == (201, "eu-west-1", "us-east-1")
    assert api.call("GET", orders)[1]["results"] == []
    (listed,) = api.call("GET", f"{orders}?source_region=eu-west-1")[1]["results"]
    assert listed["id"] == "orders-us"
