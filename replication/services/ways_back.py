"""Whether what a rule copies would come back to its source by other rules.

Two rules that differ would overwrite each other for ever. Rules that let the newer object stay may lead both ways, in a
ring, or from each of several places to all others: if each begins where the one before it ends, so that a key is the
same key everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from core.access.rule_rights import rule_arn
from core.errors import Conflict
from core.installations.places import Place
from deployment.wiring import region_settings
from rbac import services as rbac
from replication.models import Link

_HINT = "Copy in one direction only, or create all these rules with conflict=newest, each between the same whole places"


class Target(NamedTuple):
    """A place by the field that names it."""

    field: str
    region: str
    place: Place


def place_of_link(link: Link) -> Place:
    """Where a link writes."""
    return region_settings.place(link.region, link.uri)


def check_no_way_back(
    actor: Any, source: Place, targets: Sequence[Target], links: Sequence[Link], *, both_ways: bool
) -> None:
    """Raises Conflict where what a target gets would come back to the source by these links, unless the newer object
    stays on the whole way."""
    for target in targets:
        for link in _leading_back(source, target.place, links, both_ways=both_ways):
            named = rbac.allowed(actor, "fs:ReadReplicationRule", rule_arn(link.rule.name))
            by = f"the rule '{link.rule.name}'" if named else "a rule that you may not see"
            text = f"what is copied to {target.place} comes back to {source.uri} by {by}"
            raise Conflict(text, field=target.field, hint=_HINT)


def _leading_back(source: Place, target: Place, links: Sequence[Link], *, both_ways: bool) -> Iterator[Link]:
    """The links that end at the source, of all ways from the target on, but for those where the newer object stays."""
    ahead, known = [(target, both_ways)], set[tuple[int, bool]]()
    while ahead:
        here, keeps = ahead.pop()
        for link in links:
            begins = region_settings.place(link.rule.region, link.rule.uri)
            if (link.pk, keeps) in known or not here.overlaps(begins):
                continue
            known.add((link.pk, keeps))
            still, reached = keeps and link.rule.both_ways and here == begins, place_of_link(link)
            if reached.overlaps(source) and not (still and reached == source):
                yield link
            ahead.append((reached, still))
