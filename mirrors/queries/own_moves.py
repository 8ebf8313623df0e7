"""Where did this mirror put a branch, and when did one last move forward? By its own books, whatever became of the
source's since."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Max, OuterRef, Q, QuerySet, Subquery

from core.mirroring.promotion import MOVED_BY_OTHERS, CandidateCommit, Why
from db import clock
from mirrors.models import Mirror, MirrorBranch, Promotion

_FORWARD = (Why.FIRST, Why.ADVANCED, Why.REWOUND)
NOT_OUR_DOING = [*MOVED_BY_OTHERS, Why.WRITTEN]
LATELY = timedelta(minutes=5)
"""So long the destination is not asked anew whether it was restored because of one and the same branch or tag."""


def is_news(mirror: Mirror, moved_by_others: Collection[str], *, tags: bool = False) -> bool:
    """Whether some of these branches or tags, which are not where we put them, were where we put them lately: then the
    destination may just have been restored."""
    if not moved_by_others:
        return False
    noted = mirror.promotions.filter(is_tag=tags, why__in=MOVED_BY_OTHERS, at__gt=clock.now() - LATELY)
    return not set(noted.values_list("branch", flat=True)).issuperset(moved_by_others)


def where_put(row: MirrorBranch | None) -> CandidateCommit | None:
    """The commit that a branch was last moved to, for one whose candidate is no more: the source made it again."""
    if row is None or row.stray or row.position < 0:
        return None
    commit = _last_move(row) if row.misplaced else row.head
    return CandidateCommit(commit, row.position) if commit else None


def has_put(mirror: Mirror, ref: str, commit: str, *, tag: bool = False, is_ours: bool = False) -> bool:
    """Whether this mirror has once moved a branch, or made a tag, at a commit, and it `is_ours` or nobody is known to
    have made one of its name since."""
    put = bool(commit) and _own_moves(Q(mirror=mirror, branch=ref, to_commit=commit), tags=tag).exists()
    return put and (is_ours or not made_since(mirror, ref, tag=tag))


def last_place_of_tag(mirror: Mirror, tag: str) -> str:
    """The commit that this mirror made or left a tag at last; "" if it deleted it, or never made it."""
    moves = _own_moves(Q(mirror=mirror, branch=tag), tags=True)
    return moves.values_list("to_commit", flat=True).first() or ""


def made_since(mirror: Mirror, ref: str, *, tag: bool = False) -> bool:
    """Whether somebody is known to have made a branch or tag of this name since this mirror moved its own last."""
    own = _own_moves(Q(mirror=mirror, branch=ref), tags=tag).values_list("pk", flat=True).first()
    theirs = mirror.promotions.filter(branch=ref, is_tag=tag, why=Why.FOREIGN, from_commit="")
    return theirs.filter(pk__gt=own or 0).exists()


def heads_and_places(mirror: Mirror) -> set[str]:
    """What the mirror's branches show, and where it put those that somebody moved since: they are to be put back."""
    rows = mirror.branches.filter(stray=False)
    moves = _own_moves(Q(mirror=OuterRef("mirror"), branch=OuterRef("name"))).values("to_commit")
    misplaced = rows.filter(misplaced=True, position__gte=0).annotate(put=Subquery(moves[:1]))
    return {*rows.values_list("head", flat=True), *misplaced.values_list("put", flat=True)} - {"", None}


def _last_move(row: MirrorBranch) -> str:
    own = _own_moves(Q(mirror=row.mirror_id, branch=row.name))
    return own.values_list("to_commit", flat=True).first() or ""


def _own_moves(of: Q, *, tags: bool = False) -> QuerySet[Promotion]:
    """Moves of branches, or of tags, by this mirror, the last one first."""
    return Promotion.objects.filter(of, is_tag=tags).exclude(why__in=[*NOT_OUR_DOING, Why.UNDONE]).order_by("-pk")


def last_arrivals(pairs: Collection[tuple[str, str]], since: datetime) -> dict[tuple[str, str], datetime]:
    """When a branch of any mirror last moved forward, by source region and region, of those where one did since then;
    one query."""
    if not pairs:
        return {}
    rows = Promotion.objects.filter(at__gte=since, why__in=_FORWARD, is_tag=False)
    rows = rows.filter(mirror__region__in={region for _, region in pairs})
    last = rows.order_by().values_list("mirror__source__region", "mirror__region").annotate(at=Max("at"))
    return {(source, region): at for source, region, at in last}
