"""Open alerts as figures for Prometheus: those that the user's page of alerts has, counted by kind."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from django.db.models import Count

from core.notifications.kinds import OF_EXPORTS, OF_MIRRORS, AlertKind
from mirrors.services.rights import sees_every_mirror
from notifications import rounds
from notifications.status import alerts_seen_by
from web.prometheus import Gauge, labelled


def open_alerts(user: Any, now: datetime) -> Gauge:
    """0 for a kind without one, of which the user would see any. Without a sample while nobody looks what is wrong."""
    gauge = Gauge("open_alerts", "alerts of a kind that are open, whether or not they were acknowledged")
    if not rounds.looked_lately(now):
        return gauge
    numbers = Counter({(kind.value, kind.severity.value): 0 for kind in _kinds_seen_by(user)})
    rows = alerts_seen_by(user).open().order_by().values("kind", "severity").annotate(number=Count("pk"))
    numbers.update({(row["kind"], row["severity"]): row["number"] for row in rows})
    for labels, number in sorted(numbers.items()):
        gauge.add(labelled(("kind", "severity"), labels), number)
    return gauge


def _kinds_seen_by(user: Any) -> set[AlertKind]:
    """Those about regions, queues and deployments are for who sees every mirror."""
    return set(AlertKind) if sees_every_mirror(user) else {*OF_MIRRORS.values(), *OF_EXPORTS.values()}
