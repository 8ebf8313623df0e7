"""Sweeps for Prometheus: what was found and deleted after the sources' garbage collection, and what waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db.models import Max

from core.mirroring.rpo import lag
from mirrors.models import Mirror, Sweep
from web.prometheus import Gauge, labelled

LABELS = ("mirror", "region", "source", "source_region")


def gauges(mirrors: Sequence[Mirror], now: datetime) -> Iterator[Gauge]:
    """Of those of these mirrors that follow the garbage collection; of others what they have deleted, if anything.
    Nothing where there are none. Without a sample while the namespace was never looked through."""
    told = [mirror for mirror in mirrors if mirror.follow_gc or mirror.swept]
    if not told:
        return
    found = Gauge("mirror_sweep_found_objects", "objects that nobody needs, as the last whole look found")
    found_bytes = Gauge("mirror_sweep_found_bytes", "bytes of the objects that nobody needs")
    waiting = Gauge("mirror_sweep_waiting_objects", "objects whose deletion waits for approval")
    waiting_bytes = Gauge("mirror_sweep_waiting_bytes", "bytes of the objects whose deletion waits for approval")
    age = Gauge("mirror_sweep_age_seconds", "since the mirror's namespace was last looked through as a whole")
    frozen = Gauge("mirror_sweep_frozen", "1 while something is in doubt, so that nothing is deleted")
    deleted = Gauge("mirror_swept_objects_total", "objects that sweeps have deleted", kind="counter")
    deleted_bytes = Gauge("mirror_swept_bytes_total", "bytes of the objects that sweeps have deleted", kind="counter")
    last, looked = _newest(told), _newest(told, looked_at__isnull=False)
    for mirror in told:
        labels = labelled(LABELS, (mirror.name, mirror.region, mirror.source.name, mirror.source.region))
        deleted.add(labels, mirror.swept)
        deleted_bytes.add(labels, mirror.swept_bytes)
        if not mirror.follow_gc:
            continue
        sweep, whole = last.get(mirror.pk), looked.get(mirror.pk)
        waits = sweep if sweep and sweep.state == Sweep.State.WAITING else None
        waiting.add(labels, waits.due if waits else 0)
        waiting_bytes.add(labels, waits.due_bytes if waits else 0)
        frozen.add(labels, bool(sweep and sweep.state == Sweep.State.FROZEN))
        if whole is not None:
            found.add(labels, whole.found)
            found_bytes.add(labels, whole.found_bytes)
            age.add(labels, lag(whole.looked_at, now))
    yield from (found, found_bytes, waiting, waiting_bytes, age, frozen, deleted, deleted_bytes)


def _newest(mirrors: Sequence[Mirror], **looked: bool) -> dict[int, Sweep]:
    """The last sweep of each, by its key."""
    of_each = Sweep.objects.filter(mirror__in=mirrors, **looked).order_by().values("mirror").annotate(last=Max("pk"))
    return {sweep.mirror_id: sweep for sweep in Sweep.objects.filter(pk__in=of_each.values("last"))}
