"""Somebody who reads the mirrors: each head, its history and all of its objects, from the destination alone."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from core.errors import LakeMirrorError, NotFound
from graveler.errors import FormatError
from graveler.metarange import read_metarange
from graveler.ranges import read_range
from tests.fleet.wire import Remote

PAUSE = 0.05


class Torn(Exception):
    """A reader met something that is missing or wrong."""


class Reader:
    """Reads one mirror; what it has found whole it doesn't read twice. `excused`: whether the history of a head may
    lack an address."""

    def __init__(
        self,
        lakefs: Any,
        store: Any,
        mirror: str,
        namespace: str,
        excused: Callable[[str, str], bool] = lambda head, address: False,
    ) -> None:
        self.lakefs, self.store, self.mirror, self.namespace, self.excused = lakefs, store, mirror, namespace, excused
        self._whole: set[str] = set()
        self._seen: dict[str, str] = {}

    def look(self) -> tuple[int, list[str]]:
        """How many heads there were to open, and what was wrong with them."""
        heads = {head.name: head.commit_id for head in self.lakefs.list_branches(self.mirror).results}
        fresh = {name: head for name, head in heads.items() if self._seen.get(name) != head}
        self._seen = heads
        return len(fresh), [problem for name, head in fresh.items() for problem in self._problems(name, head)]

    def _problems(self, branch: str, head: str) -> list[str]:
        try:
            self._open(head)
        except (Torn, FormatError, LakeMirrorError) as error:
            if not self._stands(branch, head):
                return []  # what it left may go
            return [f"a reader of {self.mirror}/{branch} at {head[:8]}: {error}"]
        return []

    def _stands(self, branch: str, head: str) -> bool:
        try:
            return bool(self.lakefs.get_branch(self.mirror, branch).commit_id == head)
        except NotFound:
            return False

    def _open(self, head: str) -> None:
        ahead = [head]
        while ahead:
            commit = ahead.pop()
            if commit not in self._whole:
                record = self.lakefs.get_commit(self.mirror, commit)
                if record.metarange_id:
                    self._open_metarange(record.metarange_id, head)
                self._whole.add(commit)
                ahead.extend(record.parents)

    def _open_metarange(self, metarange_id: str, head: str) -> None:
        for ref in read_metarange(self._file(metarange_id), expected_id=metarange_id):
            if ref.id in self._whole:
                continue
            entries = read_range(self._file(ref.id), expected_id=ref.id)
            there = [self._open_object(entry.address, entry.etag, head) for entry in entries]
            if all(there):
                self._whole.add(ref.id)

    def _open_object(self, address: str, etag: str, head: str) -> bool:
        """False: it is not there, and that is excused."""
        if address in self._whole:
            return True
        try:
            found = hashlib.md5(self.store.get(f"{self.namespace}/{address}")).hexdigest()
        except NotFound:
            if self.excused(head, address):
                return False
            raise
        if found != etag:
            raise Torn(f"{address} has other bytes")
        self._whole.add(address)
        return True

    def _file(self, name: str) -> bytes:
        data: bytes = self.store.get(f"{self.namespace}/_lakefs/{name}")
        return data


def main(address: str) -> None:
    """Read until killed."""
    world = Remote(address, "world")
    readers = []
    for one in world.mirrors():
        lakefs, store = (Remote(address, f"{kind} {one['region']}") for kind in ("lakefs", "store"))
        excused = partial(world.excuses, one["mirror"])
        readers.append(Reader(lakefs, store, one["mirror"], one["mirrored"], excused))
    while True:
        for reader in readers:
            try:
                world.read(reader.mirror, *reader.look())
            except LakeMirrorError:
                pass  # not made yet
        time.sleep(PAUSE)


if __name__ == "__main__":
    main(*sys.argv[1:])
