"""What is asked of an installation's lakeFS and store, by mirrors, exports and the test of an installation alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from core.errors import Invalid, LakeMirrorError
from core.installations.preflight_stores import Listing, bucket_of, prefix_of
from core.ports import ObjectStore
from deployment.wiring import clients
from jobs.concurrent_calls import ask_all

NAME = re.compile(r"[a-z0-9][a-z0-9-]{2,62}")
NAMESPACE = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/[^\s]*)?")
LISTED = 1000
ROUND_SECONDS = 8.0
SIDE_BY_SIDE = 16

Calls = dict[str, Callable[[], Any]]
Answers = dict[str, Any]
"""By question: what was answered, or the LakeMirrorError that came instead."""


def check_namespace(namespace: str, field: str = "storage_namespace") -> None:
    """Raises Invalid unless it is an address in an S3 bucket; `field`: which one it came by."""
    if not NAMESPACE.fullmatch(namespace) or len(namespace) > 1024:
        raise Invalid(
            f"'{namespace[:200]}' is not a storage namespace",
            field=field,
            hint="Use s3://bucket/prefix; a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens",
        )


def may_ask(region: str) -> bool:
    """Whether there is an installation, and all that it takes to ask it; what is wrong else the first round tells."""
    try:
        clients.quick_lakefs(region)
    except LakeMirrorError:
        return False
    return may_ask_store(region)


def may_ask_store(region: str) -> bool:
    """The same of its store alone."""
    try:
        clients.quick_objects(region)
    except LakeMirrorError:
        return False
    return True


def is_name(name: str) -> bool:
    """Whether lakeFS can have a repository of that name at all."""
    return NAME.fullmatch(name) is not None


def _is_namespace(namespace: str) -> bool:
    return NAMESPACE.fullmatch(namespace) is not None


def about_bucket(side: str, store: ObjectStore, namespace: str) -> Calls:
    return {
        f"{side}-versioning": partial(store.versioning, namespace),
        f"{side}-store-clock": partial(store.clock_ahead, namespace),
        f"{side}-content": partial(_list, store, namespace),
    }


def _list(store: ObjectStore, namespace: str) -> Listing:
    start = prefix_of(namespace)
    below = f"s3://{bucket_of(namespace)}/{start}"
    keys = [entry.key.removeprefix(start) for entry in islice(store.list(below), LISTED + 1)]
    return Listing(keys[:LISTED], len(keys) <= LISTED)


def ask(calls: Calls) -> Answers:
    """The answers of one round."""
    return ask_all(calls, limit=SIDE_BY_SIDE, seconds=ROUND_SECONDS)
