"""Objects that somebody wrote at a target and a newer one has replaced, where rules lead both ways. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

MOST_LOSERS = 1000
"""So many are named of a link, the newest."""


class Loser(NamedTuple):
    """What was there: when it had been written, as its store told, its size and ETag."""

    written_at: datetime
    size: int
    etag: str

    def told(self) -> str:
        """As text, by which an outcome tells it."""
        return f"{round(self.written_at.timestamp() * 1000)}:{self.size}:{self.etag}"


def loser_of(told: str) -> Loser | None:
    """The one that a text tells of; "" tells of none."""
    if not told:
        return None
    at, size, etag = told.split(":", 2)
    return Loser(datetime.fromtimestamp(int(at) / 1000, UTC), int(size), etag)
