"""The duty `notify` of each channel: sends what waits, one after the other, and notes what came of each try.

A delivery is claimed before it is sent. Who is killed between sending and noting leaves it waiting: it is sent once
more, by the same id, so that nothing is lost and a receiver can drop what it has already.
"""

from __future__ import annotations

from typing import Any

from core.notifications.retries import next_try
from core.text.phrases import count
from db import clock
from deployment import config
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from notifications.models import Channel, Delivery
from notifications.outbox import DUTY
from notifications.senders import LONGEST, Message, Outcome, send
from web.serializers import rfc3339

SECONDS = 10.0
AT_A_TIME = 50
LOGGED = 20
"""So many tries of a delivery are kept."""
MARGIN = LONGEST + 10.0
"""The lease has to last for longer than a try."""


def look_round() -> None:
    """By each controller: every channel has its duty."""
    present = set(Duty.objects.filter(kind=DUTY).values_list("subject", flat=True))
    for channel in Channel.objects.exclude(pk__in=present).values_list("pk", flat=True):
        duties.ensure(DUTY, channel, config.current().region)


def needed(regions: list[str]) -> Any:
    """Any deployment may send."""
    return Channel.objects.values_list("pk", flat=True)


def deliver(lease: Lease) -> DutyOutcome:
    """One round: what is due for a channel, the oldest first, up to the first that it does not take."""
    channel = Channel.objects.filter(pk=lease.duty.subject).first()
    if channel is None:
        Duty.objects.filter(pk=lease.duty.pk).delete()
        return DutyOutcome("this channel no longer exists")
    now = clock.now()
    if not channel.enabled:
        number = channel.deliveries.waiting().update(state=Delivery.State.GIVEN_UP, ended_at=now)
        return DutyOutcome(f"it is disabled; {count(number, 'message')} given up")
    hours = channel.rule.hours
    if hours is not None and not hours.include(now):
        return DutyOutcome(f"outside of its hours; {count(channel.deliveries.waiting().count(), 'message')} waiting")
    sent = 0
    for delivery in channel.deliveries.due(now).select_related("event")[:AT_A_TIME]:
        lease.fence(MARGIN)
        outcome = attempt(channel, delivery)
        if outcome is not None and not outcome.taken:
            return DutyOutcome(f"{sent} sent; then: {outcome.answer}", whole=False)
        sent += outcome is not None
    return DutyOutcome(f"{sent} sent", 0.0 if sent == AT_A_TIME else None)


def attempt(channel: Channel, delivery: Delivery) -> Outcome | None:
    """Claim it, send it, note what came of it; None when somebody else was quicker."""
    if not Delivery.objects.claim(delivery.pk, tries=delivery.tries, now=clock.now()):
        return None
    event = delivery.event
    outcome = send(channel, Message(str(delivery.uid), event.verb, event.at, event.message))
    _note(channel, delivery, delivery.tries + 1, outcome)
    return outcome


def _note(channel: Channel, delivery: Delivery, tries: int, outcome: Outcome) -> None:
    now = clock.now()
    line = {"at": rfc3339(now), "seconds": outcome.seconds, "answer": outcome.answer}
    changes: dict[str, Any] = {"log": [*delivery.log, line][-LOGGED:]}
    hours = channel.rule.hours
    since = hours.from_(delivery.event.at) if hours else delivery.event.at  # the time that it had to wait doesn't count
    again = None if outcome.taken else next_try(tries, since, now)
    if again is not None:
        changes["due_at"] = again
    else:
        changes["state"] = Delivery.State.SENT if outcome.taken else Delivery.State.GIVEN_UP
        changes["ended_at"] = now
    Delivery.objects.note(delivery.pk, tries=tries, **changes)
