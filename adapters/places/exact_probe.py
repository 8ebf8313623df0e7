"""Does a store take versions under the ids and times of another one? Tried with an object of our own, removed again."""

from __future__ import annotations

import secrets
import time
from hashlib import md5
from typing import NamedTuple
from uuid import uuid4

from adapters.places.version_writes import REPLICA
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store import split_uri
from adapters.s3.write_probe import CONTENT, NAME
from adapters.s3.writes import Writer
from core.errors import Denied, Invalid, LakeMirrorError, NotFound
from core.exporting.deadline import Deadline, Late
from core.installations.preflight import NotAsked

_TIME = "2001-02-03T04:05:06.789Z"
_HTTP_TIME = "Sat, 03 Feb 2001 04:05:06 GMT"


class Exactness(NamedTuple):
    """Whether it does; `why` it does not, as far as it said so; `left`: the address of the probe, if it stayed."""

    exact: bool
    why: str = ""
    left: str = ""


def probe_exact(store: FastObjectStore, place: str, *, seconds: float) -> Exactness:
    """Writes a version under an id and a time of our choice, and looks whether it has them. Begins nothing after so
    many seconds. Raises what the store answers, but for a refusal: that says that it does not take any."""
    uri = f"{place.rstrip('/')}/{NAME}{secrets.token_hex(8)}"
    writer, version = Writer(store, Deadline(time.time() + seconds), tries=1), str(uuid4())
    told = {"x-minio-source-mtime": _TIME, "x-minio-source-etag": md5(CONTENT, usedforsecurity=False).hexdigest()}
    try:
        answer = writer.write("PUT", uri, {**REPLICA, **told}, CONTENT, {"versionId": version})
    except Denied as error:
        return Exactness(False, f"it needs s3:ReplicateObject: {error.message}")
    except Invalid as error:
        return Exactness(False, error.message)
    given = answer.headers.get("x-amz-version-id", "")
    exact = given == version and _has(store, uri, version)
    left = "" if _removed(writer, uri, given) else uri
    return Exactness(exact, "" if exact else "it gives versions ids of its own", left)


def probe_purge(store: FastObjectStore, place: str, *, seconds: float) -> LakeMirrorError | None:
    """Writes an object of our own and deletes its version for good; gives what kept it from that. Begins nothing after
    so many seconds."""
    uri = f"{place.rstrip('/')}/{NAME}{secrets.token_hex(8)}"
    writer = Writer(store, Deadline(time.time() + seconds), tries=1)
    try:
        version = writer.write("PUT", uri, body=CONTENT).headers.get("x-amz-version-id", "")
        writer.write("DELETE", uri, query={"versionId": version} if version else {})
    except Late:
        return NotAsked("not enough time was left")
    except LakeMirrorError as error:
        return error
    return None


def _has(store: FastObjectStore, uri: str, version: str) -> bool:
    try:
        url = store.url(*split_uri(uri), {"versionId": version})
        answer = store.asked("HEAD", url, f"head version {version} of {uri}")
    except NotFound:
        return False
    return bool(answer.headers.get("last-modified") == _HTTP_TIME)


def _removed(writer: Writer, uri: str, version: str) -> bool:
    """By its id, so that no marker stays."""
    try:
        writer.write("DELETE", uri, query={"versionId": version} if version else {})
    except NotFound:
        return True
    except (LakeMirrorError, Late):
        return False
    return True
