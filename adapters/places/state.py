"""What LakeMirror keeps of rules in a store: manifests and reports, each written whole under a name of its own.

An object appears at once, or not at all: whoever reads sees all of it as it was written. Rules never copy the folder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from adapters.s3.fast_store import NOT_MODIFIED, FastObjectStore
from adapters.s3.store import split_uri
from adapters.s3.writes import Writer
from core.errors import RemoteFailure
from core.exporting.deadline import Deadline
from core.replicating.eligible import OWN_FOLDER

WRITE_SECONDS = 60.0
"""No try of a write begins later than so long after the first."""
TRIES = 3


class StatePlace:
    """The folder `_lakemirror/` below `s3://bucket[/prefix]`. Names are relative to it, like `rules/7/a.parquet`. Safe
    to use from several threads. Errors are those of `core.errors`, and Late for a write that took too long."""

    def __init__(self, store: FastObjectStore, uri: str, tries: int = TRIES) -> None:
        self.store, self._tries = store, tries
        self._root = f"{uri.rstrip('/')}/{OWN_FOLDER}"

    def uri(self, name: str = "") -> str:
        """The whole address of an object; of the folder itself, with its slash."""
        return f"{self._root}{name}"

    def write(self, name: str, data: bytes) -> None:
        """Keep this under the name, in place of what was there."""
        self._writer().put(self.uri(name), data)

    def read(self, name: str) -> bytes:
        """What is kept under the name. Raises NotFound when it is definitely not there."""
        return self.store.read(self.uri(name))

    def changed(self, name: str, etag: str = "") -> tuple[bytes, str] | None:
        """What is kept under the name, and its ETag; None while it still has the one that was told. Raises NotFound."""
        uri = self.uri(name)
        when = {"if-none-match": f'"{etag}"'} if etag else {}
        answer = self.store.send("GET", self.store.url(*split_uri(uri)), f"get {uri}", when)
        if answer.status == NOT_MODIFIED:
            return None
        return answer.data, answer.headers.get("etag", "").strip('"')

    def names(self, folder: str = "") -> list[str]:
        """What is kept below a folder, like `rules/7/`, ascending. Of a bucket that is not there: NotFound."""
        root, after, found, more = split_uri(self._root)[1], "", list[str](), True
        while more:
            page = self.store.page(self.uri(folder), after)
            found += [key[len(root) :] for key in page.keys]
            if page.more and not page.keys:
                raise RemoteFailure(
                    f"{self.store.where} says that there is more below {self.uri(folder)}, and lists nothing"
                )
            more = page.more
            after = page.keys[-1] if page.keys else ""
        return found

    def delete(self, names: Sequence[str]) -> None:
        """Remove these; what is not there is removed. Raises the first error, after all were tried."""
        failed = self._writer().delete([self.uri(name) for name in names]) if names else {}
        for error in failed.values():
            raise error

    def has(self, name: str) -> bool:
        """Whether something is kept under the name."""
        return self.store.head(self.uri(name)) is not None

    def _writer(self) -> Writer:
        return Writer(self.store, Deadline(time.monotonic() + WRITE_SECONDS, clock=time.monotonic), self._tries)
