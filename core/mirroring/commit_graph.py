"""The commit graph: parents first, chains of first parents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping


class Waiting:
    """Commits that wait for parents; only their ids are held, and only as long as they wait."""

    def __init__(self) -> None:
        self._lacking: dict[str, int] = {}
        self._children: dict[str, list[str]] = {}

    def add(self, commit_id: str, parents: Collection[str]) -> bool:
        """Let a commit wait for all of `parents`; true when there are none, so that its turn is now."""
        if not parents:
            return True
        self._lacking[commit_id] = len(parents)
        for parent in parents:
            self._children.setdefault(parent, []).append(commit_id)
        return False

    def settle(self, commit_id: str) -> list[str]:
        """Nobody waits for this commit any more; gives those whose turn has come by that."""
        turn = []
        for child in self._children.pop(commit_id, ()):
            self._lacking[child] -= 1
            if not self._lacking[child]:
                del self._lacking[child]
                turn.append(child)
        return turn


class ParentsFirst:
    """Puts commits that come in any order into one in which no commit stands before a parent of its own.

    Holds back only those that come before a parent. Never looks at dates or generations, since neither is trustworthy.
    What it never gives has a parent that did not come, or is part of a circle.
    """

    def __init__(self) -> None:
        self.waiting = Waiting()

    def feed(self, batch: Iterable[tuple[str, Collection[str]]], known: Collection[str]) -> list[str]:
        """The ids whose turn has come, those of earlier batches too. `batch` holds ids with their parents.

        `known` are the parents that were placed before; those given by earlier calls must be among them.
        """
        placed: dict[str, None] = {}
        for commit_id, parents in batch:
            lacking = {parent for parent in parents if parent not in known and parent not in placed}
            turn = [commit_id] if self.waiting.add(commit_id, lacking) else []
            while turn:
                current = turn.pop()
                placed[current] = None
                turn += self.waiting.settle(current)
        return list(placed)


def related(parents: Mapping[str, Collection[str]], known: Collection[str]) -> set[str]:
    """Those of some commits that descend from one that is known, and all that those descend from among them."""
    return with_ancestors(parents, descendants(parents, known))


def with_ancestors(parents: Mapping[str, Collection[str]], commits: Collection[str]) -> set[str]:
    """Those of some commits that are among others, or that others descend from."""
    return _reach(commits, parents) & parents.keys()


def descendants(parents: Mapping[str, Collection[str]], ancestors: Collection[str]) -> set[str]:
    """Those of some commits that descend from one of others."""
    children: dict[str, list[str]] = {}
    for commit_id, parent_ids in parents.items():
        for parent in parent_ids:
            children.setdefault(parent, []).append(commit_id)
    return _reach(ancestors, children) - set(ancestors)


def in_circles(parents: Mapping[str, Collection[str]]) -> set[str]:
    """Those of some commits that descend from themselves, or from such ones: no history that is right has any."""
    waiting = Waiting()
    ready = [sha for sha, its in parents.items() if waiting.add(sha, parents.keys() & set(its))]
    left = set(parents)
    while ready:
        sha = ready.pop()
        left.discard(sha)
        ready += waiting.settle(sha)
    return left


def _reach(start: Iterable[str], ways: Mapping[str, Collection[str]]) -> set[str]:
    """All commits to which ways lead from some, these included; ways to parents, or to children."""
    seen = set(start)
    ahead = list(seen)
    while ahead:
        new = set(ways.get(ahead.pop(), ())) - seen
        seen |= new
        ahead += new
    return seen


def between(newer: str, older: str, main_parent: Callable[[str], str], limit: int = 1_000_000) -> list[str] | None:
    """First-parent commits strictly between two heads, oldest first; None when `older` is not on `newer`'s chain."""
    chain: list[str] = []
    current = main_parent(newer)
    while current and current != older and len(chain) < limit:
        chain.append(current)
        current = main_parent(current)
    return chain[::-1] if current == older else None
