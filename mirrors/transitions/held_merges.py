"""What becomes of a held merge, and which of them a mirror keeps. Each change is one conditional UPDATE."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from core.holding import policy_for
from core.text.phrases import SHORT_ID
from db import clock
from db.chunks import chunks
from mirrors.models import Commit, HeldMerge, Mirror, Repository

State = HeldMerge.State
KEPT_AFTER_REFUSAL = timedelta(hours=1)
"""So long what arrived of a refused merge is looked after for the next try."""
ANSWER_LOST = timedelta(minutes=2)
"""Whoever held it is gone when nobody has decided it so long after the answer was due."""
TAKEN_WITHIN = timedelta(minutes=15)
"""A look that began so long after the release, and does not find the branch there, tells that lakeFS did not take it:
other hooks of the same merge may have refused, or its caller have gone."""
UNGATED_FOR = timedelta(days=1)
"""So long a head that nobody released is told as something that is wrong."""
_UNSEEN = Q(seen_at=None)
ACKNOWLEDGED = (State.RELEASED, State.ALLOWED)


def decide(held: HeldMerge, state: str, *, detail: str, complete_in: Collection[str] = ()) -> bool:
    """The answer that is about to be given; true if this call wrote it. False: it was decided, or is known no more."""
    rows = HeldMerge.objects.filter(pk=held.pk, state=State.HELD)
    given = {"detail": detail, "complete_in": sorted(complete_in), "ended_at": clock.now()}
    return rows.update(state=state, **given) == 1


def holding(source: Repository, branch: str) -> list[Mirror]:
    """The mirrors that hold merges into a branch which they follow, and whose repository there is."""
    mirrors = Mirror.objects.live().select_related("source").filter(source=source, held_since__isnull=False)
    chosen = [mirror for mirror in mirrors if branch in mirror.selection]
    return [mirror for mirror in chosen if policy_for(mirror.hold, branch) is not None]


def wanted_by(mirror: Mirror) -> set[str]:
    """The commits of held merges that a mirror keeps: they are no candidates, and count as heads for nothing else."""
    if not mirror.hold:
        return set()
    rows = HeldMerge.objects.filter(repository=mirror.source_id, wanted=True).exclude(state=State.UNGATED)
    pairs = rows.filter(_UNSEEN).values_list("branch", "commit_id")
    return {sha for branch, sha in pairs if branch in mirror.selection and policy_for(mirror.hold, branch)}


def open_commits(source: Repository) -> list[HeldMerge]:
    """Held merges, and refused ones that are still worth reading, whose record has not been read."""
    rows = HeldMerge.objects.filter(repository=source, wanted=True, state__in=[State.HELD, State.REFUSED])
    known = Commit.objects.filter(repository=source).values("sha")
    return list(rows.exclude(commit_id__in=known))


def give_up_old(source: Repository, now: datetime) -> None:
    """Those that nobody decided, and refused ones that were not tried again, are looked after no more."""
    rows = HeldMerge.objects.filter(repository=source, wanted=True)
    lost = rows.filter(state=State.HELD, until__lt=now - ANSWER_LOST)
    lost.update(state=State.REFUSED, ended_at=now, detail="nobody answered: the process that held it ended")
    old = rows.filter(state__in=[State.REFUSED, State.NOT_TAKEN], ended_at__lt=now - KEPT_AFTER_REFUSAL)
    if old.update(wanted=False):
        source.mirrors.filter(held_since__isnull=False).update(reselected=True)


# --- what a look at the source tells ---------------------------------------------------------------------------------


def note_seen(source: Repository, branch: str, commits: Iterable[str], at: datetime) -> set[str]:
    """A branch was found at some of these: those of them that were acknowledged."""
    found: set[str] = set()
    for some in chunks(list(commits)):
        of = HeldMerge.objects.filter(repository=source, branch=branch, commit_id__in=some)
        of.filter(state=State.NOT_TAKEN).update(state=State.RELEASED)  # it was, only later than anybody thought
        rows = of.filter(state__in=ACKNOWLEDGED)
        found.update(rows.values_list("commit_id", flat=True))
        rows.filter(_UNSEEN).update(seen_at=at, wanted=False)
    return found


def note_ungated(source: Repository, branch: str, commits: Iterable[str], at: datetime) -> None:
    """These came without a release, although mirrors hold what is merged into the branch."""
    known = HeldMerge.objects.filter(repository=source, branch=branch, state=State.UNGATED)
    commits, ids = list(commits), known.values_list("commit_id", flat=True)
    before = {sha for some in chunks(commits) for sha in ids.filter(commit_id__in=some)}
    HeldMerge.objects.bulk_create(
        HeldMerge(
            repository=source,
            branch=branch,
            commit_id=sha,
            state=State.UNGATED,
            held_at=at,
            until=at,
            ended_at=at,
            seen_at=at,
            wanted=False,
        )
        for sha in commits
        if sha not in before
    )


def note_not_taken(source: Repository, looked_at: datetime) -> None:
    """After a look that began long after a release, and found the branch elsewhere."""
    rows = HeldMerge.objects.filter(repository=source, wanted=True, state__in=ACKNOWLEDGED).filter(_UNSEEN)
    rows.filter(ended_at__lt=looked_at - TAKEN_WITHIN).update(state=State.NOT_TAKEN, ended_at=looked_at)


# --- what is told of them --------------------------------------------------------------------------------------------


def held_of(mirror: Mirror) -> QuerySet[HeldMerge]:
    """Those into branches that the mirror has, the last one first."""
    rows = HeldMerge.objects.filter(repository=mirror.source_id)
    branches = rows.order_by().values_list("branch", flat=True).distinct()
    return rows.filter(branch__in=[branch for branch in branches if branch in mirror.selection]).order_by("-pk")


def unseen_releases(mirror: Mirror) -> list[HeldMerge]:
    """Merges that were acknowledged as complete in the mirror's region, and of which no head was ever seen."""
    rows = HeldMerge.objects.filter(repository=mirror.source_id, state=State.RELEASED, seen_at=None)
    return [held for held in rows.order_by("pk") if mirror.region in held.complete_in]


def release_words(mirror: Mirror) -> list[str]:
    """The same as the statement of loss tells them."""
    return [
        f"the merge {held.commit_id[:SHORT_ID]} into {held.branch} was released and is complete in {mirror.region}, "
        f"but {held.branch} was never seen there: it is shown on your word alone"
        for held in unseen_releases(mirror)
    ]


def ungated_now(mirrors: list[Mirror], now: datetime) -> dict[int, list[HeldMerge]]:
    """Heads of the last day that came without a release, by mirror; one query."""
    holding = [mirror for mirror in mirrors if mirror.hold]
    if not holding:
        return {}
    recent = Q(state=State.UNGATED, held_at__gt=now - UNGATED_FOR)
    rows = list(HeldMerge.objects.filter(recent, repository__in={mirror.source_id for mirror in holding}))
    return {
        mirror.pk: [
            row for row in rows if row.repository_id == mirror.source_id and policy_for(mirror.hold, row.branch)
        ]
        for mirror in holding
    }
