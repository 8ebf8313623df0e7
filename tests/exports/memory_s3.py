"""An S3 in memory below the adapters: what they send is carried out here, one request after the other.

`before` is called before each request and may raise, `after` after it was carried out: that is where tests break
things, and look. A write of which `before` says that nobody answers (Unreachable) is remembered in `given_up`: it may
be carried out later all the same.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from adapters.s3.fast_store import FastObjectStore, ListedPage
from adapters.s3.store import split_uri
from core.errors import Conflict, LakeMirrorError, NotFound, Unreachable
from core.types import ObjectInfo

WRITES = ("PUT", "COPY", "DELETE", "DELETES")


@dataclass(frozen=True)
class Answer:
    """What comes back."""

    data: bytes = b""
    headers: Mapping[str, str] | None = None
    status: int = 200


@dataclass(frozen=True)
class GivenUp:
    """A write of which nobody saw an answer, and what carries it out; of many keys at once `key` is none."""

    key: str
    do: Callable[[], object]


class MemoryS3(FastObjectStore):
    """Buckets of bytes."""

    per_page = 3

    def __init__(self) -> None:
        super().__init__(endpoint="http://127.0.0.1:9", force_path_style=True, access_key_id="k", secret_access_key="s")
        self.buckets: dict[str, dict[str, bytes]] = {"src": {}, "out": {}}
        self.before: Callable[[str, str, str], None] = lambda method, bucket, key: None
        self.after: Callable[[str, str, str], None] = lambda method, bucket, key: None
        self.conditional = True
        """Whether it heeds If-None-Match and If-Match on PUT; else it overlooks them."""
        self.given_up: list[GivenUp] = []
        self._described: dict[tuple[int, str], tuple[bytes, Mapping[str, str]]] = {}
        self.asked: Counter[str] = Counter()
        self._one = threading.RLock()

    def _bucket(self, name: str) -> dict[str, bytes]:
        if name not in self.buckets:
            raise NotFound(f"404 NoSuchBucket: {name}")
        return self.buckets[name]

    def send(
        self,
        method: str,
        url: str,
        doing: str,
        headers: Any = (),
        body: bytes = b"",
        read_seconds: float = 0,
        *,
        unsigned: bool = False,
    ) -> Any:
        """Carry out a request of the adapters."""
        parts = urlsplit(url)
        name, _, key = unquote(parts.path).lstrip("/").partition("/")
        with self._one:
            self._count()
            given = {name.lower(): value for name, value in dict(headers).items()}
            kind = "COPY" if "x-amz-copy-source" in given else "DELETES" if "delete" in parts.query else method
            self.asked[kind] += 1
            do = partial(getattr(self, f"_{kind.lower()}"), self._bucket(name), key, given, body)
            try:
                self.before(kind, name, key)
            except Unreachable:
                if kind in WRITES:
                    self.given_up.append(GivenUp(key, do))
                raise
            answer = do()
            self.after(kind, name, key)
            return answer

    def _get(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Answer:
        if key not in bucket:
            raise NotFound(f"404 NoSuchKey: {key}")
        data = bucket[key]
        self._expect(data, given.get("if-match"))
        if "range" in given:
            start, _, stop = given["range"].removeprefix("bytes=").partition("-")
            data = data[int(start) : int(stop) + 1]
        own = {"etag": f'"{etag(bucket[key])}"', "content-length": str(len(bucket[key]))}
        return Answer(data, {**self._description(bucket, key), **own})

    _head = _get

    def _expect(self, data: bytes | None, match: str | None) -> None:
        if match and (data is None or match.strip('"') != etag(data)):
            raise Conflict("412 PreconditionFailed")

    def _put(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Answer:
        if given.get("if-none-match") == "*" and key in bucket and self.conditional:
            raise Conflict("412 PreconditionFailed")
        if "if-match" in given and self.conditional:
            self._expect(bucket.get(key), given["if-match"])
        self._write(bucket, key, body, given)
        return Answer(b"", {"etag": f'"{etag(body)}"'})

    def _copy(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Answer:
        name, _, source = unquote(given["x-amz-copy-source"]).lstrip("/").partition("/")
        if source not in self._bucket(name):
            raise NotFound(f"404 NoSuchKey: {source}")
        data = self._bucket(name)[source]
        self._expect(data, given.get("x-amz-copy-source-if-match"))
        self._write(bucket, key, data, given)
        return Answer(f"<CopyObjectResult><ETag>&quot;{etag(data)}&quot;</ETag></CopyObjectResult>".encode(), {})

    def _write(self, bucket: dict[str, bytes], key: str, data: bytes, given: Mapping[str, str]) -> None:
        told = {
            name: value for name, value in given.items() if name == "content-type" or name.startswith("x-amz-meta-")
        }
        bucket[key], self._described[id(bucket), key] = data, (data, told)

    def described(self, bucket: str, key: str) -> Mapping[str, str]:
        """Content type and metadata of an object as it was written."""
        return self._description(self.buckets[bucket], key)

    def _description(self, bucket: dict[str, bytes], key: str) -> Mapping[str, str]:
        """As it was written; what a test puts there is not described."""
        data, told = self._described.get((id(bucket), key), (b"", {}))
        return told if data == bucket[key] else {}

    def _delete(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Answer:
        bucket.pop(key, None)
        return Answer()

    def _deletes(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Answer:
        for one in ElementTree.fromstring(body).iter():
            if one.tag.rpartition("}")[2] == "Key":
                bucket.pop(one.text or "", None)
        return Answer(b"<DeleteResult></DeleteResult>", {})

    # What has ways of its own

    def get(self, uri: str) -> bytes:
        """An object."""
        bucket, key = split_uri(uri)
        data: bytes = self.send("GET", self.url(bucket, key), f"get {uri}").data
        return data

    def put(self, uri: str, data: bytes) -> None:
        """Write an object."""
        bucket, key = split_uri(uri)
        self.send("PUT", self.url(bucket, key), f"put {uri}", body=data)

    def head(self, uri: str) -> ObjectInfo | None:
        """What is there."""
        bucket, key = split_uri(uri)
        try:
            data = self.send("HEAD", self.url(bucket, key), f"head {uri}").data
        except NotFound:
            return None
        return ObjectInfo(key, len(data), etag(data))

    def page(self, prefix_uri: str, after: str = "") -> ListedPage:
        """Up to three objects, unless told: so that there are several pages."""
        name, prefix = split_uri(prefix_uri)
        with self._one:
            self._count()
            self.asked["LIST"] += 1
            self.before("LIST", name, prefix)
            bucket = self._bucket(name)
            keys = sorted(key for key in bucket if key.startswith(prefix) and key > after)
            some = keys[: self.per_page]
            sizes, etags = [len(bucket[key]) for key in some], [etag(bucket[key]) for key in some]
            return ListedPage(some, sizes, etags, [""] * len(some), len(keys) > self.per_page)

    def _retried(self, call: Callable[[], Any]) -> Any:
        """Without pauses."""
        for _ in range(self.tries - 1):
            try:
                return call()
            except LakeMirrorError as error:
                if not error.retryable:
                    raise
        return call()


def etag(data: bytes) -> str:
    """As S3 gives it."""
    return hashlib.md5(data).hexdigest()
