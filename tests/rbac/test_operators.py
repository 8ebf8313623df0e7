"""Operators run what others have configured; what MirrorAdmin allows in lakeFS it goes on allowing here."""

from __future__ import annotations

import pytest

from core.access.policies import branch_arn, evaluate, parse_policy, repository_arn
from core.errors import Denied
from rbac import services
from rbac.models import User
from rbac.services import builtin
from tests.cast import person

LAKE, MAIN = repository_arn("lake"), branch_arn("lake", "main")
OPERATE = [("fs:OperateMirror", LAKE), ("fs:PauseExport", MAIN), ("fs:RunExport", MAIN)]
CONFIGURE = [
    ("fs:MirrorRepository", LAKE),
    ("fs:CreateRepository", LAKE),
    ("fs:DeleteRepository", LAKE),
    ("fs:AttachStorageNamespace", "arn:lakefs:fs:::namespace/s3://dst/lake"),
    ("fs:ExportConfig", MAIN),
    ("fs:CreateCommit", MAIN),
    ("auth:CreateUser", "arn:lakefs:auth:::user/ann"),
]


def statement(effect: str, action: str) -> dict[str, object]:
    return {"effect": effect, "action": [action], "resource": "*"}


def may(action: str, arn: str, *statements: dict[str, object]) -> bool:
    return evaluate([parse_policy({"id": "P", "statement": list(statements)})], action, arn, "tom").allowed


def test_operators_look_and_run_and_configure_nothing(db: None) -> None:
    otis = person("otis", builtin.OPERATORS)
    for need in [*OPERATE, ("fs:ListRepositories", "*"), ("fs:ReadBranch", MAIN)]:
        assert services.allowed(otis, *need), need
    for need in CONFIGURE:
        assert not services.allowed(otis, *need), need


@pytest.mark.parametrize(
    ("need", "whole"), list(zip(OPERATE, ("MirrorRepository", "ExportConfig", "CreateCommit"), strict=True))
)
def test_who_may_the_whole_may_its_part_and_who_is_denied_either_may_not(need: tuple[str, str], whole: str) -> None:
    part, whole = need[0], f"fs:{whole}"
    assert may(*need, statement("allow", whole))
    assert may(*need, statement("allow", part))
    assert not may(*need, statement("allow", "fs:*"), statement("deny", whole))
    assert not may(*need, statement("allow", whole), statement("deny", part))
    assert not may(whole, need[1], statement("allow", part))
    assert may(whole, need[1], statement("allow", whole), statement("deny", part))


def test_mirror_admin_operates_mirrors(outsider: User) -> None:
    assert evaluate([parse_policy(builtin.mirror_admin())], *OPERATE[0], "tom").allowed


def test_who_may_neither_is_told_both(outsider: User) -> None:
    with pytest.raises(
        Denied, match=r"otto may not fs:OperateMirror on .*, nor fs:MirrorRepository, which it is a part"
    ):
        services.require(outsider, OPERATE[0])
