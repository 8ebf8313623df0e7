"""The facts that the judge goes by (core/judgement.py), read when they are asked for.

What a metarange names never changes, so it may come from anywhere; that all of it is there now is asked of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.judgement import Circumstances, CommitProof, Judgement, judge_commit
from core.presence import Depth
from graveler.metarange import RangeRef
from lakemirror_site import wiring
from mirrors.doubting import chunks
from mirrors.metaranges import ranges_named
from mirrors.models import Coverage, Mirror, MirrorCommit, Repository

CHUNK = 10_000
"""So many ids in one question; hardly a commit has more ranges."""

Named = tuple[RangeRef, ...] | None
"""What a metarange names; None while it is nowhere at hand."""


def row_of(mirror: Mirror, sha: str) -> MirrorCommit | None:
    """A commit's row at a mirror, with its record."""
    rows = mirror.commits.filter(commit__repository=mirror.source_id, commit__sha=sha)
    return rows.select_related("commit").first()


def judge(mirror: Mirror, row: MirrorCommit | None) -> Judgement:
    """Whether a commit is proven whole at a mirror now. May fetch its metarange: not inside of a transaction."""
    if row is None:
        return judge_commit(None)
    return judge_commit(proof_of(mirror, row, ranges_named(mirror, row.commit.metarange_id)))


def proof_of(mirror: Mirror, row: MirrorCommit, named: Named) -> CommitProof:
    """What the rows prove of a commit by the mirror's settings; inside of any transaction."""
    metarange_id = row.commit.metarange_id
    ids = [ref.id for ref in named or ()]
    holders = [row.commit.sha, metarange_id, *ids] if metarange_id else [row.commit.sha]
    flags = [gone for some in chunks(holders, CHUNK) for gone in _problems(mirror, some)]
    return CommitProof(
        record=row.record,
        waived=row.waiver_id is not None,
        history=row.history,
        metarange=_metarange_state(mirror, metarange_id),
        ranges=None if named is None else len(ids),
        proven=sum(_proven(mirror, some) for some in chunks(ids, CHUNK)),
        problems=len(flags),
        gone=sum(flags),
    )


def _problems(mirror: Mirror, holders: Sequence[str]) -> Iterable[bool]:
    return mirror.blockers.held_by(holders).order_by().values_list("gone_at_source", flat=True)


def _proven(mirror: Mirror, range_ids: Sequence[str]) -> int:
    rows = mirror.coverage.proving(Depth(mirror.depth)).filter(state=Coverage.State.COMPLETE)
    return rows.filter(range_id__in=range_ids).count()


def _metarange_state(mirror: Mirror, metarange_id: str) -> str:
    if not metarange_id:
        return ""
    state = mirror.metaranges.filter(metarange_id=metarange_id).values_list("state", flat=True).first()
    return state or "unknown"


def store_of(mirror: Mirror) -> str:
    """The store where its objects are looked for now, as `Mirror.store` has it: what was proven of another is void."""
    return wiring.store_identity(mirror.region)[:1100]


def circumstances(mirror: Mirror) -> tuple[Mirror | None, Circumstances]:
    """The mirror as it is now, locked until the transaction ends, and what holds for it as a whole.

    `mirror` is as it was when the decision was made.
    """
    source = Repository.objects.filter(pk=mirror.source_id).values_list("frozen_reason", flat=True).first()
    now = Mirror.objects.select_for_update(of=("self",), no_key=True).select_related("source").filter(pk=mirror.pk)
    found = now.first()
    if found is None:
        return None, Circumstances(active=False)
    decided = ("depth", "content_sample", "imported", "selected", "history", "tags", "storage_namespace")
    return found, Circumstances(
        active=found.state == Mirror.State.ACTIVE,
        paused=found.paused,
        frozen=bool(source) or bool(found.source.frozen_reason),
        unchanged=all(getattr(found, name) == getattr(mirror, name) for name in decided),
        pinned=found.pinned_creation_date == mirror.pinned_creation_date and found.store in ("", store_of(found)),
    )
