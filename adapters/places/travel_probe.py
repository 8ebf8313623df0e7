"""Tries what a rule does at a target beside writing bytes, with one object of its own that is removed again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from adapters.places.describer import Describer
from adapters.places.reader import PlaceReader
from adapters.s3.write_probe import CONTENT, NAME
from adapters.s3.writes import Writer
from core.errors import LakeMirrorError
from core.exporting.deadline import Deadline, Late
from core.installations.preflight import NotAsked
from core.travelling.describing import STORAGE_CLASS, Lock

CLASS, RETENTION, HOLD = "storage-class", "s3:PutObjectRetention", "s3:PutObjectLegalHold"
TAGS, VERSION_TAGS = "s3:PutObjectTagging", "s3:PutObjectVersionTagging"
RETAINED = timedelta(seconds=90)
"""So long the probe can't be removed for good; its delete marker hides it meanwhile."""

Tried = Mapping[str, LakeMirrorError | None]
"""What came of each action that was tried: None if it was done, else the error."""


def probe_travel(
    place: PlaceReader, *, storage_class: str, tags: bool, locks: bool, seconds: float, versions: bool = False
) -> Tried:
    """Writes in a storage class ("": the store's), gives tags, locks for a moment, deletes; `versions`: by the id of
    the version that it wrote. Begins nothing after so many seconds."""
    key = f"{NAME}{secrets.token_hex(8)}"
    writer, describer = Writer(place.store, Deadline(time.time() + seconds), tries=1), Describer(place, tries=1)
    headers = {STORAGE_CLASS: storage_class} if storage_class else {}
    given: list[str] = []

    def write() -> None:
        answer = writer.write("PUT", place.uri(key), headers, CONTENT)
        given.append(answer.headers.get("x-amz-version-id", "") if versions else "")

    written = _tried(write)
    version = given[0] if given else ""
    told: dict[str, LakeMirrorError | None] = {CLASS: written} if storage_class else {}
    steps: dict[str, Callable[[], object]] = {}
    if tags:
        action = VERSION_TAGS if versions else TAGS
        steps[action] = lambda: describer.set_tags(key, {"lakemirror": "probe"}, version)
    if locks:
        until = datetime.now(UTC).replace(microsecond=0) + RETAINED
        steps[HOLD] = lambda: (describer.set_hold(key, True, version), describer.set_hold(key, False, version))
        steps[RETENTION] = lambda: describer.set_retention(key, Lock("GOVERNANCE", until), version)
    if written is not None:
        why = NotAsked("it needs an object, which could not be written")
        return told | dict.fromkeys(steps, why)
    told |= {action: _tried(step) for action, step in steps.items()}
    gone = {"versionId": version} if version and not locks else {}
    _tried(lambda: writer.write("DELETE", place.uri(key), query=gone))
    return told


def _tried(step: Callable[[], object]) -> LakeMirrorError | None:
    try:
        step()
    except Late:
        return NotAsked("not enough time was left")
    except LakeMirrorError as error:
        return error
    return None
