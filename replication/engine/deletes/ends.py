"""The two ends of a link whose rule leads where others lead back from, and which other links begin or end there."""

from __future__ import annotations

import hashlib
import json

from core.replicating.states import Prevails, Versions
from deployment.wiring import region_settings
from replication.models import Link, Rule


def name_of(region: str, uri: str) -> str:
    """What names a place, the same for every rule that leads to it or from it."""
    place = region_settings.place(region, uri)
    told = json.dumps([place.store or region, place.uri.rstrip("/")])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def source_of(rule: Rule) -> str:
    """The name of the place where a rule reads."""
    return name_of(rule.region, rule.uri)


def target_of(link: Link) -> str:
    """The name of the place where a link writes."""
    return name_of(link.region, link.uri)


def follows(rule: Rule) -> bool:
    """Whether deletions are followed by a rule that leads where others lead back from."""
    return rule.markers and rule.both_ways and not rule.all_versions


def others_at(place: str, but: int) -> list[Link]:
    """The other links that begin or end at a place and follow deletions; not those that are frozen, for of these nobody
    knows what their source should have."""
    kinds = {"rule__markers": True, "rule__conflict": Prevails.NEWEST.value, "rule__versions": Versions.LATEST.value}
    links = Link.objects.filter(**kinds, rule__deleting=False, removing=False, frozen_since=None).exclude(pk=but)
    return [link for link in links.select_related("rule") if place in (target_of(link), source_of(link.rule))]
