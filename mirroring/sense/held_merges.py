"""Held merges, in the look at their source: their records are read although no branch leads to them yet.

Heads that nobody released are told.

A held commit becomes a row of `Commit`, and of the mirrors that hold it; a candidate it is only once the branch is seen
there, as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from core.holding import policy_for
from core.mirroring.source_moves import Move
from core.ports import LakeFS
from db import clock
from jobs import duties
from jobs.lease import Lease
from mirroring.sense.commit_spool import Spool, served_mirrors
from mirroring.sense.identity import ask_identity
from mirroring.sense.read_log import forget_wrong, read_histories, unread_heads
from mirrors.models import HeldMerge, Mirror, MirrorCommit, MirrorDuty, Repository
from mirrors.transitions.held_merges import (
    give_up_old,
    note_not_taken,
    note_seen,
    note_ungated,
    open_commits,
    wanted_by,
)
from mirrors.transitions.required_commits import follow_heads


def look_at_held(repository: Repository, lakefs: LakeFS, at: datetime, lease: Lease) -> str:
    """Read what is held, after a valid look at the branches that began `at`; gives a word on it, "" if nothing is."""
    if not repository.mirrors.filter(held_since__isnull=False).exists():
        return ""
    give_up_old(repository, clock.now())
    note_not_taken(repository, at)
    unread = open_commits(repository)
    if unread:
        _read(repository, lakefs, unread, lease)
    for mirror in served_mirrors(repository).filter(held_since__isnull=False):
        _bring_first(mirror, lease)
    return f"{len(unread)} held merges read" if unread else ""


def _read(repository: Repository, lakefs: LakeFS, unread: list[HeldMerge], lease: Lease) -> None:
    """Only what shares its history with what is known of the source is stored: else it is another repository's."""
    spool, commits = Spool(repository, lease), {held.commit_id for held in unread}
    with transaction.atomic():
        Repository.objects.select_for_update(no_key=True).get(pk=repository.pk)
        # Mirrors that are given every commit would get held ones too, which they may not need.
        repository.mirrors.filter(follows_all=True).update(follows_all=False)
    errors = read_histories(spool, lakefs, commits, lease, sorted(spool.lacking(spool.below(commits))))
    identity = ask_identity(repository, lakefs)
    if identity.problem:
        spool.clear()
        return
    unrelated, _ = spool.unrelated()
    spool.leave_out(spool.roots() & unrelated)
    spool.place(clock.now())
    causes = unread_heads(spool, commits, errors)
    waiting = repository.branches.exclude(unread_head="").values_list("unread_head", flat=True)
    forget_wrong(spool, causes, errors, waiting)
    for held in unread:
        why = causes.get(held.commit_id)
        HeldMerge.objects.filter(pk=held.pk, state=HeldMerge.State.HELD).update(
            detail=f"its record can't be read at the source: {why[0].message}"[:2000] if why else ""
        )


def _bring_first(mirror: Mirror, lease: Lease) -> None:
    """Rows for what the mirror holds, before all else that it waits for."""
    wanted = wanted_by(mirror)
    known = set(mirror.source.commits.filter(sha__in=wanted).values_list("sha", flat=True)) if wanted else set()
    if not known:
        return
    follow_heads(mirror, known, lease)
    rows = mirror.commits.filter(commit__sha__in=known, urgency=MirrorCommit.Urgency.NONE)
    held = HeldMerge.objects.filter(repository=mirror.source_id, state=HeldMerge.State.HELD)
    now = set(held.values_list("commit_id", flat=True))
    settled = mirror.commits.settled().values("pk")
    if rows.filter(commit__sha__in=now).exclude(pk__in=settled).update(urgency=MirrorCommit.Urgency.ASKED):
        for kind in (MirrorDuty.COPY_RECORDS, MirrorDuty.VALIDATE):
            duties.wake(kind, mirror.pk)


def note_moves(repository: Repository, moves: Mapping[str, Move], at: datetime) -> None:
    """Which released merges are heads now, and which heads nobody released. Inside of the look's transaction, once its
    candidates are stored. What moved before the last look may have moved before there was a policy, if that look was
    taken earlier than it was given."""
    mirrors = list(repository.mirrors.filter(held_since__isnull=False))
    if not mirrors:
        return
    for branch, move in moves.items():
        commits = [sha for sha, _ in move.candidates]
        released = note_seen(repository, branch, commits, at)
        since = _held_since(mirrors, branch)
        if since is not None and repository.looked_at and since <= repository.looked_at:
            note_ungated(repository, branch, [sha for sha in commits if sha not in released], at)


def _held_since(mirrors: list[Mirror], branch: str) -> datetime | None:
    """Since when merges into a branch are held by some mirror, None: by none."""
    holding = [one for one in mirrors if branch in one.selection and policy_for(one.hold, branch)]
    return min((one.held_since for one in holding if one.held_since), default=None)
