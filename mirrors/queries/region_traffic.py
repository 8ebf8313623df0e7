"""What mirrors tell of regions: how many need one, what goes in and out, where rights can be tried."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Count, Max

from core.bringing import ObjectReplication
from core.installations.replication_rights import Need, Side
from installations.needed_rights import Known
from installations.region_usage import Traffic
from mirrors.models import Mirror, Repository


def traffic() -> Traffic:
    """Of all regions; two queries."""
    mirrored = Repository.objects.filter(mirrors__in=Mirror.objects.live())
    return Traffic(
        _by_region(Mirror.objects.live(), number=Count("pk"), at=Max("destination_looked_at")),
        _by_region(mirrored, number=Count("pk", distinct=True), at=Max("looked_at")),
    )


def _by_region(rows: Any, **totals: Any) -> Mapping[str, tuple[int, datetime | None]]:
    counted = rows.order_by().values_list("region").annotate(**totals)
    return {region: (number, at) for region, number, at in counted}


def mirrors_by_region() -> Mapping[str, int]:
    """How many mirrors each region has, also those that are being deleted."""
    return _counted(Mirror.objects)


def sources_by_region() -> Mapping[str, int]:
    """How many repositories of each region are mirrored."""
    return _counted(Repository.objects.filter(mirrors__isnull=False))


def _counted(rows: Any) -> Mapping[str, int]:
    return dict(rows.order_by().values_list("region").annotate(number=Count("pk", distinct=True)))


def needs(actor: Any, region: str) -> Known:
    """What mirrors need of a region, as far as somebody may see them, and how many needs more there are."""
    live = Mirror.objects.live().select_related("source").order_by("name")
    seen = set(Mirror.objects.visible_to(actor).order_by().values_list("pk", flat=True))
    needed = [(mirror.pk, need) for mirror in live for at, need in needs_of(mirror) if at == region]
    known = [need for key, need in needed if key in seen]
    return known, len(needed) - len(known)


def needs_of(mirror: Mirror) -> list[tuple[str, Need]]:
    """What a mirror needs, and where."""
    source, shared = mirror.source, {"tags": mirror.tags, "follows_gc": mirror.follow_gc}
    managed = mirror.object_replication == ObjectReplication.MANAGED
    return [
        (source.region, Need(Side.SOURCE, source.name, source.namespace, **shared)),
        (mirror.region, Need(Side.DESTINATION, mirror.name, mirror.namespace, managed=managed, **shared)),
    ]


def target(region: str) -> tuple[str, str] | None:
    """The side and name of a repository there that mirrors work with, for a policy that names repositories."""
    mirror = Mirror.objects.live().filter(region=region).order_by("pk").first()
    if mirror is not None:
        return "destination", mirror.name
    source = Repository.objects.filter(region=region, mirrors__isnull=False).order_by("pk").first()
    return None if source is None else ("source", source.name)


def place(region: str) -> str:
    """The namespace of a repository there that mirrors work with, by which its store can be asked; "" for none."""
    mirror = Mirror.objects.live().filter(region=region).order_by("pk").first()
    if mirror is not None:
        return mirror.namespace
    source = Repository.objects.filter(region=region, mirrors__isnull=False).order_by("pk").first()
    return "" if source is None else source.namespace
