"""What replication rules bring to the pages that they share with mirrors and exports: their duties, and what people did
to them. Whoever asks is only told of rules that the user may read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q
from django.urls import reverse

from console.exports_summary import About, SourceRepository
from core.access.rule_rights import rule_arn
from jobs.models import Duty
from rbac import services as rbac
from replication.models import Link, Rule
from replication.services.rules import OPERATE, READ
from replication.transitions.duties import LINK, SCAN

KINDS = (SCAN, LINK)
SUBJECT = "replication"
"""The beginning of what the audit calls rules and their links."""


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
