"""A store of which single objects can be lost, damaged, archived or forbidden, and which tells who looked at what."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from core.errors import Archived, Denied, NotFound, RemoteFailure
from core.types import ObjectInfo
from tests.fakes import FakeStore

ARCHIVED = "403 InvalidObjectState: the operation is not valid for the object's storage class"
FORBIDDEN = "403 AccessDenied"


class WatchedStore(FakeStore):
    """`called` is told of each call before and after it took place, `looked` of what a HEAD or a GET has shown.

    Both may raise. `archived`, `forbidden`, `sealed` (HEAD is answered, GET is not) and `failing` (500 for ever) hold
    URIs; a lost object is no longer in `objects`. `rotten`: the ETag that HEAD tells of one whose bytes are others now.
    """

    def __init__(self) -> None:
        super().__init__()
        self.archived: set[str] = set()
        self.forbidden: set[str] = set()
        self.sealed: set[str] = set()
        self.failing: set[str] = set()
        self.rotten: dict[str, str] = {}
        self.called: Callable[[str], None] = lambda when: None
        self.looked: Callable[[str, bool], None] = lambda uri, read: None
        self.written: Callable[[str, bytes], None] = lambda uri, data: None
        self.changed: Callable[[], None] = lambda: None

    def get(self, uri: str) -> bytes:
        """Raises NotFound, Denied for what is forbidden and Archived for what is archived."""
        self.called("before")
        if uri not in self.objects:
            raise NotFound(f"{uri} is not there")
        self._fail_perhaps(uri)
        if uri in self.forbidden | self.sealed:
            raise Denied(FORBIDDEN)
        if uri in self.archived:
            raise Archived(ARCHIVED)
        self.looked(uri, True)
        return self.objects[uri]

    def head(self, uri: str) -> ObjectInfo | None:
        """What is archived says so; what is forbidden raises Denied."""
        self.called("before")
        if uri in self.forbidden:
            raise Denied(FORBIDDEN)
        if uri not in self.objects:
            return None
        self._fail_perhaps(uri)
        self.looked(uri, False)
        return self._info(uri)

    def _fail_perhaps(self, uri: str) -> None:
        if uri in self.failing:
            raise RemoteFailure("500: read quorum lost")

    def _info(self, uri: str) -> ObjectInfo:
        data = self.objects[uri]
        storage = "GLACIER" if uri in self.archived else ""
        etag = self.rotten.get(uri) or hashlib.md5(data).hexdigest()
        return ObjectInfo(uri.split("/", 3)[3], len(data), etag, storage)

    def list(self, prefix_uri: str) -> Iterator[ObjectInfo]:
        """A listing needs no right on what it lists."""
        self.called("before")
        for uri in sorted(self.objects):
            if uri.startswith(prefix_uri):
                self.looked(uri, False)
                yield self._info(uri)

    def put(self, uri: str, data: bytes) -> None:
        """Told of before it may fail to answer."""
        self.called("before")
        self.written(uri, data)
        self.objects[uri] = data
        self.changed()
        self.called("after")
