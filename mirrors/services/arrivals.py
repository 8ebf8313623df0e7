"""What stores tell of objects: those that were missing are looked for at once.

A destination's store tells what came, a source's what it has copied, or failed to copy, and why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta

from core.bringing import ObjectReplication
from core.installations.s3_events import CopyTold, relative_key
from core.mirroring.object_check import address_hash
from db import clock
from db.chunks import chunks
from jobs import duties
from mirrors.models import Blocker, Mirror, MirrorDuty, ReplicationFailure, Repository

KEPT = timedelta(hours=24)
"""So long a failure tells why an object has not arrived."""


def objects_arrived(*, region: str, objects: Iterable[tuple[str, str]]) -> int:
    """Objects (bucket, key) came to a region's store; gives how many missing things are looked for now.

    Told twice, it does nothing more. Keys that lie in no mirror, or that nobody misses, are nobody's business.
    """
    number = 0
    for mirror_id, addresses in _by_mirror(region, objects).items():
        hastened = _hasten(mirror_id, sorted(addresses))
        if hastened:
            duties.wake(MirrorDuty.VALIDATE, mirror_id)
        number += hastened
    return number


def _by_mirror(region: str, objects: Iterable[tuple[str, str]]) -> dict[int, set[str]]:
    """Addresses relative to the namespaces that they lie in; no two namespaces overlap."""
    keys: dict[str, set[str]] = defaultdict(set)
    for bucket, key in objects:
        keys[bucket].add(key)
    by_mirror: dict[int, set[str]] = defaultdict(set)
    for mirror_id, namespace in Mirror.objects.live().filter(region=region).values_list("pk", "storage_namespace"):
        bucket, _, prefix = namespace.removeprefix("s3://").partition("/")
        inside = {relative_key(key, prefix.rstrip("/")) for key in keys.get(bucket, ())}
        if addresses := {address for address in inside if address is not None}:
            by_mirror[mirror_id] = addresses
    return by_mirror


def _hasten(mirror_id: int, addresses: list[str]) -> int:
    now = clock.now()
    hashes = [address_hash(address) for address in addresses]
    waiting = Blocker.objects.filter(mirror=mirror_id, look_at__gt=now).exclude(kind=Blocker.Kind.RECORD)
    return sum(waiting.filter(address_hash__in=some).update(look_at=now) for some in chunks(hashes))


# --- others who want to hear of objects -------------------------------------------------------------------------------

Objects = Collection[tuple[str, str]]
"""Buckets and keys."""
Hear = Callable[[str, Objects, Objects], int]
"""Takes a region, objects that came to its store, or changed, and those of them whose tags or locks did; gives of how
many it will look at."""

_hearers: list[Hear] = []


def register_hearer(hear: Hear) -> None:
    """Have another app told of every object; each process does so when that app is ready."""
    _hearers.append(hear)


def tell_hearers(region: str, objects: Objects, beside: Objects) -> int:
    """Tell all of them; gives how many objects are looked at for it."""
    return sum(hear(region, objects, beside) for hear in _hearers)


# --- copies ---------------------------------------------------------------------------------------------------------


def copies_told(*, region: str, copies: Sequence[CopyTold]) -> int:
    """A region's store told of copies that it made; gives how many missing things are looked for now.

    A failure is kept, and its reason told with what waits for that object; the last word on an object holds.
    """
    number = 0
    if not copies:
        return number
    sources = Repository.objects.filter(region=region, mirrors__object_replication=ObjectReplication.NATIVE).distinct()
    for source in sources:
        bucket, _, prefix = source.storage_namespace.removeprefix("s3://").partition("/")
        told: dict[tuple[str, str], CopyTold] = {}
        for copy in copies:
            address = relative_key(copy.key, prefix.rstrip("/")) if copy.bucket == bucket else None
            if address is not None:
                told[address, copy.destination] = copy
        number += _take(source, told)
    return number


def _take(source: Repository, told: dict[tuple[str, str], CopyTold]) -> int:
    now = clock.now()
    failed = [
        ReplicationFailure(source=source, address_hash=address_hash(address), bucket=bucket, reason=copy.reason, at=now)
        for (address, bucket), copy in told.items()
        if copy.failed
    ]
    if failed:
        source.replication_failures.filter(at__lt=now - KEPT).delete()
        ReplicationFailure.objects.bulk_create(
            failed,
            batch_size=400,
            update_conflicts=True,
            unique_fields=["source", "address_hash", "bucket"],
            update_fields=["reason", "at"],
        )
        _ask_why(source, sorted({row.address_hash for row in failed}))
    return _hasten_copied(source, [(address, bucket) for (address, bucket), copy in told.items() if not copy.failed])


def _ask_why(source: Repository, hashes: Sequence[str]) -> None:
    """The next round of those that watch the mirrors asks the store again."""
    waiting = Blocker.objects.filter(mirror__source=source, cause_at__isnull=False)
    for some in chunks(hashes):
        waiting.filter(address_hash__in=some).update(cause_at=None)


def _hasten_copied(source: Repository, copied: Sequence[tuple[str, str]]) -> int:
    """The store says that these are at their destination: there they are looked for."""
    number = 0
    for some in chunks(sorted({address_hash(address) for address, _ in copied})):
        source.replication_failures.filter(address_hash__in=some).delete()
    natives = source.mirrors.live().filter(object_replication=ObjectReplication.NATIVE) if copied else ()
    for mirror in natives:
        bucket = mirror.storage_namespace.removeprefix("s3://").partition("/")[0]
        addresses = sorted({address for address, target in copied if target in ("", bucket)})
        if hastened := _hasten(mirror.pk, addresses):
            duties.wake(MirrorDuty.VALIDATE, mirror.pk)
            number += hastened
    return number
