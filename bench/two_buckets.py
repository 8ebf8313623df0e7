"""One S3 server with two equal buckets of very many small objects, in a process of its own, that counts its requests.

`moto` holds real objects. `computed` stores none: keys, sizes and ETags follow from a rule, so that a million objects
cost nothing; both answer alike, and both keep what is put later. `GET /-/counted` tells what was asked since last time,
and what that cost the server's process.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import threading
import time
import urllib.request
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from moto.moto_server import werkzeug_app
from moto.s3.models import s3_backends

from sandbox.httpd import bind, serve

SOURCE, MIRROR = "source", "mirror"
PREFIX = "lake/"
PARTITION = 1000
DIGITS = 20
MOTO, COMPUTED = "moto", "computed"
NAMES = {MOTO: f"moto {version('moto')}", COMPUTED: "a stand-in that computes its answers"}
COUNTED = "/-/counted"

_XMLNS = "http://s3.amazonaws.com/doc/2006-03-01/"
_MOTO_ACCOUNT = "123456789012"
_NO_KEY = b"<Error><Code>NoSuchKey</Code></Error>"
_WHEN = "2025-10-21T07:28:00.000Z"
_HTTP_WHEN = "Tue, 21 Oct 2025 07:28:00 GMT"


def address_of(number: int) -> str:
    """Where object `number` lies, as an entry names it; ascending."""
    return f"data/g{number // PARTITION:06d}/{number:0{DIGITS}d}"


def body_of(number: int) -> bytes:
    """What object `number` holds."""
    return b"%d" % number


@dataclass(frozen=True, slots=True)
class Counted:
    """Requests by kind, seconds of the processor that the server spent, and bytes that were put whole (copies are
    not), by bucket and first folder."""

    requests: Counter[str]
    processor: float
    put: Counter[str]

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.requests.items()))
        return f"{self.requests.total():,} requests ({kinds})"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, seen from outside."""

    endpoint: str

    def counted(self) -> Counted:
        """Since the last call."""
        with urllib.request.urlopen(self.endpoint + COUNTED) as answer:
            told = json.load(answer)
            return Counted(Counter(told["requests"]), told["processor"], Counter(told["put"]))


@contextmanager
def running_server(store: str, objects: int, *, mirror_is_empty: bool = False, delay: float = 0.0) -> Iterator[Server]:
    """A server whose two buckets hold so many objects, or the first alone. Each answer comes `delay` seconds late,
    which costs nobody's processor. It ends with its input, so also if this process is killed."""
    command = [sys.executable, __file__, "--store", store, "--objects", str(objects), "--delay", str(delay)]
    command += ["--mirror-is-empty"] if mirror_is_empty else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        endpoint = process.stdout.readline().strip()
        if not endpoint:
            raise SystemExit("the S3 server did not start")
        try:
            yield Server(endpoint)
        finally:
            process.stdin.close()


