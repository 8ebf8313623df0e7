"""What a commit has at a path, read from its metarange and range: their ids prove them, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import LakeMirrorError, Unreachable
from core.locating import Tried
from deployment.wiring import clients
from graveler.entries import AddressType
from graveler.errors import FormatError
from graveler.metarange import RangeRef
from mirrors.queries.metarange_cache import parse, remembered
from mirrors.queries.metaranges import metadata_uri, ranges_at_hand

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Holder:
    """A namespace in a region's store that holds, or may hold, a repository's files."""

    region: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Named:
    """The object that a commit names at a path. `full`: the address is a URI of its own, not below a namespace."""

    range_id: str
    address: str
    full: bool
    size: int
    etag: str

    def uri(self, namespace: str) -> str:
        """Where it lies, for readers of a namespace."""
        return self.address if self.full else f"{namespace}/{self.address}"


def named_at(holders: Sequence[Holder], metarange_id: str, path: str) -> Named | None:
    """The object at a path; None where the commit has none there. Raises Unreachable when no store gives the files."""
    key = path.encode()
    wanted = [ref for ref in _ranges(holders, metarange_id) if ref.min_key <= key <= ref.max_key]
    return _entry(holders, wanted[0], key) if wanted else None


def _ranges(holders: Sequence[Holder], metarange_id: str) -> Sequence[RangeRef]:
    if not metarange_id:
        return ()
    at_hand = ranges_at_hand(metarange_id)
    if at_hand is not None:
        return at_hand
    tried: list[Tried] = []
    for file, data in _copies(holders, metarange_id, tried):
        try:
            found = parse(data, metarange_id, file.namespace)
        except FormatError as error:
            tried.append(Tried(file.region, str(error)))
            continue
        remembered().put(metarange_id, found)
        clients.local_cache().put(metarange_id, data)
        return found.ranges
    raise _nowhere(metarange_id, tried)


def names_address(holders: Sequence[Holder], range_id: str, address: str) -> bool:
    """Whether an entry of a range has this address. Raises Unreachable when no store gives the range's file."""
    import pyarrow.compute as pc

    return pc.index(_columns(holders, range_id)["address"], address).as_py() >= 0


def _entry(holders: Sequence[Holder], ref: RangeRef, path: bytes) -> Named | None:
    import pyarrow.compute as pc  # pages start before Spark's packages are installed

    batch = _columns(holders, ref.id)
    row = pc.index(batch["path"], path).as_py()
    return None if row < 0 else _named(ref.id, batch.slice(row, 1).to_pylist()[0])


def _columns(holders: Sequence[Holder], range_id: str) -> pa.RecordBatch:
    from graveler.ranges import read_range_columns

    tried: list[Tried] = []
    for holder, data in _with_kept(holders, range_id, tried):
        try:
            batch = read_range_columns(data, expected_id=range_id, file=holder.namespace)
        except FormatError as error:
            tried.append(Tried(holder.region, str(error)))
            continue
        if holder.namespace:
            clients.local_cache().put(range_id, data)
        return batch
    raise _nowhere(range_id, tried)


def _named(range_id: str, row: dict[str, Any]) -> Named:
    kind, address = row["address_type"], row["address"]
    full = kind == AddressType.FULL or (kind == AddressType.BY_PREFIX and "://" in address)
    return Named(range_id, address, full, row["size"], row["etag"])


def _with_kept(holders: Sequence[Holder], file_id: str, tried: list[Tried]) -> Iterator[tuple[Holder, bytes]]:
    kept = clients.local_cache().get(file_id)
    if kept is not None:
        yield Holder("this machine", ""), kept
    yield from _copies(holders, file_id, tried)


def _copies(holders: Sequence[Holder], file_id: str, tried: list[Tried]) -> Iterator[tuple[Holder, bytes]]:
    """A file as each place has it, in their order; why one gives none is noted."""
    for holder in holders:
        try:
            yield holder, clients.quick_objects(holder.region).get(metadata_uri(holder.namespace, file_id))
        except LakeMirrorError as error:
            tried.append(Tried(holder.region, str(error)))


def _nowhere(file_id: str, tried: Sequence[Tried]) -> Unreachable:
    why = "; ".join(f"{one.region}: {one.why}" for one in tried)
    return Unreachable(f"no store gives _lakefs/{file_id[:8]}, by which the commit's objects are known ({why})")
