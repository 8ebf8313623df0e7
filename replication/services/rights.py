"""Who may do what with replication rules."""

from __future__ import annotations

from typing import Any

from core.access.policies import ALL, Right, namespace_arn
from core.access.rule_rights import rule_arn
from core.access.somewhere import has_somewhere
from rbac import services as rbac
from replication.models import Rule

LIST: Right = ("fs:ListReplicationRules", ALL)
_CREATE: Right = ("fs:CreateReplicationRule", rule_arn(ALL))
_ATTACH: Right = ("fs:AttachStorageNamespace", namespace_arn(ALL))
"""To create a rule of any name, and at any place."""


def may_create_some(user: Any) -> bool:
    """Whether there could be a rule that they create."""
    signed_in = getattr(user, "is_authenticated", False) and user.is_active
    if not signed_in:
        return False
    policies = rbac.policies_of(user)
    return all(has_somewhere(policies, right, user.username) for right in (_CREATE, _ATTACH))


def rules_read_by(user: Any) -> list[int]:
    """The keys of the rules that somebody may read, by name; also of one that is being deleted."""
    names = Rule.objects.order_by("name").values_list("pk", "name")
    return [pk for pk, name in names if rbac.allowed(user, "fs:ReadReplicationRule", rule_arn(name))]


def require_some_creation(user: Any) -> None:
    """Return if there could be a rule that they create. Raises NotSignedIn and Denied."""
    rbac.require(user)
    if not may_create_some(user):
        rbac.require(user, _CREATE, _ATTACH)
