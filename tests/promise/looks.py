"""What the source answers to those who look at it: which heads it listed, and of which commits it gives no log."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from core.errors import Denied, LakeMirrorError, RemoteFailure, Unreachable
from tests.fakes import FakeLakeFS

Listing = dict[str, str]
ERRORS = (RemoteFailure("500"), Unreachable("timed out"), Denied("403"))


class Looks:
    """`listed`: heads by name, of branches ("list_branches") and of tags ("list_tags"), as they were given in the last
    look that ended well and in each that began since."""

    def __init__(self, lakefs: FakeLakeFS, chance: random.Random) -> None:
        self.lakefs, self.random = lakefs, chance
        self.unreadable: dict[str, LakeMirrorError] = {}
        self.pages: int | None = None
        """So many pages of logs, of one commit each, are given in a look; None: as many as are asked for."""
        self._left = 0
        self.listed: dict[str, list[Listing]] = {"list_branches": [], "list_tags": []}
        self._from: dict[str, int] = {}
        for name in self.listed:
            setattr(lakefs, name, self._noting(name, getattr(lakefs, name)))
        lakefs.log_commits = self._failing(lakefs.log_commits)  # type: ignore[method-assign]

    def _noting(self, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def listing(*given: Any, **page: Any) -> Any:
            answer = inner(*given, **page)
            heads = {one.name: one.commit_id for one in answer.results}
            self.listed[name].append(heads)
            return answer

        return listing

    def _failing(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def log_commits(repository: str, commit_id: str, **page: Any) -> Any:
            if commit_id in self.unreadable:
                raise self.unreadable[commit_id]
            if self.pages is not None:
                self._left -= 1
                if self._left < 0:
                    raise RemoteFailure("500")
                page["amount"] = 1
            return inner(repository, commit_id, **page)

        return log_commits

    def hide(self) -> None:
        """The source answers 500, 403 or nothing to whoever asks for the log from one of its heads."""
        there = self.lakefs.repositories["lake"]
        head = self.random.choice(sorted({*there.branches.values(), *there.tags.values()}))
        self.unreadable[head] = ERRORS[int(head[:8], 16) % len(ERRORS)]

    def limit(self) -> None:
        """It gives few pages in each look: no history is read at once."""
        self.pages = self.random.randint(0, 4)

    def mend(self) -> None:
        """It gives every log."""
        self.unreadable.clear()
        self.pages = None

    def begins(self) -> None:
        """A look, which may list more than once."""
        self._from = {name: len(listed) for name, listed in self.listed.items()}
        self._left = self.pages or 0

    def ended(self, name: str) -> None:
        """It came to its end, and what it saw was stored: what was listed before it counts no more."""
        self.listed[name] = self.listed[name][self._from[name] :]

    def misses(self, name: str, ref: str, commit: str) -> str:
        """Where a ref was said to be, if `commit` was not said of it; "" if it was, or nobody saw that ref: that counts
        after a second look only."""
        told = [heads[ref] for heads in self.listed[name] if ref in heads]
        return "" if not told or commit in told else ", ".join(one[:8] for one in told)
