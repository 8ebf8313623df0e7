"""How duties change hands: each change is one conditional UPDATE; losing a race is normal."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Least, Now

from db.clock import after_now

MESSAGE_SECONDS = 5.0
"""A wake-up message that was not answered for so long is sent again."""
_FREE = Q(until=None) | Q(until__lt=Now())


class DutyQuerySet(models.QuerySet):
    def claim(self, pk: int, *, holder: str, lease: float, interval: float) -> bool:
        """Take a due, free duty for `lease` seconds; true if this call got it.

        The due time moves ahead at the claim, so that a wake-up during the work is seen at its end.
        """
        taken = self.filter(_FREE, pk=pk, due_at__lte=Now()).update(
            holder=holder,
            until=after_now(lease),
            attempt=F("attempt") + 1,
            started_at=Now(),
            woken_at=None,
            due_at=after_now(interval),
        )
        return taken == 1

    def renew(self, pk: int, *, holder: str, attempt: int, lease: float) -> bool:
        """Prolong a lease that is still held; false when it was lost."""
        held = self.filter(pk=pk, holder=holder, attempt=attempt, until__gte=Now())
        return held.update(until=after_now(lease)) == 1

    def held(self, pk: int, *, holder: str, attempt: int, margin: float) -> bool:
        """Whether the lease is still ours for at least `margin` more seconds."""
        return self.filter(pk=pk, holder=holder, attempt=attempt, until__gte=after_now(margin)).exists()

    def lock(self, pk: int, *, holder: str, attempt: int) -> bool:
        """Keep a held lease from being taken over until the transaction ends; false when it was lost."""
        held = self.select_for_update().filter(pk=pk, holder=holder, attempt=attempt, until__gte=Now())
        return held.values_list("pk", flat=True).first() is not None

    def release(self, pk: int, *, holder: str, attempt: int, next_in: float, **outcome: Any) -> bool:
        """End a held lease; an earlier wake-up keeps its due time."""
        held = self.filter(pk=pk, holder=holder, attempt=attempt)
        due = Least(F("due_at"), after_now(next_in))
        return held.update(holder="", until=None, ended_at=Now(), due_at=due, **outcome) == 1

    def abandoned(self, seconds: float) -> DutyQuerySet:
        """Due for that long, and in nobody's hands."""
        return self.filter(_FREE, due_at__lt=after_now(-seconds))

    def wake(self, **which: Any) -> list[tuple[int, str]]:
        """Make duties due now; gives (key, queue) of those that need a message.

        One that somebody works on needs none: its end sees the new due time. Nor does one that was woken a moment ago.
        """
        self.filter(**which, due_at__gt=Now()).update(due_at=Now(), woken_at=None)
        return self.filter(**which).to_send()

    def to_send(self) -> list[tuple[int, str]]:
        """Take the right to send a message for each duty here that is due, free and not woken lately."""
        waiting = self.filter(_needs_message()).order_by("due_at").values_list("pk", "queue")
        return [(pk, queue) for pk, queue in waiting if self._take_message(pk)]

    def _take_message(self, pk: int) -> bool:
        """False for one that somebody was quicker with. A message for a duty that is being worked on would be refused,
        and nobody would send another one after it."""
        return self.model.objects.filter(_needs_message(), pk=pk).update(woken_at=Now()) == 1


def _needs_message() -> Q:
    stale = Q(woken_at=None) | Q(woken_at__lt=after_now(-MESSAGE_SECONDS))
    return stale & _FREE & Q(due_at__lte=Now())
