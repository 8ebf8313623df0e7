"""The bytes under a storage namespace, as the lakeFS server reads and writes them in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from moto.s3.models import FakeKey

from sandbox.faults import Service
from sandbox.lakefs.errors import Refused
from sandbox.s3_backend import SandboxBackend


class Blobs(Protocol):
    """A store of whole objects."""

    def has_bucket(self, bucket: str) -> bool: ...
    def stamp(self, bucket: str, key: str) -> str: ...  # changes when the object does; "" if absent
    def get(self, bucket: str, key: str) -> bytes | None: ...
    def put(self, bucket: str, key: str, data: bytes, metadata: Mapping[str, str] = {}) -> str: ...  # the ETag


class RegionBlobs:
    """The region's moto, without HTTP. While the store is told to fail, everything here fails too."""

    def __init__(self, backend: SandboxBackend, faults: Service) -> None:
        self._backend = backend
        self._faults = faults

    def has_bucket(self, bucket: str) -> bool:
        self._expect_running()
        return bucket in self._backend.buckets

    def stamp(self, bucket: str, key: str) -> str:
        found = self._find(bucket, key)
        return f"{found.version_id} {found.etag}" if found else ""

    def get(self, bucket: str, key: str) -> bytes | None:
        found = self._find(bucket, key)
        return found.value if found else None

    def put(self, bucket: str, key: str, data: bytes, metadata: Mapping[str, str] = {}) -> str:
        self._expect_running()
        written = self._backend.store(bucket, key, data, metadata=metadata)
        self._backend.publish()
        return written.etag.strip('"')

    def _find(self, bucket: str, key: str) -> FakeKey | None:
        self._expect_running()
        return self._backend.newest(bucket, key)

    def _expect_running(self) -> None:
        if self._faults.stopped:
            raise Refused(500, "blockstore: the store gives no answer")
