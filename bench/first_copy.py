"""The first copy of a commit between two stores: LakeMirror's check that brings, rclone, and AWS's common runtime.

`python bench/first_copy.py [--source http://key:secret@host:port --store URL] [--small 10000] [--large 100]
[--processes 2] [--rounds 1] [--rclone PROGRAM]`. Without URLs a pair of MinIO servers is started, whose program
LAKEMIRROR_TEST_MINIO names. The common runtime takes part where `awscrt` can be imported.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import os
import resource
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from export_copy import LARGE_BYTES, RCLONE, REGION, SMALL_BYTES, Figure, medians, tell, workers

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.writes import Writer
from core.bringing import DEFAULT_WORKERS
from core.exporting.deadline import Deadline
from core.replicating.eligible import is_own
from graveler.entries import Entry
from graveler.ranges import write_range
from spark_jobs.check.job import check_batch
from spark_jobs.check.settings import Bring, CheckSettings, StoreLocation

RELAYED_AT_ONCE = {SMALL_BYTES: 64, LARGE_BYTES: 4}


@dataclass(frozen=True, slots=True)
class Store:
    """A server and its keys."""

    endpoint: str
    keys: tuple[str, str]

    def client(self) -> FastObjectStore:
        options = dict(zip(("access_key_id", "secret_access_key"), self.keys, strict=True))
        return FastObjectStore(endpoint=self.endpoint, region=REGION, force_path_style=True, pool=64, **options)

    def writer(self) -> Writer:
        return Writer(self.client(), Deadline(time.time() + 3600))

    def make(self, kind: str) -> str:
        """A bucket of its own."""
        bucket = f"{kind}-{uuid.uuid4().hex[:8]}"
        self.writer().write("PUT", f"s3://{bucket}")
        return bucket

    def remove(self, bucket: str) -> None:
        """The bucket with all that is in it."""
        self.writer().delete([f"s3://{bucket}/{one.key}" for one in self.client().list(f"s3://{bucket}/")])
        self.writer().write("DELETE", f"s3://{bucket}")


@dataclass(frozen=True, slots=True)
class Commit:
    """What a bucket of the source holds: objects below data/, and one range for each process that brings."""

    source: Store
    bucket: str
    addresses: tuple[str, ...]
    ranges: tuple[str, ...]


def main() -> None:
    """Runs everything and prints the figures as they come."""
    asked = parsed()
    with servers(asked.source, asked.store) as (source, store), workers(asked.processes) as pool:
        told = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        print(f"{asked.source.rpartition('@')[2] or 'a pair of MinIO servers'}; {told}", flush=True)
        for count, size in ((asked.small, SMALL_BYTES), (asked.large, LARGE_BYTES)):
            if count:
                commit = filled(source, count, size, asked.processes)
                compare(commit, store, size, pool, asked)
                source.remove(commit.bucket)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default="", help="http://key:secret@host:port")
    parser.add_argument("--store", default="", help="the same of the destination, with the same keys")
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rclone", default=shutil.which("rclone") or "")
    return parser.parse_args()


@contextlib.contextmanager
def servers(source: str, store: str) -> Iterator[tuple[Store, Store]]:
    """The two that were named, else a pair of this machine's own."""
    if source and store:
        pair = tuple(_named(url) for url in (source, store))
        os.environ.update(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), pair[0].keys, strict=True))
        yield pair[0], pair[1]
        return
    from tests.minio_pair import KEY, SECRET, minio_pair

    os.environ.update({"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET})
    with tempfile.TemporaryDirectory(prefix="lakemirror-bench-") as folder, minio_pair(Path(folder)) as (a, b):
        yield Store(a.endpoint, (KEY, SECRET)), Store(b.endpoint, (KEY, SECRET))


def _named(url: str) -> Store:
    parts = urlsplit(url)
    return Store(f"{parts.scheme}://{parts.hostname}:{parts.port}", (parts.username or "", parts.password or ""))


def filled(source: Store, count: int, size: int, parts: int) -> Commit:
    """A bucket with so many objects, which all hold the same, and their ranges."""
    client, data, bucket = source.client(), os.urandom(size), source.make("source")
    etag = hashlib.md5(data).hexdigest()
    entries = [Entry(b"table/part-%06d" % number, f"data/{number:06d}", size, etag) for number in range(count)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda entry: client.put(f"s3://{bucket}/{entry.address}", data), entries))
    written = [
        write_range(entries[first : first + -(-count // parts)]) for first in range(0, count, -(-count // parts))
    ]
    for one in written:
        client.put(f"s3://{bucket}/_lakefs/{one.id}", one.data)
    return Commit(source, bucket, tuple(entry.address for entry in entries), tuple(one.id for one in written))


def compare(commit: Commit, store: Store, size: int, pool: Pool, asked: argparse.Namespace) -> None:
    """Everybody copies the same objects, in turns, each time to another bucket."""
    runs: dict[str, Callable[[str], float]] = {"ours": partial(ours, commit, store, pool)}
    runs |= {"rclone": partial(rclone, commit, store, asked.rclone)} if asked.rclone else {}
    if importlib.util.find_spec("awscrt"):
        runs["awscrt"] = partial(by_common_runtime, commit, store, pool, size)
    took: dict[str, list[Figure]] = {name: [] for name in runs}
    for turn in range(asked.rounds):
        for name in list(runs)[:: 1 if turn % 2 == 0 else -1]:
            took[name].append(measured(commit, store, runs[name]))
    tell(len(commit.addresses), size, {name: medians(figures) for name, figures in took.items()})


def measured(commit: Commit, store: Store, run: Callable[[str], float]) -> Figure:
    """One run into an empty bucket, which must hold everything afterwards."""
    bucket = store.make("out")
    started = time.monotonic()
    spent = run(bucket)
    figure = Figure(time.monotonic() - started, spent)
    there = {one.key for one in store.client().list(f"s3://{bucket}/data/") if not is_own(one.key)}
    if there != set(commit.addresses):
        raise SystemExit(f"{len(there)} of {len(commit.addresses)} objects arrived")
    store.remove(bucket)
    return figure


def ours(commit: Commit, store: Store, pool: Pool, bucket: str) -> float:
    """Read the ranges at the source, bring what is missing, look at it, and write the ranges: one for each process."""
    settings = CheckSettings(
        f"s3://{bucket}",
        REGION,
        store.endpoint,
        source=StoreLocation(f"s3://{commit.bucket}", REGION, commit.source.endpoint),
        bring=Bring(time.time() + 3600, workers=max(1, DEFAULT_WORKERS // len(commit.ranges))),
    )
    return sum(pool.map(partial(brought, settings=settings), commit.ranges, chunksize=1))


def brought(range_id: str, settings: CheckSettings) -> float:
    """In a process of the pool: seconds of the processor."""
    used = time.process_time()
    rows = [row for batch in check_batch([(range_id, ())], settings) for row in batch.to_pylist()]
    if problems := [row for row in rows if row["kind"] == "problem"]:
        raise SystemExit(f"{len(problems)} problems: {problems[0]}")
    return time.process_time() - used


def rclone(commit: Commit, store: Store, program: str, bucket: str) -> float:
    """As its users would tune it."""
    environment = rclone_environment(commit.source, store)
    command = [program, "copy", f"source:{commit.bucket}/data", f"store:{bucket}/data", *RCLONE]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rclone_environment(source: Store, store: Store) -> dict[str, str]:
    """Both stores by the names `source` and `store`."""
    environment = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    for name, server in (("SOURCE", source), ("STORE", store)):
        told = {"TYPE": "s3", "PROVIDER": "Minio", "ENDPOINT": server.endpoint, "REGION": REGION, "ENV_AUTH": "true"}
        environment |= {f"RCLONE_CONFIG_{name}_{key}": value for key, value in told.items()}
    return environment


# --- AWS's common runtime, which reads an object and writes what it read ---------------------------------------------


def by_common_runtime(commit: Commit, store: Store, pool: Pool, size: int, bucket: str) -> float:
    """The addresses by turns to each process; nothing is listed or verified."""
    parts = [commit.addresses[number :: len(commit.ranges)] for number in range(len(commit.ranges))]
    relay = partial(relayed, source=commit.source, store=store, buckets=(commit.bucket, bucket), size=size)
    return sum(pool.map(relay, parts, chunksize=1))


def relayed(addresses: Sequence[str], source: Store, store: Store, buckets: tuple[str, str], size: int) -> float:
    """In a process of the pool: seconds of the processor."""
    used = time.process_time()
    reads, writes = (
        _crt_client(source.keys),
        _crt_client(store.keys),
    )  # one would take two ports of a host for one server

    def relay(address: str) -> None:
        data = _crt_call(reads, "GET", source, f"/{buckets[0]}/{address}")
        _crt_call(writes, "PUT", store, f"/{buckets[1]}/{address}", data)

    with ThreadPoolExecutor(RELAYED_AT_ONCE[size]) as threads:
        list(threads.map(relay, addresses))
    return time.process_time() - used


def _crt_client(keys: tuple[str, str]) -> Any:
    from awscrt import auth, io, s3

    group = io.EventLoopGroup()
    bootstrap = io.ClientBootstrap(group, io.DefaultHostResolver(group))
    provider = auth.AwsCredentialsProvider.new_static(*keys)
    signing = s3.create_default_s3_signing_config(region=REGION, credential_provider=provider)
    return s3.S3Client(
        bootstrap=bootstrap, region=REGION, signing_config=signing, tls_mode=s3.S3RequestTlsMode.DISABLED
    )


def _crt_call(client: Any, method: str, server: Store, path: str, data: bytes | None = None) -> bytes:
    from awscrt import http, s3

    headers = http.HttpHeaders([("host", server.endpoint.partition("://")[2])])
    if data is not None:
        headers.add("content-length", str(len(data)))
    request = http.HttpRequest(method, path, headers, BytesIO(data) if data is not None else None)
    kind = s3.S3RequestType.GET_OBJECT if data is None else s3.S3RequestType.PUT_OBJECT
    pieces: dict[int, bytes] = {}

    def on_body(chunk: bytes, offset: int, **_: Any) -> None:
        pieces[offset] = chunk

    failed = client.make_request(type=kind, request=request, on_body=on_body).finished_future.exception()
    if failed is not None:
        raise RuntimeError(
            f"{method} {path}: {getattr(failed, 'body', failed)}"
        )  # its own can't be handed over to another process
    return b"".join(pieces[offset] for offset in sorted(pieces))


if __name__ == "__main__":
    main()
