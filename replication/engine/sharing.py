"""How fast a link may copy: by its own limit, and by what all links to its store may do together, which they share by
the priorities of their rules.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef

from core.replicating.states import Health, OpenStatus
from core.shared_limits import Sharer, shares
from db import clock
from replication.models import Link, OpenCount, OpenObject, StoreLimit
from spark_jobs.replicate.settings import Limits


def limits_of(link: Link) -> Limits:
    """What a link may at a time, now; what is its own of a shared limit is noted, for the others go by it, too."""
    own = float(link.bytes_per_second or 0)
    return Limits(link.workers, _shared(link, own), float(link.objects_per_second or 0))


def _shared(link: Link, own: float) -> float:
    limit = StoreLimit.objects.filter(region=link.region).values_list("bytes_per_second", flat=True).first()
    if limit is None:
        if link.share_bytes is not None:
            _note(link, None)
        return own
    share = shares(float(limit), [*_others(link), _sharer(link)])[link.pk]
    _note(link, max(1, int(share)))
    return min(share, own) if own else share


def _others(link: Link) -> list[Sharer]:
    """Links to the same store that have something to copy, and may; not those of which all waits for its next try."""
    due = OpenObject.objects.filter(link=OuterRef("link")).due(clock.now()).copies()
    busy = OpenCount.objects.filter(Exists(due), status=OpenStatus.PENDING.value, number__gt=0).values("link")
    live = Link.objects.live().filter(region=link.region, paused=False, rule__paused=False, health=Health.UP.value)
    found = live.filter(stale_since=None, pk__in=busy).exclude(pk=link.pk).select_related("rule")
    return [_sharer(one) for one in found]


def _sharer(link: Link) -> Sharer:
    measured = link.share_bytes is not None and link.pace_bytes > 0
    share = float(link.share_bytes or 0) if measured else None
    return Sharer(link.pk, link.rule.priority, link.pace_bytes, share, float(link.bytes_per_second or 0))


def _note(link: Link, share: int | None) -> None:
    """Only what differs by more than a little is written."""
    before = link.share_bytes
    if before is None or share is None or abs(share - before) > before / 50:
        Link.objects.filter(pk=link.pk).update(share_bytes=share)
        link.share_bytes = share
