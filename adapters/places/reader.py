"""A place in a store, read under the names that its objects have below it: listings, and what HEAD tells."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from xml.etree import ElementTree

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.originals import as_sent
from adapters.s3.store import NO_HEADERS, split_uri, stored
from adapters.s3.writes import plain_tag, text_of
from core.clocks import seconds_ahead
from core.errors import LakeMirrorError, NoBucket, NotFound
from core.replicating.merging import Listed, Listing
from core.types import ObjectInfo


@dataclass(frozen=True, slots=True)
class Seen:
    """What HEAD told of an object, and when that was last written; None where the store didn't say. `told`: its
    headers, by their names in small letters."""

    info: ObjectInfo
    modified: datetime | None
    told: Mapping[str, str] = field(default_factory=dict)


class PlaceReader:
    """What is below `s3://bucket[/prefix]`. Safe to use from several threads. Errors are those of `core.errors`."""

    def __init__(self, store: FastObjectStore, uri: str) -> None:
        self.store = store
        self.bucket, prefix = split_uri(uri.rstrip("/"))
        self.prefix = f"{prefix}/" if prefix else ""

    def uri(self, key: str) -> str:
        """The whole address of an object."""
        return f"s3://{self.bucket}/{self.prefix}{key}"

    def listing(self, after: str, *, dated: bool = False) -> Listing:
        """Up to 1,000 objects after a key; not the place's own directory object, which has no name in it."""
        whole = f"{self.prefix}{after}"
        if dated:
            page = self.store.page(self.uri(""), whole, dated=True)
            modified = page.modified
        else:
            page = self.store.page(self.uri(""), whole)
            modified = [""] * len(page.keys)
        skip = len(self.prefix)
        rows = zip(page.keys, page.sizes, page.etags, modified, strict=True)
        return Listing([Listed(key[skip:], size, etag, at) for key, size, etag, at in rows], page.more)

    def head(self, key: str, version: str = "") -> Seen | None:
        """What the store tells of an object, or of a version of it; None when it is definitely not there."""
        uri = self.uri(key)
        query, which = ({"versionId": version}, f"version {version} of ") if version else (NO_HEADERS, "")
        try:
            answer = self.store.asked("HEAD", self.store.url(*split_uri(uri), query), f"head {which}{uri}")
        except NotFound:
            return None
        told = {name.lower(): as_sent(value) for name, value in answer.headers.items()}
        return Seen(stored(uri, told), _time(told.get("last-modified", "")), told)

    def answers(self) -> None:
        """Return if the store has the bucket and lets us in. Raises what it answers instead."""
        try:
            self.store.asked("HEAD", self.store.url(self.bucket), f"head s3://{self.bucket}")
        except NotFound as error:
            raise NoBucket(f"{self.store.where} has no bucket '{self.bucket}'") from error

    def clock_ahead(self) -> float | None:
        """By how many seconds the store's clock is ahead of this machine's; None where it does not tell the time.
        Raises what the store answers."""
        asked_at = time.time()
        answer = self.store.asked("HEAD", self.store.url(self.bucket), f"ask {self.store.where} for the time")
        return seconds_ahead(answer.headers.get("date", ""), asked_at, time.time())

    def created(self) -> str:
        """When the bucket was created, as its store tells it; "" where it doesn't, or not to us."""
        try:
            answer = self.store.asked("GET", f"{self.store.base_url.rstrip('/')}/", "list buckets")
            root = ElementTree.fromstring(answer.data)
        except (LakeMirrorError, ElementTree.ParseError):
            return ""
        for bucket in (one for one in root.iter() if plain_tag(one) == "Bucket"):
            if text_of(bucket, "Name") == self.bucket:
                return text_of(bucket, "CreationDate")
        return ""


def time_of(modified: str) -> datetime | None:
    """The time that a listing tells of an object; None for what is none."""
    try:
        at = datetime.fromisoformat(modified)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _time(header: str) -> datetime | None:
    try:
        return parsedate_to_datetime(header)
    except ValueError:
        return None
