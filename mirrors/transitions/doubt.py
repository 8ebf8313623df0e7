"""What is found missing or wrong puts in question all that names it: in every state, at once, in one transaction.

Coverage rows that may name it are read again before they count; commits that may need such a row are judged again
before a ref is moved to them. A ref that stands at one stays, and its page says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from django.db.models import F, Q

from core.mirroring.doubt import KEY_BYTES, KnownRange, Suspect, that_may_name
from core.mirroring.object_check import Depth
from db import clock
from db.chunks import chunks
from jobs import duties
from mirrors.models import Blocker, Coverage, MetarangeCoverage, Mirror, MirrorCommit, MirrorDuty
from mirrors.models.problem import KEPT_PER_HOLDER
from mirrors.queries.coverage import only_read_ends
from mirrors.queries.metarange_cache import remembered
from mirrors.transitions.proven_heads import unprove_heads
from mirrors.transitions.range_states import taken_down

State = Coverage.State
_JUDGED = (MirrorCommit.Data.COMPLETE, MirrorCommit.Data.GONE)


def doubt_sharers(
    mirror: Mirror, holders: Collection[str], suspects: Sequence[Suspect], *, named: bool = True, deeper: str = ""
) -> None:
    """Objects were found missing or wrong by some ranges: question every other one that may name them.

    Inside of the transaction that notes them, under the mirror's lock. Of those that are not kept by name (`named`)
    nobody knows afterwards which they were: then all that such a range names is looked for, as deep as the check that
    found them, if that was `deeper` than the mirror's own.
    """
    if not suspects:
        return
    paths = [suspect.path[:KEY_BYTES] for suspect in suspects]
    around = known_ranges(mirror, min(paths), max(paths))
    doubted = that_may_name(suspects, around).difference(holders)
    if named:
        doubt_ranges(mirror, doubted)
    else:
        doubt_all_of(mirror, doubted, deeper)


def known_ranges(mirror: Mirror, first: bytes, last: bytes) -> list[KnownRange]:
    """Ranges that were checked and may hold entries between two paths."""
    rows = mirror.coverage.filter(looked__isnull=False, min_key__lte=last, max_key__gte=first)
    names = ("range_id", "min_key", "max_key", "looked", "bases")
    return [
        KnownRange(range_id, bytes(low), bytes(high), bytes(looked), bases)
        for range_id, low, high, looked, bases in rows.values_list(*names).iterator()
    ]


def doubt_ranges(mirror: Mirror, range_ids: Collection[str]) -> None:
    """These ranges may name something that is missing or wrong: each is read before it counts again."""
    fell: set[str] = set()
    for some in chunks(sorted(range_ids)):
        rows = mirror.coverage.filter(range_id__in=some)
        fell.update(rows.exclude(state=State.WAITING).values_list("range_id", flat=True))
        rows.filter(state=State.WAITING, doubt="").update(doubt=Coverage.Doubt.FRESH, verify_at=clock.now())
        complete = rows.exclude(state=State.WAITING)
        # Looks as deep as the mirror's own will complete it.
        complete.filter(depth__in=Depth(mirror.depth).deeper).update(depth=mirror.depth)
        complete.update(state=State.WAITING, doubt=Coverage.Doubt.SHARED, verify_at=clock.now())
    doubt_holders(mirror, fell)


def doubt_all_of(mirror: Mirror, range_ids: Collection[str], deeper: str = "") -> None:
    """These ranges may name something that is missing or wrong and not known by name: all of them is looked through, as
    deep as what found it.

    Without those that lack such things themselves: they are looked through before they are complete again.
    """
    fell: set[str] = set()
    for some in chunks(sorted(range_ids)):
        rows = mirror.coverage.filter(range_id__in=some).exclude(depth="")
        if deeper:
            shallow = [depth for depth in Depth if Depth(deeper).is_deeper_than(depth)]
            rows.filter(deeper__in=["", *shallow]).update(deeper=deeper)
        fell.update(rows.exclude(state=State.WAITING).values_list("range_id", flat=True))
        lack_more = Q(state=State.WAITING, verify_at=None, problems__gt=KEPT_PER_HOLDER)
        rows.exclude(lack_more).update(state=State.WAITING, doubt=Coverage.Doubt.WHOLE, verify_at=clock.now())
    doubt_holders(mirror, fell)


def doubt_all(mirror: Mirror) -> None:
    """Nothing that was checked proves anything any more: the repository was made anew. What only a read ends is known
    of the same store as before, and is read at once.

    Inside of a transaction that holds the mirror.
    """
    mirror.coverage.update(**taken_down())
    mirror.metaranges.all().delete()
    found = mirror.blockers.exclude(kind=Blocker.Kind.RECORD)
    found.exclude(only_read_ends()).delete()
    found.update(look_at=clock.now())
    doubt_judgements(mirror)


def forget_all(mirror: Mirror) -> None:
    """Another store: nothing is known of it, neither for nor against anything. Inside of such a transaction."""
    mirror.blockers.exclude(kind=Blocker.Kind.RECORD).delete()
    mirror.coverage.update(deeper="")
    doubt_all(mirror)


def doubt_judgements(mirror: Mirror) -> None:
    """All commits are judged anew. Inside of a transaction that holds the mirror."""
    mirror.commits.exclude(data=MirrorCommit.Data.UNCHECKED).update(
        data=MirrorCommit.Data.UNKNOWN, history=False, validated_at=None
    )
    mirror.commits.filter(history=True).update(history=False)
    _take_back(mirror)


def doubt_holders(mirror: Mirror, fallen: Collection[str]) -> None:
    """Ranges were taken for whole and are so no more: commits that may name them are judged again.

    All of those of which the ranges are not in memory, for it must not be long until this is written.
    """
    if not fallen:
        return
    judged = mirror.commits.filter(data__in=_JUDGED).exclude(commit__metarange_id="")
    rows = judged.values_list("pk", "commit_id", "commit__metarange_id")
    doubt_commits(mirror, [(pk, key) for pk, key, metarange in rows.iterator() if _may_name(metarange, fallen)])


def doubt_metaranges(mirror: Mirror, metarange_ids: Iterable[str]) -> None:
    """Metaranges that were there are not, or wrong: the commits that they belong to are judged again."""
    concerned: list[tuple[int, int]] = []
    for some in chunks(sorted(metarange_ids)):
        mirror.metaranges.filter(metarange_id__in=some).update(state=MetarangeCoverage.State.WAITING, verify_at=None)
        rows = mirror.commits.filter(data__in=_JUDGED, commit__metarange_id__in=some)
        concerned += rows.values_list("pk", "commit_id")
    if concerned:
        doubt_commits(mirror, concerned)


def doubt_commits(mirror: Mirror, commits: Sequence[tuple[int, int]]) -> None:
    """Commits, by the keys of their rows and their own, are judged again, and the history of all that came later."""
    for some in chunks([pk for pk, _ in commits]):
        mirror.commits.filter(pk__in=some).update(data=MirrorCommit.Data.UNKNOWN)
    if commits:
        mirror.commits.filter(commit_id__gt=min(key for _, key in commits), history=True).update(history=False)
    _take_back(mirror)


def _may_name(metarange_id: str, fallen: Collection[str]) -> bool:
    metarange = remembered().get(metarange_id)
    return metarange is None or any(ref.id in fallen for ref in metarange.ranges)


def _take_back(mirror: Mirror) -> None:
    """In the same instant no head says better than its commit."""
    Mirror.objects.filter(pk=mirror.pk).update(facts_epoch=F("facts_epoch") + 1)
    unprove_heads(mirror)
    duties.wake(MirrorDuty.VALIDATE, mirror.pk)
