"""The report of a pass: its rows as they are kept, and as Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import Any

from core.errors import Unreachable
from core.replicating.passes import ReportRow, unpack
from replication.models import Pass

COLUMNS = ("link", "key", "action", "size", "code", "message")
SHOWN = 1000
GROUP = 50_000
"""Rows of a row group: so many are in memory at a time."""


def report_rows(made: Pass) -> Iterator[ReportRow]:
    """All rows, in the order of their writing."""
    for part in _parts(made):
        yield from unpack(bytes(part.rows))


def _parts(made: Pass) -> Iterator[Any]:
    last = 0
    while (part := made.parts.filter(pk__gt=last).order_by("pk").first()) is not None:
        yield part
        last = part.pk


def first_rows(made: Pass, most: int = SHOWN) -> list[ReportRow]:
    """As many as a page shows."""
    return list(islice(report_rows(made), most))


def parquet(made: Pass) -> Iterator[bytes]:
    """The report as a Parquet file, piece by piece. Raises Unreachable while Spark's packages are being installed."""
    try:
        import pyarrow as pa  # pages start before Spark's packages are installed
        from pyarrow import parquet as pq
    except ImportError as error:
        raise Unreachable("Spark is still being installed; ask for CSV, or try again in a minute") from error
    types = {"link": pa.int32(), "size": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])
    return _pieces(report_rows(made), schema, pa, pq)


def _pieces(rows: Iterator[ReportRow], schema: Any, pa: Any, pq: Any) -> Iterator[bytes]:
    sink = _Sink()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        while group := list(islice(rows, GROUP)):
            columns = list(zip(*group, strict=True))
            arrays = [pa.array(map(_whole, column), kind.type) for column, kind in zip(columns, schema, strict=True)]
            writer.write_table(pa.table(arrays, schema=schema))
            yield sink.taken()
    yield sink.taken()


def _whole(value: Any) -> Any:
    """Half a character, which no file of Parquet holds, as it is written elsewhere."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


class _Sink(io.RawIOBase):
    """What is written is handed on, and its place is known."""

    def __init__(self) -> None:
        self._held, self._at = bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._held += view
        self._at += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._at

    def taken(self) -> bytes:
        """What has been written since the last time."""
        data, self._held = bytes(self._held), bytearray()
        return data
