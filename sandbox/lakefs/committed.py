"""The immutable part: metaranges and ranges in the store, read and written as lakeFS does.

A commit keeps the ranges that it does not touch and writes new ones only where something changed.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graveler.entries import Entry
from graveler.errors import FormatError
from graveler.metarange import RangeRef, read_metarange, write_metarange
from graveler.ranges import read_range, write_ranges
from sandbox.lakefs.blobs import Blobs
from sandbox.lakefs.errors import Refused, no_data

CACHED_RECORDS = 400_000


@dataclass(frozen=True, slots=True)
class Range:
    """A range that was read."""

    paths: Sequence[bytes]
    entries: Sequence[Entry]


class FileCache:
    """Decoded files by where they lie and which version it was: a file that is replaced is read again."""

    def __init__(self, most_records: int = CACHED_RECORDS) -> None:
        self._files: OrderedDict[tuple[str, ...], tuple[Any, int]] = OrderedDict()
        self._most, self._records = most_records, 0
        self._lock = threading.Lock()

    def get(self, key: tuple[str, ...]) -> Any:
        """The decoded file or None."""
        with self._lock:
            if key not in self._files:
                return None
            self._files.move_to_end(key)
            return self._files[key][0]

    def put(self, key: tuple[str, ...], value: Any, records: int) -> None:
        """Keeps a decoded file, forgets those that were used least lately."""
        with self._lock:
            if key not in self._files:
                self._files[key] = value, records + 1
                self._records += records + 1
            while self._records > self._most and len(self._files) > 1:
                self._records -= self._files.popitem(last=False)[1][1]


class Committed:
    """The metadata files under one storage namespace. A file that is absent is a 410, a damaged one a 500."""

    def __init__(self, blobs: Blobs, bucket: str, prefix: str, cache: FileCache) -> None:
        self._blobs = blobs
        self._bucket = bucket
        self._folder = f"{prefix}/_lakefs/" if prefix else "_lakefs/"
        self._cache = cache

    # --- reading ----------------------------------------------------------------------------------------------------

    def ranges(self, metarange_id: str) -> Sequence[RangeRef]:
        """The ranges of a metarange; "" (a repository's first commit) has none."""
        if not metarange_id:
            return ()
        found: Sequence[RangeRef] = self._file(metarange_id, "metarange")
        return found

    def read(self, range_id: str) -> Range:
        """The entries of a range."""
        found: Range = self._file(range_id, "range")
        return found

    def find(self, metarange_id: str, path: bytes) -> Entry | None:
        """The entry at a path. Opens at most one range."""
        refs = self.ranges(metarange_id)
        at = bisect_left(refs, path, key=lambda ref: ref.max_key)
        if at == len(refs) or refs[at].min_key > path:
            return None
        found = self.read(refs[at].id)
        index = bisect_left(found.paths, path)
        return found.entries[index] if index < len(found.paths) and found.paths[index] == path else None

    def scan(self, metarange_id: str, start: bytes = b"") -> Iterator[Entry]:
        """Entries from a path on, in order."""
        for ref in self.ranges(metarange_id):
            if ref.max_key >= start:
                found = self.read(ref.id)
                yield from found.entries[bisect_left(found.paths, start) :]

    def changes(self, before: str, after: str) -> dict[bytes, tuple[Entry | None, Entry | None]]:
        """What differs by path: (entry before, entry after). Ranges that both have are not opened."""
        if before == after:
            return {}
        old, new = self.ranges(before), self.ranges(after)
        shared = {ref.id for ref in old} & {ref.id for ref in new}
        left, right = self._unshared(old, shared), self._unshared(new, shared)
        paths = sorted(left.keys() | right.keys())
        pairs = {path: (left.get(path), right.get(path)) for path in paths}
        return {path: pair for path, pair in pairs.items() if not same(*pair)}

    def _unshared(self, refs: Iterable[RangeRef], shared: set[str]) -> dict[bytes, Entry]:
        return {entry.path: entry for ref in refs if ref.id not in shared for entry in self.read(ref.id).entries}

    def _file(self, name: str, kind: str) -> Any:
        stamp = self._blobs.stamp(self._bucket, self._folder + name)
        if not stamp:
            raise no_data()
        key = (self._bucket, self._folder, name, stamp)
        found = self._cache.get(key)
        if found is None:
            found = _decode(self._blobs.get(self._bucket, self._folder + name), name, kind)
            self._cache.put(key, found, len(found.paths if isinstance(found, Range) else found))
        return found

    # --- writing ----------------------------------------------------------------------------------------------------

    def apply(self, metarange_id: str, changes: Mapping[bytes, Entry | None]) -> str:
        """The metarange with these changes (None deletes); the same id if nothing really changes."""
        effective = self._effective(metarange_id, changes)
        if not effective and metarange_id:
            return metarange_id
        return self.write(self._rewrite(self.ranges(metarange_id), effective))

    def write(self, refs: Sequence[RangeRef]) -> str:
        """Writes the metarange of these ranges."""
        file = write_metarange(refs)
        self._put(file.id, file.data)
        return file.id

    def write_entries(self, entries: Iterable[Entry]) -> list[RangeRef]:
        """Writes ranges of these entries, whose paths ascend."""
        refs = []
        for file in write_ranges(entries):
            self._put(file.id, file.data)
            refs.append(file.ref)
        return refs

    def _effective(self, metarange_id: str, changes: Mapping[bytes, Entry | None]) -> dict[bytes, Entry | None]:
        ordered = sorted(changes.items())
        return {path: new for path, new in ordered if not same(self.find(metarange_id, path), new)}

    def _rewrite(self, refs: Sequence[RangeRef], changes: dict[bytes, Entry | None]) -> list[RangeRef]:
        done: list[RangeRef] = []
        open_run: list[Entry] = []
        todo = list(reversed(changes.items()))
        for ref in refs:
            if todo and todo[-1][0] <= ref.max_key:
                open_run += self._merged(self.read(ref.id).entries, todo)
            else:  # lakeFS ends an open range before it takes over a whole one
                done += [*self.write_entries(open_run), ref]
                open_run = []
        open_run += [new for _, new in reversed(todo) if new is not None]
        return [*done, *self.write_entries(open_run)]

    def _merged(self, entries: Sequence[Entry], todo: list[tuple[bytes, Entry | None]]) -> Iterator[Entry]:
        """The range's entries with the changes up to its end, which are taken off `todo`'s end."""
        for entry in entries:
            while todo and todo[-1][0] < entry.path:
                _, new = todo.pop()
                if new is not None:
                    yield new
            if todo and todo[-1][0] == entry.path:
                _, new = todo.pop()
                if new is not None:
                    yield new
            else:
                yield entry

    def _put(self, name: str, data: bytes) -> None:
        if self._blobs.get(self._bucket, self._folder + name) != data:
            self._blobs.put(self._bucket, self._folder + name, data)


def same(old: Entry | None, new: Entry | None) -> bool:
    """Do both stand for the same content (lakeFS compares identities, not addresses)?"""
    if old is None or new is None:
        return old is new
    return old.identity == new.identity


def _decode(data: bytes | None, name: str, kind: str) -> Sequence[RangeRef] | Range:
    if data is None:
        raise no_data()
    try:
        if kind == "metarange":
            return read_metarange(data, expected_id=name)
        entries = list(read_range(data, expected_id=name))
        return Range([entry.path for entry in entries], entries)
    except FormatError as damage:
        raise Refused(500, f"{kind} {damage}") from damage
