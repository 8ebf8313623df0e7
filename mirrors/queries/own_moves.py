"""Where did this mirror put a branch? By its own books, whatever became of the source's since."""

from __future__ import annotations

from core.mirroring.promotion import MOVED_BY_OTHERS, CandidateCommit, Why
from mirrors.models import MirrorBranch, Promotion

NOT_OUR_DOING = [*MOVED_BY_OTHERS, Why.WRITTEN]


def where_put(row: MirrorBranch | None) -> CandidateCommit | None:
    """The commit that a branch was last moved to, for one whose candidate is no more: the source made it again."""
    if row is None or row.stray or row.position < 0:
        return None
    commit = _last_move(row) if row.misplaced else row.head
    return CandidateCommit(commit, row.position) if commit else None


def _last_move(row: MirrorBranch) -> str:
    moves = Promotion.objects.filter(mirror=row.mirror_id, branch=row.name, is_tag=False)
    own = moves.exclude(why__in=[*NOT_OUR_DOING, Why.UNDONE]).order_by("-pk")
    return own.values_list("to_commit", flat=True).first() or ""
