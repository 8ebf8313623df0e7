"""Which directories an export touches, and in which order their markers are written.

A directory is its key's beginning up to and with the last `/`; the root is empty. So `a/b/` holds the key `a/b/` too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

MARKER = b"_lakefs_success"


def directory_of(key: bytes) -> bytes:
    """Where a key lies; empty for the root."""
    return key[: key.rfind(b"/") + 1]


def marker_of(directory: bytes) -> bytes:
    """The key that says that all below this directory has arrived."""
    return directory + MARKER


def is_marker(key: bytes) -> bool:
    """Does the key, should a user have it, stand where a marker of ours would?"""
    return key.endswith(MARKER) and marker_of(directory_of(key)) == key


def touched_directories(keys: Iterable[bytes]) -> Iterator[bytes]:
    """The directories of these keys and all above them, each once and children first. Keys have to ascend: so what lies
    below a directory comes in one run, and no more is remembered than the way down to where one is."""
    way: list[bytes] = []
    for key in keys:
        directory = directory_of(key)
        if way and directory == way[-1]:
            continue
        while way and not directory.startswith(way[-1]):
            yield way.pop()
        _go_down(way, directory)
    yield from reversed(way)


def _go_down(way: list[bytes], directory: bytes) -> None:
    """To a directory that lies below the last one of `way`."""
    if not way:
        way.append(b"")
    at = directory.find(b"/", len(way[-1]))
    while at >= 0:
        way.append(directory[: at + 1])
        at = directory.find(b"/", at + 1)


def marker_order(directories: Iterable[bytes]) -> list[bytes]:
    """Each once, and after all that lie below it."""
    return sorted(set(directories), reverse=True)


class Failed:
    """The directories in which something failed: they keep markers from being written there and above."""

    def __init__(self, directories: Iterable[bytes]) -> None:
        self._sorted = sorted(directories)

    def below(self, directory: bytes) -> bool:
        """Did something fail in this directory, or in one below it?"""
        at = bisect_left(self._sorted, directory)
        return at < len(self._sorted) and self._sorted[at].startswith(directory)
