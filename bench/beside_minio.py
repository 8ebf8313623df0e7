"""A rule beside MinIO's own bucket replication: what is there already, from one MinIO server to another.

`LAKEMIRROR_TEST_MINIO=PROGRAM PYTHONPATH=. python bench/beside_minio.py [--small 2000] [--large 20] [--rounds 2]`. They
take turns, each into a bucket of its own that must have everything in the end: MinIO by a resync of a rule for existing
objects, we by a rule that copies the latest versions, and by one that copies all.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

from export_copy import LARGE_BYTES, SMALL_BYTES, Figure, medians, tell
from first_copy import Commit, Store
from local_deployment import fresh_database
from replicate import copied, wired

from core.replicating.eligible import is_own
from tests.minio_pair import KEY, SECRET, Minio, minio_pair

LONGEST = 900.0
"""Seconds until a run counts as failed."""


def main() -> None:
    """Small objects, then large ones."""
    asked = parsed()
    with servers() as (a, b), fresh_database(), wired(store(a), store(b)):
        print(f"a pair of MinIO servers; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        for count, size in ((asked.small, SMALL_BYTES), (asked.large, LARGE_BYTES)):
            if count:
                compare(a, b, filled(a, count, size), size, asked.rounds)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=2000)
    parser.add_argument("--large", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    return parser.parse_args()


@contextmanager
def servers() -> Iterator[tuple[Minio, Minio]]:
    os.environ.update({"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET})
    with tempfile.TemporaryDirectory(prefix="lakemirror-bench-") as folder, minio_pair(Path(folder)) as pair:
        yield pair


def store(server: Minio) -> Store:
    return Store(server.endpoint, (KEY, SECRET))


def bucket_of(server: Minio, kind: str) -> str:
    """One that keeps versions."""
    name = f"{kind}-{uuid.uuid4().hex[:8]}"
    server.bucket(name)
    return name


def filled(server: Minio, count: int, size: int) -> Commit:
    """A bucket with so many objects, which all hold the same."""
    source, data, bucket = store(server), os.urandom(size), bucket_of(server, "source")
    client, keys = source.client(), tuple(f"data/{number:06d}" for number in range(count))
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda key: client.put(f"s3://{bucket}/{key}", data), keys))
    return Commit(source, bucket, keys, ())


def compare(a: Minio, b: Minio, commit: Commit, size: int, rounds: int) -> None:
    """By turns, forwards and backwards."""
    runs: dict[str, Callable[[str], float]] = {
        "ours": partial(copied, commit),
        "all": partial(copied, commit, versions="all", exact=True),
        "MinIO": partial(resynced, a, b, commit),
    }
    took: dict[str, list[Figure]] = {name: [] for name in runs}
    for turn in range(rounds):
        for name in list(runs)[:: 1 if turn % 2 == 0 else -1]:
            bucket = bucket_of(b, "out")
            began = time.monotonic()
            used = runs[name](bucket)
            took[name].append(Figure(time.monotonic() - began, used))
            if there(b, bucket) != set(commit.addresses):
                raise SystemExit(f"{name}: not all objects arrived")
    tell(len(commit.addresses), size, {name: medians(figures) for name, figures in took.items()})


def there(server: Minio, bucket: str) -> set[str]:
    return {one.key for one in store(server).client().list(f"s3://{bucket}/data/") if not is_own(one.key)}


def resynced(a: Minio, b: Minio, commit: Commit, bucket: str) -> float:
    """MinIO copies what is there, and nothing of it afterwards; what the servers need is the machine's rest."""
    arn = a.replicate_to(b, commit.bucket, bucket)
    a.rule(commit.bucket, arn, existing=True)
    a.ask("PUT", f"/{commit.bucket}?replication-reset=&arn={quote(arn, safe='')}")
    until = time.monotonic() + LONGEST
    while len(there(b, bucket)) < len(commit.addresses):
        if time.monotonic() > until:
            raise SystemExit(f"MinIO brought {len(there(b, bucket))} of {len(commit.addresses)} in {LONGEST:.0f} s")
        time.sleep(0.3)
    a.rule(commit.bucket, arn, enabled=False)
    return 0.0


if __name__ == "__main__":
    main()
