"""A repository of very many small files, by rule, written in lakeFS's format with our own writer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from types import MappingProxyType

from two_buckets import address_of, body_of

from graveler.entries import Entry, Timestamp
from graveler.metarange import RangeRef, write_metarange
from graveler.ranges import write_ranges

CHANGES = 100

Changed = Mapping[int, tuple[str, bytes]]
"""Object's number to the address and content that it has from now on."""


@dataclass(frozen=True, slots=True)
class Written:
    """A commit's tree, and what is new with it: files of metadata and objects, by key below the namespace."""

    metarange_id: str
    refs: tuple[RangeRef, ...]
    metadata: Mapping[str, bytes]
    objects: Mapping[str, bytes]

    @property
    def new_ranges(self) -> list[RangeRef]:
        """The ranges that came with it."""
        return [ref for ref in self.refs if metadata_key(ref.id) in self.metadata]

    @property
    def range_bytes(self) -> int:
        """How large their files are."""
        return sum(len(self.metadata[metadata_key(ref.id)]) for ref in self.new_ranges)

    def files(self) -> dict[str, bytes]:
        """All that has to be put for it."""
        return {**self.metadata, **self.objects}


def metadata_key(file_id: str) -> str:
    """Where a metarange or range lies below the namespace."""
    return f"_lakefs/{file_id}"


def first_commit(count: int) -> Written:
    """A commit of so many objects."""
    return _written([(None, _entries(range(count)))])


def changed_commit(base: Written, numbers: Collection[int], label: str, *, together: bool) -> Written:
    """`base` with other content for these objects, either uploaded together or each into its old partition."""
    changed = {number: _new(number, label, together=together) for number in numbers}
    parts: list[tuple[RangeRef | None, Iterable[Entry]]] = []
    first = 0
    for ref in base.refs:
        members = range(first, first + ref.count)
        same = changed.keys().isdisjoint(members)
        parts.append((ref, ()) if same else (None, _entries(members, changed)))
        first += ref.count
    return _written(parts, dict(changed.values()))


def near_each_other(count: int) -> Sequence[int]:
    """Numbers below one prefix."""
    return range(count // 2, count // 2 + CHANGES)


def scattered(count: int) -> Sequence[int]:
    """Numbers all over the commit."""
    return range(0, count, count // CHANGES)[:CHANGES]


def _written(
    parts: Iterable[tuple[RangeRef | None, Iterable[Entry]]],
    objects: Mapping[str, bytes] = MappingProxyType({}),
) -> Written:
    refs: list[RangeRef] = []
    files: dict[str, bytes] = {}
    for kept, entries in parts:
        new = list(write_ranges(entries))
        refs += [one.ref for one in new] if kept is None else [kept]
        files |= {metadata_key(one.id): one.data for one in new}
    metarange = write_metarange(refs)
    files[metadata_key(metarange.id)] = metarange.data
    return Written(metarange.id, tuple(refs), files, objects)


def _entries(numbers: Iterable[int], changed: Changed = MappingProxyType({})) -> Iterator[Entry]:
    """A table of many small files, in order."""
    for number in numbers:
        address, body = changed.get(number) or (address_of(number), body_of(number))
        path = b"tables/events/day=%05d/part-%07d.parquet" % (number // 500, number)
        yield Entry(
            path, address, etag=md5(body).hexdigest(), size=len(body), last_modified=Timestamp(1_750_000_000, 0)
        )


def _new(number: int, label: str, *, together: bool) -> tuple[str, bytes]:
    partition = f"data/h-{label}" if together else address_of(number).rpartition("/")[0]
    return f"{partition}/new-{label}-{number}", f"changed {number} by {label}".encode()
