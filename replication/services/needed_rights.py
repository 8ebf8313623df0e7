"""What rules need of a region's store: where they read, and where they write."""

from __future__ import annotations

from typing import Any

from core.access.rule_rights import rule_arn
from core.installations.replication_rights import Need, Side
from core.travelling.describing import Metadata
from installations.needed_rights import Known
from rbac import services as rbac
from replication.models import Link, Rule


def needs(actor: Any, region: str) -> Known:
    """Of each rule that leads from there, or to there, as far as somebody may read it."""
    found = []
    for rule in Rule.objects.live().filter(region=region).order_by("name"):
        found.append((rule.name, _need(Side.COPIED_FROM, rule.uri, rule)))
    for link in Link.objects.live().filter(region=region).select_related("rule").order_by("rule__name", "number"):
        found.append((link.rule.name, _need(Side.COPIED_TO, link.uri, link.rule)))
    seen = {name: rbac.allowed(actor, "fs:ReadReplicationRule", rule_arn(name)) for name, _ in found}
    return [need for name, need in found if seen[name]], sum(not may for may in seen.values())


def _need(side: Side, uri: str, rule: Rule) -> Need:
    travels = rule.metadata == Metadata.ALL.value or (side is Side.COPIED_FROM and bool(rule.tags))
    return Need(side, "", place=uri, versions=rule.all_versions, purges=rule.purges, travels=travels)
