"""`first_sync: inferred`: commits that a default branch most likely pointed to before anybody looked.

They are the first-parent chain below the first head that was seen. A mirror with the setting may show one of them while
that head is on its way; no other mirror ever does. They are candidates at positions from -2 downwards (-1 is unknown):
whoever asks for what the branch is known to have pointed to begins at 0, and never meets them. They are kept as long
as some mirror of the source may need them.
"""

from __future__ import annotations

from operator import attrgetter

from django.db.models import Exists, OuterRef, Q, QuerySet

from core.mirroring.promotion import UNKNOWN, CandidateCommit
from core.mirroring.source_moves import FirstParents, FirstSync
from core.types import main_parent
from jobs.lease import Lease
from mirroring.sense.commit_spool import wake_promotion
from mirrors.models import Candidate, Mirror, MirrorBranch, Repository, SourceBranch

WINDOW = 1000
INFERRED = Q(position__lt=UNKNOWN)


# --- at the source ----------------------------------------------------------------------------------------------------


def keep_inferred(repository: Repository, lease: Lease) -> None:
    """Store the chain of a source's default branch if a mirror needs it and it is not there, else forget it."""
    branch = repository.branches.filter(name=repository.default_branch, gone_at=None, position__gte=0).first()
    if branch is None:
        return
    if not _is_needed(repository):
        _forget(branch, lease)
    elif _store_chain(branch, lease):
        wake_promotion(repository)


def _is_needed(repository: Repository) -> bool:
    """Whether a mirror with the setting has not made the branch yet, or any shows an inferred commit."""
    branches = MirrorBranch.objects.filter(mirror=OuterRef("pk"), name=repository.default_branch)
    waits = Q(first_sync=FirstSync.INFERRED) & ~Exists(branches)
    return repository.mirrors.live().filter(waits | Exists(branches.filter(INFERRED))).exists()


def _forget(branch: SourceBranch, lease: Lease) -> None:
    rows = branch.candidates.filter(INFERRED)
    if rows.exists():
        with lease.transaction():
            rows.delete()


def _store_chain(branch: SourceBranch, lease: Lease) -> int:
    """Go on from the lowest candidate that is stored, a window of commits at a time; gives how many were added."""
    lowest = branch.candidates.select_related("commit").order_by("position").first()
    if lowest is None:
        return 0
    chain, key = FirstParents(lowest.commit.record().main_parent), lowest.commit_id
    position = before = min(lowest.position, UNKNOWN)
    commits = branch.repository.commits.order_by("-pk").values_list("pk", "sha", "parents", "version")
    while chain.wanted and (window := list(commits.filter(pk__lt=key)[:WINDOW])):
        key, keys = window[-1][0], {sha: pk for pk, sha, _, _ in window}
        picked = chain.pick((sha, main_parent(parents, version)) for _, sha, parents, version in window)
        rows = [
            Candidate(branch=branch, position=position - n, commit_id=keys[sha], seen_at=lowest.seen_at)
            for n, sha in enumerate(picked, start=1)
        ]
        position -= len(rows)
        with lease.transaction():
            Candidate.objects.bulk_create(rows, batch_size=500)
    return before - position


# --- at a mirror ------------------------------------------------------------------------------------------------------


def inferred_candidates(mirror: Mirror, mirror_branch: MirrorBranch | None, head: str) -> list[CandidateCommit]:
    """The inferred commits that count for a mirror's default branch, oldest first: the one that it shows (`head`), and
    the newest promotable one. None once it has shown a commit that was seen, or where it stands is not our doing."""
    if mirror_branch is not None and (mirror_branch.stray or mirror_branch.position >= UNKNOWN):
        return []
    rows = Candidate.objects.filter(
        INFERRED, branch__repository=mirror.source_id, branch__name=mirror.source.default_branch
    )
    shown = _newest(rows.filter(position=mirror_branch.position) if mirror_branch else rows.filter(commit__sha=head))
    if head and not shown:
        return []
    newest = _newest(_promotable(rows, mirror, mirror_branch)) if mirror.first_sync == FirstSync.INFERRED else set()
    return sorted(shown | newest, key=attrgetter("position"))


def _promotable(rows: QuerySet[Candidate], mirror: Mirror, mirror_branch: MirrorBranch | None) -> QuerySet[Candidate]:
    """Those that are, from where the mirror stands on."""
    ahead = rows.filter(position__gte=mirror_branch.position) if mirror_branch else rows
    return ahead.filter(Exists(mirror.commits.promotable().filter(commit=OuterRef("commit"))))


def _newest(rows: QuerySet[Candidate]) -> set[CandidateCommit]:
    """The newest one, if there is any: the index of positions is read from its top."""
    newest = rows.order_by("-position").values_list("commit__sha", "position", "fast_forward")[:1]
    return {CandidateCommit(*row) for row in newest}
