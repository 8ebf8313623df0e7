"""What rules need of a region's store: where they read, and where they write."""

from __future__ import annotations

from typing import Any

from core.access.rule_rights import rule_arn
from core.installations.replication_rights import Need, Side
from installations.needed_rights import Known
from rbac import services as rbac
from replication.models import Link, Rule


def needs(actor: Any, region: str) -> Known:
    """Of each rule that leads from there, or to there, as far as somebody may read it."""
    found = []
    for rule in Rule.objects.live().filter(region=region).order_by("name"):
        found.append((rule.name, Need(Side.COPIED_FROM, "", place=rule.uri, versions=rule.all_versions)))
    for link in Link.objects.live().filter(region=region).select_related("rule").order_by("rule__name", "number"):
        found.append((link.rule.name, Need(Side.COPIED_TO, "", place=link.uri, versions=link.rule.all_versions)))
    seen = {name: rbac.allowed(actor, "fs:ReadReplicationRule", rule_arn(name)) for name, _ in found}
    return [need for name, need in found if seen[name]], sum(not may for may in seen.values())
