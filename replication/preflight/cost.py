"""What would a rule cost? Told from as many pages of its places as there is time for. Nothing is stored.

Calls are quick ones. What listings leave open (same size, other ETag) counts as equal, and is told beside.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.places.reader import time_of
from core.errors import Conflict
from core.replicating.comparing import Alike, by_listing
from core.replicating.eligible import is_copied
from core.replicating.merging import Listed, Window, windows
from core.replicating.passes import costs
from core.replicating.passes.costs import Estimate, Looked, Pace, Priced, Span
from core.replicating.wishes import RuleWish
from db import clock
from deployment import config
from deployment.wiring import replication_jobs
from rbac import services as rbac
from replication.engine.passes.plan import imagined
from replication.models import Link, Rule
from replication.services.passes import wish_json
from replication.services.rules import check_wish, rights_to_create

SECONDS = 8.0
"""Who asks waits no longer, but for the page at hand."""
PART = 16
"""Of many stretches so many are left out for each that is read."""
ONCE = ("put", "get", "list", "head", "egress")
MONTHLY = ("storage", "list_month")


@dataclass(frozen=True, slots=True)
class TargetCost:
    """What bringing everything to one target takes, and costs as far as there are prices. `doubted`: objects of the
    sample that may be equal."""

    number: int
    region: str
    uri: str
    estimate: Estimate
    costs: dict[str, Priced]
    doubted: int

    @property
    def once(self) -> Priced | None:
        """Until everything is there; None without prices."""
        return _sum(self.costs, ONCE)

    @property
    def monthly(self) -> Priced | None:
        """A month, from then on."""
        return _sum(self.costs, MONTHLY)


@dataclass(frozen=True, slots=True)
class RuleCost:
    """The same of each target. `whole`: all was looked at, and nothing is an estimate but the time."""

    targets: Sequence[TargetCost]
    currency: str
    sampled: int
    total: int | None
    whole: bool
    as_of: datetime


@dataclass
class _Sample:
    """Pages by link, and whether they are all."""

    pages: dict[int, list[Looked]]
    doubted: dict[int, int]
    whole: bool = True
    sampled: int = 0
    ends: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    @property
    def over(self) -> bool:
        """Is the time up?"""
        return time.monotonic() >= self.ends


def cost_of_wish(*, actor: Any, wish: RuleWish) -> RuleCost:
    """Of a rule that somebody thinks of. Raises what creating it would, and what the stores answer."""
    rbac.require(actor, *rights_to_create(wish))
    checked = check_wish(actor=actor, wish=wish)
    rule, links = imagined(wish_json(checked), clock.now())
    return _cost(rule, links, None)


def cost_of(rule: Rule) -> RuleCost:
    """Of a rule as it stands now. Raises what the stores answer."""
    return _cost(rule, list(rule.links.order_by("number")), rule.full_objects if rule.full_ended_at else None)


def _cost(rule: Rule, links: Sequence[Link], total: int | None) -> RuleCost:
    if rule.all_versions:
        raise Conflict("what all versions cost is not estimated", hint="A dry run counts what lacks")
    sample = _Sample({link.pk: [] for link in links}, {link.pk: 0 for link in links})
    _read(rule, links, sample)
    total = sample.sampled if sample.whole else total
    prices = config.current().replication.prices
    targets = []
    for link in links:
        estimate = costs.estimate(
            sample.pages[link.pk],
            total,
            whole=sample.whole,
            within=replication_jobs.is_one_store(rule.region, link.region),
            scan_every=rule.scan_every,
            pace=_pace(link),
        )
        priced = costs.priced(estimate.amounts, prices.known)
        targets.append(TargetCost(link.number, link.region, link.uri, estimate, priced, sample.doubted[link.pk]))
    return RuleCost(targets, prices.currency if prices.known else "", sample.sampled, total, sample.whole, clock.now())


# --- the sample -------------------------------------------------------------------------------------------------------


def _read(rule: Rule, links: Sequence[Link], sample: _Sample) -> None:
    stretches: list[tuple[str, str | None]] = [("", None)]
    if rule.pk is not None:
        rows = rule.shards.order_by("low").values_list("low", "high")
        stretches = [(bytes(low).decode(), None if high is None else bytes(high).decode()) for low, high in rows]
    chosen = stretches[:: max(1, min(PART, len(stretches) // 2))]
    sample.whole = len(chosen) == len(stretches)
    for low, high in chosen:
        sample.whole = _stretch(rule, links, sample, low, high) and sample.whole
        if sample.over:
            sample.whole = sample.whole and (low, high) == chosen[-1]
            return


def _stretch(rule: Rule, links: Sequence[Link], sample: _Sample, low: str, high: str | None) -> bool:
    """Whether it was read to its end. Raises what a store answers."""
    source = replication_jobs.quick_place_of(rule.region, rule.uri)
    dated = not (rule.existing and rule.new)
    reads = {link.pk: replication_jobs.quick_place_of(link.region, link.uri).listing for link in links}
    for window in windows(lambda after: source.listing(after, dated=dated), reads, low, high):
        for error in window.failed.values():
            raise error
        items = [one for one in window.items if is_copied(one.key) and (not dated or rule.wants(time_of(one.modified)))]
        sample.sampled += len(items)
        for link in links:
            _page(sample, link, items, window)
        if window.end:
            return True
        if sample.over:
            return False
    return True


def _page(sample: _Sample, link: Link, items: Sequence[Listed], window: Window) -> None:
    there = window.there[link.pk]
    judged = [(item, by_listing(item.size, item.etag, there.get(item.key))) for item in items]
    lacking = [item for item, alike in judged if alike is Alike.DIFFERENT]
    sample.doubted[link.pk] += sum(alike is Alike.DOUBT for _, alike in judged)
    sample.pages[link.pk].append(
        Looked(
            objects=len(items),
            bytes=sum(item.size for item in items),
            lacking=len(lacking),
            lacking_bytes=sum(item.size for item in lacking),
            replaced_bytes=sum(there[item.key][0] for item in lacking if item.key in there),
            extra_puts=sum(costs.puts_of(item.size) for item in lacking),
        )
    )


def _pace(link: Link) -> Pace:
    """What was measured, or else its limits; never more than these."""

    def least(measured: float, limit: int | None) -> float | None:
        known = [float(one) for one in (measured, limit) if one]
        return min(known) if known else None

    return Pace(
        least(link.pace_objects, link.objects_per_second),
        least(link.pace_bytes, link.bytes_per_second),
    )


def _sum(priced: dict[str, Priced], names: Sequence[str]) -> Priced | None:
    parts = [priced[name] for name in names if name in priced]
    if not parts:
        return None
    most = [part.most for part in parts if part.most is not None]
    whole = sum(most) if len(most) == len(parts) else None
    return Priced(sum(part.least for part in parts), sum(part.likely for part in parts), whole)


__all__ = ["RuleCost", "Span", "TargetCost", "cost_of", "cost_of_wish"]
