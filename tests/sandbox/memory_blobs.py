"""A store for tests of the committed part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


class MemoryBlobs:
    """Objects in a dictionary. `written` lists the keys in the order in which they were put."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.written: list[str] = []

    def has_bucket(self, bucket: str) -> bool:
        return True

    def stamp(self, bucket: str, key: str) -> str:
        found = self.objects.get((bucket, key))
        return "" if found is None else hashlib.md5(found).hexdigest()

    def get(self, bucket: str, key: str) -> bytes | None:
        return self.objects.get((bucket, key))

    def put(self, bucket: str, key: str, data: bytes, metadata: Mapping[str, str] = {}) -> str:
        self.objects[bucket, key] = data
        self.written.append(key)
        return hashlib.md5(data).hexdigest()
