"""Whose is what lies at a key that is to be removed? The object says it: by size and ETag in the listing, by the stamp
where only the ETag is another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from adapters.s3.copier import Copier, is_of
from adapters.s3.writes import MOST_DELETED
from core.errors import LakeMirrorError, Unauthenticated
from core.exporting.unit_planning import Interval
from spark_jobs.export.tally import Rows

MOST_ASKED = 100
"""So many keys at a time of which each takes a request of its own."""


@dataclass(slots=True)
class Owners:
    """Keys to delete, by what lies there; at others lies nothing. `failed`: what kept one from being told."""

    ours: list[bytes] = field(default_factory=list)
    foreign: list[bytes] = field(default_factory=list)
    failed: dict[bytes, LakeMirrorError] = field(default_factory=dict)


def spans(rows: Rows, start: int, stop: int) -> Iterator[Interval]:
    """Keys to delete that go together: as many as one request deletes, or as many as may have to be asked for."""
    first, asked = start, 0
    for at in range(start, stop):
        asked += _is_ours(rows.deletes[at].as_py(), rows) is None
        if at + 1 - first == MOST_DELETED or asked == MOST_ASKED:
            yield first, at + 1
            first, asked = at + 1, 0
    if first < stop:
        yield first, stop


def owners(keys: Sequence[bytes], rows: Rows, copier: Copier) -> Owners:
    """Only what one of the commits has there is ours; what can't be told is not."""
    found = Owners()
    for key in keys:
        if key not in rows.existing:
            continue
        try:
            ours = _is_ours(key, rows)
            ours = _is_stamped(key, rows, copier) if ours is None else ours
            (found.ours if ours else found.foreign).append(key)
        except LakeMirrorError as error:
            found.failed[key] = error
    return found


def _is_ours(key: bytes, rows: Rows) -> bool | None:
    """As far as the listing tells; None: by its size it may be."""
    info = rows.existing.get(key)
    tags = _tags(key, rows)
    if info is None or not tags:
        return False
    return any(is_of(info.etag, tag) for tag in tags) or None


def _is_stamped(key: bytes, rows: Rows, copier: Copier) -> bool:
    """What the store refuses to tell of is somebody else's; a refusal of our access key says nothing of any object."""
    try:
        return copier.stamp(key) in _tags(key, rows)
    except LakeMirrorError as error:
        if error.retryable or isinstance(error, Unauthenticated):
            raise
        return False


def _tags(key: bytes, rows: Rows) -> list[str]:
    """Of what the commits have there in this size."""
    size = rows.existing[key].size if key in rows.existing else None
    return [tag for version, tag in rows.versions.get(key, ()) if version == size]
