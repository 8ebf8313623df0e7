"""What is told of alerts, by pages, API and messages alike, and to whom."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from core.access.policies import auth_arn
from deployment import config
from exports.api.exports import visible
from mirrors.models import Mirror
from mirrors.services.rights import sees_every_mirror
from notifications.conditions.keys import SUBJECTS, owner_of
from notifications.models import Alert, AlertQuerySet
from rbac import services as rbac
from replication.services.rights import rules_read_by
from web.serializers import rfc3339

OPEN, CLOSED = "open", "closed"


def alerts_seen_by(user: Any) -> AlertQuerySet:
    """Alerts about what the user may see: mirrors, exports, rules, users' access keys; what concerns a whole deployment
    is for who may see all mirrors."""
    of_key = Q(subject__startswith=SUBJECTS)
    of_all = Q(mirror=None, export=None, rule=None) & ~of_key if sees_every_mirror(user) else Q(pk__in=())
    keys = Q(subject__in=_keys_seen_by(user, Alert.objects.told().filter(of_key)))
    mirrors = Mirror.objects.visible_to(user).order_by().values("pk")
    rules = Q(rule__in=rules_read_by(user))
    return Alert.objects.told().filter(of_all | keys | rules | Q(mirror__in=mirrors) | Q(export__in=visible(user)))


def _keys_seen_by(user: Any, alerts: AlertQuerySet) -> list[str]:
    """Of the subjects of alerts about access keys those of users whose keys they may list."""
    subjects = list(alerts.order_by().values_list("subject", flat=True).distinct())
    owners = {owner_of(subject) for subject in subjects}
    shown = {owner for owner in owners if rbac.allowed(user, "auth:ListCredentials", auth_arn("user", owner))}
    return [subject for subject in subjects if owner_of(subject) in shown]


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
        "labels": alert.labels,
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
