"""What a destination's store tells of new objects: those that were missing are looked for at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from core.installations.s3_events import relative_key
from db import clock
from db.chunks import chunks
from jobs import duties
from mirrors.models import Blocker, Mirror, MirrorDuty
from mirrors.models.waived import address_hash


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
