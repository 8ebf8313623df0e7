"""Removes objects below a mirror's namespace that a sweep has found to be nobody's: looks first, then deletes.

A delete without a version: where the bucket keeps versions it leaves a marker, and what was deleted can be had back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store import split_uri, stored
from adapters.s3.writes import Writer
from core.errors import LakeMirrorError, NotFound
from core.exporting.deadline import Deadline
from core.sweeping import Standing

_LEGAL_HOLD, _UNTIL = "x-amz-object-lock-legal-hold", "x-amz-object-lock-retain-until-date"


class Remover:
    """Of one store. May raise what `FastObjectStore` may, and Late."""

    def __init__(self, store: FastObjectStore) -> None:
        self.store = store

    def standing(self, uri: str) -> Standing | None:
        """How an object stands; None: a definite 404."""
        bucket, key = split_uri(uri)
        try:
            headers = self.store.asked("HEAD", self.store.url(bucket, key), f"head {uri}").headers
        except NotFound:
            return None
        info = stored(key, headers)
        locked = headers.get(_LEGAL_HOLD) == "ON" or _is_ahead(headers.get(_UNTIL, ""))
        return Standing(info.size, info.etag, _modified(headers.get("last-modified", "")), locked)

    def delete(self, uris: Sequence[str], seconds: float) -> dict[str, LakeMirrorError]:
        """Delete objects of one bucket, beginning no request after so many seconds; gives what could not be."""
        return Writer(self.store, Deadline(time.time() + seconds)).delete(uris)


def _modified(header: str) -> datetime | None:
    try:
        return parsedate_to_datetime(header).astimezone(UTC)
    except ValueError:
        return None


def _is_ahead(until: str) -> bool:
    """Whether a retention still holds; one that can't be read does."""
    if not until:
        return False
    try:
        return datetime.fromisoformat(until.replace("Z", "+00:00")) > datetime.now(UTC)
    except (ValueError, TypeError):
        return True
