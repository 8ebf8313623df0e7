"""What a look at a source's branches means: which moved, how, and which are gone. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from core.mirroring.commit_graph import between

CACHE_LASTS = timedelta(seconds=10)
"""So long a server of lakeFS may go on telling of a repository that is gone, and of its identity."""


class FirstSync(StrEnum):
    """What a mirror's default branch may show before the head that was seen first is there: nothing, or what the branch
    most likely pointed to before that."""

    EXACT = "exact"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class Move:
    """A branch's new head and the candidates that it adds, oldest first: (commit id, was it a fast-forward)."""

    branch: str
    head: str
    candidates: tuple[tuple[str, bool], ...]


def is_valid_look(heads: Mapping[str, str], default_branch: str) -> bool:
    """lakeFS never deletes the default branch: a list without it comes from a server that is losing the repository."""
    return default_branch in heads


def changed_branches(heads: Mapping[str, str], last: Mapping[str, str]) -> dict[str, str]:
    """Branches whose head differs from the last one seen, new branches included."""
    return {name: head for name, head in heads.items() if last.get(name) != head}


def describe_move(branch: str, head: str, last: str, main_parent: Callable[[str], str]) -> Move:
    """What the source branch is now known to have pointed to.

    A fast-forward adds the first-parent commits between the two heads; a first sight or any other move the head alone.
    """
    if last in ("", head):
        return Move(branch, head, ((head, True),))
    chain = between(head, last, main_parent)
    if chain is None:
        return Move(branch, head, ((head, False),))
    return Move(branch, head, tuple((commit_id, True) for commit_id in [*chain, head]))


class FirstParents:
    """Picks a chain of first parents out of commits that come children first; it holds the next id, and no more."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        """The next one of the chain; "" when it is at its end."""

    def pick(self, commits: Iterable[tuple[str, str]]) -> list[str]:
        """Those of the next commits, (id, main parent) each, that are on the chain."""
        picked = []
        for commit_id, parent in commits:
            if commit_id == self.wanted:
                picked.append(commit_id)
                self.wanted = parent
        return picked


def is_gone(*, looks: int, seconds: float, least_seconds: float = 60.0) -> bool:
    """A branch is taken for deleted after two valid looks without it, at least a minute apart."""
    return looks >= 2 and seconds >= least_seconds
