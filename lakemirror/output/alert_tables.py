"""Alerts and channels as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from lakemirror.output.formatting import UNKNOWN, ago, clean, clock
from lakemirror.output.rendering import line, listed

_STATES = {"sent": "OK", "waiting": "Retrying", "given_up": "Failed", None: "No messages yet"}


def alert_list(page: dict[str, Any]) -> RenderableType:
    """Alerts, each with what is wrong."""
    columns = ("Id", "Alert", "Name", "Severity", "Since", "Reason")
    rows = [
        (
            str(alert["id"]),
            alert["kind"],
            alert["name"],
            alert["severity"],
            ago(alert["since"], page["as_of"]),
            _told(alert),
        )
        for alert in page["results"]
    ]
    return listed(columns, rows, none="No alerts.", more=page["pagination"]["has_more"])


def _told(alert: dict[str, Any]) -> str:
    if alert["closed_at"]:
        return f"closed {clock(alert['closed_at'])}: {alert['now']}"
    by = f" (acknowledged by {alert['acknowledged_by']})" if alert["acknowledged_by"] else ""
    until = f" (snoozed until {clock(alert['snoozed_until'])})" if alert["snoozed_until"] else ""
    return f"{alert['reason']}{by}{until}"


def answered(alert: dict[str, Any]) -> RenderableType:
    """An alert that somebody said something to."""
    return line(f"{alert['kind']} of {alert['name']}: {_told(alert)}")


def channel_list(page: dict[str, Any]) -> RenderableType:
    """Channels, and how the last message of each went."""
    columns = ("Channel", "Kind", "State", "To", "Queued", "Last response")
    rows = [
        (
            channel["name"],
            channel["kind"],
            _STATES[channel["last_state"]] if channel["enabled"] else "Disabled",
            channel["target"],
            f"{channel['waiting']:,}",
            channel["last_answer"] or UNKNOWN,
        )
        for channel in page["results"]
    ]
    return listed(columns, rows, none="No channels: alerts are not sent anywhere.", more=False)


def created(channel: dict[str, Any]) -> RenderableType:
    """A channel that is there from now on."""
    return line(f"Channel {channel['name']} created")


def edited(channel: dict[str, Any]) -> RenderableType:
    """A channel with other settings."""
    return line(f"Channel {channel['name']} saved")


def tested(answer: dict[str, Any]) -> RenderableType:
    """What a receiver said."""
    return line(
        f"{'accepted' if answer['ok'] else 'not accepted'} in {answer['seconds']:.1f} s: {clean(answer['answer'])}"
    )


def delivery_list(page: dict[str, Any]) -> RenderableType:
    """Messages, and how each went."""
    columns = ("When", "Event", "Alert", "Name", "State", "Attempts", "Last response")
    rows = [
        (
            clock(delivery["at"]),
            delivery["event"],
            delivery["kind"],
            delivery["name"],
            delivery["state"].replace("_", " "),
            str(delivery["tries"]),
            delivery["log"][-1]["answer"] if delivery["log"] else UNKNOWN,
        )
        for delivery in page["results"]
    ]
    return listed(columns, rows, none="No messages yet.", more=page["pagination"]["has_more"])
