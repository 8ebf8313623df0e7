"""Alerts and a channel as they would have come to be, for tests that only look at them."""

from __future__ import annotations

from datetime import timedelta

from core.notifications.channels import ChannelSecrets, ChannelWish
from core.notifications.kinds import AlertKind
from db import clock
from notifications.models import Alert, Channel, MaintenanceWindow
from tests.notifications.receiver import SECRET
from tests.notifications.rounds import Rounds, seen, trouble


def make_channel(url: str = "https://hooks.example.com/x") -> Channel:
    """A channel `pager`."""
    row = Channel(changed_at=clock.now())
    row.put(ChannelWish("pager"), ChannelSecrets(url, SECRET))
    row.save()
    return row


def make_alerts() -> None:
    """One that is open, one that closed, each told to the channels that there are."""
    looks = Rounds(clock.now())
    looks.at(0, seen(trouble(AlertKind.MIRROR_TAMPERED)))
    for seconds in (10, 20):
        looks.at(seconds, seen(trouble(AlertKind.MIRROR_DAMAGED)))


def an_alert() -> int:
    """The number of one that is open."""
    Rounds(clock.now()).at(0, seen(trouble(AlertKind.EXPORT_DRIFTED, "export/0"), well="export/0"))
    return Alert.objects.open().get(kind=AlertKind.EXPORT_DRIFTED).pk


def a_window() -> int:
    """The number of a maintenance window that runs, of something else."""
    now = clock.now()
    times = {"starts_at": now, "ends_at": now + timedelta(hours=1), "created_at": now}
    return MaintenanceWindow.objects.create(names=["no-such-mirror"], reason="new disks", created_by="olga", **times).pk
