"""A place in a bucket with versioning: what it has of each key, and whether it keeps versions at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from adapters.places.reader import PlaceReader
from adapters.s3.writes import parsed, plain_tag, text_of
from core.errors import RemoteFailure
from core.replicating.version_merging import VersionPage
from core.replicating.versions import Version

OF = "lakemirror-source-version"
"""Metadata of a copy: of which version of the source it is one."""
OF_HEADER = f"x-amz-meta-{OF}"
ENABLED, SUSPENDED, NEVER = "Enabled", "Suspended", ""
FIRST_PAGE = 50
"""So many versions of one key are asked for first: other keys may begin like it."""


class VersionedPlace(PlaceReader):
    """A place of whose keys all versions are read. Safe to use from several threads."""

    def versioning(self) -> str:
        """Whether the bucket keeps versions: Enabled, Suspended, or "" where it never did."""
        doing = f"read the versioning of {self.bucket}"
        root = parsed(self.store.asked("GET", self.store.url(self.bucket, "", {"versioning": ""}), doing).data)
        if root is None or not plain_tag(root).endswith(("VersioningConfiguration", "VersioningResponse")):
            raise RemoteFailure(f"{self.store.where} gave a response that is not S3 to {doing}")
        return text_of(root, "Status")

    def versions(self, after: str, position: tuple[str, str] | None = None) -> VersionPage:
        """Up to 1,000 versions and markers after a key, or from a position on; not those of the place's own directory
        object, which has no name in it."""
        whole = f"{self.prefix}{after}"
        query = {} if position or whole == self.prefix else {"key-marker": whole}
        return self._page(self.prefix, query | _going_on(position))

    def chain(self, key: str) -> list[Version]:
        """All that it has of a key, the oldest first."""
        found: list[Version] = []
        position: tuple[str, str] | None = None
        while True:
            query = _going_on(position) or {"max-keys": str(FIRST_PAGE)}
            page = self._page(f"{self.prefix}{key}", query)
            own = [version for name, version in page.entries if name == key]
            found += own
            others = len(own) < len(page.entries)
            if page.position is None or others:
                return found[::-1]
            position = page.position

    def etag_of(self, key: str, version: str) -> str | None:
        """The ETag of a version, as the store answers when it is asked for it; None: there is no such version. Raises
        Invalid for a delete marker, where the store tells."""
        seen = self.head(key, version)
        return None if seen is None else seen.info.etag

    def copy_of(self, key: str, version: str) -> str:
        """Of which version of a source a version is a copy; "" for none, or where there is no such version."""
        seen = self.head(key, version)
        return "" if seen is None else seen.told.get(OF_HEADER, "")

    def _page(self, prefix: str, query: dict[str, str]) -> VersionPage:
        url = self.store.url(self.bucket, "", {"versions": "", "encoding-type": "url", "prefix": prefix} | query)
        doing = f"list the versions of s3://{self.bucket}/{prefix}"
        return self.store._retried(partial(self._read_page, url, doing))

    def _read_page(self, url: str, doing: str) -> VersionPage:
        root = parsed(self.store.send("GET", url, doing).data)
        if root is None or plain_tag(root) != "ListVersionsResult" or not (more := text_of(root, "IsTruncated")):
            raise RemoteFailure(f"{self.store.where} gave a response that is not a listing of versions to {doing}")
        plain = text_of if text_of(root, "EncodingType") != "url" else _unquoted
        entries = [
            (plain(element, "Key")[len(self.prefix) :], _version(element), text_of(element, "IsLatest") == "true")
            for element in root
            if plain_tag(element) in ("Version", "DeleteMarker")
        ]
        position = (plain(root, "NextKeyMarker"), text_of(root, "NextVersionIdMarker")) if more == "true" else None
        return VersionPage([(key, version) for key, version in _in_order(entries) if key], position)


def _going_on(position: tuple[str, str] | None) -> dict[str, str]:
    if position is None:
        return {}
    key, version = position
    return {"key-marker": key} | ({"version-id-marker": version} if version else {})


def _unquoted(element: ElementTree.Element, tag: str) -> str:
    return unquote_plus(text_of(element, tag))


def _version(element: ElementTree.Element) -> Version:
    own, modified = text_of(element, "VersionId") or "null", text_of(element, "LastModified")
    if plain_tag(element) == "DeleteMarker":
        return Version(own, marker=True, modified=modified)
    return Version(own, int(text_of(element, "Size") or 0), text_of(element, "ETag").strip('"'), modified=modified)


_Entry = tuple[str, Version, bool]
"""Key, version, whether it is the latest."""


def _in_order(entries: Sequence[_Entry]) -> list[tuple[str, Version]]:
    """As S3 lists: by key, then the newest first. Some stores tell all versions of a page first, then all markers:
    these are put where they belong by their times, as far as that agrees with which one is the latest."""
    markers = [entry[1].marker for entry in entries]
    if not any(markers) or markers != sorted(markers) or all(markers):
        return [(key, version) for key, version, _ in entries]
    found: list[tuple[str, Version]] = []
    for key, some in groupby(sorted(entries, key=lambda entry: entry[0]), key=lambda entry: entry[0]):
        listed = list(some)
        dated = sorted(listed, key=lambda entry: (entry[1].modified, entry[2]), reverse=True)
        latest = [at for at, entry in enumerate(dated) if entry[2]]
        found += [(key, version) for _, version, _ in (dated if latest in ([], [0]) else listed)]
    return found
