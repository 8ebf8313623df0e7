"""What looks for a rule (spark_jobs/replicate/looking.py), with the places that are configured; what lacks is noted for
each link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from core.errors import LakeMirrorError
from db import clock
from deployment.wiring import replication_jobs
from replication.engine import upstream
from replication.engine.building import signs
from replication.models import Link, Rule
from replication.transitions import ledger, shards
from spark_jobs.replicate.both_ways import Upstream
from spark_jobs.replicate.building import Signs, upstream_of
from spark_jobs.replicate.looking import THREADS, Lacks, Looker
from spark_jobs.replicate.version_looking import VersionLooker


class Configured:
    """Places by what is configured of their regions."""

    def place(self, region: str, uri: str, *, versions: bool) -> Any:
        """What reads a place. Raises Invalid for a region that is not configured."""
        place_of = replication_jobs.versioned_place_of if versions else replication_jobs.place_of
        return place_of(region, uri, THREADS)

    def describer_of(self, place: Any) -> Any:
        """What asks what a place's objects have beside their bytes."""
        return replication_jobs.describer_of(place)

    def upstream(self, rule: Rule, link: Link) -> Upstream | None:
        """What asks the places that lead to a link's source, where that is needed."""
        ways = upstream.ways_to(rule, link)
        return upstream_of(ways, partial(self.place, versions=False), self.signs, self.now)

    @property
    def signs(self) -> Signs:
        """What signs proofs of parts, and where copies came from."""
        return signs()

    def now(self) -> datetime:
        """The moment by the database's clock."""
        return clock.now()


def looker_of(rule: Rule, links: Sequence[Link]) -> Looker:
    """What looks for a rule. Close it."""
    return (VersionLooker if rule.all_versions else Looker)(rule, links, Configured())


def note(rule: Rule, lacks: Lacks) -> set[int]:
    """Note what lacks, and what there is no room for as dirty; gives the links that have something to do. Inside of a
    transaction of the rule's look, which holds all its links from here on: so it never waits for one that waits for a
    stretch."""
    now, noted = clock.now(), set[int]()
    ledger.hold_all(rule.pk)
    for link_id in sorted(link_id for link_id, some in lacks.items() if some):
        link = ledger.hold(link_id)
        if link is None or link.removing:
            continue
        left_over = ledger.note(link, lacks[link_id], now)
        if len(left_over) < len(lacks[link_id]):
            noted.add(link_id)
        if left_over:
            shards.mark_dirty(rule.pk, left_over)
    return noted


def note_unlisted(failed: Mapping[int, LakeMirrorError], listed: Iterable[int]) -> None:
    """Why targets could not be listed; of those that could be, nothing. Inside of the same transaction."""
    for link_id, error in failed.items():
        Link.objects.filter(pk=link_id).update(listing_error=str(error))
    Link.objects.filter(pk__in=listed).exclude(listing_error="").update(listing_error="")
