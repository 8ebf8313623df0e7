"""Which rights let somebody see a mirror, or run it: on all mirrors, on its source, or on the mirror itself.

Where several rights serve, each is enough, and a denial of any wins. The mirror itself is the repository of its name at
the destination, `repository/lake-eu`: no two mirrors have the same name.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.access.policies import (
    ALL,
    Effect,
    Policy,
    Right,
    evaluate,
    may_cover_repository,
    namespace_arn,
    repository_arn,
)
from core.access.somewhere import has_somewhere

LIST, READ, OPERATE = "fs:ListRepositories", "fs:ReadRepository", "fs:OperateMirror"
CREATE: tuple[Right, ...] = (
    ("fs:MirrorRepository", repository_arn(ALL)),
    ("fs:CreateRepository", repository_arn(ALL)),
    ("fs:AttachStorageNamespace", namespace_arn(ALL)),
)
"""What it takes to create any mirror: for one, each on its source, its repository or its namespace."""
APPROVE = "fs:ApproveMirrorDeletes"
SEE_ALL: Right = (LIST, ALL)


def to_see(mirror: str) -> tuple[Right, ...]:
    """The rights of which each lets somebody see a mirror."""
    return SEE_ALL, (READ, repository_arn(mirror))


def to_operate(source: str, mirror: str) -> tuple[Right, ...]:
    """The rights of which each lets somebody run a mirror: on its source, which is on all mirrors of it, or on
    itself."""
    return (OPERATE, repository_arn(source)), (OPERATE, repository_arn(mirror))


def to_approve(mirror: str) -> Right:
    """The right by which somebody approves what a sweep would delete at a mirror: on the mirror itself."""
    return APPROVE, repository_arn(mirror)


def sees_all(policies: Sequence[Policy], username: str) -> bool:
    """Whether somebody with these policies sees every mirror, whatever its name."""
    denied = any(s.effect is Effect.DENY and s.names(READ) for policy in policies for s in policy.statements)
    return not denied and evaluate(policies, *SEE_ALL, username).allowed


def may_see_some(policies: Sequence[Policy], username: str) -> bool:
    """Whether there could be a mirror that they see: whether lists are anything for them."""
    verdict = evaluate(policies, *SEE_ALL, username)
    if verdict.is_denied or verdict.allowed:
        return verdict.allowed
    allowing = (s for policy in policies for s in policy.statements if s.effect is Effect.ALLOW and s.names(READ))
    return any(may_cover_repository(resource) for statement in allowing for resource in statement.resources)


def missing_to_create(policies: Sequence[Policy], username: str) -> Right | None:
    """The first of CREATE that somebody has on nothing at all: they can create no mirror; None: there may be one."""
    return next((right for right in CREATE if not has_somewhere(policies, right, username)), None)


def run_unseen(policies: Sequence[Policy]) -> str:
    """The resource on which somebody may run mirrors without seeing them, "" if there is none."""
    running = (s for policy in policies for s in policy.statements if s.effect is Effect.ALLOW and s.names(OPERATE))
    named = (resource for s in running for resource in s.resources if may_cover_repository(resource))
    return next((resource for resource in named if resource != ALL), "")
