"""What recurs for a rule: looks through its source, and copying to each target. Subjects are below zero: see
transitions/duties.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from deployment import config
from installations import services
from jobs import kinds
from jobs.kinds import DutyKind
from jobs.lease import DutyOutcome, Lease
from replication.transitions.duties import LINK, PASS, SCAN

INTERVAL_SECONDS = 30.0
"""So often a link is looked at of which nobody has woken the duty, and a rule whose next look is far."""


def register() -> None:
    """Make the duties known to the loops that all duties share."""
    kinds.register(
        DutyKind(SCAN, _scan, _interval, _rules, label="Replication scan"),
        DutyKind(LINK, _copy, _interval, _links, label="Replication"),
        DutyKind(PASS, _pass, _interval, _passes, label="Replication pass"),
    )
    services.register_user("replication rule", _by_region, needs_lakefs=False)
    services.register_user("place of state (replication.state)", _of_state, needs_lakefs=False)


def _interval() -> float:
    return INTERVAL_SECONDS


def _scan(lease: Lease) -> DutyOutcome:
    from replication.engine import scan

    return scan.advance(lease)


def _copy(lease: Lease) -> DutyOutcome:
    from replication.engine import link

    return link.advance(lease)


def _pass(lease: Lease) -> DutyOutcome:
    from replication.engine.passes import duty

    return duty.advance(lease)


def _rules(regions: list[str]) -> list[int]:
    """The subjects of the rules that these regions' deployment works for."""
    from replication.models import Rule

    return [-pk for pk in Rule.objects.filter(region__in=regions).values_list("pk", flat=True)]


def _links(regions: list[str]) -> list[int]:
    """The same of links: whoever serves the source's region does all of a rule."""
    from replication.models import Link

    return [-pk for pk in Link.objects.filter(rule__region__in=regions).values_list("pk", flat=True)]


def _passes(regions: list[str]) -> list[int]:
    """The same of passes that go on."""
    from replication.models import Pass

    return [-pk for pk in Pass.objects.filter(region__in=regions, ended_at=None).values_list("pk", flat=True)]


def _of_state() -> Mapping[str, int]:
    """The region whose store keeps what is known of rules, if the configuration names one."""
    state = config.current().replication.state
    return {state.region: 1} if state.uri else {}


def _by_region() -> Mapping[str, int]:
    """How many rules lead from, or to, each region."""
    from replication.models import Link, Rule

    sources = Rule.objects.order_by().values_list("region", "pk")
    targets = Link.objects.order_by().values_list("region", "rule")
    return Counter(region for region, _ in sources.union(targets))
