"""What happens to alerts, written down in the transaction that makes it so: an event, as it is told to everybody."""

from __future__ import annotations

from datetime import datetime

from notifications.models import Alert, Event
from notifications.status import alert_json


def write(alert: Alert, verb: Event.Verb, now: datetime) -> Event:
    """Write down that an alert opened or closed."""
    return Event.objects.create(alert=alert, verb=verb, at=now, message=alert_json(alert))
