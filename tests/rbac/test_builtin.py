"""The templates give what the mirroring reference lists, what tags need, and nothing else."""

from __future__ import annotations

import pytest

from core.access.policies import branch_arn, evaluate, namespace_arn, parse_policy, repository_arn
from core.errors import Invalid
from rbac.services import builtin
from tests.rbac.arns import object_arn, tag_arn

SOURCE, MIRROR, NAMESPACE = "lake", "lake-eu", "s3://lake-eu-west-1/lake"

# What the service calls in a mirror's life, as (action, ARN) that lakeFS checks.
CALLS = [
    ("fs:ListRepositories", "*"),
    ("fs:ReadRepository", repository_arn(SOURCE)),
    ("fs:ListBranches", repository_arn(SOURCE)),
    ("fs:ReadBranch", branch_arn(SOURCE, "main")),
    ("fs:ListCommits", branch_arn(SOURCE, "main")),
    ("fs:ReadCommit", repository_arn(SOURCE)),
    ("fs:ReadObject", object_arn(SOURCE, "a/b")),
    ("fs:CreateRepository", repository_arn(MIRROR)),
    ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE)),
    ("fs:ReadRepository", repository_arn(MIRROR)),
    ("fs:CreateCommit", repository_arn(MIRROR)),
    ("fs:CreateBranch", branch_arn(MIRROR, "main")),
    ("fs:RevertBranch", branch_arn(MIRROR, "main")),
    ("fs:ReadBranch", branch_arn(MIRROR, "main")),
    ("fs:DeleteBranch", branch_arn(MIRROR, "old")),
    ("fs:ListObjects", repository_arn(MIRROR)),
    ("fs:DeleteRepository", repository_arn(MIRROR)),
    ("fs:ListTags", repository_arn(SOURCE)),
    ("fs:ListTags", repository_arn(MIRROR)),
    ("fs:ReadTag", tag_arn(MIRROR, "v1")),
    ("fs:CreateTag", tag_arn(MIRROR, "v1")),
    ("fs:DeleteTag", tag_arn(MIRROR, "v1")),
    ("retention:GetGarbageCollectionRules", repository_arn(SOURCE)),
    ("retention:GetGarbageCollectionRules", repository_arn(MIRROR)),
]
# The four tables of permissions of the API.
TABLES = [
    ("fs:CreateRepository", repository_arn(MIRROR)),
    ("fs:MirrorRepository", repository_arn(SOURCE)),
    ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE)),
    ("fs:DeleteRepository", repository_arn(MIRROR)),
    ("fs:ListRepositories", "*"),
]
WIDE = builtin.replicator()
NARROW = builtin.replicator_for(source=SOURCE, mirror=MIRROR, namespace=NAMESPACE)


def may(document: builtin.Document, action: str, arn: str) -> bool:
    return evaluate([parse_policy(document)], action, arn, "replicator").allowed


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("document", [WIDE, NARROW], ids=["wide", "narrow"])
def test_both_replicator_forms_allow_a_whole_mirrors_life(document: builtin.Document, call: tuple[str, str]) -> None:
    assert may(document, *call)


@pytest.mark.parametrize(
    ("action", "arn"),
    [
        ("fs:DeleteRepository", repository_arn(SOURCE)),
        ("fs:WriteObject", object_arn(SOURCE, "a")),
        ("fs:RevertBranch", branch_arn(SOURCE, "main")),
        ("fs:CreateTag", tag_arn(SOURCE, "v1")),
        ("retention:SetGarbageCollectionRules", repository_arn(MIRROR)),
        ("retention:PrepareGarbageCollectionCommits", repository_arn(MIRROR)),
        ("retention:GetGarbageCollectionRules", repository_arn("lake-2")),
        ("fs:DeleteTag", tag_arn(SOURCE, "v1")),
        ("fs:DeleteTag", tag_arn("lake-eu-2", "v1")),
        ("fs:ReadRepository", repository_arn("lake-2")),
        ("fs:DeleteRepository", repository_arn("lake-eu-2")),
        ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE + "2")),
        ("fs:MirrorRepository", repository_arn(SOURCE)),
        ("auth:CreateUser", "arn:lakefs:auth:::user/x"),
    ],
)
def test_the_narrow_form_allows_nothing_else(action: str, arn: str) -> None:
    assert not may(NARROW, action, arn)


def test_the_wide_form_lists_the_eighteen_actions_of_the_reference_those_of_tags_and_of_rules() -> None:
    (statement,) = WIDE["statement"]
    assert statement["resource"] == "*"
    tags = {action for action in statement["action"] if "Tag" in action}
    assert tags == {"fs:CreateTag", "fs:DeleteTag", "fs:ListTags", "fs:ReadTag"}
    assert len(statement["action"]) == len(set(statement["action"])) == 18 + len(tags) + 1
    assert "retention:GetGarbageCollectionRules" in statement["action"]


@pytest.mark.parametrize("need", TABLES)
def test_mirror_admin_has_every_right_of_the_tables(need: tuple[str, str]) -> None:
    assert may(builtin.mirror_admin(), *need)


def test_mirror_admin_has_no_other_right() -> None:
    assert not may(builtin.mirror_admin(), "fs:WriteObject", object_arn(SOURCE, "a"))
    assert not may(builtin.mirror_admin(), "auth:CreateUser", "arn:lakefs:auth:::user/x")


@pytest.mark.parametrize(
    "blank",
    [
        {"source": "*"},
        {"mirror": "{mirrorId}"},
        {"namespace": "s3://bucket/*"},
        {"namespace": "bucket"},
        {"mirror": ""},
    ],
)
def test_a_badly_filled_blank_is_refused(blank: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        builtin.replicator_for(**({"source": SOURCE, "mirror": MIRROR, "namespace": NAMESPACE} | blank))
