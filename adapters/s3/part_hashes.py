"""What an object's ETag would be, had it been uploaded in parts of some size."""

from __future__ import annotations

from hashlib import md5
from typing import Any


class PartHashes:
    """The ETag of an object in equal parts, by its bytes in their order."""

    def __init__(self, part: int, size: int) -> None:
        self.part, self._left, self._digests = part, part, list[bytes]()
        self._hash: Any = md5(usedforsecurity=False)
        self._size = size

    def take(self, data: bytes) -> None:
        """The next bytes."""
        view = memoryview(data)
        while view:
            piece = view[: self._left]
            self._hash.update(piece)
            self._left -= len(piece)
            view = view[len(piece) :]
            if not self._left:
                self._next()

    def _next(self) -> None:
        self._digests.append(self._hash.digest())
        self._hash, self._left = md5(usedforsecurity=False), self.part

    @property
    def etag(self) -> str:
        """Of the bytes so far as a whole object."""
        digests = [*self._digests, self._hash.digest()] if self._left < self.part else self._digests
        return f"{md5(b''.join(digests), usedforsecurity=False).hexdigest()}-{len(digests)}"
