"""Merges into a branch whose heads have to be in two regions: made, asked about, and carried out by the answer."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fleet.routes import Route

HELD = "main"
HOOK_SECONDS = 30
"""lakeFS's time-out of a hook: an answer that comes later is heard by nobody."""
MOST_AT_ONCE = 2
POLICY = {"branches": HELD, "copies": 1, "hold_seconds": 20, "when_late": "refuse"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A merge commit that no branch points to, and where the branch stood when it was made."""

    repository: str
    branch: str
    commit: str
    merge_source: str
    before: str
    at: float


class Merges:
    """Of one route. `made`: the merge commits that the branch was moved to, in their order."""

    def __init__(self, route: Route, chance: random.Random) -> None:
        self.route, self.random = route, chance
        self.open: dict[str, Asked] = {}
        self.made: list[str] = []
        self.counts: Counter[str] = Counter()

    def expire(self, now: float) -> None:
        """lakeFS listens no longer."""
        for commit, asked in list(self.open.items()):
            if now - asked.at > HOOK_SECONDS:
                del self.open[commit]
                self.counts["merges whose question was never answered"] += 1

    def ask(self, now: float) -> dict[str, Any] | None:
        """A new question; None while there is nothing to merge, or enough is asked."""
        company, lake = self.route.company, self.route.company.lake
        sources = sorted(name for name in company.heads if name != HELD)
        if not self.route.holds or not sources or len(self.open) >= MOST_AT_ONCE:
            return None
        before, source = company.heads[HELD], self.random.choice(sources)
        theirs = company.heads[source]
        if theirs in self.route.reached([before]):
            return None
        commit = lake.record_tree((before, theirs), lake.trees[before] | lake.trees[theirs], f"hold {lake.clock}")
        asked = self.open[commit] = Asked(self.route.name, HELD, commit, source, before, now)
        self.counts["merges held"] += 1
        return asdict(asked)

    def answer(self, commit: str, *, goes_on: bool, complete_in: list[str]) -> list[str]:
        """What the hook was answered; the branch moves if it may. Gives what is wrong with that."""
        problems = self._problems(commit, complete_in) if goes_on or complete_in else []
        if goes_on and not complete_in:
            problems.append(f"{self.route.name}: {commit[:8]} may go on although it is nowhere")
        asked = self.open.pop(commit, None)
        heads = self.route.company.heads
        if asked is None:
            self.counts["answers that came too late"] += 1
        elif not goes_on:
            self.counts["held merges refused"] += 1
        elif heads[asked.branch] != asked.before:
            self.counts["released merges that lakeFS did not take"] += 1
        else:
            heads[asked.branch] = commit
            self.made.append(commit)
            self.counts["held merges released"] += 1
        return problems

    def _problems(self, commit: str, complete_in: list[str]) -> list[str]:
        """What is acknowledged is whole there, now."""
        told = [f"{self.route.name}: {commit[:8]} is said to be in {region}" for region in complete_in]
        if complete_in != [self.route.region]:
            return told
        return [f"{told[0]}, but {problem}" for problem in self.route.lacks(commit)]