def main() -> None:
    """Serves until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=NAMES, required=True)
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--mirror-is-empty", action="store_true", help="of a computed store")
    parser.add_argument("--delay", type=float, default=0.0)
    arguments = parser.parse_args()
    mirrored = 0 if arguments.mirror_is_empty else arguments.objects
    app = moto_app(arguments.objects) if arguments.store == MOTO else ComputedStore(arguments.objects, mirrored)
    listener = bind(0)
    serve(listener, Counting(app, arguments.delay))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    sys.stdin.read()


class Counting:
    """An application that counts what passes through, and keeps each answer back for a while."""

    def __init__(self, app: WSGIApplication, delay: float) -> None:
        self._app, self._delay = app, delay
        self._asked: Counter[str] = Counter()
        self._put: Counter[str] = Counter()
        self._spent = time.process_time()
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == COUNTED:
            return _answer(start, "200 OK", json.dumps(self._told()).encode())
        with self._lock:
            self._asked[_kind(environ)] += 1
            if environ["REQUEST_METHOD"] == "PUT":
                place = "/".join(environ["PATH_INFO"].split("/")[1:3])
                self._put[place] += int(environ.get("CONTENT_LENGTH") or 0)
        time.sleep(self._delay)
        return self._app(environ, start)

    def _told(self) -> dict[str, object]:
        with self._lock:
            asked, self._asked = self._asked, Counter()
            put, self._put = self._put, Counter()
            before, self._spent = self._spent, time.process_time()
            return {"requests": asked, "processor": self._spent - before, "put": put}


def _kind(environ: WSGIEnvironment) -> str:
    of_bucket = "/" not in environ["PATH_INFO"].strip("/")
    return "LIST" if of_bucket and environ["REQUEST_METHOD"] == "GET" else str(environ["REQUEST_METHOD"])


def moto_app(objects: int) -> WSGIApplication:
    """moto with both buckets filled past its API, which would take an hour."""
    backend = s3_backends[_MOTO_ACCOUNT]["aws"]
    for bucket in (SOURCE, MIRROR):
        backend.create_bucket(bucket, "us-east-1")
        for number in range(objects):
            backend.put_object(bucket, PREFIX + address_of(number), body_of(number))
    app: WSGIApplication = werkzeug_app.create_backend_app("s3")
    return app


class ComputedStore:
    """Two buckets by rule. Knows HEAD, GET, PUT, copy of an object and ListObjectsV2."""

    def __init__(self, objects: int, mirrored: int) -> None:
        self._buckets = {SOURCE: ComputedBucket(objects), MIRROR: ComputedBucket(mirrored)}

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        name, _, key = environ["PATH_INFO"].lstrip("/").partition("/")
        bucket, method = self._buckets.get(name), environ["REQUEST_METHOD"]
        if bucket is None:
            return _answer(start, "404 Not Found", b"<Error><Code>NoSuchBucket</Code></Error>")
        if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
            return self._copy(bucket, key, environ, start)
        if method == "PUT":
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            bucket.put(key, body)
            return _answer(start, "200 OK", b"", [("ETag", f'"{_etag(body)}"')])
        if not key:
            return _answer(start, "200 OK", _listing(bucket, dict(parse_qsl(environ["QUERY_STRING"]))))
        body = bucket.get(key)
        if body is None:
            return _answer(start, "404 Not Found", _NO_KEY, send=method == "GET")
        headers = [("ETag", f'"{_etag(body)}"'), ("Last-Modified", _HTTP_WHEN)]
        return _answer(start, "200 OK", body, headers, send=method == "GET")

    def _copy(
        self, bucket: ComputedBucket, key: str, environ: WSGIEnvironment, start: StartResponse
    ) -> Iterable[bytes]:
        name, _, source = unquote(environ["HTTP_X_AMZ_COPY_SOURCE"]).lstrip("/").partition("/")
        body = self._buckets[name].get(source) if name in self._buckets else None
        if body is None:
            return _answer(start, "404 Not Found", _NO_KEY)
        if environ.get("HTTP_X_AMZ_COPY_SOURCE_IF_MATCH", _etag(body)).strip('"') != _etag(body):
            return _answer(start, "412 Precondition Failed", b"<Error><Code>PreconditionFailed</Code></Error>")
        bucket.put(key, body)
        told = f"<ETag>&quot;{_etag(body)}&quot;</ETag><LastModified>{_WHEN}</LastModified>"
        return _answer(start, "200 OK", f'<CopyObjectResult xmlns="{_XMLNS}">{told}</CopyObjectResult>'.encode())


class ComputedBucket:
    """Objects that follow from their numbers, and those that were put."""

    def __init__(self, objects: int) -> None:
        self._numbers = range(objects)
        self._put: dict[str, bytes] = {}
        self._put_keys: list[str] = []

    def put(self, key: str, body: bytes) -> None:
        if self.get(key) is None:
            insort(self._put_keys, key)
        self._put[key] = body

    def get(self, key: str) -> bytes | None:
        if key in self._put:
            return self._put[key]
        digits = key[-DIGITS:]
        number = int(digits) if digits.isascii() and digits.isdigit() else -1
        return body_of(number) if number in self._numbers and _key_of(number) == key else None

    def keys(self, first: str, *, beyond: bool) -> Iterator[str]:
        """Keys ascending from `first`, or from the one beyond it."""
        place = bisect_right if beyond else bisect_left
        computed = map(_key_of, self._numbers[place(self._numbers, first, key=_key_of) :])
        return merge(computed, self._put_keys[place(self._put_keys, first) :])

    def items(self, prefix: str, after: str, delimiter: str) -> Iterator[str]:
        """Keys below a prefix and after `after`; with a delimiter those of this level, and folders once each."""
        found = self.keys(max(prefix, after), beyond=after >= prefix)
        while (key := next(found, "")).startswith(prefix) and key:
            folder, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if cut:
                key = prefix + folder + cut
                found = self.keys(key + chr(0x10FFFF), beyond=True)
            yield key


def _listing(bucket: ComputedBucket, query: dict[str, str]) -> bytes:
    after = query.get("continuation-token") or query.get("start-after", "")
    delimiter = query.get("delimiter", "")
    found = list(islice(bucket.items(query.get("prefix", ""), unquote(after), delimiter), PARTITION + 1))
    shown, more = found[:PARTITION], len(found) > PARTITION
    written = quote if query.get("encoding-type") == "url" else escape
    token = f"<NextContinuationToken>{escape(_token(shown[-1], delimiter))}</NextContinuationToken>" if more else ""
    encoding = "<EncodingType>url</EncodingType>" if "encoding-type" in query else ""
    items = "".join(_item(bucket, key, written(key)) for key in shown)
    head = f'<ListBucketResult xmlns="{_XMLNS}"><IsTruncated>{str(more).lower()}</IsTruncated>'
    return f"{head}{encoding}{token}{items}</ListBucketResult>".encode()


def _token(last: str, delimiter: str) -> str:
    """Behind the last item, which may be a whole folder."""
    return last + chr(0x10FFFF) if delimiter and last.endswith(delimiter) else last


def _item(bucket: ComputedBucket, key: str, name: str) -> str:
    body = bucket.get(key)
    if body is None:
        return f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"
    return (
        f"<Contents><Key>{name}</Key><LastModified>{_WHEN}</LastModified><ETag>&quot;{_etag(body)}&quot;</ETag>"
        f"<Size>{len(body)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )


def _key_of(number: int) -> str:
    return PREFIX + address_of(number)


def _etag(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def _answer(
    start: StartResponse, status: str, body: bytes, headers: Sequence[tuple[str, str]] = (), *, send: bool = True
) -> list[bytes]:
    start(status, [*headers, ("Content-Length", str(len(body)))])
    return [body] if send else []


if __name__ == "__main__":
    main()
