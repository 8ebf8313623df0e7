"""What the books say of held merges and deletions, against what took place, and of what holds a mirror."""

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


def what_holds(rows: Callable[..., list[tuple[Any, ...]]], mirror: str) -> list[str]:
    """A mirror that is behind: how its ranges and metaranges stand, and what is missing or wrong."""
    told = []
    for table, state in (("coverage", "trim(c.state || ' ' || c.doubt)"), ("metarangecoverage", "c.state")):
        found = rows(
            f"SELECT {state}, count(*) FROM mirrors_{table} c JOIN mirrors_mirror m ON m.id = c.mirror_id "
            "WHERE m.name = %s GROUP BY 1 ORDER BY 1",
            mirror,
        )
        told.append(f"{table}: " + ", ".join(f"{number} {how}" for how, number in found))
    found = rows(
        "SELECT b.kind, b.reason, b.address, b.attempts, b.gone_at_source, "
        "round(extract(epoch FROM b.look_at - now())) FROM mirrors_blocker b "
        "JOIN mirrors_mirror m ON m.id = b.mirror_id WHERE m.name = %s ORDER BY b.id LIMIT 10",
        mirror,
    )
    told += [
        f"{kind} {reason}: {address}, {attempts} looks{', gone at the source' * gone}, the next in {seconds} s"
        for kind, reason, address, attempts, gone, seconds in found
    ]
    duties = rows(
        "SELECT d.kind, d.failures, d.outcome, round(extract(epoch FROM d.due_at - now())) FROM mirrors_duty d "
        "JOIN mirrors_mirror m ON m.id = d.subject WHERE m.name = %s AND d.kind <> 'sense' ORDER BY 1",
        mirror,
    )
    told += [
        f"{kind}: {failures} failures, due in {seconds} s: {outcome[:200]}"
        for kind, failures, outcome, seconds in duties
    ]
    return [f"{mirror}: {line}" for line in told]
