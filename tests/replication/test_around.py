"""What other pages and calls know of replication rules: the search, the policies of installations."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from core.access.documents import allow, policy_document
from core.installations.replication_rights import Need, Side, store_policy
from installations.needed_rights import installation_policies
from rbac import services as rbac
from rbac.models import User
from replication.models import Link
from replication.services.needed_rights import needs
from tests.api import Api
from tests.cast import person
from tests.mirrors.harness import Deployment
from tests.replication.factories import a_rule, in_trouble

pytestmark = pytest.mark.django_db
SEARCH = "/service/replication/v1/search"


def found(api: Api, text: str) -> list[str]:
    return [one["name"] for one in api.call("GET", f"{SEARCH}?q={text}")[1]["rules"]["results"]]


def test_the_search_finds_rules_by_name_and_place(lm: Deployment, api: Api, olga: Client) -> None:
    in_trouble()
    a_rule("logs")
    assert found(api, "ORDER") == ["orders"] and found(api, "src-lo") == ["logs"] and found(api, "other/") == ["orders"]
    page = olga.get("/search/?q=orders").content.decode()
    assert 'href="/replication/orders/"' in page and "</svg>Blocked</span>" in page
    Link.objects.filter(uri="s3://other/orders").update(removing=True)
    assert found(api, "other/") == []


def test_the_search_tells_nobody_of_rules_that_they_may_not_read(lm: Deployment) -> None:
    a_rule("logs")
    user = person("rita")
    document = policy_document("Sees", allow(["fs:ListRepositories", "fs:ReadRepository"]))
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=user)
    assert found(Api(user), "logs") == []


def statements(document: Any) -> dict[tuple[str, ...], list[str]]:
    return {tuple(one["Action"]): one["Resource"] for one in document["Statement"]}


def test_what_keys_need_at_the_places_of_rules() -> None:
    places = [Need(Side.COPIED_FROM, "", place="s3://src/in"), Need(Side.COPIED_TO, "", place="s3://dst")]
    told = statements(store_policy(places))
    assert told[("s3:ListBucket",)] == ["arn:aws:s3:::src"]
    assert told[("s3:GetObject",)] == ["arn:aws:s3:::src/in/*"]
    assert told[("s3:ListBucket", "s3:ListBucketMultipartUploads")] == ["arn:aws:s3:::dst"]
    assert ["arn:aws:s3:::dst/*"] in told.values()
    own = ["arn:aws:s3:::dst/_lakemirror/uploads/*", "arn:aws:s3:::dst/_lakemirror_probe_*"]
    assert told[("s3:DeleteObject",)] == own
    versions = statements(store_policy([Need(Side.COPIED_TO, "", place="s3://dst/in", versions=True)]))
    assert versions[("s3:DeleteObject", "s3:ReplicateObject")] == ["arn:aws:s3:::dst/in/*"]
    assert versions[("s3:DeleteObjectVersion",)] == ["arn:aws:s3:::dst/in/_lakemirror_probe_*"]
    purges = statements(store_policy([Need(Side.COPIED_TO, "", place="s3://dst/in", versions=True, purges=True)]))
    assert purges[("s3:DeleteObjectVersion",)] == ["arn:aws:s3:::dst/in/*"]
    assert versions[("s3:ListBucketVersions", "s3:GetBucketVersioning")] == ["arn:aws:s3:::dst"]
    travels = statements(store_policy([Need(Side.COPIED_FROM, "", place="s3://src", travels=True)]))
    assert ["arn:aws:s3:::src/*"] in travels.values() and "s3:GetObjectTagging" in str(travels)
    assert "VersionTagging" not in str(travels)
    of_each = {"place": "s3://x", "versions": True, "travels": True}
    source, target = (str(store_policy([Need(side, "", **of_each)])) for side in (Side.COPIED_FROM, Side.COPIED_TO))
    assert "s3:GetObjectVersionTagging" in source and "s3:PutObjectVersionTagging" not in source
    for action in ("s3:GetObjectVersionTagging", "s3:PutObjectVersionTagging", "s3:DeleteObjectVersionTagging"):
        assert action in target


def test_the_policy_of_an_installation_has_its_rules_as_far_as_one_may_see_them(lm: Deployment, owner: User) -> None:
    a_rule("logs")
    [source], none_hidden = needs(owner, "us-east-1")
    assert (source.side, source.place, none_hidden) == (Side.COPIED_FROM, "s3://src-logs/in", 0)
    [target], _ = needs(owner, "eu-west-1")
    assert (target.side, target.place) == (Side.COPIED_TO, "s3://dst-logs/in")
    assert needs(person("mia", "MirrorAdmin"), "eu-west-1") == ([], 1)
    policies = installation_policies(owner, "eu-west-1")
    assert policies.store is not None and "arn:aws:s3:::dst-logs/in/*" in str(policies.store)
    assert "dst-logs" not in str(policies.lakefs)
