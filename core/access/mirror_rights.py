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
    repository_arn,
)

LIST, READ, OPERATE = "fs:ListRepositories", "fs:ReadRepository", "fs:OperateMirror"
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
