"""May somebody see or run a mirror? Asked of pages, calls and verbs alike; the rules are in core/access/mirror_rights.

What is asked by name needs no row: who may not see a mirror doesn't learn whether it is there.
"""

from __future__ import annotations

from typing import Any

from core.access.mirror_rights import (
    READ,
    SEE_ALL,
    may_see_some,
    missing_to_create,
    run_unseen,
    sees_all,
    to_operate,
    to_see,
)
from core.access.policies import Right, repository_arn
from mirrors.models import Mirror
from rbac import services as rbac


def sees_every_mirror(user: Any) -> bool:
    """Whether there is no mirror that they may not see: what tells of the whole deployment is for them."""
    return _reads(user) and sees_all(rbac.policies_of(user), user.username)


def require_sight(user: Any, mirror: str = "") -> None:
    """Return if there could be a mirror that they see: lists are for them, however short. NotSignedIn, and Denied,
    which names the right that opens least: on the `mirror` that they want to see, or on what they run unseen."""
    rbac.require(user)
    if sees_some_mirror(user):
        return
    if resource := repository_arn(mirror) if mirror else run_unseen(rbac.policies_of(user)):
        rbac.require_any(user, (READ, resource), SEE_ALL)
    rbac.require(user, SEE_ALL)


def sees_some_mirror(user: Any) -> bool:
    """Whether there could be a mirror that they see."""
    return _reads(user) and may_see_some(rbac.policies_of(user), user.username)


def require_sight_of(user: Any, mirror: str) -> None:
    """Return if they may see the mirror of this name, whether there is one or not. NotSignedIn, and Denied, which names
    the right on this mirror alone first."""
    rbac.require_any(user, *reversed(to_see(mirror)))


def require_operation_of(user: Any, source: str, mirror: str) -> Right:
    """The right by which they run the mirror of this name and source, whether there is one or not. NotSignedIn,
    Denied."""
    return rbac.require_any(user, *to_operate(source, mirror))


def require_operation(user: Any, mirror: Mirror) -> Right:
    """The same of a mirror."""
    return require_operation_of(user, mirror.source.name, mirror.name)


def may_operate(user: Any, mirror: Mirror) -> bool:
    """Whether they may run it."""
    return rbac.allowed_any(user, *to_operate(mirror.source.name, mirror.name))


def may_create_some(user: Any) -> bool:
    """Whether there could be a mirror that they create."""
    return _reads(user) and missing_to_create(rbac.policies_of(user), user.username) is None


def require_some_creation(user: Any) -> None:
    """Return if there could be a mirror that they create. NotSignedIn, Denied."""
    rbac.require(user)
    if missing := missing_to_create(rbac.policies_of(user), user.username):
        rbac.require(user, missing)


def require_change(user: Any, mirror: Mirror) -> Right:
    """The right by which they change its settings. NotSignedIn, Denied."""
    right = ("fs:MirrorRepository", repository_arn(mirror.source.name))
    rbac.require(user, right)
    return right


def right_to_delete(mirror: Mirror) -> Right:
    """The right by which somebody deletes it."""
    return "fs:DeleteRepository", repository_arn(mirror.name)


def _reads(user: Any) -> bool:
    return bool(getattr(user, "is_authenticated", False) and user.is_active)
