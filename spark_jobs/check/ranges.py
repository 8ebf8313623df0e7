"""Opening ranges at the destination, and leaving out what needs no look. In columns: no Python object per entry."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.errors import LakeMirrorError, NotFound
from core.exporting.deadline import Late
from core.mirroring.content_proof import Refusals
from core.mirroring.object_check import IN_S3, Reason, What, is_refusal
from graveler.columns import is_full
from graveler.errors import FormatError
from graveler.ranges import read_range_columns
from spark_jobs.check.presence import BulkStore, Expected
from spark_jobs.check.settings import BLOCK, CheckSettings

BASES_KEPT = 6
"""Neighbouring ranges share base ranges; so many are kept decoded."""

_NAMED = ["address", "full", "size", "etag"]
_SHOWN = ["path", *_NAMED]
_CHECKSUMS = np.dtype("<u4")


FileBytes = bytes


@dataclass(slots=True)
class OpenedRange:
    """A range that was read: `wanted` is what is left to look up; some problems show without a look.

    `min_key` and `max_key` are its first and last path; `looked` as CHECK_COLUMNS tells it. `unwritten` is its file, if
    that came from the source and is to be written here; `late`: there was no time for it.
    """

    range_id: str
    entries: int = 0
    bytes: int = 0
    min_key: bytes = b""
    max_key: bytes = b""
    looked: bytes = b""
    wanted: pa.RecordBatch | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unwritten: FileBytes | None = None
    late: bool = False

    @property
    def looked_up(self) -> int:
        """How many objects have to be looked for."""
        return 0 if self.wanted is None else int(self.wanted.num_rows)

    @property
    def new_bytes(self) -> int:
        """The size of these in bytes."""
        return 0 if self.wanted is None else int(pc.sum(self.wanted.column("size")).as_py() or 0)

    def expected(self) -> list[Expected]:
        """The objects to look for, in the order of `wanted`."""
        if self.wanted is None:
            return []
        return list(map(Expected, *(self.wanted.column(name).to_pylist() for name in ("uri", "size", "etag"))))

    def without_file(self, prefix: str, reason: str, detail: str) -> dict[str, Any]:
        """A problem row about the range's own file."""
        row = {"kind": "problem", "range_id": self.range_id, "path": b"", "full": False}
        return {**row, "address": f"{prefix}/{self.range_id}", "reason": str(reason), "detail": detail}

    def problem(self, at: int, reason: str, detail: str) -> dict[str, Any]:
        """A problem row about the entry at this place of `wanted`."""
        assert self.wanted is not None
        return self.problem_of(self.wanted, at, reason, detail)

    def problem_of(self, batch: pa.RecordBatch, at: int, reason: str, detail: str) -> dict[str, Any]:
        """A problem row about an entry of some columns of this range."""
        named = {name: batch.column(name)[at].as_py() for name in _SHOWN}
        return {"kind": "problem", "range_id": self.range_id, **named, "reason": str(reason), "detail": detail}


class KeptRanges:
    """What ranges name, by id, for the next change to build upon: up to so many entries, the last used ones.

    An id stands for the content, wherever that was read.
    """

    def __init__(self, most_entries: int) -> None:
        self._batches: OrderedDict[str, pa.RecordBatch] = OrderedDict()
        self._most = most_entries
        self._lock = threading.Lock()

    def get(self, range_id: str) -> pa.RecordBatch | None:
        """Its columns (address, full, size, etag), if they are kept."""
        with self._lock:
            if range_id in self._batches:
                self._batches.move_to_end(range_id)
            return self._batches.get(range_id)

    def put(self, range_id: str, columns: pa.RecordBatch) -> None:
        """Keep what was read and found to be right."""
        with self._lock:
            self._batches[range_id] = columns.select(_NAMED)
            while sum(batch.num_rows for batch in self._batches.values()) > self._most:
                self._batches.popitem(last=False)


class FromSource(Protocol):
    """Gives a range's file as the source has it. May raise what keeps it from that, or Late; `failure` keeps it from
    giving any."""

    late: bool
    failure: LakeMirrorError | None

    def range_file(self, range_id: str) -> bytes: ...


