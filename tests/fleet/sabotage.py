"""What is broken in all processes of a fleet on purpose: the world has to find it. `scripts/soak --sabotage NAME`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from core.holding import Arrival
from tests.fleet.sweeping import replaced


def _forget_a_branch() -> None:
    """A sweep overlooks the first branch: what only that one leads to at the mirror may go."""
    from mirroring.sweep import deletions, look
    from mirroring.sweep.kept_commits import Kept, kept_in_books, named_now

    def without(mirror: Any) -> Kept:
        kept = kept_in_books(mirror)
        lost, commits = _of_one_branch(mirror)
        return Kept(kept.metaranges - lost, kept.commits - commits)

    def named(mirror: Any) -> set[str]:
        return named_now(mirror) - _of_one_branch(mirror)[1]

    for module in (look, deletions):
        replaced(module, kept_in_books=without, named_now=named)


def _of_one_branch(mirror: Any) -> tuple[set[str], set[str]]:
    """The metaranges, and the commits, that only the first branch leads to, at the source or the mirror."""
    rows = list(mirror.source.commits.values_list("sha", "parents", "metarange_id"))
    parents = {sha: above for sha, above, _ in rows}
    heads = [*mirror.branches.values_list("name", "head"), *mirror.source.branches.values_list("name", "head")]
    name = min((branch for branch, _ in heads), default="")
    own = _reached(parents, [head for branch, head in heads if branch == name])
    others = _reached(parents, [head for branch, head in heads if branch != name])
    of_others = {metarange for sha, _, metarange in rows if sha in others}
    return {metarange for sha, _, metarange in rows if sha in own} - of_others, own - others


def _reached(parents: dict[str, Any], heads: Collection[str]) -> set[str]:
    ahead, seen = list(heads), set[str]()
    while ahead:
        one = ahead.pop()
        if one in parents and one not in seen:
            seen.add(one)
            ahead.extend(parents[one])
    return seen


def _release_unproven() -> None:
    """A held merge is released whatever is there."""
    from mirrors.services.holds import arrivals

    replaced(arrivals, _arrival=lambda mirror, commit, held: Arrival(mirror.region, ""))


MUTANTS: dict[str, Callable[[], None]] = {
    "a-sweep-forgets-a-branch": _forget_a_branch,
    "merges-are-released-unproven": _release_unproven,
}


def break_(name: str) -> None:
    """In this process, for good."""
    MUTANTS[name]()
