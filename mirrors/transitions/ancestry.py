"""Whose history is in order at a mirror? Spread from parents to children. And what of it is left unchecked?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from core.mirroring.facts import History, Link, put_in_order
from core.mirroring.source_moves import FirstSync
from db.chunks import chunks
from jobs import duties
from mirrors.models import Candidate, Mirror, MirrorCommit, MirrorDuty, Repository, SourceTag
from mirrors.models.querysets import MirrorCommitQuerySet
from mirrors.queries.own_moves import heads_and_places
from mirrors.transitions.proven_heads import unprove_heads

BATCH = 1000

OpenRow = tuple[int, int, str, list[str], str, str, int | None]
"""Key, the commit's key, sha, parents, record, data, the key of its waiver."""

_MAY_SERVE = Q(data__in=[MirrorCommit.Data.COMPLETE, MirrorCommit.Data.GONE]) | Q(waiver__isnull=False)
_RECORDED = Q(record=MirrorCommit.Record.ACCEPTED, history=True)


def mark_complete_ancestry(mirror: Mirror) -> int:
    """Mark the commits of which all ancestors are recorded and complete (or gone at both sides, or waived); how many?

    Commits are visited in the order of their keys, which is parents first, so many at a time: what an earlier batch
    settled is read back by the next one.
    """
    settled, last = 0, 0
    while mirror.commits.filter(history=False, commit_id__gt=last).exists():  # without a lock where there are none
        with transaction.atomic():
            Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
            rows = _open_rows(mirror, last)
            settled += _settle(mirror, rows)
        if len(rows) < BATCH:
            break
        last = rows[-1][1]
    return settled


def reset_ancestry(mirror: Mirror, commit_ids: list[int]) -> None:
    """These commits stand in question again, and so does whatever was built on them: settle it anew.

    Descendants have larger keys; that others are asked as well costs little. Inside of a transaction.
    """
    if commit_ids:
        Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
        mirror.commits.filter(commit_id__gt=min(commit_ids), history=True).update(history=False)
        unprove_heads(mirror)


def leave_unchecked(mirror: Mirror) -> None:
    """Where heads alone are checked, nobody looks at commits that no branch of the source is known to have pointed to.

    Nor any tag, where the mirror follows them; nor what readers see at the mirror. What is pointed to only since it was
    left (a chain that is inferred later, say) is looked at then. Under the source's lock, as a
    branch's moves are: what a branch just moved to is a candidate by then.
    """
    if mirror.history != History.HEAD:
        return
    with transaction.atomic():
        Repository.objects.select_for_update(no_key=True).filter(pk=mirror.source_id).first()
        Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
        pointed_to = Candidate.objects.filter(commit=OuterRef("commit"))
        if mirror.first_sync != FirstSync.INFERRED:
            pointed_to = pointed_to.filter(position__gte=0)
        tagged = SourceTag.objects.filter(repository=mirror.source_id, commit_id=OuterRef("commit__sha"), gone_at=None)
        named = Exists(tagged) if mirror.tags else Q(pk__in=[])
        others = mirror.commits.filter(~Exists(pointed_to), ~named, data=MirrorCommit.Data.UNKNOWN)
        others.update(data=MirrorCommit.Data.UNCHECKED)
        _look_at(mirror.commits.filter(named))
        if mirror.first_sync == FirstSync.INFERRED:
            _look_at(mirror.commits.filter(Exists(pointed_to)))
        for some in chunks(sorted(_shown(mirror))):
            _look_at(mirror.commits.filter(commit__repository=mirror.source_id, commit__sha__in=some))


def _look_at(rows: MirrorCommitQuerySet) -> None:
    rows.filter(data=MirrorCommit.Data.UNCHECKED).update(data=MirrorCommit.Data.UNKNOWN)


def _shown(mirror: Mirror) -> set[str]:
    """What its branches and tags point at, or are to be put back to. The books may have been lost since: then nothing
    proves it yet."""
    return {*heads_and_places(mirror), *mirror.tag_rows.filter(stray=False).values_list("commit_id", flat=True)} - {""}


def check_after_all(repository: Repository, commit_ids: Collection[int]) -> None:
    """A branch points at these now: mirrors that left them unchecked look at them. Inside of the move's transaction."""
    unchecked = MirrorCommit.objects.filter(
        mirror__source=repository, commit__in=commit_ids, data=MirrorCommit.Data.UNCHECKED
    )
    mirrors = list(unchecked.order_by().values_list("mirror", flat=True).distinct())
    if not mirrors:
        return
    list(Mirror.objects.select_for_update(no_key=True).filter(pk__in=mirrors).order_by("pk").values_list("pk"))
    unchecked.update(data=MirrorCommit.Data.UNKNOWN)
    for mirror_id in mirrors:
        duties.wake(MirrorDuty.VALIDATE, mirror_id)


def _open_rows(mirror: Mirror, after: int) -> list[OpenRow]:
    rows = mirror.commits.filter(history=False, commit_id__gt=after).order_by("commit_id")
    names = ("pk", "commit_id", "commit__sha", "commit__parents", "record", "data", "waiver_id")
    return list(rows.values_list(*names)[:BATCH])


def _settle(mirror: Mirror, rows: Sequence[OpenRow]) -> int:
    sound = _sound_parents(mirror, {sha for _, _, _, parents, _, _, _ in rows for sha in parents})
    links = (
        Link(pk, sha, parents, record, data, waiver is not None) for pk, _, sha, parents, record, data, waiver in rows
    )
    settled = put_in_order(links, sound, mirror.history)
    for some in chunks(settled):
        mirror.commits.filter(pk__in=some).update(history=True)
    return len(settled)


def _sound_parents(mirror: Mirror, shas: set[str]) -> set[str]:
    """With the source's key, so that a commit is found by its index."""
    wanted = sorted(shas)
    may_serve = Q() if mirror.history == History.HEAD else _MAY_SERVE
    sound: set[str] = set()
    for some in chunks(wanted):
        rows = mirror.commits.filter(_RECORDED, may_serve, commit__repository_id=mirror.source_id, commit__sha__in=some)
        sound.update(rows.values_list("commit__sha", flat=True))
    return sound
