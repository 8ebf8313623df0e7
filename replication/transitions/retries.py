"""Open objects that somebody wants tried now, and the counts that are kept beside them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Count, F, QuerySet, Sum

from core.replicating.states import OpenStatus
from replication.models import Link, OpenCount, OpenObject

REFUSED = (OpenStatus.FAILED.value, OpenStatus.SKIPPED.value)


def retry(link: Link, now: datetime, *, ids: Collection[int] | None = None, code: str = "") -> int:
    """Have open objects of a link tried at once, as if for the first time: these, those with a code, or else all. Gives
    how many. Inside of a transaction that holds the link's row, as whatever changes open rows does."""
    rows = OpenObject.objects.filter(link=link)
    if ids is not None:
        rows = rows.filter(pk__in=ids)
    if code:
        rows = rows.filter(code=code)
    _move_counts(link, rows.filter(status__in=REFUSED), whole=ids is None, code=code)
    return rows.update(status=OpenStatus.PENDING.value, next_try=now, attempts=0)


def _move_counts(link: Link, refused: QuerySet[OpenObject], *, whole: bool, code: str) -> None:
    """What is refused counts as pending from now on, by the code that it has. Of a `whole` code, or of all, the counts
    say how much that is: nobody counts the rows."""
    if whole:
        counts = OpenCount.objects.filter(link=link, status__in=REFUSED, number__gt=0)
        counts = counts.filter(code=code) if code else counts
        moved = list(counts.order_by("pk").values_list("status", "code", "number", "bytes"))
    else:
        sums = refused.order_by().values_list("status", "code").annotate(n=Count("pk"), b=Sum("size"))
        moved = list(sums)
    for status, why, number, size in moved:
        _add(link, status, why, -number, -size)
        _add(link, OpenStatus.PENDING.value, why, number, size)


def _add(link: Link, status: str, code: str, number: int, size: int) -> None:
    OpenCount.objects.get_or_create(link=link, status=status, code=code)
    rows = OpenCount.objects.filter(link=link, status=status, code=code)
    rows.update(number=F("number") + number, bytes=F("bytes") + size)
