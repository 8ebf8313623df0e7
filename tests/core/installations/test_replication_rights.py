"""Policies for our own user: what is needed for a repository, by what is done with it, and no more."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.access.policies import branch_arn, evaluate, namespace_arn, parse_policy, repository_arn
from core.installations.replication_rights import (
    UNTRIED,
    UNUSED,
    Need,
    Side,
    lakefs_policy,
    needed,
    store_policy,
    tried,
    wide_lakefs_policy,
)

SOURCE = Need(Side.SOURCE, "lake", "s3://src/lake")
MIRROR = Need(Side.DESTINATION, "lake-eu", "s3://dst/lake")
EXPORTED = Need(Side.EXPORTED, "lake", "s3://src/lake", place="s3://out/latest")
ADAPTER = Path(__file__).parents[3] / "adapters/s3/store.py"
ASKED = {
    "get_object": "s3:GetObject",
    "head_object": "s3:GetObject",
    "list_objects_v2": "s3:ListBucket",
    "list_object_versions": "s3:ListBucketVersions",
    "head_bucket": "s3:ListBucket",
    "get_bucket_versioning": "s3:GetBucketVersioning",
    "get_bucket_replication": "s3:GetReplicationConfiguration",
    "get_bucket_lifecycle_configuration": "s3:GetLifecycleConfiguration",
    "put_object": "s3:PutObject",
}
"""What AWS asks for at each call of the adapter (Service Authorization Reference, "Actions defined by Amazon S3")."""


def allows(document: dict[str, Any], action: str, arn: str) -> bool:
    return evaluate([parse_policy(document)], action, arn, "replication").allowed


def granted(*needs: Need) -> dict[str, set[str]]:
    """By resource, what is allowed in the store."""
    found: dict[str, set[str]] = {}
    document = store_policy(needs)
    assert document is not None and document["Version"] == "2012-10-17"
    for statement in document["Statement"]:
        assert statement.keys() == {"Effect", "Action", "Resource"} and statement["Effect"] == "Allow"
        for resource in statement["Resource"]:
            found.setdefault(resource, set()).update(statement["Action"])
    return found


def test_a_source_is_read_and_nothing_else() -> None:
    document = lakefs_policy("R", [SOURCE])
    assert allows(document, "fs:ReadBranch", branch_arn("lake", "main"))
    assert allows(document, "fs:ListRepositories", "*")
    for action in ("fs:CreateCommit", "fs:DeleteBranch", "fs:DeleteRepository", "fs:ReadObject", "fs:ListTags"):
        assert not allows(document, action, repository_arn("lake"))
    assert not allows(document, "fs:ReadRepository", repository_arn("lake2"))
    assert not allows(document, "fs:AttachStorageNamespace", namespace_arn("s3://src/lake"))


def test_a_mirror_is_made_at_its_own_place_alone() -> None:
    document = lakefs_policy("R", [MIRROR])
    for action in needed("destination", tags=False):
        on = namespace_arn("s3://dst/lake") if "Namespace" in action else repository_arn("lake-eu")
        assert allows(document, action, on), action
    assert not allows(document, "fs:AttachStorageNamespace", namespace_arn("s3://dst/lake2"))
    assert not allows(document, "fs:CreateTag", repository_arn("lake-eu/tag/v1"))
    assert not allows(document, "fs:CreateBranch", branch_arn("lake", "main"))


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("tags", [False, True])
def test_what_is_needed_is_what_is_tried_and_what_cant_be(side: Side, tags: bool) -> None:
    untried = UNTRIED.get(side, {})
    assert {*needed(side, tags=tags)} == {*tried(side, tags=tags)} | {
        action for action, why in untried.items() if why != UNUSED
    }
    assert not {*tried(side, tags=tags)} & {*untried}


def test_several_repositories_are_one_statement() -> None:
    other = Need(Side.SOURCE, "orders", "s3://src/orders")
    document = lakefs_policy("R", [SOURCE, other, MIRROR, SOURCE])
    assert len(document["statement"]) == 4
    assert json.loads(document["statement"][1]["resource"]) == [
        repository_arn(name) for name in ("lake", "lake/*", "orders", "orders/*")
    ]
    assert allows(document, "fs:ReadBranch", branch_arn("orders", "main"))


def test_rules_of_garbage_collection_are_read_of_what_is_mirrored_alone() -> None:
    right = "retention:GetGarbageCollectionRules"
    for need in (SOURCE, MIRROR):
        assert allows(lakefs_policy("R", [need]), right, repository_arn(need.repository))
    assert not allows(lakefs_policy("R", [EXPORTED]), right, repository_arn(EXPORTED.repository))


def test_without_a_repository_it_is_for_whatever_may_come() -> None:
    document = wide_lakefs_policy("R")
    assert allows(document, "fs:CreateTag", repository_arn("any/tag/v1"))
    assert not allows(document, "fs:WriteObject", repository_arn("any"))
    assert not allows(document, "auth:CreateUser", "*")
    assert store_policy([]) is None
    assert store_policy([Need(Side.SOURCE, "lake")]) is None


def test_in_the_store_a_source_is_read_and_of_a_mirror_our_own_files_are_written() -> None:
    bucket = {"s3:ListBucket", "s3:GetBucketVersioning", "s3:GetReplicationConfiguration"}
    source, destination = bucket | {"s3:ListBucketVersions"}, bucket | {"s3:GetLifecycleConfiguration"}
    assert granted(SOURCE) == {"arn:aws:s3:::src": source, "arn:aws:s3:::src/lake/*": {"s3:GetObject"}}
    assert granted(MIRROR) == {
        "arn:aws:s3:::dst": destination,
        "arn:aws:s3:::dst/lake/*": {"s3:GetObject"},
        "arn:aws:s3:::dst/lake/_lakemirror/*": {"s3:PutObject"},
    }
    whole_bucket = granted(Need(Side.DESTINATION, "lake-eu", "s3://dst"))
    assert {"arn:aws:s3:::dst/*", "arn:aws:s3:::dst/_lakemirror/*"} < whole_bucket.keys()


def test_only_a_mirror_that_follows_the_garbage_collection_may_delete_objects() -> None:
    managed = Need(Side.DESTINATION, "lake-eu", "s3://dst/lake", managed=True)
    deletes = {arn for arn, actions in granted(SOURCE, MIRROR, managed).items() if "s3:DeleteObject" in actions}
    assert deletes == {"arn:aws:s3:::dst/lake/_lakemirror/uploads/*"}
    following = granted(replace(managed, follows_gc=True), replace(SOURCE, follows_gc=True))
    more = {"s3:DeleteObject", "s3:GetObjectRetention", "s3:GetObjectLegalHold"}
    assert more <= following["arn:aws:s3:::dst/lake/*"]
    assert not [arn for arn, actions in following.items() if more & actions and arn != "arn:aws:s3:::dst/lake/*"]
    assert following["arn:aws:s3:::src/lake/*"] == {"s3:GetObject"}


def test_whoever_follows_the_garbage_collection_lists_the_tags_of_both_sides_and_writes_none() -> None:
    for need in (SOURCE, MIRROR):
        document = lakefs_policy("R", [replace(need, follows_gc=True)])
        assert allows(document, "fs:ListTags", repository_arn(need.repository))
        assert not allows(document, "fs:CreateTag", repository_arn(f"{need.repository}/tag/v1"))


def test_an_export_writes_at_its_place_alone() -> None:
    found = granted(EXPORTED)
    assert "s3:DeleteObject" in found["arn:aws:s3:::out/latest/*"]
    assert found["arn:aws:s3:::src/lake/*"] == {"s3:GetObject", "s3:GetObjectTagging"}
    assert "s3:PutObject" not in found["arn:aws:s3:::out"]


def test_a_wildcard_in_the_name_of_a_place_opens_no_other_place() -> None:
    document = lakefs_policy("R", [Need(Side.DESTINATION, "lake-eu", "s3://dst/l*/${user}")])
    assert allows(document, "fs:AttachStorageNamespace", namespace_arn("s3://dst/l*/${user}"))
    for other in ("s3://dst/lake/${user}", "s3://dst/l*/replication", "s3://dst/l/x/${user}"):
        assert not allows(document, "fs:AttachStorageNamespace", namespace_arn(other))
    found = granted(Need(Side.EXPORTED, "lake", "s3://src/a*", place="s3://out/*/${aws:userid}"))
    assert {"arn:aws:s3:::src/a?/*", "arn:aws:s3:::out/?/?{aws:userid}/*"} < found.keys()
    assert not [arn for arn in found if "*" in arn.removesuffix("/*") or "$" in arn]


def test_every_call_of_the_adapter_is_allowed_for_a_mirror() -> None:
    text = ADAPTER.read_text()
    calls = set(re.findall(r"(?:_client|plain)\.([a-z_]+)\(", text)) - {"get_paginator"}
    calls |= set(re.findall(r"_client\.(get_bucket_[a-z_]+)\)", text))
    calls |= set(re.findall(r'get_paginator\("([a-z0-9_]+)"\)', text))
    assert calls == {*ASKED}
    allowed = {action for actions in granted(SOURCE, MIRROR).values() for action in actions}
    assert {ASKED[call] for call in calls} == allowed
