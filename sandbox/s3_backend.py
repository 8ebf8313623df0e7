"""moto's S3 with what the sandbox needs: a journal, listings by index, and writes that keep a given ETag.

moto walks through all keys for every page of a listing and computes ETags lazily on the file position that readers
share; both hurt at 100,000 objects and several threads.
"""

from __future__ import annotations

import hashlib
import json
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, cast

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import FakeBucket, FakeDeleteMarker, FakeKey, S3Backend, s3_backends
from moto.s3.utils import _VersionedKeyStore

from sandbox.journal import DELETE, PUT, Journal, Write

BEYOND = "\U0010ffff"


class IndexedKeys(_VersionedKeyStore):
    """The keys of a bucket, which also knows their order."""

    def __init__(self) -> None:
        super().__init__()
        self._sorted: list[str] = []
        self._fresh: list[str] = []

    def setlist(self, key: Any, list_: Any) -> Any:
        if key not in self:
            self._fresh.append(key)
        return super().setlist(key, list_)

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self:
            self._fresh.append(key)
        super().__setitem__(key, value)

    def pop(self, key: str) -> None:  # type: ignore[override]
        super().pop(key)
        self._sorted, self._fresh = sorted(self), []

    def names(self) -> list[str]:
        """All keys, ascending. The caller holds the backend's lock and does not change the list."""
        if self._fresh:
            self._sorted = sorted([*self._sorted, *self._fresh])
            self._fresh = []
        return self._sorted


class SandboxBackend(S3Backend):
    """S3Backend whose successful writes go into `journal` when the request's thread calls `publish`."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.journal = Journal()
        self.lock = threading.RLock()
        self._mine = threading.local()

    # --- what moto's answers call -----------------------------------------------------------------------------------

    def create_bucket(self, bucket_name: str, region_name: str, bucket_namespace: str | None = None) -> FakeBucket:
        bucket = super().create_bucket(bucket_name, region_name, bucket_namespace)
        bucket.keys = IndexedKeys()
        return bucket

    def put_object(self, bucket_name: str, key_name: str, value: bytes, *args: Any, **options: Any) -> FakeKey:
        if len(args) < 2 and not options.get("etag"):
            options["etag"] = hashlib.md5(value, usedforsecurity=False).hexdigest()
        with self.lock:
            key = super().put_object(bucket_name, key_name, value, *args, **options)
        self._noted().append(Write(PUT, bucket_name, key_name, key.version_id, len(value)))
        return key

    def delete_object(
        self, bucket_name: str, key_name: str, version_id: str | None = None, bypass: bool = False
    ) -> tuple[bool, dict[str, Any]]:
        with self.lock:
            found, meta = super().delete_object(bucket_name, key_name, version_id, bypass)
        if found and version_id is None:
            self._noted().append(Write(DELETE, bucket_name, key_name, meta.get("version-id", "")))
        return found, meta

    def list_objects(
        self, bucket: FakeBucket, prefix: str | None, delimiter: str | None, marker: str | None, max_keys: int | None
    ) -> tuple[Any, Any, bool, str | None]:
        items, cut = self._page(bucket, prefix or "", delimiter or "", marker or "", max_keys)
        keys = [item for item in items if not isinstance(item, str)]
        folders = [item for item in items if isinstance(item, str)]
        return keys, folders, cut, _name(items[-1]) if cut and items else None

    def list_objects_v2(
        self,
        bucket: FakeBucket,
        prefix: str | None,
        delimiter: str | None,
        continuation_token: str | None,
        start_after: str | None,
        max_keys: int,
    ) -> tuple[Any, bool, str | None]:
        after = bytes.fromhex(continuation_token).decode() if continuation_token else start_after or ""
        items, cut = self._page(bucket, prefix or "", delimiter or "", after, max_keys)
        return items, cut, _name(items[-1]).encode().hex() if cut and items else None

    def _page(
        self, bucket: FakeBucket, prefix: str, delimiter: str, after: str, limit: int | None
    ) -> tuple[list[FakeKey | str], bool]:
        if limit == 0:
            return [], False
        items: list[FakeKey | str] = []
        with self.lock:
            for item in _items(cast(IndexedKeys, bucket.keys), prefix, delimiter, after):
                if limit is not None and len(items) == limit:
                    return items, True
                items.append(item)
        return items, False

    # --- what the sandbox calls -------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Puts this thread's writes into the journal: they are whole now, metadata and all."""
        noted = self._noted()
        if noted:
            self.journal.append(noted)
            noted.clear()

    def forget(self) -> None:
        """Drops this thread's writes: nobody shall replicate them."""
        self._noted().clear()

    def deny(self, place: str, action: str) -> None:
        """The bucket's policy refuses an action below `bucket/prefix` to everybody."""
        bucket = place.partition("/")[0]
        resource = f"arn:aws:s3:::{place.rstrip('/')}/*"
        statement = {"Effect": "Deny", "Principal": "*", "Action": action, "Resource": resource}
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        self.put_bucket_policy(bucket, json.dumps(policy).encode())

    def newest(self, bucket: str, key: str) -> FakeKey | None:
        """The current version, None if absent or deleted."""
        found = self.buckets[bucket].keys.get(key) if bucket in self.buckets else None
        return found if isinstance(found, FakeKey) else None

    def version(self, bucket: str, key: str, version: str) -> FakeKey | None:
        """One version of an object, None if it is gone."""
        versions = self.get_bucket(bucket).keys.getlist(key, [])
        return next((v for v in versions if isinstance(v, FakeKey) and v.version_id == version), None)

    def store(self, bucket: str, key: str, body: bytes, *, etag: str = "", metadata: Mapping[str, str] = {}) -> FakeKey:
        """Writes an object with the ETag that it had elsewhere ("" computes it). Call publish or forget next."""
        written = self.put_object(bucket, key, body, etag=etag or None, disable_notification=True)
        written.set_metadata(dict(metadata))
        return written

    def _noted(self) -> list[Write]:
        noted: list[Write] | None = getattr(self._mine, "noted", None)
        if noted is None:
            noted = self._mine.noted = []
        return noted


def install(region: str, buckets: list[str]) -> SandboxBackend:
    """Makes the sandbox's backend the one that moto serves in this process, with versioned buckets in it. A backend
    that was installed before, with all that it holds, is left."""
    backend = SandboxBackend("aws", DEFAULT_ACCOUNT_ID)
    dict.__setitem__(s3_backends[DEFAULT_ACCOUNT_ID], "aws", backend)
    for bucket in buckets:
        s3_backends.bucket_accounts.pop(bucket, None)
        backend.create_bucket(bucket, region)
        backend.put_bucket_versioning(bucket, "Enabled")
    return backend


def _items(keys: IndexedKeys, prefix: str, delimiter: str, after: str) -> Iterator[FakeKey | str]:
    names = keys.names()
    at = max(bisect_left(names, prefix), bisect_right(names, after))
    while at < len(names) and names[at].startswith(prefix):
        name = names[at]
        folder_end = name.find(delimiter, len(prefix)) if delimiter else -1
        if folder_end < 0:
            if not isinstance(newest := keys[name], FakeDeleteMarker):
                yield newest
            at += 1
            continue
        folder = name[: folder_end + len(delimiter)]
        end = bisect_right(names, folder + BEYOND)
        if folder > after and any(isinstance(keys[n], FakeKey) for n in names[at:end]):
            yield folder
        at = end


def _name(item: FakeKey | str) -> str:
    return item if isinstance(item, str) else item.name
