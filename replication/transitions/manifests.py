"""What of a target is a link's own: the row that names the file of each stretch, and what came since it was written."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from django.db.models import F, Max, Min, QuerySet, Sum

from core.replicating.deletes import FIRST_FOREIGN, Own
from db.chunks import chunks
from replication.models import Arrived, Link, Rule, Shard, ShardManifest

MOST_ARRIVED = 1_000_000
"""So many rows a link has at most. What arrives beyond that counts as somebody else's until a look sees it equal."""
ROWS_AT_ONCE = 400
HIDES = "hides"
"""What a row is of that says of a delete marker that it is to hide nothing."""


class Since(NamedTuple):
    """Rows of what came since a manifest was written, up to one of them."""

    link_id: int
    top: int


def note_arrived(link_id: int, own: Sequence[tuple[bytes, int, str, str]]) -> None:
    """These (key, size, ETag at the target, mark of what it is a copy of) are the link's own from now on. Inside of a
    transaction that holds it."""
    if not own:
        return
    span = Arrived.objects.filter(link=link_id).aggregate(first=Min("pk"), last=Max("pk"))
    if span["first"] is not None and span["last"] - span["first"] >= MOST_ARRIVED:
        return
    rows = [Arrived(link_id=link_id, key=key, size=size, etag=etag, source=source) for key, size, etag, source in own]
    Arrived.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)


def disown(link_id: int, keys: Collection[bytes]) -> None:
    """Whatever lies at these keys from now on is not the link's, until it copies something there or sees it equal.
    However many rows there are. Inside of a transaction that holds the link."""
    rows = [Arrived(link_id=link_id, key=key, size=0, etag="") for key in keys]
    Arrived.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)


def note_arrived_versions(link_id: int, own: Sequence[Own]) -> None:
    """The same of versions, where all are copied."""
    if not own:
        return
    rows = Arrived.objects.filter(link=link_id).exclude(of=HIDES)
    span = rows.aggregate(first=Min("pk"), last=Max("pk"))
    if span["first"] is None or span["last"] - span["first"] < MOST_ARRIVED:
        note_versions(link_id, own)


def note_versions(link_id: int, own: Sequence[Own]) -> None:
    """This is the last word on these: with an empty ETag they are not the link's any more. However many rows there are.
    Inside of a transaction that holds the link."""
    rows = [Arrived(link_id=link_id, **one._asdict() | {"key": one.key.encode()}) for one in own]
    Arrived.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)


def came_versions(until: Since, low: bytes, high: bytes | None) -> dict[tuple[str, str], Own | None]:
    """What came of a stretch, by key and version; None: it is not the link's any more."""
    rows = _rows(until, low, high).exclude(of=HIDES).order_by("pk").values_list("key", "size", "etag", "version", "of")
    found: dict[tuple[str, str], Own | None] = {}
    for key, size, etag, version, of in rows.iterator():
        name = bytes(key).decode()
        found[name, version] = Own(name, size, etag, version=version, of=of) if etag else None
    return found


def disowned_versions(link_id: int, keys: Sequence[bytes]) -> set[tuple[str, str]]:
    """Those versions of the keys of which the last word is that they are not the link's."""
    last: dict[tuple[str, str], str] = {}
    for some in chunks(list(keys), ROWS_AT_ONCE):
        rows = Arrived.objects.filter(link=link_id, key__in=some).exclude(of=HIDES).order_by("pk")
        last |= {(bytes(key).decode(), one): etag for key, one, etag in rows.values_list("key", "version", "etag")}
    return {one for one, etag in last.items() if not etag}


def rejected(link_id: int, low: bytes, high: bytes | None) -> dict[tuple[str, str], int]:
    """The delete markers that somebody lets hide nothing, of a stretch: their rows, by key and version."""
    rows = Arrived.objects.filter(link=link_id, of=HIDES, key__gt=low)
    rows = rows if high is None else rows.filter(key__lte=high)
    return {(bytes(key).decode(), version): pk for key, version, pk in rows.values_list("key", "version", "pk")}


def since(link_id: int) -> Since:
    """All that came until now."""
    return Since(link_id, Arrived.objects.filter(link=link_id).aggregate(top=Max("pk"))["top"] or 0)


def came(until: Since, low: bytes, high: bytes | None) -> dict[str, Own | None]:
    """What came of a stretch, by key; None: it is not the link's any more."""
    rows = _rows(until, low, high).order_by("pk").values_list("key", "size", "etag", "source")
    return {
        (name := bytes(key).decode()): Own(name, size, etag, source) if etag else None
        for key, size, etag, source in rows.iterator()
    }


def came_of(link_id: int, keys: Sequence[bytes]) -> dict[str, Own | None]:
    """The same of some keys."""
    found: dict[str, Own | None] = {}
    for some in chunks(list(keys), ROWS_AT_ONCE):
        rows = Arrived.objects.filter(link=link_id, key__in=some).order_by("pk")
        for key, size, etag, source in rows.values_list("key", "size", "etag", "source"):
            name = bytes(key).decode()
            found[name] = Own(name, size, etag, source) if etag else None
    return found


