"""Held merges for Prometheus: how long they were held, what became of them, which heads came without a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db.models import Count, DurationField, ExpressionWrapper, F

from mirrors.models import HeldMerge, Mirror
from web.prometheus import Gauge, labelled

LABELS = ("source", "source_region")
BUCKETS = (1, 2, 5, 10, 20, 45, 90)
"""Seconds."""
State = HeldMerge.State


def gauges(mirrors: Sequence[Mirror]) -> Iterator[Gauge]:
    """Of the sources of these mirrors that hold merges; nothing where none does."""
    sources = {mirror.source_id: (mirror.source.name, mirror.source.region) for mirror in mirrors if mirror.hold}
    if not sources:
        return
    seconds = Gauge("hold_seconds", "how long merges were held", kind="histogram")
    outcomes = Gauge("holds_total", "merges that were held, by what became of them", kind="counter")
    ungated = Gauge("ungated_heads_total", "heads that came without a release", kind="counter")
    counted = _by_state(sources)
    for key, names in sources.items():
        for state in State.values:
            if state != State.UNGATED:
                outcomes.add(labelled((*LABELS, "outcome"), (*names, state)), counted.get((key, state), 0))
        ungated.add(labelled(LABELS, names), counted.get((key, State.UNGATED), 0))
        _histogram(seconds, key, names)
    yield from (seconds, outcomes, ungated)


def _by_state(sources: dict[int, tuple[str, str]]) -> dict[tuple[int, str], int]:
    rows = HeldMerge.objects.filter(repository__in=sources).order_by().values_list("repository_id", "state")
    return {(key, state): number for key, state, number in rows.annotate(Count("pk"))}


def _histogram(seconds: Gauge, key: int, names: tuple[str, str]) -> None:
    held = ExpressionWrapper(F("ended_at") - F("held_at"), output_field=DurationField())
    rows = HeldMerge.objects.filter(repository=key, ended_at__isnull=False).exclude(state=State.UNGATED)
    times = [taken.total_seconds() for taken in rows.order_by().annotate(took=held).values_list("took", flat=True)]
    for bound in BUCKETS:
        labels = labelled((*LABELS, "le"), (*names, str(bound)))
        seconds.add(labels, sum(taken <= bound for taken in times), suffix="_bucket")
    seconds.add(labelled((*LABELS, "le"), (*names, "+Inf")), len(times), suffix="_bucket")
    seconds.add(labelled(LABELS, names), sum(times), suffix="_sum")
    seconds.add(labelled(LABELS, names), len(times), suffix="_count")
