"""What people say to an alert: that they know of it, or that it is not to be told again for a while."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.access.policies import alert_arn
from core.errors import Conflict, Invalid, NotFound
from db import clock
from notifications.models import Alert
from notifications.status import alerts_seen_by
from rbac import services as rbac

ACKNOWLEDGE = "fs:AcknowledgeAlert"
LONGEST_NOTE = 1000
SHORTEST, LONGEST = 60, 30 * 86400
"""Seconds of a snooze."""


def alert_acknowledge(*, actor: Any, number: int, note: str = "") -> Alert:
    """Somebody sees to it: it is not told again before it closes, even if it was snoozed. Raises Denied, NotFound,
    Conflict and Invalid."""
    right = (ACKNOWLEDGE, alert_arn(number))
    rbac.require(actor, right)
    if len(note) > LONGEST_NOTE:
        raise Invalid(f"a note has {LONGEST_NOTE} characters at most", field="note")
    with transaction.atomic():
        alert = _locked(actor, number)
        alert.acknowledged_at, alert.acknowledged_by, alert.note = clock.now(), str(actor), note
        alert.snoozed_until, alert.snoozed_by = None, ""
        alert.save(update_fields=["acknowledged_at", "acknowledged_by", "note", "snoozed_until", "snoozed_by"])
        rbac.audit(actor=actor, right=right, verb=Verb.ACKNOWLEDGE, before=None, after=_about(alert), reason=note)
    return alert


def alert_snooze(*, actor: Any, number: int, seconds: int) -> Alert:
    """Not to be told again for so long; then it is, if it is still open. 0 ends a snooze. Raises Denied, NotFound,
    Conflict and Invalid."""
    right = (ACKNOWLEDGE, alert_arn(number))
    rbac.require(actor, right)
    if seconds and not SHORTEST <= seconds <= LONGEST:
        hint = "0 ends a snooze"
        raise Invalid(f"a snooze lasts for {SHORTEST} to {LONGEST} seconds, 30 days", field="seconds", hint=hint)
    with transaction.atomic():
        alert = _locked(actor, number)
        alert.snoozed_until = _end(seconds)
        alert.snoozed_by = str(actor) if seconds else ""
        alert.save(update_fields=["snoozed_until", "snoozed_by"])
        verb = Verb.SNOOZE if seconds else Verb.WAKE
        rbac.audit(actor=actor, right=right, verb=verb, before=None, after=_about(alert) | {"seconds": seconds})
    return alert


def _end(seconds: int) -> datetime | None:
    return clock.now() + timedelta(seconds=seconds) if seconds else None


def _locked(actor: Any, number: int) -> Alert:
    alert = alerts_seen_by(actor).select_for_update().filter(pk=number).first()
    if alert is None:
        raise NotFound(f"there is no alert {number}")
    if alert.closed_at:
        raise Conflict(f"the alert {number} has closed: no more messages are sent about it")
    return alert


def _about(alert: Alert) -> dict[str, str]:
    return {"kind": alert.kind, "name": alert.name}
