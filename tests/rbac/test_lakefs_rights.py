"""Both forms of the replicator's policy allow what lakeFS asks for in a mirror's whole life, and nothing beside it.

What lakeFS asks for at each call: the `authorize` of each handler in treeverse/lakeFS, `pkg/api/controller.go`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.access.policies import (
    Policy,
    branch_arn,
    evaluate,
    namespace_arn,
    object_arn,
    parse_policy,
    repository_arn,
)
from core.installations.replication_rights import Need, Side, lakefs_policy
from core.ports import LakeFS
from mirrors.models import Mirror
from mirrors.services import mirrors
from rbac.models import User
from rbac.services import builtin
from tests.fakes import FakeLakeFS
from tests.mirrors.harness import NAMESPACE, Deployment, deployment
from tests.rbac.arns import tag_arn

pytestmark = pytest.mark.django_db
Rights = list[tuple[str, str]]


def of_repository(action: str) -> Callable[[dict[str, Any]], Rights]:
    return lambda told: [(action, repository_arn(told["repository"]))]


def of_branch(action: str, ref: str = "branch") -> Callable[[dict[str, Any]], Rights]:
    return lambda told: [(action, branch_arn(told["repository"], told[ref]))]


def of_tag(action: str) -> Callable[[dict[str, Any]], Rights]:
    return lambda told: [(action, tag_arn(told["repository"], told["tag"]))]


ASKED: dict[str, Callable[[dict[str, Any]], Rights]] = {
    "server": lambda told: [],  # part of the answer is for anybody who is let in
    "get_repository": of_repository("fs:ReadRepository"),
    "list_repositories": lambda told: [("fs:ListRepositories", "*")],
    "create_mirror_repository": lambda told: [
        ("fs:CreateRepository", repository_arn(told["name"])),
        ("fs:AttachStorageNamespace", namespace_arn(told["storage_namespace"])),
    ],
    "delete_repository": of_repository("fs:DeleteRepository"),
    "gc_rules": of_repository("retention:GetGarbageCollectionRules"),
    "list_branches": of_repository("fs:ListBranches"),
    "get_branch": of_branch("fs:ReadBranch"),
    "log_commits": of_branch("fs:ReadBranch", "commit_id"),
    "get_commit": of_repository("fs:ReadCommit"),
    "put_commit_record": of_repository("fs:CreateCommit"),
    "create_branch": of_branch("fs:CreateBranch"),
    "hard_reset_branch": of_branch("fs:RevertBranch"),
    "drop_uncommitted": of_branch("fs:RevertBranch"),
    "delete_branch": of_branch("fs:DeleteBranch"),
    "has_uncommitted": of_repository("fs:ListObjects"),
    "list_tags": of_repository("fs:ListTags"),
    "get_tag": of_tag("fs:ReadTag"),
    "create_tag": of_tag("fs:CreateTag"),
    "delete_tag": of_tag("fs:DeleteTag"),
}


class Recorded:
    """A lakeFS, and a list of the rights that it would ask for."""

    def __init__(self, inner: FakeLakeFS, calls: set[str], asked: set[tuple[str, str]]) -> None:
        self._inner, self._calls, self._asked = inner, calls, asked

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ASKED:
            return found

        def call(*args: Any, **options: Any) -> Any:
            told = inspect.signature(found).bind(*args, **options).arguments
            self._calls.add(name)
            self._asked.update(ASKED[name](told))
            return found(*args, **options)

        return call


@pytest.fixture
def lm(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Deployment, set[str], set[tuple[str, str]]]]:
    with deployment() as made, monkeypatch.context() as patched:
        calls: set[str] = set()
        asked: set[tuple[str, str]] = set()

        def recorded(region: str) -> Any:
            return Recorded(made.lakefs(region), calls, asked)

        patched.setattr("deployment.wiring.clients.lakefs", recorded)
        patched.setattr("deployment.wiring.clients.quick_lakefs", recorded)
        yield made, calls, asked


def a_whole_life(lm: Deployment, owner: User) -> None:
    """Made with its repository, filled, moved, cleaned, thinned out and deleted."""
    source = lm.us.repositories["lake"]
    lm.lake.commit(files={"a": b"1"})
    source.tags["v1"] = source.branches["main"]
    mirrors.mirror_create(
        actor=owner,
        source_repository="lake",
        name="lake-eu",
        region="eu-west-1",
        storage_namespace=NAMESPACE,
        settings={"tags": True},
    )
    lm.arrive()
    lm.work(6)
    mirror = Mirror.objects.get()
    source.branches["dev"] = source.branches["main"]
    lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.work(4)
    assert lm.head() == source.branches["main"]
    lm.eu.repositories["lake-eu"].uncommitted.add("main")
    lm.work(2)
    mirrors.branch_reset(actor=owner, mirror=mirror, branch="main")
    del source.branches["dev"], source.tags["v1"]
    lm.work(4)
    mirrors.mirror_delete(actor=owner, mirror=mirror)
    lm.work(3)


SELDOM = {"server", "get_commit", "delete_branch", "delete_tag"}
"""What this life does not come to: checks before a creation, repairs, what is gone for longer."""
WIDE = parse_policy(builtin.replicator())
NARROW = parse_policy(builtin.replicator_for(source="lake", mirror="lake-eu", namespace=NAMESPACE))
PRINTED = parse_policy(
    lakefs_policy(
        "Printed", [Need(Side.SOURCE, "lake", tags=True), Need(Side.DESTINATION, "lake-eu", NAMESPACE, tags=True)]
    )
)
"""What the API and the command print for this mirror."""


def denied(policy: Policy, rights: Any) -> Rights:
    return sorted(need for need in rights if not evaluate([policy], *need, "replicator").allowed)


def test_every_call_of_ours_says_what_lakefs_asks_for() -> None:
    assert set(ASKED) == {name for name in vars(LakeFS) if not name.startswith("_")}


def test_a_mirrors_whole_life_needs_what_the_policies_allow(
    lm: tuple[Deployment, set[str], set[tuple[str, str]]], owner: User
) -> None:
    made, calls, asked = lm
    a_whole_life(made, owner)
    assert set(ASKED) - calls == SELDOM
    asked |= {need for name in SELDOM for need in ASKED[name]({"repository": "lake-eu", "branch": "dev", "tag": "v1"})}
    assert denied(WIDE, asked) == denied(NARROW, asked) == denied(PRINTED, asked) == []


NEIGHBOURS = [
    ("fs:RevertBranch", branch_arn("lake", "main")),
    ("fs:CreateBranch", branch_arn("lake", "main")),
    ("fs:DeleteBranch", branch_arn("lake", "main")),
    ("fs:CreateCommit", repository_arn("lake")),
    ("fs:DeleteRepository", repository_arn("lake")),
    ("fs:CreateTag", tag_arn("lake", "v1")),
    ("fs:DeleteTag", tag_arn("lake", "v1")),
    ("fs:WriteObject", object_arn("lake", "a")),
    ("fs:ReadRepository", repository_arn("lak")),
    ("fs:ReadRepository", repository_arn("lake2")),
    ("fs:ReadBranch", branch_arn("lake2", "main")),
    ("fs:RevertBranch", branch_arn("lake-eu2", "main")),
    ("fs:CreateCommit", repository_arn("lake-eu-2")),
    ("fs:CreateRepository", repository_arn("lake-eu2")),
    ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE + "2")),
    ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE + "/deeper")),
    ("fs:AttachStorageNamespace", namespace_arn("s3://dst")),
]
BEYOND = [
    ("fs:MirrorRepository", repository_arn("lake")),
    ("fs:OperateMirror", repository_arn("lake")),
    ("fs:ExportConfig", branch_arn("lake", "main")),
    ("fs:ListInstallations", "*"),
    ("fs:CreateMetaRange", repository_arn("lake-eu")),
    ("fs:ReadConfig", "*"),
    ("auth:CreateUser", "arn:lakefs:auth:::user/x"),
    ("auth:CreateCredentials", "arn:lakefs:auth:::user/replicator"),
    ("auth:AttachPolicy", "arn:lakefs:auth:::user/replicator"),
    ("ci:ReadAction", repository_arn("lake")),
    ("retention:SetGarbageCollectionRules", repository_arn("lake-eu")),
    ("branches:SetBranchProtectionRules", repository_arn("lake-eu")),
]


def test_the_policies_allow_nothing_beside_it() -> None:
    assert denied(WIDE, BEYOND) == sorted(BEYOND)
    assert denied(NARROW, NEIGHBOURS + BEYOND) == sorted(NEIGHBOURS + BEYOND)
    printed = [*NEIGHBOURS, *BEYOND, ("fs:WriteObject", object_arn("lake-eu", "a")), ("fs:UpdateRepository", "*")]
    assert denied(PRINTED, printed) == sorted(printed)


def test_mirror_admin_may_what_the_four_tables_say_and_nothing_else() -> None:
    """Creating, editing branches, deleting, listing and getting."""
    admin = parse_policy(builtin.mirror_admin())
    tables = [
        ("fs:CreateRepository", repository_arn("lake-eu")),
        ("fs:MirrorRepository", repository_arn("lake")),
        ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE)),
        ("fs:DeleteRepository", repository_arn("lake-eu")),
        ("fs:ListRepositories", "*"),
    ]
    assert denied(admin, tables) == []
    beside = [need for need in NEIGHBOURS + BEYOND if need[0] not in {action for action, _ in tables}]
    beside.remove(("fs:OperateMirror", repository_arn("lake")))  # a part of fs:MirrorRepository
    assert denied(admin, beside) == sorted(beside)
