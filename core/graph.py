"""The commit graph: parents first, chains of first parents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from core.errors import Corrupt
from core.types import Commit


def parents_first(commits: Mapping[str, Commit], known: Callable[[str], bool]) -> list[Commit]:
    """`commits` in an order in which no commit stands before a parent of its own.

    A parent outside of `commits` must be `known`. Never looks at dates or generations, since neither is trustworthy.
    Raises Corrupt when a parent is neither given nor known, or when records form a circle.
    """
    waiting, children = _count_parents(commits, known)
    ready = [commit_id for commit_id, count in waiting.items() if count == 0]
    ordered: list[Commit] = []
    while ready:
        commit_id = ready.pop()
        ordered.append(commits[commit_id])
        for child in children.get(commit_id, ()):
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if len(ordered) != len(commits):
        raise Corrupt("the commit records of the source name each other in a circle")
    return ordered


def _count_parents(
    commits: Mapping[str, Commit], known: Callable[[str], bool]
) -> tuple[dict[str, int], dict[str, list[str]]]:
    waiting: dict[str, int] = {}
    children: dict[str, list[str]] = {}
    for commit in commits.values():
        given = {parent for parent in commit.parents if parent in commits}
        for parent in set(commit.parents) - given:
            if not known(parent):
                raise Corrupt(f"commit {commit.id[:8]} names the parent {parent[:8]}, which the source did not give")
        waiting[commit.id] = len(given)
        for parent in given:
            children.setdefault(parent, []).append(commit.id)
    return waiting, children


def missing_parents(commits: Mapping[str, Commit], known: Collection[str]) -> set[str]:
    """Parents that are named but neither given nor known: the history to fetch next."""
    named = {parent for commit in commits.values() for parent in commit.parents}
    return named - commits.keys() - set(known)


def between(newer: str, older: str, main_parent: Callable[[str], str], limit: int = 1_000_000) -> list[str] | None:
    """First-parent commits strictly between two heads, oldest first; None when `older` is not on `newer`'s chain."""
    chain: list[str] = []
    current = main_parent(newer)
    while current and current != older and len(chain) < limit:
        chain.append(current)
        current = main_parent(current)
    return chain[::-1] if current == older else None
