"""What is asked of the tables of replication rules, under the names that the rest of the code uses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import models

from core.errors import NotFound
from core.replicating.states import OpenKind, OpenStatus


class RuleQuerySet(models.QuerySet):
    def live(self) -> RuleQuerySet:
        """Those that are not being deleted."""
        return self.filter(deleting=False)

    def held(self, name: str) -> Any:
        """The rule of this name, which nobody else changes before the transaction ends. Raises NotFound for one that
        does not exist, or is just being deleted."""
        rule = self.select_for_update().filter(name=name, deleting=False).first()
        if rule is None:
            raise NotFound(f"there is no replication rule '{name[:80]}'")
        return rule


class LinkQuerySet(models.QuerySet):
    def kept(self) -> LinkQuerySet:
        """Those that are not being removed."""
        return self.filter(removing=False)

    def live(self) -> LinkQuerySet:
        """Those of them whose rules are not being deleted."""
        return self.kept().filter(rule__deleting=False)


class ShardQuerySet(models.QuerySet):
    def due(self, now: datetime) -> ShardQuerySet:
        """Those to be looked through now: one that was begun first, then those where something is known to lack."""
        begun = models.F("after").asc(nulls_last=True)
        return self.filter(due_at__lte=now).order_by(begun, "-dirty", "due_at", "pk")


class OpenQuerySet(models.QuerySet):
    def due(self, now: datetime) -> OpenQuerySet:
        """Those whose turn it is, the longest waiting first: not what nobody has let through, nor what an older
        deletion may yet hit."""
        free = models.Q(not_before=None) | models.Q(not_before__lte=now)
        return self.filter(free, next_try__lte=now).exclude(status=OpenStatus.WAITING.value).order_by("next_try", "pk")

    def copies(self) -> OpenQuerySet:
        """Objects that are to be copied."""
        return self.filter(kind=OpenKind.COPY.value)

    def deletes(self) -> OpenQuerySet:
        """What is to be deleted or hidden at the target, if somebody lets that through."""
        return self.exclude(kind=OpenKind.COPY.value)


class CountQuerySet(models.QuerySet):
    def by_status(self) -> Mapping[str, tuple[int, int]]:
        """Of each status with any: number and bytes."""
        sums = self.order_by().values("status").annotate(n=models.Sum("number"), b=models.Sum("bytes"))
        return {row["status"]: (row["n"], row["b"]) for row in sums if row["n"]}

    def pending(self) -> tuple[int, int]:
        """Number and bytes of pending ones."""
        return self.by_status().get(OpenStatus.PENDING.value, (0, 0))
