"""What is known of the regions that somebody may choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.db.models import Count, Max

from deployment import config
from mirrors.models import Mirror, Repository


@dataclass(frozen=True, slots=True)
class RegionFacts:
    """A region: where its lakeFS is, and what goes in and out already. `None`: nobody has looked."""

    name: str
    lakefs: str
    arriving: int
    received_at: datetime | None
    sources: int
    looked_at: datetime | None

    def __str__(self) -> str:
        return self.name


def region_facts(names: Iterable[str]) -> list[RegionFacts]:
    """In the order of `names`; two queries, whatever there is."""
    there = _by_region(Mirror.objects.live(), number=Count("pk"), at=Max("destination_looked_at"))
    mirrored = Repository.objects.filter(mirrors__in=Mirror.objects.live())
    here = _by_region(mirrored, number=Count("pk", distinct=True), at=Max("looked_at"))
    return [RegionFacts(name, _host(name), *there.get(name, (0, None)), *here.get(name, (0, None))) for name in names]


def _by_region(rows: Any, **totals: Any) -> Mapping[str, tuple[int, datetime | None]]:
    found = rows.order_by().values_list("region").annotate(**totals)
    return {region: (number, at) for region, number, at in found}


def _host(region: str) -> str:
    return urlsplit(config.current().lakefs_url(region)).netloc
