"""What happens to alerts, written down in the transaction that makes it so: an event, as it is told to everybody, and a
delivery of it for each channel that hears of it."""

from __future__ import annotations

from datetime import datetime

from jobs import duties
from notifications.models import Alert, Channel, Delivery, Event
from notifications.status import alert_json

DUTY = "notify"
"""The duty of a channel, which sends what is written here."""


def write(alert: Alert, verb: Event.Verb, now: datetime) -> Event:
    """Write down that an alert opened or closed, and have it told."""
    event = Event.objects.create(alert=alert, verb=verb, at=now, message=alert_json(alert))
    for channel in _hearing(alert, verb):
        Delivery.objects.create(event=event, channel=channel, due_at=now)
        duties.wake(DUTY, channel.pk)
    return event


def _hearing(alert: Alert, verb: Event.Verb) -> list[Channel]:
    """The channels that are told. Who heard that an alert opened also hears that it closed, and nobody else does."""
    channels = Channel.objects.filter(enabled=True)
    if verb == Event.Verb.CLOSED:
        channels = channels.filter(deliveries__event__alert=alert).distinct()
    return list(channels)
