"""What people do with replication rules, and the rights that each step needs."""

from __future__ import annotations

from collections.abc import Iterable

from core.access.policies import ALL, namespace_arn
from core.access.policy_analysis import Place
from core.access.rule_rights import rule_arn
from rbac.permission_catalog import Area, a_step, register

_RULE = rule_arn("{rule}")
_OPERATE = ("fs:OperateReplicationRule", _RULE)

STEPS = (
    a_step("rules.list", "List replication rules", ("fs:ListReplicationRules", ALL)),
    a_step("rules.see", "See a replication rule", ("fs:ReadReplicationRule", _RULE)),
    a_step(
        "rules.create",
        "Create a replication rule",
        ("fs:CreateReplicationRule", _RULE),
        ("fs:AttachStorageNamespace", namespace_arn("{namespace}")),
    ),
    a_step("rules.change", "Change a replication rule", ("fs:UpdateReplicationRule", _RULE)),
    a_step(
        "rules.targets",
        "Give a replication rule another target",
        ("fs:UpdateReplicationRule", _RULE),
        ("fs:AttachStorageNamespace", namespace_arn("{namespace}")),
    ),
    a_step("rules.delete", "Delete a replication rule", ("fs:DeleteReplicationRule", _RULE)),
    a_step("rules.approve", "Approve deletions of a replication rule", ("fs:ApproveReplicationDeletes", _RULE)),
    a_step("rules.operate", "Pause, scan, retry and limit a replication rule", _OPERATE),
)


def register_rules() -> None:
    """Tell the access app."""
    register(Area("Replication rules", STEPS, _places))


def _places(most: int) -> Iterable[Place]:
    from replication.models import Link, Rule

    rules = Rule.objects.filter(deleting=False).order_by("name").values_list("name", flat=True)
    yield from ({"rule": name} for name in rules[:most])
    links = Link.objects.live().order_by("rule__name", "number")
    yield from ({"rule": name, "namespace": uri} for name, uri in links.values_list("rule__name", "uri")[:most])
