"""References: what an expression means, the order of the log, the common ancestor."""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.types import Commit
from sandbox.lakefs.errors import Refused, not_found
from sandbox.lakefs.model import Repository, Staged

EXPRESSION = re.compile(r"(?P<base>[^~^@$]+)(?P<steps>(?:[~^]\d*)*)(?P<view>[@$]?)")
STEP = re.compile(r"([~^])(\d*)")


@dataclass(frozen=True, slots=True)
class View:
    """What a reader of a reference sees: a commit, and what is staged above it."""

    commit_id: str
    staged: Staged


def resolve(repository: Repository, expression: str, *, says: str = "") -> View:
    """Branch, tag, commit id or its beginning, with `~n`, `^n`, `@`. Raises a 404 `<says>not found`."""
    parsed = EXPRESSION.fullmatch(expression)
    view = _base(repository, parsed["base"]) if parsed else None
    if parsed is None or view is None:
        raise not_found(says)
    if not parsed["steps"] and not parsed["view"]:
        return view
    commit_id = view.commit_id
    for kind, number in STEP.findall(parsed["steps"]):
        commit_id = _step(repository, commit_id, kind, int(number or 1), says)
    keeps_staged = not parsed["steps"] and parsed["view"] != "@"
    return View(commit_id, view.staged if keeps_staged else {})


def resolve_commit(repository: Repository, expression: str, *, says: str = "") -> Commit:
    """The record that an expression points to; a 404 also if that record is not here."""
    return repository.commit(resolve(repository, expression, says=says).commit_id)


def _base(repository: Repository, name: str) -> View | None:
    if branch := repository.branches.get(name):
        return View(branch.commit_id, branch.staged)
    if name in repository.tags:
        return View(repository.tags[name], {})
    if name in repository.commits:
        return View(name, {})
    found = [commit for commit in repository.commits if commit.startswith(name)] if len(name) >= 6 else []
    return View(found[0], {}) if len(found) == 1 else None


def _step(repository: Repository, commit_id: str, kind: str, number: int, says: str) -> str:
    """`~n` goes n first parents back, `^n` to the n-th parent; `^0` stays."""
    picks = [1] * number if kind == "~" else [number] if number else []
    for pick in picks:
        parents = repository.commit(commit_id).parents
        if pick > len(parents):
            raise not_found(says)
        commit_id = parents[pick - 1]
    return commit_id


def log(repository: Repository, start: str, *, first_parent: bool = False) -> Iterator[Commit]:
    """Commits from `start` on as lakeFS walks: newest date first among those reached so far, so not topological.
    A record that is missing ends it with a 404."""
    reached = {start}
    order = itertools.count()
    heap = [_rank(repository.commit(start), next(order))]
    while heap:
        commit = heapq.heappop(heap)[-1]
        yield commit
        for parent in commit.parents[:1] if first_parent else commit.parents:
            if parent not in reached:
                reached.add(parent)
                heapq.heappush(heap, _rank(repository.commit(parent), next(order)))


def _rank(commit: Commit, number: int) -> tuple[int, int, int, Commit]:
    return -commit.creation_date, -commit.generation, number, commit


def merge_base(repository: Repository, left: str, right: str) -> Commit | None:
    """The common ancestor of the highest generation."""
    if left == right:
        return repository.commit(left)
    known = {commit.id for commit in _ancestors(repository, left)}
    return next((commit for commit in _ancestors(repository, right) if commit.id in known), None)


def _ancestors(repository: Repository, start: str) -> Iterator[Commit]:
    seen = {start}
    first = repository.commit(start)
    heap = [(-first.generation, first.id)]
    while heap:
        commit = repository.commit(heapq.heappop(heap)[1])
        yield commit
        for parent in commit.parents:
            if parent not in seen:
                seen.add(parent)
                heapq.heappush(heap, (-repository.commit(parent).generation, parent))


def expect_free(repository: Repository, name: str, *, kind: str) -> None:
    """Raises a 409 when a branch or a tag already has the name."""
    if name in (repository.branches if kind == "branch" else repository.tags):
        raise Refused(409, f"{kind} already exists: not unique")
    if kind == "branch" and name in repository.tags:
        raise Refused(409, f"tag ID {name}: conflict found")
    if kind == "tag" and name in repository.branches:
        raise Refused(409, f"branch name {name}: conflict found")
