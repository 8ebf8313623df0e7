"""Tries what an export does at a place, with one object of its own that is removed again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.multipart import Uploads
from adapters.s3.writes import Writer
from core.errors import LakeMirrorError, RemoteFailure
from core.exporting.deadline import Deadline, Late
from core.installations.preflight import NotAsked

NAME = "_lakemirror_probe_"
CONTENT = b"LakeMirror tries whether it may write here. This object may be removed."
PUT, GET, DELETE, PARTS = "s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:AbortMultipartUpload"
TRIED = (PUT, GET, PARTS, DELETE)


@dataclass(slots=True)
class Probed:
    """What came of each action: None if it was done, else the error. `left`: the object's address, if it stayed."""

    answers: dict[str, LakeMirrorError | None] = field(default_factory=dict)
    left: str = ""


def probe(store: FastObjectStore, place: str, *, seconds: float) -> Probed:
    """Writes, reads back, begins an upload in parts and gives it up, deletes. Begins nothing after so many seconds."""
    uri = f"{place.rstrip('/')}/{NAME}{secrets.token_hex(8)}"
    writer, probed = Writer(store, Deadline(time.time() + seconds), tries=1), Probed()
    probed.answers[PUT] = _tried(lambda: writer.put(uri, CONTENT))
    if probed.answers[PUT] is not None:
        why = NotAsked("it needs an object, which could not be written")
        return Probed(probed.answers | dict.fromkeys((GET, PARTS, DELETE), why))
    steps: Mapping[str, Callable[[], object]] = {
        GET: lambda: _read_back(store, uri),
        PARTS: lambda: _in_parts(writer, uri),
        DELETE: lambda: writer.write("DELETE", uri),
    }
    probed.answers |= {action: _tried(step) for action, step in steps.items()}
    probed.left = uri if probed.answers[DELETE] is not None else ""
    return probed


def probe_upload(store: FastObjectStore, place: str, *, seconds: float) -> dict[str, LakeMirrorError | None]:
    """Starts an upload in parts below `place` and cancels it: nothing appears there, and nothing has to be deleted."""
    uri = f"{place.rstrip('/')}/data/{NAME}{secrets.token_hex(8)}"
    writer, begun = Writer(store, Deadline(time.time() + seconds), tries=1), list[str]()
    started = _tried(lambda: begun.append(Uploads(writer).start(uri, {})))
    if started is not None:
        return {PUT: started}
    return {PUT: None, PARTS: _tried(lambda: writer.write("DELETE", uri, query={"uploadId": begun[0]}))}


def _read_back(store: FastObjectStore, uri: str) -> None:
    if store.read(uri) != CONTENT:
        raise RemoteFailure(f"{store.where} returned other bytes than were written to {uri}")


def _in_parts(writer: Writer, uri: str) -> None:
    upload = Uploads(writer).start(uri, {})
    writer.write("DELETE", uri, query={"uploadId": upload})


def _tried(step: Callable[[], object]) -> LakeMirrorError | None:
    try:
        step()
    except Late:
        return NotAsked("not enough time was left")
    except LakeMirrorError as error:
        return error
    return None
