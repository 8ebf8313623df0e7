"""A place of a rule in a region, by which its store can be asked whether it answers."""

from __future__ import annotations

from replication.models import Link, Rule


def one_place(region: str) -> str:
    """Where a rule there reads, else where one writes; "" where none does either."""
    rule = Rule.objects.live().filter(region=region).order_by("pk").first()
    if rule is not None:
        return rule.uri
    link = Link.objects.live().filter(region=region).order_by("pk").first()
    return "" if link is None else link.uri
