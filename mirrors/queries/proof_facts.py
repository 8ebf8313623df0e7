"""The facts that the judge goes by (core/mirroring/judgement.py), read when they are asked for.

What a metarange names never changes, so it may come from anywhere; that all of it is there now is asked of the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Count

from core.errors import Invalid
from core.mirroring.judgement import Circumstances, CommitProof, Judgement, judge_commit
from core.mirroring.object_check import Depth
from db.chunks import chunks
from deployment.wiring import region_settings
from graveler.metarange import RangeRef
from mirrors.models import Blocker, Commit, Coverage, MetarangeCoverage, Mirror, MirrorCommit, Repository
from mirrors.queries.coverage import CHUNK
from mirrors.queries.metaranges import ranges_named

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


def judge_at(mirrors: Mapping[int, Mirror], rows: Sequence[MirrorCommit]) -> dict[int, Judgement]:
    """The same of one commit at several mirrors, all by their keys, in so many questions as for one of them."""
    if not rows:
        return {}
    named = _named_at([mirrors[row.mirror_id] for row in rows], rows[0].commit.metarange_id)
    return {key: judge_commit(proof) for key, proof in _proofs(mirrors, rows, named).items()}


def gone_at_source(mirrors: Mapping[int, Mirror], commit: Commit) -> dict[int, bool | None]:
    """Whether something of a commit was found missing at the source too, whatever else it waits for: by each of these
    mirrors of its source. None where that can't be told: its metarange is not at hand, or one of its ranges was not
    looked through, and the mirror lacks things that are gone there.
    """
    named = _named_at(mirrors.values(), commit.metarange_id)
    problems = _problems(list(mirrors), _holders(commit, named))
    lost: dict[int, bool | None] = {key: problems[key, True] > 0 for key in mirrors}
    unsure = [key for key, known in lost.items() if not known]
    lacking = Blocker.objects.filter(mirror__in=unsure, gone_at_source=True).order_by()
    for key in lacking.values_list("mirror_id", flat=True).distinct():
        lost[key] = None if named is None or not _is_looked_through(key, [ref.id for ref in named]) else False
    return lost


def _is_looked_through(mirror: int, range_ids: Sequence[str]) -> bool:
    """Whether a mirror knows all that is missing of some ranges."""
    known = 0
    for some in chunks(range_ids, CHUNK):
        rows = Coverage.objects.filter(mirror=mirror, range_id__in=some, doubt=Coverage.Doubt.NONE)
        unread = Blocker.objects.filter(mirror=mirror, kind=Blocker.Kind.RANGE, holder_id__in=some).order_by()
        known += rows.exclude(looked=None).exclude(depth="").exclude(range_id__in=unread.values("holder_id")).count()
    return known == len(range_ids)


def _named_at(mirrors: Iterable[Mirror], metarange_id: str) -> Named:
    """What a metarange names, from any of these mirrors."""
    at_hand = (ranges_named(mirror, metarange_id) for mirror in mirrors)
    return next((ranges for ranges in at_hand if ranges is not None), None)


def _holders(commit: Commit, named: Named) -> list[str]:
    """Who may lack something of the commit's own."""
    return [holder for holder in (commit.sha, commit.metarange_id, *(ref.id for ref in named or ())) if holder]


def proof_of(mirror: Mirror, row: MirrorCommit, named: Named) -> CommitProof:
    """What the rows prove of a commit by the mirror's settings; inside of any transaction."""
    return _proofs({mirror.pk: mirror}, [row], named)[mirror.pk]


