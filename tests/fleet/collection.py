"""What a source's garbage collection takes, and what may go at a mirror that follows it.

A commit is kept by the source's rules while a branch points to it, or a merge that waits for its answer would, and for
some time after it was reached from one and after it was made. Of what no kept commit names the objects go, and nothing
else: records, metaranges and ranges stay, as at lakeFS.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fleet.routes import Route

LEFT, AGED = 1.5, 15.0
"""So many seconds a commit is kept that no branch leads to any more, and an old one that none points to."""
PARTLY = 0.7
"""A round takes so much of what it may take."""


class Collection:
    """Of one route. `taken`: what the source had by its address, before it was collected there."""

    def __init__(self, route: Route, chance: random.Random) -> None:
        self.route, self.random = route, chance
        self.taken: dict[str, bytes] = {}
        self.deleted: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._named_by: dict[str, set[str]] = defaultdict(set)
        self._indexed = 0
        self._made: dict[str, float] = {}
        self._left: dict[str, float] = {}

    # At the source

    def note(self, now: float) -> None:
        """Commits are known from when they were first seen here, and those that nothing leads to from then on."""
        lake = self.route.company.lake
        commits = list(lake.repository.commits)
        for sha in commits[self._indexed :]:
            self._made[sha] = now
            for entry in lake.trees[sha].values():
                self._named_by[entry.address].add(sha)
        self._indexed = len(commits)
        reached = self.route.reached(self._roots())
        for sha in commits:
            if sha in reached:
                self._left.pop(sha, None)
            else:
                self._left.setdefault(sha, now)

    def collect(self, now: float) -> int:
        """One round of the garbage collection; gives how many objects went."""
        self.note(now)
        kept = {sha for sha in self._made if self._is_kept(sha, now)}
        went = 0
        for address, naming in self._named_by.items():
            uri = f"{self.route.namespace}/{address}"
            if naming.isdisjoint(kept) and uri in self.route.store.objects and self.random.random() < PARTLY:
                self.taken[address] = self.route.store.objects.pop(uri)
                went += 1
        self.counts["objects collected at the source"] += went
        return went

    def _roots(self) -> set[str]:
        return {*self.route.company.heads.values(), *self.route.pending()}

    def _is_kept(self, sha: str, now: float) -> bool:
        if sha in self._left:
            return now - self._left[sha] < LEFT
        return now - self._made[sha] < AGED or sha in self._roots()

    def has_taken(self, key: str) -> bool:
        """Whether the source has collected an object, and does not have it."""
        return key in self.taken and f"{self.route.namespace}/{key}" not in self.route.store.objects

    # At the mirror

    def problems(self, key: str) -> list[str]:
        """What speaks against the deletion of something that is just going at the mirror."""
        where = f"{self.route.mirror}: {key} was deleted"
        if not self.route.follows:
            return [f"{where} at a mirror that follows no collection"]
        if not key.startswith("data/"):
            return [f"{where}, which is no object"]
        if f"{self.route.namespace}/{key}" in self.route.store.objects:
            return [f"{where}, which the source has"]
        naming = self.naming(key)
        for branch, head in self.route.heads.items():
            if found := naming & self.route.reached([head]):
                return [f"{where}, which {min(found)[:8]} names, and {branch} at {head[:8]} leads there"]
        if found := naming & self._roots():
            return [f"{where}, which {min(found)[:8]} names, and the source keeps that"]
        return []

    def naming(self, key: str) -> set[str]:
        """The commits that name an object, those included that were made a moment ago."""
        lake = self.route.company.lake
        fresh = list(lake.repository.commits)[self._indexed :]
        late = {sha for sha in fresh if any(entry.address == key for entry in lake.trees[sha].values())}
        return self._named_by.get(key, set()) | late

    def went(self, key: str) -> None:
        """It was there, and is deleted."""
        self.counts["objects deleted by sweeps"] += 1
        self.deleted.add(key)

    def left_over(self) -> list[str]:
        """What the mirror still has of what the source has collected, and nothing leads to: no branch of either, nor
        what one of the source's pointed to since it was made."""
        company = self.route.company
        pointed = [sha for branch in company.heads for sha in company.pointed[branch]]
        reached = self.route.reached([*self._roots(), *self.route.heads.values(), *pointed])
        return [key for key in self._still_there() if self.naming(key).isdisjoint(reached)]

    def _still_there(self) -> Iterable[str]:
        return [key for key in self.taken if f"{self.route.mirrored}/{key}" in self.route.there.objects]
