"""A listing whose next page is asked for while somebody works on the last one. Pure: who calls gives the threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from core.replicating.merging import Listing, Read

Submit = Callable[[Read, str], "Future[Listing]"]
"""As an executor's: it must not be one whose threads wait for pages, for those would then wait for each other."""


class Ahead:
    """Reads as `read` does; the first page is asked for at once, each further one as soon as the one before it is
    there, and none behind `high` (None: there is no end). For one thread."""

    def __init__(self, read: Read, after: str, high: str | None, submit: Submit) -> None:
        self._read, self._high, self._submit = read, high, submit
        self._next: tuple[str, Future[Listing]] | None = (after, submit(read, after))

    def __call__(self, after: str) -> Listing:
        asked, self._next = self._next, None
        listing = asked[1].result() if asked is not None and asked[0] == after else self._read(after)
        if listing.more and listing.items:
            last = listing.items[-1].key
            if self._high is None or last < self._high:
                self._next = (last, self._submit(self._read, last))
        return listing
