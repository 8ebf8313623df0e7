"""What replication rules bring to the pages that they share with mirrors and exports: their duties, and what people did
to them. Whoever asks is only told of rules that the user may read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.urls import reverse

from console.exports_summary import About, SourceRepository
from core.access.rule_rights import rule_arn
from core.mirroring.states import State
from core.text.phrases import Phrase, count, say, sentence
from jobs.models import Duty
from rbac import services as rbac
from replication.models import Link, Rule
from replication.services.rules import OPERATE, READ
from replication.status.rules import RuleReading, rule_readings, worst_first
from replication.transitions.duties import LINK, SCAN

KINDS = (SCAN, LINK)
SUBJECT = "replication"
"""The beginning of what the audit calls rules and their links."""
NOT_WELL = frozenset({State.UNKNOWN, State.RETRYING})
"""Nobody has to do anything about such a rule alone, but nobody can say that it is well."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How all rules are doing that the user may read: how many there are, how many need somebody, some of these, and
    of how many others nobody can say that they are well."""

    total: int = 0
    needing: int = 0
    unsettled: int = 0
    some: Sequence[RuleReading] = ()
    phrase: Phrase = say()

    @property
    def more(self) -> int:
        """How many of those that need somebody are not named."""
        return self.needing - len(self.some)


def summary(user: Any, now: datetime, most: int) -> Summary:
    """How they are doing, with the worst of those that need somebody, so many at most."""
    rules = [rule for rule in Rule.objects.live().order_by("name") if may_read(user, rule.name)]
    if not rules:
        return Summary()
    readings = rule_readings(rules, now)
    needing = [reading for reading in worst_first(readings) if _needs(reading)]
    unsettled = sum(_is_unsettled(reading) for reading in readings if not _needs(reading))
    phrase = _phrase(len(rules), len(needing), unsettled)
    return Summary(len(rules), len(needing), unsettled, needing[:most], phrase)


def _needs(reading: RuleReading) -> bool:
    return reading.needs_somebody or any(link.asked for link in reading.links)


def _is_unsettled(reading: RuleReading) -> bool:
    return reading.told.state in NOT_WELL or any(link.told.state in NOT_WELL for link in reading.links)


def _phrase(total: int, needing: int, unsettled: int) -> Phrase:
    rules = count(total, "replication rule")
    need = f"{needing:,} of {rules} {'needs' if needing == 1 else 'need'} attention" if needing else rules
    rest = count(unsettled, "is down or unknown", "are down or unknown") if unsettled else ""
    rest = rest or ("" if needing else "nothing needs you")
    return sentence("; ".join(filter(None, [need, rest])))


def may_read(user: Any, name: str) -> bool:
    """Whether the user may read a rule of this name."""
    return rbac.allowed(user, READ, rule_arn(name))


def duties(user: Any, find: str = "") -> Q:
    """The duties of the rules that the user may read, and of their links; `find`: a part of the name."""
    rows = Rule.objects.order_by().filter(name__icontains=find) if find else Rule.objects.order_by()
    seen = [pk for pk, name in rows.values_list("pk", "name") if may_read(user, name)]
    links = Link.objects.order_by().filter(rule__in=seen).values_list("pk", flat=True)
    scans = Q(kind=SCAN, subject__in=[-pk for pk in seen])
    return scans | Q(kind=LINK, subject__in=[-pk for pk in links])


def abouts(page: Sequence[Duty]) -> Mapping[int, About]:
    """What duties of rules are about, by the duty's key; of those that are gone nothing."""
    rules = Rule.objects.in_bulk([-duty.subject for duty in page if duty.kind == SCAN])
    keys = [-duty.subject for duty in page if duty.kind == LINK]
    links = {link.pk: link for link in Link.objects.filter(pk__in=keys).select_related("rule")}
    found: dict[int, About] = {}
    for duty in page:
        if duty.kind == SCAN and (rule := rules.get(-duty.subject)):
            found[duty.pk] = _about(rule, rule.name)
        if duty.kind == LINK and (link := links.get(-duty.subject)):
            found[duty.pk] = _about(link.rule, f"{link.rule.name} to {link.region}")
    return found


def _about(rule: Rule, name: str) -> About:
    return About(
        name=name,
        url=page_of(rule.name),
        place=SourceRepository("", rule.region),
        branch="",
        right=(OPERATE, rule_arn(rule.name)),
        rule=rule.name,
    )


def page_of(name: str) -> str:
    """The page of a rule."""
    return reverse("rule", args=[name])


def audit_names(user: Any) -> Q:
    """What was done to the rules that the user may read, and to their links, by the audit's subjects."""
    names = [name for name in Rule.objects.order_by().values_list("name", flat=True) if may_read(user, name)]
    found = Q(subject__in=[f"{SUBJECT}/{name}" for name in names])
    for name in names:
        found |= Q(subject__startswith=f"{SUBJECT}/{name}/")
    return found
