"""Keys that a store's events name: noted for every rule whose source holds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db import transaction
from django.db.models import Max, Min

from core.installations.s3_events import relative_key
from core.replicating.eligible import fits, is_copied
from db import clock
from replication.models import Rule, Touched
from replication.transitions import duties, ledger, shards

MOST_TOUCHED = 1_000_000
"""So many rows there may be, of all rules: more keys only make their stretches dirty, and their links lack
more than their rows tell."""
ROWS_AT_ONCE = 300


def objects_changed(region: str, objects: Collection[tuple[str, str]], beside: Collection[tuple[str, str]] = ()) -> int:
    """Note objects (bucket, key) of a region's store for the rules that copy them, `beside` those whose tags or locks
    changed; gives how many. Told twice, it does nothing more."""
    by_bucket, changed = _by_bucket(objects), _by_bucket(beside)
    if not by_bucket:
        return 0
    number = 0
    for pk, uri in Rule.objects.live().filter(region=region).values_list("pk", "uri"):
        bucket, _, prefix = uri.partition("://")[2].partition("/")
        keys = _inside(by_bucket.get(bucket, ()), prefix.rstrip("/"))
        if keys:
            described = set(_inside(changed.get(bucket, ()), prefix.rstrip("/")))
            _note(pk, [key for key in keys if key not in described], sorted(described))
            number += len(keys)
    return number


def _by_bucket(objects: Collection[tuple[str, str]]) -> dict[str, set[str]]:
    by_bucket: dict[str, set[str]] = defaultdict(set)
    for bucket, key in objects:
        by_bucket[bucket].add(key)
    return by_bucket


def _inside(keys: Collection[str], prefix: str) -> list[bytes]:
    """The keys of a rule among these, without the prefix of its source."""
    inside = {relative_key(key, prefix) for key in keys}
    return sorted(key.encode() for key in inside if key is not None and is_copied(key) and _is_a_key(key))


def _is_a_key(key: str) -> bool:
    """No store has a key with half a character, or a longer one; who calls us may send one."""
    return not any("\ud800" <= letter <= "\udfff" for letter in key) and fits("", key)


def _note(rule_id: int, keys: list[bytes], described: list[bytes]) -> None:
    """`described`: those that may have other tags or locks, which a row says until it is looked at."""
    span = Touched.objects.aggregate(first=Min("pk"), last=Max("pk"))
    now = clock.now()
    with transaction.atomic():
        if span["first"] is not None and span["last"] - span["first"] >= MOST_TOUCHED:
            ledger.overflow(rule_id)
            shards.mark_dirty(rule_id, sorted({*keys, *described}))
        else:
            _create([Touched(rule_id=rule_id, key=key, at=now) for key in keys], "at")
            _create([Touched(rule_id=rule_id, key=key, at=now, beside=True) for key in described], "at", "beside")
        duties.wake_scan(rule_id)


def _create(rows: list[Touched], *renewed: str) -> None:
    """Of a key that is noted already these columns are written anew."""
    unique = ["rule", "key"]
    Touched.objects.bulk_create(
        rows, batch_size=ROWS_AT_ONCE, update_conflicts=True, unique_fields=unique, update_fields=list(renewed)
    )
