"""By which ways what a link's source has may have come from places that are asked how new it is
(core/replicating/both_ways/upstream.py): by the rules that there are now.
"""

from __future__ import annotations

from core.replicating.both_ways.upstream import End, Way, upstream
from core.replicating.states import Prevails, Versions
from deployment.wiring import region_settings
from replication.models import Link, Rule


def ways_to(rule: Rule, link: Link) -> tuple[Way, ...]:
    """Of a link, the nearest first; none where nobody needs to be asked. Where all versions are copied each write is
    another version, whatever its content."""
    if not rule.both_ways or rule.all_versions:
        return ()
    kinds = {"rule__conflict": Prevails.NEWEST.value, "rule__versions": Versions.LATEST.value}
    links = Link.objects.live().filter(**kinds).select_related("rule")
    return upstream(_way(rule, link), [_way(one.rule, one) for one in links])


def _way(rule: Rule, link: Link) -> Way:
    whole = rule.existing and rule.new and not rule.tags
    return Way(_end(rule.region, rule.uri), _end(link.region, link.uri), whole)


def _end(region: str, uri: str) -> End:
    place = region_settings.place(region, uri)
    return End(place.store or region, region, place.uri.rstrip("/"))
