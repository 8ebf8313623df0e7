"""What sweeps remember, as Parquet files at the destination, among LakeMirror's own.

`found`: the objects that nobody names and the source has no more, with the time since when that is known. `kept`: ids
of the metaranges and ranges that were read for it, and the addresses that came to be named since. The sweep's row has
the digest of each file: what is not as it was written is not used.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import Corrupt, NotFound
from core.mirroring.content_proof import OWN_FILES
from core.sweeping import Candidate, due
from deployment.wiring import clients
from mirrors.models import Mirror, Sweep

_FOUND = ("address", "size", "etag", "since")
_KEPT = ("kind", "id")
_TYPES = {"size": "int64", "since": "float64"}
_METARANGE, _RANGE, _NAMED = "metarange", "range", "named"


@dataclass(slots=True)
class KeptList:
    """Ids of metaranges and ranges that are kept, and the addresses of what was found that are named by ranges which
    came to be kept later."""

    metaranges: set[str] = field(default_factory=set)
    ranges: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)


def uri_of(mirror: Mirror, sweep: Sweep, what: str) -> str:
    """Where a file of a sweep lies; `what` is `found` or `kept`."""
    return f"{mirror.namespace}/{OWN_FILES}sweeps/{sweep.pk}-{what}.parquet"


def write_found(mirror: Mirror, sweep: Sweep, candidates: Iterable[Candidate]) -> str:
    """Gives its digest."""
    return _write(mirror, sweep, "found", _FOUND, list(candidates))


def read_found(mirror: Mirror, sweep: Sweep) -> list[Candidate]:
    """By address. Raises Corrupt where it is not as it was written."""
    return [Candidate(*row) for row in _read(mirror, sweep, "found", _FOUND, sweep.digest)]


def read_due(mirror: Mirror, sweep: Sweep) -> list[Candidate]:
    """Those whose turn it is in this sweep, by address; as `read_found`."""
    return due(read_found(mirror, sweep), sweep.began_at.timestamp())


def write_kept(mirror: Mirror, sweep: Sweep, kept: KeptList) -> str:
    """Gives its digest."""
    parts: Mapping[str, set[str]] = {_METARANGE: kept.metaranges, _RANGE: kept.ranges, _NAMED: kept.named}
    rows = [(kind, one) for kind, ids in parts.items() for one in sorted(ids)]
    return _write(mirror, sweep, "kept", _KEPT, rows)


def read_kept(mirror: Mirror, sweep: Sweep) -> KeptList:
    """Raises Corrupt where it is not as it was written."""
    by_kind: dict[str, set[str]] = {_METARANGE: set(), _RANGE: set(), _NAMED: set()}
    for kind, one in _read(mirror, sweep, "kept", _KEPT, sweep.kept_digest):
        by_kind[kind].add(one)
    return KeptList(by_kind[_METARANGE], by_kind[_RANGE], by_kind[_NAMED])


def _write(mirror: Mirror, sweep: Sweep, what: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    import pyarrow as pa  # pages start before Spark's packages are installed
    from pyarrow import parquet

    columns = list(zip(*rows, strict=True)) or [() for _ in names]
    kinds = [_TYPES.get(name, "string") for name in names]
    table = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    data = buffer.getvalue()
    clients.objects(mirror.region).put(uri_of(mirror, sweep, what), data)
    return hashlib.sha256(data).hexdigest()


def _read(mirror: Mirror, sweep: Sweep, what: str, names: Sequence[str], digest: str) -> list[tuple[Any, ...]]:
    from pyarrow import parquet

    uri = uri_of(mirror, sweep, what)
    try:
        data = clients.objects(mirror.region).get(uri)
    except NotFound as error:
        raise Corrupt(f"{uri}, a list that the sweep wrote, is not there") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise Corrupt(f"{uri}, a list that the sweep wrote, is not as it was written")
    columns = parquet.read_table(io.BytesIO(data)).to_pydict()
    return list(zip(*(columns[name] for name in names), strict=True))
