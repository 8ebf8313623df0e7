"""Rules by a text that their name or a place of theirs holds."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from replication.models import Link, Rule


def rules_holding(text: str) -> QuerySet[Rule]:
    """Those that are not being deleted; of "" all."""
    rows = Rule.objects.live()
    if not text:
        return rows
    targets = Link.objects.kept().filter(uri__icontains=text).order_by().values("rule")
    return rows.filter(Q(name__icontains=text) | Q(uri__icontains=text) | Q(pk__in=targets))
