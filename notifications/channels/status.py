"""What is told of channels and of what was sent by them; never a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q

from core.notifications.kinds import Severity
from core.notifications.rules import AGAIN
from notifications.models import Channel, Delivery
from web.serializers import rfc3339


@dataclass(frozen=True, slots=True)
class ChannelReading:
    """A channel, how many messages wait for it, and the last one that ended or was tried."""

    channel: Channel
    waiting: int
    last: Delivery | None

    @property
    def word(self) -> str:
        """How it is doing, in a word."""
        if not self.channel.enabled:
            return "Disabled"
        if self.last is None:
            return "No messages yet"
        return {"sent": "OK", "waiting": "Retrying", "given_up": "Failed"}[self.last.state]

    @property
    def rule(self) -> str:
        """What it is told, in words."""
        rule = self.channel.rule
        severity = Severity(rule.least_severity).word
        parts = [f"{severity} and above" if rule.least_severity != Severity.WARNING else "all alerts"]
        if severity == Severity.CRITICAL.word:
            parts = ["critical only"]
        parts += [f"of kind {', '.join(rule.kinds)}"] if rule.kinds else []
        parts += [f"about {', '.join(rule.names)}"] if rule.names else []
        parts += [f"labelled {', '.join(rule.labels)}"] if rule.labels else []
        parts += [f"in {', '.join(rule.regions)}"] if rule.regions else []
        again = f"; reminders {AGAIN[rule.tell_again_seconds].lower()}" if rule.tell_again_seconds in AGAIN else ""
        hours = f"; {rule.hours.word}" if rule.hours else ""
        return " ".join(parts) + (again if rule.tell_again_seconds else "") + hours

    @property
    def tone(self) -> str:
        """That word's colour."""
        return {"OK": "good", "Retrying": "warn", "Failed": "bad"}.get(self.word, "quiet")

    @property
    def icon(self) -> str:
        """The icon that goes with it."""
        icons = {"OK": "check", "Retrying": "retry", "Failed": "cross", "Disabled": "pause"}
        return icons.get(self.word, "clock")


def channel_readings(channels: Sequence[Channel]) -> list[ChannelReading]:
    """All in three queries."""
    keys = [channel.pk for channel in channels]
    rows = Delivery.objects.filter(channel__in=keys).order_by().values("channel")
    counted = rows.annotate(waiting=Count("pk", filter=Q(state=Delivery.State.WAITING)))
    waiting: Mapping[int, int] = dict(counted.values_list("channel", "waiting"))
    newest = rows.filter(tries__gt=0).annotate(last=Max("pk")).values("last")
    last = {delivery.channel_id: delivery for delivery in Delivery.objects.filter(pk__in=newest)}
    return [ChannelReading(channel, waiting.get(channel.pk, 0), last.get(channel.pk)) for channel in channels]


def channel_json(reading: ChannelReading) -> dict[str, Any]:
    """For the API."""
    channel, last = reading.channel, reading.last
    return {
        "name": channel.name,
        "kind": channel.kind,
        "enabled": channel.enabled,
        "target": channel.target,
        "mail": channel.mail or None,
        "least_severity": channel.least_severity,
        "kinds": channel.kinds,
        "names": channel.names,
        "labels": channel.labels,
        "regions": channel.regions,
        "tell_again_seconds": channel.tell_again_seconds,
        "hours": channel.hours or None,
        "waiting": reading.waiting,
        "last_state": last.state if last else None,
        "last_tried_at": rfc3339(last.tried_at) if last else None,
        "last_answer": (last.answer or None) if last else None,
        "changed_at": rfc3339(channel.changed_at),
    }


def delivery_json(delivery: Delivery) -> dict[str, Any]:
    """For the API."""
    alert = delivery.event.message
    return {
        "id": str(delivery.uid),
        "event": delivery.event.verb,
        "at": rfc3339(delivery.event.at),
        "alert": alert["id"],
        "kind": alert["kind"],
        "name": alert["name"],
        "state": delivery.state,
        "tries": delivery.tries,
        "next_try_at": rfc3339(delivery.due_at) if delivery.state == Delivery.State.WAITING else None,
        "ended_at": rfc3339(delivery.ended_at),
        "log": delivery.log,
    }
