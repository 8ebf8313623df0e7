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


def links_at(place: str) -> list[Link]:
    """The links that begin or end at a place and follow deletions."""
    kinds = {"rule__markers": True, "rule__conflict": Prevails.NEWEST.value, "rule__versions": Versions.LATEST.value}
    links = Link.objects.live().filter(**kinds).select_related("rule")
    return [link for link in links if place in (target_of(link), source_of(link.rule))]


def others_at(place: str, but: int) -> list[Link]:
    """Those of them that are not this one; nor those that are frozen, for of these nobody knows what their source
    should have."""
    return [link for link in links_at(place) if link.pk != but and link.frozen_since is None]


def only_of(rule: Rule) -> set[str]:
    """The ends of a rule that leads both ways where no other rule follows deletions: what was deleted there before is
    nobody's to know."""
    if not rule.both_ways:
        return set()
    places = {source_of(rule), *map(target_of, rule.links.all())}
    return {place for place in places if all(link.rule_id == rule.pk for link in links_at(place))}
