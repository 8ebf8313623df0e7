"""Files of metadata on the local disk, by id: what was read once need not be fetched again.

Only saves fetching: whether a file is at the destination, and right, is for the caller to find out. A cache that can't
be read or written is no error; a warning says so once. Several processes may share a folder: files appear whole, and
each writer keeps the share of the folder that it wrote to within its bound.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

log = logging.getLogger("lakemirror.cache")

_ID = re.compile(r"[0-9a-f]{64}")
_OURS = re.compile(_ID.pattern + r"(\.new-[0-9a-f]{32})?")
_SHARES = 16
"""Ids are hashes: by their first digit they spread evenly over so many folders, and only one is looked through."""


class LocalCache:
    """At most `size` bytes of files below `folder/metadata`, the least recently used leave first."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder / "metadata"
        self._most = size // _SHARES
        self._warned = False

    def get(self, file_id: str) -> bytes | None:
        """A file as it was put; None without it. Its content is not verified."""
        if not _ID.fullmatch(file_id):
            return None
        path = self._path(file_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(error)
            return None
        with suppress(OSError):  # somebody dropped it meanwhile, or it is read-only: the content is right all the same
            os.utime(path)
        return data

    def put(self, file_id: str, data: bytes) -> None:
        """Keep a file, and drop the oldest of its share for it. One larger than a share is not kept."""
        if len(data) > self._most or not _ID.fullmatch(file_id):
            return
        path = self._path(file_id)
        fresh = path.with_name(f"{file_id}.new-{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                fresh.write_bytes(data)
                with suppress(FileNotFoundError):  # another process trimmed the share, and this one's file with it
                    fresh.replace(path)
            finally:
                fresh.unlink(missing_ok=True)
            self._trim(path.parent)
        except OSError as error:
            self._warn(error)

    def _path(self, file_id: str) -> Path:
        return self.folder / file_id[0] / file_id

    def _trim(self, share: Path) -> None:
        """Drop the least recently used until the share fits; what is not ours is neither counted nor touched."""
        files = sorted(_files(share), reverse=True)
        total = 0
        for _, size, path in files:
            total += size
            if total > self._most:
                path.unlink(missing_ok=True)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            log.warning("metadata is not kept on the local disk: %s", error)
        self._warned = True


def _files(share: Path) -> Iterator[tuple[int, int, Path]]:
    """(time of last use in ns, bytes, path) of our files in a folder."""
    with os.scandir(share) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process dropped it
                if _OURS.fullmatch(entry.name):
                    stat = entry.stat(follow_symlinks=False)
                    yield stat.st_mtime_ns, stat.st_size, Path(entry.path)
