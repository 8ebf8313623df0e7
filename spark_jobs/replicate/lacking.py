"""What a look has found to lack."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Noted(Protocol):
    """An open object, as far as it is compared."""

    size: int
    etag: str
    described: str


class Hidden(NamedTuple):
    """An object that a target shows, so many bytes, and that the source's delete marker is to hide."""

    key: str
    marker: str
    size: int


class Lack(NamedTuple):
    """An object of the source that its target lacks, or has otherwise. `absent`: the target had nothing there when it
    was looked at, and nothing of ours can have been on its way there. `described`: names how the source describes it;
    "": nobody looked."""

    key: bytes
    size: int
    etag: str
    absent: bool = False
    described: str = ""

    def is_of(self, row: Noted) -> bool:
        """Whether a row says the same of the source's object, as far as both know."""
        same = (row.size, row.etag) == (self.size, self.etag)
        return same and self.described in ("", row.described)
