"""What the books say of held merges and deletions, against what took place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

Rows = Callable[[str], list[tuple[Any, ...]]]


def misheld(rows: Rows, released: Collection[Sequence[str]]) -> list[str]:
    """`released`: (source repository, commit) of each merge that its branch was moved to. The branch goes nowhere
    else, so that no head came without a release, and each was seen."""
    held = rows(
        "SELECT r.name, h.commit_id, h.state, h.complete_in, h.seen_at FROM mirrors_heldmerge h "
        "JOIN mirrors_repository r ON r.id = h.repository_id"
    )
    problems = [
        f"{name}: {sha[:8]} is said to have come without a release"
        for name, sha, state, *_ in held
        if state == "ungated"
    ]
    known = {(name, sha): (state, complete_in, seen_at) for name, sha, state, complete_in, seen_at in held}
    for name, sha in map(tuple, released):
        state, complete_in, seen_at = known.get((name, sha), ("not in the books", [], None))
        if state != "released" or not complete_in:
            problems.append(f"{name}: the merge {sha[:8]} went on by its release, and is {state}")
        elif seen_at is None:
            problems.append(f"{name}: nobody has seen that the branch was moved to the merge {sha[:8]}")
    return problems


def misswept(rows: Rows, deleted: Mapping[str, int]) -> list[str]:
    """`deleted`: how many objects went at each mirror. A worker that is killed may not tell of its last ones."""
    told = rows(
        "SELECT m.name, sum(s.deleted) FROM mirrors_sweep s JOIN mirrors_mirror m ON m.id = s.mirror_id GROUP BY 1"
    )
    return [
        f"{mirror}: {number} deletions are in the books, and {deleted.get(mirror, 0)} were made"
        for mirror, number in told
        if number > deleted.get(mirror, 0)
    ]
