"""What is known of the regions that somebody may choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from deployment import config


@dataclass(frozen=True, slots=True)
class RegionFacts:
    """A region: where its lakeFS is ("" where there is none), and what goes in and out already. `None`: nobody has
    looked."""

    name: str
    lakefs: str
    arriving: int
    received_at: datetime | None
    sources: int
    looked_at: datetime | None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Traffic:
    """By region, how many mirrors arrive there and how many sources they have there, each with the last look."""

    arriving: Mapping[str, tuple[int, datetime | None]]
    sources: Mapping[str, tuple[int, datetime | None]]


_traffic: list[Callable[[], Traffic]] = []


def register_traffic(traffic: Callable[[], Traffic]) -> None:
    """Make known who mirrors between regions; each process does so when that app is ready."""
    _traffic[:] = [traffic]


def region_facts(names: Iterable[str]) -> list[RegionFacts]:
    """In the order of `names`; two queries, whatever there is."""
    traffic = _traffic[0]()
    arriving, sources = traffic.arriving, traffic.sources
    return [
        RegionFacts(name, _host(name), *arriving.get(name, (0, None)), *sources.get(name, (0, None))) for name in names
    ]


def _host(region: str) -> str:
    lakefs = config.current().lakefs(region)
    return urlsplit(lakefs.url).netloc if lakefs else ""
