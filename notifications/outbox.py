"""What happens to alerts, written down in the transaction that makes it so: an event, as it is told to everybody, and a
delivery of it for each channel that hears of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Max, Q

from jobs import duties
from notifications import maintenance
from notifications.models import Alert, Channel, Delivery, Event, MaintenanceWindow
from notifications.status import alert_json

DUTY = "notify"
"""The duty of a channel, which sends what is written here."""


def opened(alert: Alert, now: datetime) -> None:
    """Tell of an alert that opened, by the channels that hear of such ones; nobody in a maintenance window, but when it
    has ended."""
    alert.muted = muted(alert, maintenance.current(now))
    alert.save(update_fields=["muted"])
    _write(alert, Event.Verb.OPENED, [] if alert.muted else _hearing(alert), now)


def after_maintenance(now: datetime) -> int:
    """Tell of what opened in a maintenance window and is still open after it; gives how many."""
    windows = maintenance.current(now)
    late = [alert for alert in Alert.objects.open().filter(muted=True) if not muted(alert, windows)]
    for alert in late:
        alert.muted = False
        alert.save(update_fields=["muted"])
        _write(alert, Event.Verb.OPENED, _hearing(alert), now)
    return len(late)


def muted(alert: Alert, windows: Iterable[MaintenanceWindow]) -> bool:
    """Whether one of these windows covers it."""
    return any(window.covers(alert) for window in windows)


def _hearing(alert: Alert) -> list[Channel]:
    return [channel for channel in Channel.objects.filter(enabled=True) if channel.hears(alert)]


def closed(alert: Alert, now: datetime) -> None:
    """Tell that it closed, by the channels that told of it, whatever their rules say by now."""
    _write(alert, Event.Verb.CLOSED, _told(alert), now)


def remind(now: datetime) -> int:
    """Tell again of what is still open: of each alert whose snooze has ended, and where a channel's time is over; gives
    how many. Not of what somebody has acknowledged or snoozed, not in a maintenance window, and by no channel outside
    of its hours."""
    windows = maintenance.current(now)
    due: dict[int, tuple[Alert, set[Channel]]] = {}
    for alert in Alert.objects.open().filter(snoozed_until__lte=now):
        due[alert.pk] = (alert, set(_told(alert)))
    for channel in Channel.objects.filter(enabled=True, tell_again_seconds__gt=0):
        if channel.rule.hours and not channel.rule.hours.include(now):
            continue
        for alert in _silent_since(channel, now - timedelta(seconds=channel.tell_again_seconds)):
            due.setdefault(alert.pk, (alert, set()))[1].add(channel)
    told = 0
    for alert, channels in due.values():
        if not muted(alert, windows) and Alert.objects.end_snooze(alert):
            _write(alert, Event.Verb.REMINDED, sorted(channels, key=lambda channel: channel.name), now)
            told += 1
    return told


def _silent_since(channel: Channel, moment: datetime) -> Iterable[Alert]:
    """Open alerts of which a channel told last before a moment, without those that are acknowledged or snoozed."""
    rows = Alert.objects.open().filter(acknowledged_at=None, snoozed_until=None)
    told = Max("events__at", filter=Q(events__deliveries__channel=channel))
    return rows.annotate(told=told).filter(told__lte=moment)


def _told(alert: Alert) -> list[Channel]:
    """The channels that told of it, as far as they are enabled."""
    return list(Channel.objects.filter(enabled=True, deliveries__event__alert=alert).distinct())


def _write(alert: Alert, verb: Event.Verb, channels: Iterable[Channel], now: datetime) -> None:
    event = Event.objects.create(alert=alert, verb=verb, at=now, message=alert_json(alert))
    for channel in channels:
        Delivery.objects.create(event=event, channel=channel, due_at=now)
        duties.wake(DUTY, channel.pk)
