"""Metaranges of a mirror that brings its objects itself: read at the source, and written once their ranges are here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from core.bringing import BRINGABLE_METADATA
from core.errors import LakeMirrorError, NotFound
from core.mirroring.check_planning import Data, judge
from core.mirroring.content_proof import Refusals
from core.mirroring.object_check import What
from core.ports import ObjectStore
from deployment.wiring import clients
from graveler.errors import FormatError
from mirrors.models import Mirror
from mirrors.queries.metarange_cache import Found, parse
from mirrors.queries.metaranges import metadata_uri, read_afresh

READERS = 8
WHOLE = (Data.COMPLETE, Data.GONE)
"""Ranges of which everything is here that anybody can bring."""


@dataclass(slots=True)
class Brought:
    """Metaranges that the destination lacks, as the source has them: bytes by id, and what each names.

    `failed`: what kept the source from giving any, or the destination from taking them.
    """

    named: dict[str, Found] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    failed: LakeMirrorError | None = None


def read_at_source(mirror: Mirror, contents: Mapping[str, Found]) -> Brought:
    """Those of these metaranges that the destination lacks, or has damaged, from the source."""
    brought = Brought()
    lacking = sorted(i for i, found in contents.items() if found.reason in BRINGABLE_METADATA)
    if not mirror.brings or not lacking:
        return brought
    store, namespace = clients.objects(mirror.source.region), mirror.source.namespace
    refusals = Refusals(store, namespace)
    with ThreadPoolExecutor(min(READERS, len(lacking))) as pool:
        answers = pool.map(lambda i: _read(store, metadata_uri(namespace, i), i, refusals), lacking)
        for metarange_id, answer in zip(lacking, answers, strict=True):
            if isinstance(answer, LakeMirrorError):
                brought.failed = brought.failed or answer
            elif answer is not None:
                brought.data[metarange_id], brought.named[metarange_id] = answer
    return brought


def _read(
    store: ObjectStore, uri: str, metarange_id: str, refusals: Refusals
) -> tuple[bytes, Found] | LakeMirrorError | None:
    """The file and what it names; None where only this one can't be had; what keeps the store from giving any."""
    try:
        data = store.get(uri)
        return data, parse(data, metarange_id, uri)
    except (NotFound, FormatError):
        return None
    except LakeMirrorError as error:
        return _failure(refusals, error)


def _failure(refusals: Refusals, error: LakeMirrorError) -> LakeMirrorError | None:
    try:
        refusals.of_key(error, What.METARANGE)
    except LakeMirrorError as failure:
        return failure
    return None


def write_whole(
    mirror: Mirror, brought: Brought, covered: Mapping[str, Data], contents: Mapping[str, Found]
) -> dict[str, Found]:
    """The same contents, with those metaranges that could be written: a reader never meets one before its ranges."""
    known = dict(contents)
    store = clients.objects(mirror.region)
    for metarange_id, found in brought.named.items():
        ranges = [ref.id for ref in found.ranges]
        if judge(ranges, covered) not in WHOLE:
            lacking = sum(covered.get(range_id) not in WHOLE for range_id in ranges)
            known[metarange_id] = _waits(known[metarange_id], f"it is written once {lacking} of its ranges are here")
        elif brought.failed is None:
            try:
                store.put(metadata_uri(mirror.namespace, metarange_id), brought.data[metarange_id])
                known[metarange_id] = read_afresh(mirror, metarange_id)
            except LakeMirrorError as error:
                brought.failed = error
                known[metarange_id] = _waits(known[metarange_id], f"it can't be written: {error.message}")
    return known


def _waits(found: Found, why: str) -> Found:
    return replace(found, detail=f"{found.detail}; {why}")


def planned(contents: Mapping[str, Found], brought: Brought) -> dict[str, Found]:
    """What is to be checked: the source says what a metarange names that is not here yet."""
    return {**contents, **brought.named}


def range_ids(found: Iterable[Found]) -> set[str]:
    """All ranges that these name."""
    return {ref.id for each in found for ref in each.ranges}
