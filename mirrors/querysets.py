"""State changes and selections. A change of state is one conditional UPDATE; losing a race is normal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Least, Now

from core.mirroring.object_check import Depth

MESSAGE_SECONDS = 5.0
"""A wake-up message that was not answered for so long is sent again."""


class Written(models.Value):
    """A word that stands in the query itself: by one that is given beside it SQLite doesn't know an index that is made
    for rows with it."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        return f"'{self.value}'", []


UNCHECKED = Q(data__in=[Written("unknown"), Written("waiting")])
"""Commits at a mirror whose data is still to be checked."""


def after_now(seconds: float) -> Any:
    """A moment by the database's clock."""
    return Now() + timedelta(seconds=seconds)


class MirrorQuerySet(models.QuerySet):
    def visible_to(self, user: Any) -> MirrorQuerySet:
        """The mirrors that `user` may see: all of them with fs:ListRepositories on `*`, else none."""
        from rbac.services import allowed

        return self.live() if allowed(user, "fs:ListRepositories", "*") else self.none()

    def live(self) -> MirrorQuerySet:
        """Without those that were deleted and only keep their name reserved."""
        return self.exclude(state="deleting")

    def served(self, regions: list[str]) -> MirrorQuerySet:
        """Those whose destination this deployment looks after."""
        return self.filter(region__in=regions)

    def move(self, pk: int, old: str, new: str, **changes: Any) -> bool:
        """From state `old` to `new`; true if this call did it."""
        return self.filter(pk=pk, state=old).update(state=new, **changes) == 1


class MirrorCommitQuerySet(models.QuerySet):
    def to_copy(self) -> MirrorCommitQuerySet:
        """Records that the destination has not accepted yet, parents first."""
        return self.filter(record="pending").select_related("commit").order_by("commit_id")

    def unjudged(self) -> MirrorCommitQuerySet:
        """Commits that nobody looked at yet, or that waited for something which has arrived; oldest first."""
        return self.filter(UNCHECKED, data="unknown").select_related("commit").order_by("commit_id")

    def asked_for(self) -> MirrorCommitQuerySet:
        """Those that somebody wants first, since the last round."""
        return self.filter(urgency__gt=0, urgency=1)

    def urgent(self) -> MirrorCommitQuerySet:
        """Those that go before others. With both conditions, for by the first one SQLite knows the index."""
        return self.filter(urgency__gt=0, urgency=2)

    def settled(self) -> MirrorCommitQuerySet:
        """Those for which nothing is left to do: record accepted, data judged, history in order."""
        return self.filter(record="accepted", history=True).exclude(data__in=["unknown", "waiting"])

    def promotable(self) -> MirrorCommitQuerySet:
        """Record accepted, own data complete with nothing gone, all of the history in order, and not waived."""
        return self.filter(record="accepted", data="complete", history=True, waiver=None)


class BlockerQuerySet(models.QuerySet):
    def held_by(self, holders: Iterable[str]) -> BlockerQuerySet:
        """Those that these commits, metaranges or ranges need. With every kind there is, for so its index begins:
        without, all that the mirror lacks would be gone through."""
        return self.filter(kind__in=self.model.Kind.values, holder_id__in=holders)


class CoverageQuerySet(models.QuerySet):
    def proving(self, depth: str) -> CoverageQuerySet:
        """Checks that were as deep as `depth`, or deeper: the only ones that count at it. Not those of versions that
        did not note what was looked for, and asked stores that may have answered for others."""
        return self.filter(depth__in=[depth, *Depth(depth).deeper], looked__isnull=False)

    def settled(self) -> CoverageQuerySet:
        """Ranges that need no further look."""
        return self.exclude(state="waiting")

    def aged(self, now: datetime, after: timedelta) -> CoverageQuerySet:
        """Complete ranges whose check is old, the oldest first. Rows from before there was a date go by their age."""
        due = Q(verify_at__lte=now) | Q(verify_at=None, checked_at__lte=now - after)
        return self.filter(due, state="complete").order_by("verify_at", "pk")

    def doubted(self) -> CoverageQuerySet:
        """Ranges that stand in question."""
        return self.filter(state="waiting").exclude(verify_at=None)

    def to_read(self) -> CoverageQuerySet:
        """Those of which it is asked what they name."""
        return self.doubted().filter(doubt__in=["shared", "fresh"])

    def to_check_anew(self) -> CoverageQuerySet:
        """Those of which all is looked for anew: their file came back, or they lack more than was kept by name."""
        return self.doubted().exclude(doubt__in=["shared", "fresh"])


class ValidationQuerySet(models.QuerySet):
    def open(self) -> ValidationQuerySet:
        """Those that have not ended: in the order that they were asked for, those whose last try failed at the end."""
        return self.filter(ended_at=None).order_by(F("failed_at").asc(nulls_first=True), "pk")


class DutyQuerySet(models.QuerySet):
    def claim(self, pk: int, *, holder: str, lease: float, interval: float) -> bool:
        """Take a due, free duty for `lease` seconds; true if this call got it.

        The due time moves ahead at the claim, so that a wake-up during the work is seen at its end.
        """
        free = Q(until=None) | Q(until__lt=Now())
        taken = self.filter(free, pk=pk, due_at__lte=Now()).update(
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
        return self.filter(Q(until=None) | Q(until__lt=Now()), due_at__lt=after_now(-seconds))

    def wake(self, **which: Any) -> list[tuple[int, str]]:
        """Make duties due now; gives (key, queue) of those that need a message.

        One that somebody works on needs none: its end sees the new due time. Nor does one that was woken a moment ago.
        """
        self.filter(**which, due_at__gt=Now()).update(due_at=Now(), woken_at=None)
        return self.filter(**which).to_send()

    def to_send(self) -> list[tuple[int, str]]:
        """Take the right to send a message for each duty here that is due, free and not woken lately."""
        stale = Q(woken_at=None) | Q(woken_at__lt=after_now(-MESSAGE_SECONDS))
        free = Q(until=None) | Q(until__lt=Now())
        waiting = self.filter(stale, free, due_at__lte=Now()).order_by("due_at").values_list("pk", "queue")
        return [(pk, queue) for pk, queue in waiting if self._take_message(pk)]

    def _take_message(self, pk: int) -> bool:
        stale = Q(woken_at=None) | Q(woken_at__lt=after_now(-MESSAGE_SECONDS))
        return self.model.objects.filter(stale, pk=pk).update(woken_at=Now()) == 1
