"""What an export plans for a unit: every key on which the commits do not all agree. In columns, range by range.

Commits agree on a key if none has it, or all have it with the same size, ETag, content type and metadata: where the
object lies is a difference only without an ETag. Reading a range proves its id, wherever it was read.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapters.s3.copier import tag_of
from adapters.s3.fast_store import FastObjectStore
from core.errors import Corrupt
from core.exporting.destinations import imported_from
from core.exporting.unit_planning import Unit
from core.installations.places import store_at
from graveler.columns import FULL_SCHEMA, is_full
from graveler.errors import FormatError
from graveler.ranges import read_range_columns
from spark_jobs.export.settings import ExportSettings

RANGES_KEPT = 3
"""Neighbouring units share ranges of the other commits; so many are kept decoded, most of what a task holds."""

Bools = NDArray[np.bool_]

NOTHING = pa.RecordBatch.from_pylist([], schema=FULL_SCHEMA)
_COMPARED = ("size", "tag")
OTHERS = pa.schema([FULL_SCHEMA.field("path"), FULL_SCHEMA.field("size"), FULL_SCHEMA.field("etag").with_name("tag")])


@dataclass(frozen=True, slots=True)
class Planned:
    """A unit's planned rows. `deletes`: keys, ascending. `copies`: the target's entries, ascending, with `uri` and with
    `renewed`: a commit has the same object there, described differently. `others`: path, size and tag of whatever else
    the other commits have at these keys, in no order."""

    deletes: pa.Array
    copies: pa.RecordBatch
    others: pa.Table

    @property
    def keys(self) -> pa.Array:
        """All planned keys, ascending."""
        return _sorted(pa.concat_arrays([self.deletes, self.copies.column("path")]))


class RangeShelf:
    """Reads ranges of the source."""

    def __init__(self, store: FastObjectStore, settings: ExportSettings) -> None:
        self._store, self._settings = store, settings
        self.read = functools.lru_cache(maxsize=RANGES_KEPT)(self._read)

    def _read(self, range_id: str) -> pa.RecordBatch:
        """A range's entries. NotFound, Corrupt if it is damaged, or what else the store raises."""
        uri = self._settings.range_uri(range_id)
        try:
            return read_range_columns(self._store.get(uri), expected_id=range_id, file=uri, metadata=True)
        except FormatError as error:
            raise Corrupt(str(error)) from error


def plan_unit(unit: Unit, shelf: RangeShelf, settings: ExportSettings) -> Planned:
    """The rows of a unit. Raises what `shelf` raises, Conflict for an entry that was imported from the destination."""
    target = clipped(_read(unit.target, shelf, settings), unit) if unit.target else tagged(NOTHING, settings)
    agreed, renewed = np.ones(target.num_rows, bool), np.zeros(target.num_rows, bool)
    differing: list[pa.RecordBatch] = []
    removed: list[pa.Array] = []
    for range_ids in unit.others:
        same = np.zeros(target.num_rows, bool)
        for range_id in range_ids:
            if range_id == unit.target:
                same[:] = True
                continue
            lacking, others = _compare(target, clipped(_read(range_id, shelf, settings), unit), same, renewed)
            removed.append(lacking)
            differing.append(others)
        agreed &= same
    copies = _with_uris(target, renewed, settings).filter(pa.array(~agreed))
    others = pa.Table.from_batches(differing, schema=OTHERS)
    return Planned(_keys(removed), copies, others)


def _read(range_id: str, shelf: RangeShelf, settings: ExportSettings) -> pa.RecordBatch:
    """A range of which no entry was imported from the destination: from such an address in the same store."""
    columns, place = shelf.read(range_id), settings.destination.namespace.rstrip("/")
    if store_at(settings.source.endpoint) != store_at(settings.destination.endpoint):
        return tagged(columns, settings)
    inside = pc.and_(is_full(columns), pc.starts_with(columns.column("address"), f"{place}/"))
    for entry in columns.select(["path", "address"]).filter(inside).slice(0, 1).to_pylist():
        raise imported_from(place, entry["address"], entry["path"])
    return tagged(columns, settings)


