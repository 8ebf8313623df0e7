"""Deletes single objects of a place, each looked at right before: what has changed since, or is locked, stays."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.places.reader import PlaceReader
from adapters.places.version_writes import at_version
from adapters.s3.remover import Remover
from adapters.s3.store import NO_HEADERS, split_uri
from core.errors import Invalid, NotFound
from core.sweeping import Standing


class PlaceRemover:
    """Of one place. Safe to use from several threads. Errors are those of `core.errors`."""

    def __init__(self, place: PlaceReader) -> None:
        self._place, self._remover = place, Remover(place.store)
        self._conditional = True

    def standing(self, key: str, version: str = "") -> Standing | None:
        """How an object, or a version of it, stands now; None: a definite 404."""
        uri = self._place.uri(key)
        if not version:
            return self._remover.standing(uri)
        return Remover(at_version(self._place.store, uri, version)).standing(uri)

    def delete(self, key: str, etag: str) -> None:
        """Delete what has this ETag: asked for once, without a version, so that a bucket with versions gets a marker.
        Raises Conflict where the store heeds the condition and has another object there by now."""
        if self._conditional:
            try:
                self._send(key, {"if-match": f'"{etag}"'})
                return
            except Invalid:
                self._conditional = False  # as a store answers that knows no such condition
        self._send(key, {})

    def purge(self, key: str, version: str) -> None:
        """Delete a version, or a delete marker, for good: asked for once."""
        self._send(key, {}, {"versionId": version})

    def _send(self, key: str, headers: dict[str, str], query: Mapping[str, str] = NO_HEADERS) -> None:
        uri, store = self._place.uri(key), self._place.store
        try:
            store.send("DELETE", store.url(*split_uri(uri), query), f"delete {uri}", headers)
        except NotFound:
            return
