"""The last hour of several mirrors at once: the little picture of lag beside a mirror's name, and when it will have
caught up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.mirroring.rpo import in_words
from core.text.eta import caught_up_at, since_peak
from mirrors.models import Measure, Mirror
from mirrors.transitions.measures import SHORT, began
from mirrors.transitions.rpo_breaches import target_of

STEPS = 12
STEP = timedelta(minutes=SHORT)


@dataclass(frozen=True, slots=True)
class Spark:
    """The worst lag of each five minutes in seconds, the oldest first, None where nobody knows; and the target.

    `caught_up_at`: when the backlog will be gone, by how it shrank in this hour.
    """

    values: Sequence[float | None]
    target: float
    caught_up_at: datetime | None = None

    @property
    def worst(self) -> float | None:
        """The worst of all; None if none is known."""
        return max((value for value in self.values if value is not None), default=None)

    @property
    def words(self) -> str:
        """What the picture shows, in words."""
        target = f"target {in_words(self.target)}"
        if self.worst is None:
            return f"Lag in the last hour: not measured; {target}"
        worst = f"worst {in_words(self.worst)}" if self.worst else "none"
        return f"Lag in the last hour: {worst}; {target}"


def sparks(mirrors: Sequence[Mirror], now: datetime) -> dict[int, Spark]:
    """By the mirrors' keys, in one query."""
    backlogs: dict[int, list[tuple[datetime, int]]] = {mirror.pk: [] for mirror in mirrors}
    first = began(now, SHORT) - (STEPS - 1) * STEP
    values: dict[int, list[float | None]] = {mirror.pk: [None] * STEPS for mirror in mirrors}
    rows = Measure.objects.filter(mirror__in=list(values), minutes=SHORT, began_at__gte=first, began_at__lte=now)
    columns = ("mirror_id", "began_at", "lag_seconds", "read_at", "backlog_last")
    for mirror, at, seconds, read_at, backlog in rows.order_by("began_at").values_list(*columns):
        values[mirror][(at - first) // STEP] = seconds
        if read_at is not None and backlog is not None:
            backlogs[mirror].append((read_at, backlog))
    return {
        mirror.pk: Spark(
            values[mirror.pk], target_of(mirror).total_seconds(), caught_up_at(since_peak(backlogs[mirror.pk]), now)
        )
        for mirror in mirrors
    }
