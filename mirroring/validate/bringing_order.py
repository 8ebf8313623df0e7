"""Which commits are checked first where what is missing is brought: heads, then tags, then history from new to old."""

from __future__ import annotations

from datetime import datetime

from core.mirroring.branch_selection import rank_of
from db.chunks import chunks
from mirrors.models import Mirror, MirrorCommit


def next_to_bring(mirror: Mirror, most: int, *, alone: bool) -> list[MirrorCommit]:
    """The commits of a round, most wanted first, at most so many.

    The default branch's head alone, or other heads that are wanted alike. Unless they go `alone`, as in every other
    round, the rest follows behind them, lest a source that moves on all the time keeps its history from ever coming.
    """
    heads = _wanted_heads(mirror)[:most]
    if heads and alone:
        return heads
    chosen = {row.pk: row for row in heads}
    for rest in (_tagged(mirror, most), mirror.commits.unjudged().order_by("-commit_id")[:most]):
        if len(chosen) < most:
            chosen |= {row.pk: row for row in rest if row.pk not in chosen}
    return list(chosen.values())[:most]


def _wanted_heads(mirror: Mirror) -> list[MirrorCommit]:
    """Heads of the branches that are wanted most of those of which any waits to be checked, the newest first."""
    branches = mirror.source.branches.filter(gone_at=None).exclude(head="").order_by()
    rows = {row.commit.sha: row for row in mirror.commits.unjudged().filter(commit__sha__in=branches.values("head"))}
    ranked: dict[int, dict[str, datetime]] = {}
    for some in chunks(list(rows)):
        for name, head, changed_at in branches.filter(head__in=some).values_list("name", "head", "changed_at"):
            if name in mirror.selection:
                rank = rank_of(name, mirror.source.default_branch, mirror.branch_priority)
                alike = ranked.setdefault(rank, {})
                alike[head] = max(changed_at, alike.get(head, changed_at))
    if not ranked:
        return []
    first = ranked[min(ranked)]
    return [rows[head] for head in sorted(first, key=lambda head: (first[head], rows[head].commit_id), reverse=True)]


def _tagged(mirror: Mirror, most: int) -> list[MirrorCommit]:
    if not mirror.tags:
        return []
    tags = mirror.source.tags.filter(gone_at=None).order_by()
    return list(
        mirror.commits.unjudged().filter(commit__sha__in=tags.values("commit_id")).order_by("-commit_id")[:most]
    )
