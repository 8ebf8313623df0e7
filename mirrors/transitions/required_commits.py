"""Which commits does a mirror need? Those that its branches lead to: they get rows, others lose them.

A commit's row stands only beside those of all its ancestors. So a search for what lacks one ends at each row that is
there, and rows come and go under the lock of the source repository only: otherwise one could go below another's search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import Exists, OuterRef

from db.chunks import chunks
from jobs import duties
from jobs.lease import Lease
from mirrors.models import Candidate, Coverage, Mirror, MirrorCommit, MirrorDuty, Repository, SourceBranch, Waiver
from mirrors.queries.ancestors import windows
from mirrors.queries.coverage import only_read_ends
from mirrors.queries.own_moves import heads_and_places
from mirrors.transitions.held_merges import wanted_by
from mirrors.transitions.range_states import taken_down

# --- rows for what is needed ----------------------------------------------------------------------------------------


def add_commits(mirror: Mirror) -> int:
    """All rows that a mirror needs and lacks, by what was sensed so far; how many. Inside of a transaction."""
    lock_source(mirror)
    if not _wants_all(mirror):
        return _add_history(mirror, {*_heads(mirror), *_former_heads(mirror)})
    known = mirror.commits.values("commit_id")
    missing = mirror.source.commits.exclude(pk__in=known).order_by("pk").values_list("pk", flat=True)
    Mirror.objects.filter(pk=mirror.pk).update(follows_all=True)
    return _add_rows(mirror, list(missing))


def require_commits(mirror: Mirror, lease: Lease) -> None:
    """Rows for what a mirror came to need otherwise than by a look at the source: a branch that is selected now."""
    if mirror.follows_all if _wants_all(mirror) else not _lacking(mirror):
        return
    with transaction.atomic():
        lock_source(mirror)
        lease.lock()
        if add_commits(mirror):
            _wake(mirror)


def follow_moves(mirror: Mirror, moved: Iterable[tuple[str, str]], lease: Lease) -> None:
    """Rows for the new heads of the branches that a mirror follows, and for what these lead to."""
    follow_heads(mirror, {head for name, head in moved if name in mirror.selection}, lease)


def follow_heads(mirror: Mirror, heads: Collection[str], lease: Lease) -> None:
    """Rows for these commits, which a look has found that the mirror needs, and for what they lead to."""
    if not heads:
        return
    with transaction.atomic():
        lock_source(mirror)
        lease.lock()
        if _add_history(mirror, heads):
            _wake(mirror)


def lock_source(mirror: Mirror) -> None:
    """Keep other processes from adding or dropping commits until the transaction ends."""
    Repository.objects.select_for_update(no_key=True).get(pk=mirror.source_id)


def _wake(mirror: Mirror) -> None:
    for kind in (MirrorDuty.COPY_RECORDS, MirrorDuty.VALIDATE, MirrorDuty.PROMOTE):
        duties.wake(kind, mirror.pk)


def _wants_all(mirror: Mirror) -> bool:
    """Whether it needs every commit that was sensed. Those of tags may have been, for another mirror or formerly."""
    source = mirror.source
    if source.held_merges.exists():  # commits that were read because somebody asked, and may never be a head
        return False
    if mirror.follow_gc or not mirror.selection.everything:  # what no branch leads to may have lost its objects
        return False
    only_branches = not (source.mirrors.filter(tags=True).exists() or source.tags.exists())
    return (mirror.tags or only_branches) and not mirror.sweeps.filter(deleted__gt=0).exists()


def _heads(mirror: Mirror) -> set[str]:
    """What selected branches, and tags that are followed, point at; and the mirror's own: those are kept valid too, and
    where they were put, so that they can be put back there."""
    chosen = mirror.selection
    live = mirror.source.branches.filter(gone_at=None).values_list("name", "head")
    tags = mirror.source.tags.filter(gone_at=None).values_list("commit_id", flat=True) if mirror.tags else ()
    own_tags = mirror.tag_rows.filter(stray=False).values_list("commit_id", flat=True)
    heads = {head for name, head in live if name in chosen}
    return {*heads, *heads_and_places(mirror), *tags, *own_tags, *wanted_by(mirror)} - {""}


def _former_heads(mirror: Mirror) -> set[str]:
    """What the selected branches pointed at before they moved otherwise than forward: candidates all the same."""
    chosen = mirror.selection
    live = SourceBranch.objects.filter(repository=mirror.source_id, gone_at=None)
    moved = Candidate.objects.filter(
        branch=OuterRef("branch"), position=OuterRef("position") + 1, fast_forward=False
    ).order_by()
    rows = Candidate.objects.filter(Exists(moved), branch__in=live).order_by()
    return {sha for name, sha in rows.values_list("branch__name", "commit__sha") if name in chosen}


def _lacking(mirror: Mirror) -> bool:
    """Whether a commit that a branch points at has no row. Few queries, however long the histories."""
    own = MirrorCommit.objects.filter(mirror=mirror, commit=OuterRef("pk"))
    return any(
        mirror.source.commits.filter(~Exists(own), sha__in=some).exists() for some in chunks(sorted(_heads(mirror)))
    )


def _add_history(mirror: Mirror, heads: Collection[str]) -> int:
    return _add_rows(mirror, _ancestry(mirror, heads, beyond_rows=False))


def _add_rows(mirror: Mirror, keys: Collection[int]) -> int:
    rows = (MirrorCommit(mirror=mirror, commit_id=key) for key in sorted(keys))
    MirrorCommit.objects.bulk_create(rows, batch_size=1000, ignore_conflicts=True)
    _waive_again(mirror, keys)
    return len(keys)


def _waive_again(mirror: Mirror, keys: Collection[int]) -> None:
    """A waiver holds for its commits also after nobody needed them for a while."""
    for waiver in mirror.waivers.exclude(unneeded=None):
        for some in chunks(sorted({*waiver.unneeded} & {*keys})):
            mirror.commits.filter(commit_id__in=some).update(waiver=waiver)
        waiver.unneeded = sorted({*waiver.unneeded} - {*keys}) or None
        waiver.save(update_fields=["unneeded"])


# --- no rows for what is not ----------------------------------------------------------------------------------------


def prune_commits(mirror: Mirror, lease: Lease) -> int:
    """After branches were unselected: forget what only those need, and what it waits for; how many commits.

    What was checked stays known, and is checked again as before. While ranges stand in question it is put off: what is
    missing must be known until they were read.
    """
    if not mirror.reselected or mirror.state != Mirror.State.ACTIVE or mirror.coverage.to_read().exists():
        return 0
    with transaction.atomic():
        lock_source(mirror)
        lease.lock()
        now = Mirror.objects.select_for_update(of=("self",), no_key=True).select_related("source").get(pk=mirror.pk)
        dropped = set() if _wants_all(now) else _drop_rows(now)
        if dropped:
            _drop_blockers(now)
        Mirror.objects.filter(pk=now.pk).update(reselected=False)
    return len(dropped)


def _drop_rows(mirror: Mirror) -> set[int]:
    needed = set(_ancestry(mirror, {*_heads(mirror), *_former_heads(mirror)}, beyond_rows=True))
    keys = set(mirror.commits.values_list("commit_id", flat=True)) - needed
    for some in chunks(sorted(keys)):
        rows = mirror.commits.filter(commit_id__in=some)
        for waiver_id, key in rows.exclude(waiver=None).values_list("waiver_id", "commit_id"):
            waiver = Waiver.objects.get(pk=waiver_id)
            waiver.unneeded = [*(waiver.unneeded or ()), key]
            waiver.save(update_fields=["unneeded"])
        rows.delete()
    return keys


def _drop_blockers(mirror: Mirror) -> None:
    """Forget what stands in nobody's way any more. Damage of what had been complete stays; what only a read ends is
    remembered, for what comes to be needed may name it."""
    needed = set()
    rows = mirror.commits.exclude(data=MirrorCommit.Data.COMPLETE, record=MirrorCommit.Record.ACCEPTED)
    for sha, metarange, waits_for in rows.values_list("commit__sha", "commit__metarange_id", "waits_for").iterator():
        needed.update((sha, metarange, *waits_for))
    waiting = mirror.blockers.filter(damage=False).order_by().values_list("holder_id", flat=True).distinct()
    # A waiting commit notes its first hundred ranges only: those of others are asked for anew when it is judged again.
    for some in chunks(sorted(set(waiting) - needed)):
        rows = mirror.blockers.held_by(some).filter(damage=False)
        rows.exclude(only_read_ends()).delete()
        rows.update(unneeded=True)
        Coverage.objects.filter(mirror=mirror, range_id__in=some, state=Coverage.State.WAITING, verify_at=None).update(
            **taken_down()
        )
        Coverage.objects.filter(mirror=mirror, range_id__in=some, state=Coverage.State.GONE).update(**taken_down())


# --- histories ------------------------------------------------------------------------------------------------------


def _ancestry(mirror: Mirror, heads: Collection[str], *, beyond_rows: bool) -> list[int]:
    """Keys of the commits named and of all their ancestors; without those that have a row, unless `beyond_rows`."""
    wanted, keys = set(heads), []
    for lines in windows(mirror.source, wanted, mirror.source.commits.values_list("pk", "sha", "parents")):
        existing = set() if beyond_rows else _rows_between(mirror, lines[-1][0], lines[0][0])
        for pk, sha, parents in lines:
            if sha in wanted:
                wanted.discard(sha)
                if pk not in existing:
                    keys.append(pk)
                    wanted.update(parents)
    return keys


def _rows_between(mirror: Mirror, least: int, top: int) -> set[int]:
    rows = mirror.commits.filter(commit_id__gte=least, commit_id__lte=top)
    return set(rows.values_list("commit_id", flat=True))