def files_for(link_id: int, keys: Collection[bytes]) -> dict[str, list[bytes]]:
    """Which files of a link list some keys, if any does."""
    rows = ShardManifest.objects.filter(link=link_id).exclude(file="").select_related("shard")
    spans = sorted((bytes(row.shard.low), row.shard.high, row.file) for row in rows)
    lows, found = [low for low, _, _ in spans], dict[str, list[bytes]]()
    for key in keys:
        at = bisect_left(lows, key) - 1
        if at >= 0 and (spans[at][1] is None or key <= bytes(spans[at][1])):
            found.setdefault(spans[at][2], []).append(key)
    return found


def disowned(link_id: int, keys: Sequence[bytes]) -> set[bytes]:
    """Those of the keys of which the last word is that they are not the link's."""
    last: dict[bytes, str] = {}
    for some in chunks(list(keys), ROWS_AT_ONCE):
        rows = Arrived.objects.filter(link=link_id, key__in=some).order_by("pk").values_list("key", "etag")
        last |= {bytes(key): etag for key, etag in rows}
    return {key for key, etag in last.items() if not etag}


def _rows(until: Since, low: bytes, high: bytes | None) -> QuerySet[Arrived]:
    rows = Arrived.objects.filter(link=until.link_id, pk__lte=until.top, key__gt=low)
    return rows if high is None else rows.filter(key__lte=high)


def row_of(link_id: int, shard: Shard) -> ShardManifest:
    """Which file lists a stretch; one that is not stored where there is none."""
    row = ShardManifest.objects.filter(link=link_id, shard=shard.pk).first()
    return row or ShardManifest(link_id=link_id, shard_id=shard.pk)


def wrote(row: ShardManifest, taken: Since, low: bytes, high: bytes | None) -> None:
    """A file is written: the row names it, and what it has of what came since is not kept twice. Inside of a
    transaction that holds the link; one that is gone has no files any more."""
    if not Link.objects.filter(pk=row.link_id).exists() or not Shard.objects.filter(pk=row.shard_id).exists():
        return
    if is_forgotten(row):
        return
    row.save()
    _rows(taken, low, high).exclude(of=HIDES).delete()


def keep_shown(rows: Sequence[ShardManifest]) -> None:
    """How many keys a target shows of a stretch. Inside of a transaction that holds the rule's links."""
    links = set(Link.objects.filter(pk__in={row.link_id for row in rows}).values_list("pk", flat=True))
    for row in rows:
        if row.link_id not in links or is_forgotten(row) or not Shard.objects.filter(pk=row.shard_id).exists():
            continue
        if row.pk is None:
            row.save()
        else:
            row.save(update_fields=["shown_objects", "shown_seen"])


def count_shown(rule_id: int, keys: int) -> None:
    """The look at hand has seen so many more keys that the source shows. Inside of its transaction."""
    if keys:
        looks = Rule.objects.filter(pk=rule_id, cycle_began_at__isnull=False)
        looks.update(cycle_shown=F("cycle_shown") + keys)


def is_forgotten(row: ShardManifest) -> bool:
    """Whether all was forgotten since the row was read."""
    return row.pk is not None and not ShardManifest.objects.filter(pk=row.pk).exists()


def forget(rule_id: int) -> None:
    """Nothing is a link's own but what is copied, or seen to be equal, from now on. Inside of a transaction that holds
    the rule's links."""
    Link.objects.filter(rule=rule_id).update(foreign_objects=None, foreign_keys=[])
    ShardManifest.objects.filter(link__rule=rule_id).delete()
    Arrived.objects.filter(link__rule=rule_id).delete()


def tell_foreign(rule_id: int, link_ids: Collection[int]) -> None:
    """A whole look has ended, and showed all that these links' targets have: of what is not theirs it is told how much
    there is, and the first of it. Inside of a transaction that holds them."""
    for link_id in link_ids:
        rows = ShardManifest.objects.filter(link=link_id)
        some = rows.filter(foreign_objects__gt=0).order_by("shard__low").values_list("foreign_keys", flat=True)
        first = [key for keys in some[:FIRST_FOREIGN] for key in keys][:FIRST_FOREIGN]
        number = rows.aggregate(all=Sum("foreign_objects"))["all"] or 0
        Link.objects.filter(pk=link_id).update(foreign_objects=number, foreign_keys=first)
    Link.objects.filter(rule=rule_id).exclude(pk__in=link_ids).update(foreign_objects=None, foreign_keys=[])


def forget_link(link_id: int) -> None:
    """The same of one link. Inside of a transaction that holds it."""
    ShardManifest.objects.filter(link=link_id).delete()
    Arrived.objects.filter(link=link_id).delete()


def is_named(link_id: int, file: str) -> bool:
    """Whether a stretch of the link still has this file."""
    return ShardManifest.objects.filter(link=link_id, file=file).exists()


def cut(shard: Shard, rest: Shard) -> None:
    """The rest of a stretch that is cut off has the file of the whole, until it has its own. Inside of the transaction
    that cuts."""
    rows = ShardManifest.objects.filter(shard=shard.pk).exclude(file="")
    ShardManifest.objects.bulk_create(
        [ShardManifest(link_id=row.link_id, shard=rest, file=row.file) for row in rows], batch_size=ROWS_AT_ONCE
    )


def files_of(link_id: int) -> Iterator[ShardManifest]:
    """All rows of a link that name a file."""
    yield from ShardManifest.objects.filter(link=link_id).exclude(file="").iterator()