def tagged(columns: pa.RecordBatch, settings: ExportSettings) -> pa.RecordBatch:
    """With `tag`, what tells an entry's content from any other of its size."""
    tags = columns.column("etag")
    if pc.any(pc.equal(tags, "")).as_py():
        pairs = zip(tags.to_pylist(), _uris(columns, settings).to_pylist(), strict=True)
        tags = pa.array([tag_of(etag, uri) for etag, uri in pairs], pa.string())
    return columns.append_column(OTHERS.field("tag"), tags)


def clipped(columns: pa.RecordBatch, unit: Unit) -> pa.RecordBatch:
    """Only the unit's keys, of entries that ascend."""
    path = columns.column("path")
    if not len(path) or (unit.holds(path[0].as_py()) and unit.holds(path[-1].as_py())):
        return columns
    inside = pc.greater_equal(path, pa.scalar(unit.low, pa.binary()))
    if unit.high is not None:
        inside = pc.and_(inside, pc.less(path, pa.scalar(unit.high, pa.binary())))
    return columns.filter(inside)


def _compare(
    target: pa.RecordBatch, other: pa.RecordBatch, same: Bools, renewed: Bools
) -> tuple[pa.Array, pa.RecordBatch]:
    """Notes which of the target's entries the other has too; gives the keys that the target lacks, and all of the
    other's entries that the target does not have as they are."""
    at = pc.index_in(other.column("path"), value_set=target.column("path"))
    known = at.is_valid()
    rows, shared = at.drop_null().to_numpy(zero_copy_only=False), other.filter(known)
    content, description = _equal(target.take(at.drop_null()), shared)
    same[rows] = content & description
    renewed[rows] |= content & ~description
    differs = np.ones(other.num_rows, bool)
    differs[np.flatnonzero(_bools(known))] = ~(content & description)
    return other.column("path").filter(pc.invert(known)), other.select(OTHERS.names).filter(pa.array(differs))


def _equal(target: pa.RecordBatch, other: pa.RecordBatch) -> tuple[Bools, Bools]:
    """Which rows have the same content, and which have the same description."""
    content = np.ones(target.num_rows, bool)
    for name in _COMPARED:
        content &= _bools(pc.equal(target.column(name), other.column(name)))
    described = _bools(pc.equal(target.column("content_type"), other.column("content_type")))
    described &= _same_metadata(target.column("metadata"), other.column("metadata"), content & described)
    return content, described


def _same_metadata(target: pa.MapArray, other: pa.MapArray, relevant: Bools) -> Bools:
    """Most entries have none. Where there is some, its order means nothing."""
    some = (_lengths(target) > 0) | (_lengths(other) > 0)
    same = ~some
    for at in np.flatnonzero(some & relevant):
        same[at] = dict(target[int(at)].as_py()) == dict(other[int(at)].as_py())
    return same


def _lengths(maps: pa.MapArray) -> NDArray[np.int32]:
    return np.diff(maps.offsets.to_numpy())


def _bools(mask: pa.Array) -> Bools:
    bools: Bools = mask.to_numpy(zero_copy_only=False)
    return bools


def _keys(arrays: Sequence[pa.Array]) -> pa.Array:
    """Each once, ascending."""
    return _sorted(pc.unique(pa.concat_arrays([pa.array([], pa.binary()), *arrays])))


def _sorted(keys: pa.Array) -> pa.Array:
    return keys.take(pc.array_sort_indices(keys))


def _with_uris(columns: pa.RecordBatch, renewed: Bools, settings: ExportSettings) -> pa.RecordBatch:
    names = ["path", "size", "etag", "tag", "content_type", "metadata"]
    arrays = [*map(columns.column, names), _uris(columns, settings), pa.array(renewed)]
    return pa.RecordBatch.from_arrays(arrays, [*names, "uri", "renewed"])


def _uris(columns: pa.RecordBatch, settings: ExportSettings) -> pa.Array:
    address = columns.column("address")
    below = pc.binary_join_element_wise(f"{settings.source.namespace.rstrip('/')}/", address, "")
    return pc.if_else(is_full(columns), address, below)
