"""What a link has overwritten where rules lead both ways: counted, and the newest of it named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import F

from core.replicating.both_ways.losers import MOST_LOSERS, Loser
from replication.models import Link, Overwritten

ROWS_AT_ONCE = 400


class Lost(NamedTuple):
    """An object that was replaced, and its key."""

    key: bytes
    loser: Loser


def note(link: Link, lost: Sequence[Lost], now: datetime) -> None:
    """These were replaced at a link's target. Inside of a transaction that holds it."""
    rows = [Overwritten(link=link, key=one.key, overwritten_at=now, **one.loser._asdict()) for one in lost]
    Overwritten.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
    Link.objects.filter(pk=link.pk).update(overwritten_objects=F("overwritten_objects") + len(rows))
    kept = Overwritten.objects.filter(link=link.pk).order_by("-pk").values_list("pk", flat=True)
    oldest = kept[MOST_LOSERS - 1 : MOST_LOSERS].first()
    if oldest is not None:
        Overwritten.objects.filter(link=link.pk, pk__lt=oldest).delete()
