"""Which pages of a source's logs to read, so that in the end every parent is known. Pure: the caller reads and keeps.

The order of a log proves nothing, and a log may be long. So what matters is the frontier: commits that are named but
neither stored nor read. A log is read on while it brings news and more than one commit of the frontier may stand in
it; else a new one begins at what is missing, for a page by cursor costs lakeFS a walk from the log's beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.errors import Corrupt, LakeMirrorError


def in_turn(waiting: Sequence[str], attempt: int) -> list[str]:
    """What was not found before: each attempt begins with another one of it, for it may give up the rest."""
    first = attempt % len(waiting) if waiting else 0
    return [*waiting[first:], *waiting[:first]]


@dataclass(slots=True, eq=False)
class Walk:
    """The log of one commit, read for the sake of a head, and the commits that it is still read for."""

    start: str
    head: str
    wanted: set[str] = field(default_factory=set)
    after: str = ""


class Reading:
    """Any number of walks at a time; no commit is wanted by two of them."""

    def __init__(self, heads: Iterable[str], waiting: Sequence[str] = ()) -> None:
        """`waiting`: what earlier readings did not find, in the order in which it is asked for, after all others."""
        self.errors: dict[str, LakeMirrorError] = {}
        self._frontier = {*heads, *waiting}
        self._ready = deque(Walk(head, head, {head}) for head in sorted(self._frontier.difference(waiting)))
        self._later = deque(Walk(commit_id, commit_id, {commit_id}) for commit_id in waiting)
        self._running = 0

    def next(self) -> Walk | None:
        """The walk of which a page is to be read now; None: wait for those that are being read, if any."""
        while self._ready or (self._later and not self._running):
            if not self._ready:
                self._ready, self._later = self._later, self._ready
            walk = self._ready.popleft()
            walk.wanted &= self._frontier
            if walk.wanted:
                self._running += 1
                return walk
        return None

    def took(
        self,
        walk: Walk,
        page: Sequence[str],
        next_after: str,
        fresh: Mapping[str, Collection[str]],
        known: Collection[str],
    ) -> None:
        """A page was read and kept. `fresh`: what was news, with parents; `known`: those parents that were read before.

        Raises nothing: a log that does not hold its own commit is noted as the walk's error.
        """
        self._running -= 1
        self._frontier -= fresh.keys()
        named = {parent for parents in fresh.values() for parent in parents if parent not in known}
        walk.wanted = (walk.wanted & self._frontier) | (named - self._frontier)
        self._frontier |= named
        if self._goes_on(walk, next_after, fresh):
            walk.after = next_after
            self._ready.appendleft(walk)
        elif walk.start in self._frontier:
            self._note(walk, Corrupt(f"the log of commit {walk.start[:8]} does not hold that commit"))
        else:
            # Mostly known: another walk is reading the same history, and may find what is missing here. If not, it
            # comes next: this log was answered, and of those that wait nobody knows whether they will be.
            queue = self._ready if 2 * len(fresh) >= len(page) else self._later
            more = sorted(walk.wanted, reverse=True)
            queue.extendleft(Walk(commit_id, walk.head, {commit_id}) for commit_id in more)

    def failed(self, walk: Walk, error: LakeMirrorError) -> None:
        """A page could not be read: what it was to find is not asked for again."""
        self._running -= 1
        self._note(walk, error)

    def give_up(self, error: LakeMirrorError) -> None:
        """Ask for nothing more: what was to be read next is taken for failed."""
        for walk in (*self._ready, *self._later):
            self._note(walk, error)
        self._ready.clear()
        self._later.clear()

    def _note(self, walk: Walk, error: LakeMirrorError) -> None:
        self.errors.setdefault(walk.head, error)

    def _goes_on(self, walk: Walk, next_after: str, fresh: Collection[str]) -> bool:
        if not next_after or next_after == walk.after or not walk.wanted:
            return False
        return walk.start in self._frontier or (bool(fresh) and len(walk.wanted) > 1)
