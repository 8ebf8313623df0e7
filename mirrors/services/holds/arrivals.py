"""How much of a held commit each region has: proven by the same judge as every move of a branch."""

from __future__ import annotations

from collections.abc import Sequence

from core.holding import Arrival
from db.chunks import chunks
from mirrors.models import Commit, Coverage, HeldMerge, Mirror, MirrorCommit
from mirrors.queries.metaranges import ranges_named
from mirrors.queries.proof_facts import judge, row_of
from mirrors.transitions.held_merges import holding

UNREAD = "its record has not been read at the source yet"


def arrivals_of(held: HeldMerge) -> list[Arrival]:
    """One for each mirror that holds merges into the branch now, in a region of its own. May fetch a metarange."""
    mirrors = [one for one in holding(held.repository, held.branch) if one.region != one.source.region]
    commit = held.repository.commits.filter(sha=held.commit_id).first()
    return [_arrival(mirror, commit, held) for mirror in mirrors]


def _arrival(mirror: Mirror, commit: Commit | None, held: HeldMerge) -> Arrival:
    if mirror.state != Mirror.State.ACTIVE:
        return Arrival(mirror.region, "its mirror is not active")
    if mirror.source.frozen_reason:
        return Arrival(mirror.region, "the source is frozen: it is not the repository that was mirrored")
    if commit is None:
        return Arrival(mirror.region, held.detail or UNREAD)
    row = row_of(mirror, commit.sha)
    if row is None:
        return Arrival(mirror.region, "its mirror has not begun with it")
    if row.data != MirrorCommit.Data.COMPLETE:
        arrived, objects = _counted(mirror, commit)
        return Arrival(mirror.region, row.detail or "it is being looked through", arrived, objects)
    if row.record != MirrorCommit.Record.ACCEPTED:
        return Arrival(mirror.region, f"its record is {row.record}")
    if not row.history:
        return Arrival(mirror.region, "commits that it descends from are not complete there")
    judgement = judge(mirror, row)
    return Arrival(mirror.region, "" if judgement.allowed else judgement.detail or str(judgement.obstacle))


def _counted(mirror: Mirror, commit: Commit) -> tuple[int | None, int | None]:
    """How many of the objects that it names are there, and how many it names; None while that is not at hand."""
    named = ranges_named(mirror, commit.metarange_id)
    if named is None:
        return None, None
    lacking = {ref.id: ref.count for ref in named}
    for some in chunks(list(lacking)):
        rows: Sequence[tuple[str, str, int]] = mirror.coverage.filter(range_id__in=some).values_list(
            "range_id", "state", "problems"
        )
        for range_id, state, problems in rows:
            known = 0 if state == Coverage.State.COMPLETE else min(problems, lacking[range_id])
            lacking[range_id] = known
    objects = sum(ref.count for ref in named)
    return objects - sum(lacking.values()), objects
