"""Brings every object of a bucket to another server's, until it is killed: a process of its own, for tests, which says
when it begins.

Arguments: endpoint and bucket of the source, the same of the target, key, secret.
"""

from __future__ import annotations

import math
import sys

from adapters.places.reader import PlaceReader
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.mover import Mover
from core.exporting.deadline import Deadline, Rate
from core.mirroring.content_proof import UPLOAD_MARKS


def copy(here: PlaceReader, there: PlaceReader) -> None:
    """Whatever the target has not yet, with the source's ETag."""
    mover = Mover(
        here.store, there.store, Deadline(math.inf), within=False, rate=Rate(0), marks=there.uri(UPLOAD_MARKS)
    )
    for item in here.listing("").items:
        seen = there.head(item.key)
        if seen is None or seen.info.etag != item.etag:
            mover.bring(here.uri(item.key), there.uri(item.key), item.size, item.etag)
    mover.close()


if __name__ == "__main__":
    endpoint, bucket, target, other, key, secret = sys.argv[1:]
    keys = {"access_key_id": key, "secret_access_key": secret}
    one, two = (
        FastObjectStore(endpoint=at, region="us-east-1", force_path_style=True, **keys) for at in (endpoint, target)
    )
    print("begins", flush=True)
    copy(PlaceReader(one, f"s3://{bucket}"), PlaceReader(two, f"s3://{other}"))
