"""The file that lists what a link has at its target, of a stretch of keys: Parquet of `key`, `size` and `etag`, sorted
by key as stores list them. Those of rules that lead both ways also have `source`, which names what each is a copy of;
those of rules that copy all versions have a row for each, with its `version` and `of` which one it is a copy.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import RemoteFailure
from core.replicating.deletes import Own

SCHEMA = pa.schema([("key", pa.string()), ("size", pa.int64()), ("etag", pa.string())])
MARKED = SCHEMA.append(pa.field("source", pa.string()))
OF_VERSIONS = SCHEMA.append(pa.field("version", pa.string())).append(pa.field("of", pa.string()))
SCHEMAS = (SCHEMA, MARKED, OF_VERSIONS)
AT_ONCE = 1000


def packed(own: Sequence[Own]) -> bytes:
    """The file of these, which are in order."""
    marked = MARKED if any(one.source for one in own) else SCHEMA
    schema = OF_VERSIONS if any(one.version for one in own) else marked
    columns = [pa.array([getattr(one, field.name) for one in own], field.type) for field in schema]
    table = pa.table(columns, schema)
    held = io.BytesIO()
    pq.write_table(table, held, compression="zstd")
    return held.getvalue()


class ManifestFile:
    """What a file lists, read on in the order of keys."""

    def __init__(self, table: pa.Table | None = None) -> None:
        self._rows = self._read(table) if table is not None else iter(())
        self._ahead: list[Own] = []

    @classmethod
    def of(cls, data: bytes) -> ManifestFile:
        """Raises RemoteFailure for what is no such file: then nobody knows what it listed."""
        return cls(_table(data))

    @staticmethod
    def _read(table: pa.Table) -> Iterator[list[Own]]:
        for batch in table.to_batches(max_chunksize=AT_ONCE):
            yield [Own(**row) for row in batch.to_pylist()]

    def until(self, key: str | None) -> list[Own]:
        """All that are left up to a key, with it; None: to the end."""
        found: list[Own] = []
        while True:
            at = len(self._ahead) if key is None else bisect_right(self._ahead, key, key=lambda own: own.key)
            found += self._ahead[:at]
            self._ahead = self._ahead[at:]
            if self._ahead:
                return found
            more = next(self._rows, None)
            if more is None:
                return found
            self._ahead = more


class Picks:
    """What a file lists, asked for single keys. Raises RemoteFailure for what is no such file."""

    def __init__(self, data: bytes) -> None:
        self._table = _table(data)

    def of(self, keys: Collection[str]) -> dict[str, Own]:
        """What it has of these keys."""
        picked = self._table.filter(pc.is_in(self._table["key"], pa.array(sorted(keys), pa.string())))
        rows = zip(*(column.to_pylist() for column in picked.columns), strict=True)
        return {row[0]: Own(*row) for row in rows}


def _table(data: bytes) -> pa.Table:
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        raise RemoteFailure("a manifest in the state place can't be read") from error
    if not any(table.schema.equals(schema) for schema in SCHEMAS):
        raise RemoteFailure("a manifest in the state place has other columns than it should")
    return table
