"""The commits of a branch's own line between two of them; pure. What was merged into it has no place of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.types import Commit


@dataclass(frozen=True, slots=True)
class Line:
    """Commits from a head on, the newest first. `whole`: they go down to the other end; else there are more of them."""

    commits: Sequence[Commit]
    whole: bool


def line_between(log: Iterable[Commit], head: str, base: str) -> Line | None:
    """From `head` (with it) down to `base` (without it), as far as the log goes. None where the line ends before it
    comes to `base`: the branch was moved to where that is no ancestor on its line."""
    known = {commit.id: commit for commit in log}
    commits: list[Commit] = []
    at = head
    while at != base and at in known:
        commits.append(known[at])
        at = known[at].main_parent
    if not at:
        return None
    return Line(commits, whole=at == base)
