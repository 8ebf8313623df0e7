"""S3 servers for tests: moto in a thread, and a small double that can hold 100,000 objects and fail on command."""

from __future__ import annotations

import hashlib
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from moto.server import ThreadedMotoServer

_ARCHIVES = {"GLACIER", "DEEP_ARCHIVE"}
KEYS = {"access_key_id": "AKIATEST", "secret_access_key": "test-secret"}


@contextmanager
def running_moto() -> Iterator[str]:
    """The endpoint of a moto server with its own thread."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@dataclass
class Thing:
    """An object of the double: its bytes, or only what it claims to be."""

    size: int
    etag: str
    data: bytes = b""
    storage_class: str = "STANDARD"
    headers: dict[str, str] = field(default_factory=dict)


Fault = Callable[[str, str], int | None]
"""(method, key or "") to a status to answer with instead; 0 drops the connection; None: no fault."""


OWN_ONLY = "x-minio-source-proxy-request"
"""Whatever its value: MinIO then answers for itself alone."""


class S3Double:
    """Objects of one bucket. `fault` decides per request; `asked` counts requests: HEAD, GET, LIST, PUT.

    `peer`: another site, whose objects it gives for those that it lacks, as MinIO does where rules lead both ways. It
    does not list them. `plain` counts the reads that allow that: without the header, or with one that isn't signed.
    `given`: when how many bytes of a range were given.
    """

    def __init__(self, bucket: str = "lake") -> None:
        self.bucket = bucket
        self.things: dict[str, Thing] = {}
        self.unlisted: set[str] = set()
        self.fault: Fault | None = None
        self.asked: Counter[str] = Counter()
        self.plain: Counter[str] = Counter()
        self.peer: S3Double | None = None
        self.given: list[tuple[float, int]] = []
        self._lock = threading.Lock()
        self._sorted: list[str] | None = None
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def reset(self) -> None:
        """Empty, willing, and nothing asked yet."""
        self.things, self.unlisted, self.fault, self._sorted = {}, set(), None, None
        self.peer = None
        self.given.clear()
        self.asked.clear()
        self.plain.clear()

    def put(self, key: str, data: bytes, **claims: object) -> Thing:
        """Store bytes; `claims` override what HEAD and LIST tell."""
        thing = Thing(len(data), hashlib.md5(data).hexdigest(), data)
        for name, value in claims.items():
            setattr(thing, name, value)
        return self.claim(key, thing)

    def claim(self, key: str, thing: Thing) -> Thing:
        self.things[key] = thing
        self._sorted = None
        return thing

    def drop(self, key: str) -> None:
        del self.things[key]
        self._sorted = None

    def keys_between(self, prefix: str, after: str, most: int) -> tuple[list[str], bool]:
        with self._lock:
            if self._sorted is None:
                self._sorted = sorted(self.things)
            keys = self._sorted
        start = max(bisect_left(keys, prefix), bisect_right(keys, after) if after else 0)
        found = []
        for key in keys[start : start + most + 1 + len(self.unlisted)]:
            if key.startswith(prefix) and key not in self.unlisted:
                found.append(key)
        return found[:most], len(found) > most

    def __enter__(self) -> S3Double:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


def _handler(double: S3Double) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            """Quiet."""

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query, keep_blank_values=True)
            bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
            kind = "LIST" if "list-type" in query else self.command
            double.asked[kind] += 1
            double.plain[kind] += self._is_plain()
            if self._failed(kind, key):
                return
            if bucket != double.bucket:
                self._answer(404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>")
            elif kind == "LIST":
                self._listing({name: values[0] for name, values in query.items()})
            else:
                self._thing(key)

        do_HEAD = do_GET

        def do_PUT(self) -> None:
            double.asked["PUT"] += 1
            key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2]
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            if not self._failed("PUT", key):
                double.put(key, data)
                self._answer(200, b"")

        def _failed(self, kind: str, key: str) -> bool:
            status = double.fault(kind, key) if double.fault else None
            if status is None:
                return False
            if status == 0:
                self.close_connection = True
                self.connection.close()
            else:
                self._answer(status, b"")
            return True

        def _is_plain(self) -> bool:
            signed = self.headers.get("authorization", OWN_ONLY)
            return OWN_ONLY not in self.headers or OWN_ONLY not in signed

        def _elsewhere(self, key: str) -> Thing | None:
            return double.peer.things.get(key) if double.peer else None

        def _thing(self, key: str) -> None:
            thing = double.things.get(key) or (self._elsewhere(key) if self._is_plain() else None)
            if thing is None:
                self._answer(404, b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>")
                return
            headers = {"ETag": f'"{thing.etag}"', "Last-Modified": "Tue, 21 Oct 2025 07:28:00 GMT", **thing.headers}
            if thing.storage_class != "STANDARD":
                headers["x-amz-storage-class"] = thing.storage_class
            if self.command == "GET" and thing.storage_class in _ARCHIVES and "x-amz-restore" not in headers:
                self._answer(403, b"<Error><Code>InvalidObjectState</Code><Message>archived</Message></Error>")
                return
            if self.command == "GET" and self.headers.get("if-none-match") == headers["ETag"]:
                double.asked["304"] += 1
                self._answer(304, b"", headers)
                return
            if self.command == "GET" and (span := self.headers.get("range")):
                first, _, last = span.removeprefix("bytes=").partition("-")
                part = thing.data[int(first) : int(last) + 1]
                double.given.append((time.time(), len(part)))
                self._answer(206 if part else 416, part, headers)
                return
            self._answer(200, thing.data, headers, thing.size if self.command == "HEAD" else len(thing.data))

        def _listing(self, query: dict[str, str]) -> None:
            after = query.get("continuation-token") or query.get("start-after", "")
            keys, more = double.keys_between(query.get("prefix", ""), after, 1000)
            token = f"<NextContinuationToken>{escape(keys[-1])}</NextContinuationToken>" if more else ""
            quoted = query.get("encoding-type") == "url"
            items = "".join(
                f"<Contents><Key>{quote(key, safe='/') if quoted else escape(key)}</Key>"
                f"<ETag>&quot;{thing.etag}&quot;</ETag><Size>{thing.size}</Size>"
                f"<StorageClass>{thing.storage_class}</StorageClass></Contents>"
                for key in keys
                if (thing := double.things.get(key))
            )
            encoding = "<EncodingType>url</EncodingType>" if quoted else ""
            self._answer(
                200,
                f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{encoding}'
                f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>".encode(),
            )

        def _answer(
            self, status: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler
