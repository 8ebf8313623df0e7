"""What is told of alerts, by pages, API and messages alike, and to whom."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from deployment import config
from exports.api.exports import visible
from mirrors.models import Mirror
from mirrors.services.rights import sees_every_mirror
from notifications.models import Alert, AlertQuerySet
from web.serializers import rfc3339

OPEN, CLOSED = "open", "closed"


def alerts_seen_by(user: Any) -> AlertQuerySet:
    """Alerts about what the user may see: mirrors, exports; what concerns a whole deployment is for who may see all
    mirrors."""
    of_all = Q(mirror=None, export=None) if sees_every_mirror(user) else Q(pk__in=())
    mirrors = Mirror.objects.visible_to(user).order_by().values("pk")
    return Alert.objects.told().filter(of_all | Q(mirror__in=mirrors) | Q(export__in=visible(user)))


def alert_json(alert: Alert) -> dict[str, Any]:
    """An alert, as it is now."""
    return {
        "id": alert.pk,
        "kind": alert.kind,
        "subject": alert.subject,
        "status": CLOSED if alert.closed_at else OPEN,
        "severity": alert.severity,
        "name": alert.name,
        "region": alert.region or None,
        "reason": alert.sentence,
        "remedy": alert.remedy,
        "url": f"{config.current().notifications.site_url.rstrip('/')}{alert.link}",
        "cause": alert.cause or None,
        "since": rfc3339(alert.since),
        "opened_at": rfc3339(alert.opened_at),
        "closed_at": rfc3339(alert.closed_at),
        "now": alert.closing or None,
        "acknowledged_at": rfc3339(alert.acknowledged_at),
        "acknowledged_by": alert.acknowledged_by or None,
        "note": alert.note or None,
        "snoozed_until": rfc3339(alert.snoozed_until),
    }
