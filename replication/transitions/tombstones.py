"""What was deleted at places that rules lead to and from: a row for each key, until it is old (core's tombstones).

Who finds a deletion says so for all rules of the place. Rows are written in the order of their keys; of two who write
one at once either may win, for the other one finds the same again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef

from core.replicating.both_ways.tombstones import Since, later
from core.replicating.both_ways.tombstones import Tombstone as Buried
from core.replicating.stamps import Stamp
from db.chunks import chunks
from replication.models import OpenObject, Tombstone

KEPT = timedelta(days=30)
"""So long a place may be away, and what was deleted meanwhile does not come back from it."""
ROWS_AT_ONCE = 400
_TOLD = ["since", "at", "region", "bucket", "size", "etag", "found_at"]


class Known(NamedTuple):
    """A tombstone, and when the key was last seen to be gone."""

    buried: Buried
    found_at: datetime


def within(place: str, low: bytes, high: bytes | None) -> dict[str, Known]:
    """Those of a stretch of keys."""
    rows = Tombstone.objects.filter(place=place, key__gt=low)
    return _told(rows if high is None else rows.filter(key__lte=high))


def of_keys(place: str, keys: Collection[bytes]) -> dict[str, Known]:
    """Those of some keys."""
    found: dict[str, Known] = {}
    for some in chunks(list(keys), ROWS_AT_ONCE):
        found |= _told(Tombstone.objects.filter(place=place, key__in=some))
    return found


def save(place: str, buried: Mapping[str, Buried], now: datetime) -> None:
    """From now on these stand there, each instead of what stood for its key."""
    for some in chunks(sorted(buried), ROWS_AT_ONCE):
        rows = [Tombstone(place=place, key=key.encode(), found_at=now, **_columns(buried[key])) for key in some]
        Tombstone.objects.bulk_create(rows, update_conflicts=True, unique_fields=["place", "key"], update_fields=_TOLD)


def is_there(place: str, keys: Collection[bytes]) -> None:
    """The place has objects of these keys again."""
    for some in chunks(sorted(keys), ROWS_AT_ONCE):
        rows = Tombstone.objects.filter(place=place, key__in=some).exclude(since=Since.OVER.value)
        rows.update(since=Since.OVER.value)


def has_had(place: str, came: Mapping[bytes, Buried], now: datetime) -> None:
    """The place has these by now, which are older by their stamps where they came from: should it lack one of them
    later, then just this was deleted."""
    known = of_keys(place, came) if came else {}
    told = {key.decode(): one for key, one in came.items()}
    for key, before in known.items():
        told[key] = later(before.buried, told[key]) or told[key]
    save(place, told, now)


def pardon(place: str, approval_id: int) -> None:
    """What was deleted at the place, and was not to be deleted elsewhere, may come back: there, and to where another
    link has deleted it already."""
    keys = OpenObject.objects.filter(approval=approval_id).values("key")
    told = {name: OuterRef(name) for name in ("key", "at", "region", "bucket")}
    same = Tombstone.objects.filter(place=place, **told)
    Tombstone.objects.filter(Exists(same), key__in=keys).update(since=Since.PARDONED.value)


def forget(place: str) -> None:
    """What the place lacks it has lost, and may get again."""
    Tombstone.objects.filter(place=place).delete()


def purge(now: datetime) -> None:
    """What is old goes."""
    Tombstone.objects.filter(found_at__lt=now - KEPT).delete()


def _told(rows: Iterable[Tombstone]) -> dict[str, Known]:
    return {bytes(row.key).decode(): Known(_buried(row), row.found_at) for row in rows}


def _buried(row: Tombstone) -> Buried:
    stamp = Stamp(datetime.fromtimestamp(row.at / 1000, UTC), row.region, row.bucket)
    return Buried(stamp, row.size, row.etag, Since(row.since))


def _columns(buried: Buried) -> dict[str, Any]:
    stamp = buried.stamp
    told = {"at": round(stamp.at.timestamp() * 1000), "region": stamp.region, "bucket": stamp.bucket}
    return {**told, "since": buried.since.value, "size": buried.size, "etag": buried.etag}
