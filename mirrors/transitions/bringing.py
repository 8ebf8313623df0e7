"""What somebody asked LakeMirror to copy once, in place of the stores: what is missing then, until that is there.

The blockers that are asked for say since when. Of all that is missing more becomes known while it is copied: a
metarange names ranges, and ranges objects. That is part of it where a commit lacks it which the mirror had when it was
asked for, or a range that lacked more than is kept by name; not what was lost or came to be needed since. It ends in
the round that finds nothing of it left, and a day after it was asked for at the latest. What the store refuses to show
may be missing: that is left, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from core.bringing import ObjectReplication
from core.mirroring.object_check import Reason
from db import clock
from db.chunks import chunks
from jobs.lease import Lease
from mirrors.models import Blocker, Coverage, Mirror, MirrorCommit
from mirrors.models.problem import KEPT_PER_HOLDER
from mirrors.transitions.blockers import FRESH
from mirrors.transitions.causes import awaited, wrong
from mirrors.transitions.validity import locked_mirror

LASTS = timedelta(hours=24)
_COLUMNS = ("bring_at", "bring_by", "bring_all_at", "bring_all_by", "bring_upto")
_ASKED = Q(bring_asked_at__isnull=False) | Q(replace_asked_at__isnull=False)
_NOT_ALL = {"bring_all_at": None, "bring_all_by": "", "bring_upto": None}
_NOTHING = {"bring_at": None, "bring_by": "", **_NOT_ALL}
_UNSEEN = (Reason.UNREADABLE, Reason.RANGE_UNREADABLE, Reason.METARANGE_UNREADABLE)


def asked_for(mirror: Mirror) -> QuerySet[Blocker]:
    """What is missing and is to be copied."""
    return awaited(mirror).filter(bring_asked_at__isnull=False)


def to_replace(mirror: Mirror) -> QuerySet[Blocker]:
    """What is wrong and is to be written over."""
    return wrong(mirror).filter(replace_asked_at__isnull=False)


def asked_since(mirror: Mirror, at: datetime) -> bool:
    """Whether something goes on that somebody has asked for after that."""
    later = Q(bring_asked_at__gt=at) | Q(replace_asked_at__gt=at)
    return any(rows(mirror).filter(later).exists() for rows in (asked_for, to_replace, refused))


def refused(mirror: Mirror) -> QuerySet[Blocker]:
    """What somebody asked for and the store refuses to show: whether it is missing will be seen."""
    return _unseen(mirror).filter(_ASKED)


def _unseen(mirror: Mirror) -> QuerySet[Blocker]:
    rows = mirror.blockers.needed().filter(reason__in=_UNSEEN, gone_at_source=False, waived=False)
    return rows.exclude(full=True).exclude(address_hash="")


def ask(mirror: Mirror, rows: QuerySet[Blocker], *, by: str, replace: bool, everything: bool) -> int:
    """Have these blockers' files copied, or replaced; or, if that is `everything`, all that is missing. Gives how many
    files are known to be. In a transaction that holds the mirror."""
    now = clock.now()
    number = rows.order_by().values("kind", "key").distinct().count()
    rows.update(**{"replace_asked_at" if replace else "bring_asked_at": now}, look_at=now)
    if everything:
        _ask_for_all(mirror, now, by)
    if number or everything:
        Mirror.objects.filter(pk=mirror.pk).update(bring_at=now, bring_by=by)
    _end_if_nothing_is_left(mirror)
    return number


def _ask_for_all(mirror: Mirror, at: datetime, by: str) -> None:
    newest = MirrorCommit.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    Mirror.objects.filter(pk=mirror.pk).update(bring_all_at=at, bring_all_by=by, bring_upto=newest)
    mirror.blockers.filter(bring_asked_at__lt=at).update(bring_asked_at=at)
    unnamed = mirror.coverage.filter(state=Coverage.State.WAITING, problems__gt=KEPT_PER_HOLDER)
    unnamed.update(bring_asked_at=at)


def stop(mirror: Mirror) -> int:
    """Nothing more is copied of what was asked for; gives of how many files that is so. In a transaction that holds the
    mirror."""
    rows = mirror.blockers.filter(pk__in=asked_for(mirror).order_by().values("pk"))
    rows |= mirror.blockers.filter(pk__in=to_replace(mirror).order_by().values("pk"))
    rows |= mirror.blockers.filter(pk__in=refused(mirror).order_by().values("pk"))
    number = rows.order_by().values("kind", "key").distinct().count()
    end(mirror)
    return number


def end(mirror: Mirror) -> None:
    """Nobody asks for anything any more."""
    mirror.blockers.filter(_ASKED).update(bring_asked_at=None, replace_asked_at=None)
    _forget_all(mirror)
    _set(mirror, **_NOTHING)


def end_if_managed(mirror: Mirror, lease: Lease) -> None:
    """The same, where LakeMirror copies everything still: what is asked for after that is another matter. Raises
    Fenced."""
    if mirror.bring_at is None and mirror.bring_all_at is None and not mirror.blockers.filter(_ASKED).exists():
        return
    with locked_mirror(mirror, lease, settings=False):
        if Mirror.objects.filter(pk=mirror.pk, object_replication=ObjectReplication.MANAGED).exists():
            end(mirror)


def take_over(mirror: Mirror, rows: Iterable[Blocker]) -> None:
    """A version before was asked for these and noted only that: it is told, and ends, as what was asked for now."""
    at = max(filter(None, (moment for row in rows for moment in (row.bring_asked_at, row.replace_asked_at))))
    Mirror.objects.filter(pk=mirror.pk, bring_at=None).update(bring_at=at)


def _forget_all(mirror: Mirror) -> None:
    mirror.coverage.filter(bring_asked_at__isnull=False).update(bring_asked_at=None)
    _set(mirror, **_NOT_ALL)


def _set(mirror: Mirror, **columns: object) -> None:
    still = Q(bring_at__isnull=False) | Q(bring_all_at__isnull=False)
    Mirror.objects.filter(still, pk=mirror.pk).update(**columns)
    for name, value in columns.items():
        setattr(mirror, name, value)


def keep_in_step(mirror: Mirror, lease: Lease) -> None:
    """Before and after a round: what has turned out to be missing is part of it, or not; and it ends where nothing of
    it is left, or a day has passed. Raises Fenced."""
    mirror.refresh_from_db(fields=_COLUMNS)
    if mirror.bring_at is None and mirror.bring_all_at is None:
        return
    with locked_mirror(mirror, lease, settings=False):
        mirror.refresh_from_db(fields=_COLUMNS)  # somebody may have stopped it before the lock
        _end_what_is_old(mirror)
        _take_up(mirror)
        _end_if_nothing_is_left(mirror)


def _end_what_is_old(mirror: Mirror) -> None:
    day_ago = clock.now() - LASTS
    mirror.blockers.filter(bring_asked_at__lt=day_ago).update(bring_asked_at=None)
    mirror.blockers.filter(replace_asked_at__lt=day_ago).update(replace_asked_at=None)
    if mirror.bring_all_at is not None and mirror.bring_all_at < day_ago:
        _forget_all(mirror)


def _take_up(mirror: Mirror) -> None:
    """Of all that is missing what was not known yet. A version before notes nothing but the time."""
    if mirror.bring_all_at is None:
        return
    if mirror.bring_upto is None:
        _ask_for_all(mirror, mirror.bring_all_at, mirror.bring_by)
        mirror.refresh_from_db(fields=_COLUMNS)
    for some in _part_of_all(mirror, awaited(mirror)):
        some.update(bring_asked_at=mirror.bring_all_at)


def _part_of_all(mirror: Mirror, rows: QuerySet[Blocker]) -> Iterator[QuerySet[Blocker]]:
    """Those of the rows that nobody has asked for by name and that are part of all that was missing then."""
    new = rows.filter(bring_asked_at=None)
    unnamed = mirror.coverage.filter(bring_asked_at__isnull=False).values("range_id")
    yield new.filter(holder_id__in=unnamed)
    lost = mirror.blockers.filter(damage=True, first_seen__gt=mirror.bring_all_at, bring_asked_at=None)
    new = new.filter(damage=False).exclude(address_hash__in=lost.order_by().values("address_hash"))
    for some in chunks(sorted(_needed_then(mirror, set(new.order_by().values_list("holder_id", flat=True))))):
        yield new.filter(kind__in=Blocker.Kind.values, holder_id__in=some)


def _needed_then(mirror: Mirror, holders: set[str]) -> set[str]:
    """Those of the holders that commits wait for which the mirror had when all was asked for."""
    if not holders:
        return set()
    waiting = mirror.commits.filter(data=MirrorCommit.Data.WAITING, pk__lte=mirror.bring_upto)
    named: Iterator[list[str]] = waiting.values_list("waits_for", flat=True).iterator()
    return {holder for waits_for in named for holder in waits_for if holder in holders}


def _end_if_nothing_is_left(mirror: Mirror) -> None:
    mirror.refresh_from_db(fields=_COLUMNS)
    left = any(rows.exists() for rows in (asked_for(mirror), to_replace(mirror), refused(mirror)))
    if not left and mirror.bring_all_at is not None:
        left = _may_have_more(mirror)
    if not left:
        end(mirror)


def _may_have_more(mirror: Mirror) -> bool:
    """Whether more of all that was missing may become known: by commits that are to be judged, ranges that are to be
    read, or what the store has refused to show for no longer than such a refusal usually lasts."""
    unjudged = mirror.commits.unjudged().filter(pk__lte=mirror.bring_upto)
    if unjudged.exists() or mirror.coverage.doubted().filter(bring_asked_at__isnull=False).exists():
        return True
    lately = _unseen(mirror).filter(first_seen__gt=clock.now() - FRESH)
    return any(rows.exists() for rows in _part_of_all(mirror, lately))