def _proofs(mirrors: Mapping[int, Mirror], rows: Sequence[MirrorCommit], named: Named) -> dict[int, CommitProof]:
    """Of one commit, which has a row at each of these mirrors."""
    keys, metarange_id = [row.mirror_id for row in rows], rows[0].commit.metarange_id
    ids = [ref.id for ref in named or ()]
    problems, states = _problems(keys, _holders(rows[0].commit, named)), _metarange_states(keys, metarange_id)
    proven = _proven(mirrors, keys, ids)
    return {
        row.mirror_id: CommitProof(
            elsewhere=not is_at_its_store(mirrors[row.mirror_id]),
            record=row.record,
            waived=row.waiver_id is not None,
            history=row.history,
            metarange=states.get(row.mirror_id, "unknown") if metarange_id else "",
            ranges=None if named is None else len(ids),
            proven=proven[row.mirror_id],
            problems=problems[row.mirror_id, True] + problems[row.mirror_id, False],
            gone=problems[row.mirror_id, True],
        )
        for row in rows
    }


def _problems(mirrors: Collection[int], holders: Sequence[str]) -> Counter[tuple[int, bool]]:
    """How many things they hold, by mirror and by whether those are gone at the source too."""
    counts: Counter[tuple[int, bool]] = Counter()
    for some in chunks(holders, CHUNK):
        rows = Blocker.objects.filter(mirror__in=mirrors).held_by(some).order_by()
        counts.update(rows.values_list("mirror_id", "gone_at_source").iterator())
    return counts


def _proven(mirrors: Mapping[int, Mirror], keys: Collection[int], range_ids: Sequence[str]) -> Counter[int]:
    """How many of the ranges are complete, by mirror: at the depth of each, or deeper."""
    counts: Counter[int] = Counter()
    for some in chunks(range_ids, CHUNK):
        rows = Coverage.objects.filter(mirror__in=keys, range_id__in=some, state=Coverage.State.COMPLETE)
        counted: Any = rows.filter(looked__isnull=False).order_by().values_list("mirror_id", "depth")
        for key, depth, number in counted.annotate(Count("pk")):
            if depth in _depths(mirrors[key]):
                counts[key] += number
    return counts


def _depths(mirror: Mirror) -> Collection[str]:
    """Those of checks that count at the mirror; none at a depth that only a newer version knows."""
    known = mirror.depth in set(Depth)
    return {mirror.depth, *Depth(mirror.depth).deeper} if known else ()


def _metarange_states(mirrors: Collection[int], metarange_id: str) -> dict[int, str]:
    rows = MetarangeCoverage.objects.filter(mirror__in=mirrors, metarange_id=metarange_id)
    return dict(rows.values_list("mirror_id", "state"))


def store_of(mirror: Mirror) -> str:
    """The store where its objects are looked for now, as `Mirror.store` has it: what was proven of another is void."""
    return region_settings.store_identity(mirror.region)[:1100]


def is_at_its_store(mirror: Mirror) -> bool:
    """Whether its objects are looked for where its checks were made; so it is for one that was never checked, and for
    one of whose region no installation is configured any more."""
    if not mirror.store:
        return True
    try:
        return mirror.store == store_of(mirror)
    except Invalid:
        return True


def circumstances(mirror: Mirror) -> tuple[Mirror | None, Circumstances]:
    """The mirror as it is now, locked until the transaction ends, and what holds for it as a whole.

    `mirror` is as it was when the decision was made.
    """
    source = Repository.objects.filter(pk=mirror.source_id).values_list("frozen_reason", flat=True).first()
    now = Mirror.objects.select_for_update(of=("self",), no_key=True).select_related("source").filter(pk=mirror.pk)
    current = now.first()
    if current is None:
        return None, Circumstances(active=False)
    decided = ("depth", "content_sample", "imported", "selected", "history", "first_sync", "tags", "storage_namespace")
    return current, Circumstances(
        active=current.state == Mirror.State.ACTIVE,
        paused=current.paused,
        frozen=bool(source) or bool(current.source.frozen_reason),
        unchanged=all(getattr(current, name) == getattr(mirror, name) for name in decided),
        pinned=current.pinned_creation_date == mirror.pinned_creation_date and is_at_its_store(current),
    )