class RangeReader:
    """Reads ranges of one destination, what is `kept` of bases only once. A `source` gives what is not there."""

    def __init__(
        self,
        store: BulkStore,
        settings: CheckSettings,
        refusals: Refusals,
        cache: KeptRanges | None = None,
        source: FromSource | None = None,
    ) -> None:
        self._store, self._settings, self._refusals, self._cache = store, settings, refusals, cache
        self._source = source
        self._base = functools.lru_cache(maxsize=BASES_KEPT)(self._read_base)
        self._one_at_a_time = threading.Lock()

    def open(self, range_id: str, base_ids: Sequence[str]) -> OpenedRange:
        """A range without what its base ranges name. One whose file is missing, damaged or refused is a problem."""
        opened = OpenedRange(range_id)
        opened.late = self._source is not None and self._source.late
        columns = None if opened.late else self._columns_of(opened)
        if columns is None:
            return opened
        opened.entries, opened.bytes = columns.num_rows, pc.sum(columns.column("size")).as_py() or 0
        opened.min_key, opened.max_key = _ends(columns.column("path"))
        self._plan(opened, columns, base_ids)
        return opened

    def _columns_of(self, opened: OpenedRange) -> pa.RecordBatch | None:
        """What the file says, or None, with the problem noted."""
        try:
            return self._columns(opened.range_id)
        except NotFound:
            return self._brought(opened, Reason.RANGE_MISSING, "the range's file is not at the destination")
        except FormatError as error:
            return self._brought(opened, Reason.RANGE_DAMAGED, str(error))
        except LakeMirrorError as error:
            self._broken(opened, *self._refusals.of_key(error, What.RANGE))
            return None

    def _brought(self, opened: OpenedRange, reason: Reason, detail: str) -> pa.RecordBatch | None:
        """The same by the source's file, if there is one that gives it."""
        if self._source is None:
            self._broken(opened, reason, detail)
            return None
        try:
            data = self._source.range_file(opened.range_id)
            columns = self._parsed(opened.range_id, data, f"the source's file of {opened.range_id}")
        except Late:
            opened.late = True
            return None
        except (FormatError, LakeMirrorError) as error:
            failure = self._source.failure
            gone = failure is None and isinstance(error, NotFound)
            why = "the source does not have it either" if gone else f"it can't be copied: {failure or error}"
            self._broken(opened, reason, f"{detail}; {why}")
            return None
        opened.unwritten = data
        return columns

    def _plan(self, opened: OpenedRange, columns: pa.RecordBatch, base_ids: Sequence[str]) -> None:
        """Sets `wanted` and `looked`; what is imported is judged whether a base names it or not."""
        full = columns.column("full")
        barred = full if self._settings.imported == BLOCK else pc.and_not(full, _in_s3(columns))
        imported = columns.filter(barred)
        self._note_imported(opened, imported)
        rest = self._with_uris(columns).filter(pc.invert(barred))
        for base_id in base_ids:
            with self._one_at_a_time:
                base, note = self._base(base_id)
            opened.notes += [note] if note else []
            rest = rest if base is None else _without(rest, base)
        opened.wanted = rest
        opened.looked = checksums([imported.column("address"), rest.column("address")])

    def _note_imported(self, opened: OpenedRange, barred: pa.RecordBatch) -> None:
        block = self._settings.imported == BLOCK
        detail = "imported: lies outside of the storage namespace" if block else "imported from a place that is not S3"
        opened.problems += [opened.problem_of(barred, at, Reason.IMPORTED, detail) for at in range(barred.num_rows)]

    def _with_uris(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        address = columns.column("address")
        below = pc.binary_join_element_wise(self._settings.uri_of(""), address, "")
        uris = pc.if_else(columns.column("full"), address, below)
        return columns.select(_SHOWN).append_column("uri", uris)

    def _columns(self, range_id: str) -> pa.RecordBatch:
        uri = self._settings.metadata_uri(range_id)
        return self._parsed(range_id, self._store.get(uri), uri)

    def _parsed(self, range_id: str, data: bytes, file: str) -> pa.RecordBatch:
        columns = read_range_columns(data, expected_id=range_id, file=file)
        columns = columns.append_column("full", is_full(columns))
        if self._cache is not None:
            self._cache.put(range_id, columns)
        return columns

    def _read_base(self, base_id: str) -> tuple[pa.RecordBatch | None, str]:
        """A base's columns, or why there are none: then nothing is left out on its account."""
        cached = None if self._cache is None else self._cache.get(base_id)
        if cached is not None:
            return cached, ""
        try:
            columns = self._columns(base_id)
        except NotFound:
            return None, f"base range {base_id} is not at the destination: not built upon"
        except FormatError as error:
            return None, f"base range {base_id} is damaged: not built upon ({error})"
        except LakeMirrorError as error:
            if not is_refusal(error):
                self._refusals.of_key(error, What.RANGE)  # raises what concerns the store as a whole
            return None, f"base range {base_id} can't be read: not built upon ({error.message})"
        return columns.select(_NAMED), ""

    def _broken(self, opened: OpenedRange, reason: Reason, detail: str) -> None:
        opened.problems.append(opened.without_file(self._settings.metadata_prefix, reason, detail))


def checksums(addresses: Sequence[pa.Array]) -> bytes:
    """The CRC-32 of each address's UTF-8 bytes: ascending, each once, as little-endian uint32."""
    column = pa.chunked_array(addresses).cast(pa.binary())
    sums = np.fromiter(map(crc32, column.to_pylist()), _CHECKSUMS, len(column))
    sums.sort()
    is_new = np.ones(len(sums), bool)
    is_new[1:] = sums[1:] != sums[:-1]
    return sums[is_new].tobytes()


def _ends(paths: pa.Array) -> tuple[bytes, bytes]:
    """The first and the last path; empty ones where there are none."""
    return (paths[0].as_py(), paths[-1].as_py()) if len(paths) else (b"", b"")


def _in_s3(columns: pa.RecordBatch) -> pa.Array:
    return pc.match_substring_regex(columns.column("address"), IN_S3)


def _without(columns: pa.RecordBatch, base: pa.RecordBatch) -> pa.RecordBatch:
    """The entries that the base does not name with the same address, of the same kind, size and ETag."""
    at = pc.index_in(columns.column("address"), value_set=base.column("address"))
    alike = (pc.equal(columns.column(name), base.column(name).take(at)) for name in ("full", "size", "etag"))
    same = functools.reduce(pc.and_, alike)
    return columns.filter(pc.invert(pc.fill_null(same, False)))
