"""When was a branch later than its mirror's target? Times that begin and end: kept, and summed up.

Noted in each round of *promote*, before and after branches are moved; a round in which nothing changed writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery, Sum, Window
from django.db.models.functions import Coalesce, Greatest, RowNumber

from core.mirroring.rpo import LATE_AFTER, MEASURED, Targets, attainment, breached_at, is_destination_stale, is_stale
from db import clock
from db.chunks import chunks
from deployment import config
from jobs.lease import Lease
from jobs.models import Duty
from mirrors.models import Candidate, LagBreach, Mirror, MirrorDuty, SourceBranch
from mirrors.queries.branch_positions import BranchPosition
from mirrors.queries.candidates import Pending
from mirrors.queries.proof_facts import is_at_its_store

KEPT = timedelta(days=35)
SHOWN = 5
FINE = timedelta(hours=46)
"""So long at least measures of five minutes are kept (mirrors/transitions/measures.py)."""


def target_of(mirror: Mirror) -> timedelta:
    """How late a branch of it may be."""
    return LATE_AFTER if mirror.rpo_seconds is None else timedelta(seconds=mirror.rpo_seconds)


# --- noting -----------------------------------------------------------------------------------------------------------


def note_breaches(
    mirror: Mirror, places: Sequence[BranchPosition], pending: Mapping[str, Pending], lease: Lease
) -> None:
    """Write down which branches became too late, and which are no more. A first copy takes what it takes."""
    now = clock.now()
    if mirror.watched_since is None and not any(map(_shows, places)):
        return
    late = _late(mirror, pending, now)
    opened = dict(mirror.breaches.filter(ended_at=None).values_list("branch", "pk"))
    ended = [pk for branch, pk in opened.items() if branch not in late]
    began = {branch: at for branch, at in late.items() if branch not in opened}
    if began or ended or mirror.watched_since is None:
        _write(mirror, began, ended, now, lease)


def _shows(place: BranchPosition) -> bool:
    """Whether the mirror has something in that branch that was seen at the source."""
    return place.mirror is not None and bool(place.mirror.head) and not place.inferred


def _late(mirror: Mirror, pending: Mapping[str, Pending], now: datetime) -> dict[str, datetime]:
    """Branches that are later than the target, since when."""
    target = target_of(mirror)
    since = {name: breached_at(first.seen_at, now, target) for name, first in pending.items()}
    return {name: at for name, at in since.items() if at is not None}


def _write(mirror: Mirror, began: Mapping[str, datetime], ended: Sequence[int], now: datetime, lease: Lease) -> None:
    since = mirror.watched_since or now
    rows = [LagBreach(mirror=mirror, branch=branch, began_at=max(at, since)) for branch, at in began.items()]
    with transaction.atomic():
        lease.lock()
        Mirror.objects.filter(pk=mirror.pk, watched_since=None).update(watched_since=now)
        for some in chunks(ended):
            mirror.breaches.filter(pk__in=some).update(ended_at=now)
        LagBreach.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
        mirror.breaches.filter(ended_at__lt=now - KEPT).delete()
    mirror.watched_since = since


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """How well a branch kept its target: the share of the time since `since`, None when nothing was measured.

    `breaches` are the last ones, the newest first. In `unknown` of that time nobody knew how late it was: that counts
    neither as kept nor as missed.
    """

    share: float | None
    since: datetime | None
    breaches: Sequence[LagBreach]
    unknown: timedelta = timedelta()


def targets_kept(mirror: Mirror, branches: Sequence[str], now: datetime) -> dict[str, Kept]:
    """Of some branches of a mirror, by name: over the last 30 days, or since the branch or the first breach was
    watched for. Four queries."""
    since = _measured_since(mirror, branches, now)
    breached = _breached(mirror, branches, now)
    last: dict[str, list[LagBreach]] = {name: [] for name in branches}
    for row in _last(mirror, branches):
        last[row.branch].append(row)
    unseen = _unseen(mirror, now) if since else []
    return {
        name: _target_kept(since.get(name), breached.get(name, timedelta()), last[name], unseen, now)
        for name in branches
    }


def _target_kept(
    since: datetime | None,
    breached: timedelta,
    last: Sequence[LagBreach],
    unseen: Sequence[tuple[datetime, datetime]],
    now: datetime,
) -> Kept:
    if since is None:
        return Kept(None, None, last)
    parts = [min(end, now) - max(begin, since) for begin, end in unseen]
    unknown = sum((part for part in parts if part > timedelta()), timedelta())
    share = attainment(breached, now - since - unknown)
    return Kept(share, since if share is not None else None, last, unknown)


def _unseen(mirror: Mirror, now: datetime) -> list[tuple[datetime, datetime]]:
    """The times of the last 30 days in which nobody knew how late the mirror was: of five minutes as long as these are
    kept, before of an hour; and since both sides were seen last. In order; none overlaps another."""
    recent = now.replace(minute=0, second=0, microsecond=0) - FINE
    fine, coarse = Q(minutes=5, began_at__gte=recent), Q(minutes=60, began_at__lt=recent)
    rows = mirror.measures.filter(fine | coarse, lag_seconds=None, read_at__isnull=False, ends_at__gt=now - MEASURED)
    spans = list(rows.order_by("began_at").values_list("began_at", "ends_at"))
    looks = [look for look in (last_seen(mirror), mirror.destination_looked_at) if look]
    if looks and not is_seen(mirror, now):
        begins = min(looks)
        spans = [(begin, min(end, begins)) for begin, end in spans if begin < begins] + [(begins, now)]
    return spans


def _first_seen() -> Coalesce:
    """When a source's branch was first seen, read or not; one that was deleted and made again begins anew."""
    read = Candidate.objects.filter(branch=OuterRef("pk"), position__gte=0).order_by("position")
    return Coalesce("begun_at", Subquery(read.values("seen_at")[:1]))


def _measured_since(mirror: Mirror, branches: Sequence[str], now: datetime) -> dict[str, datetime]:
    watched = mirror.watched_since
    if watched is None:
        return {}
    rows = mirror.source.branches.filter(name__in=branches, gone_at=None).annotate(first=_first_seen())
    start = max(watched, now - MEASURED)
    return {name: max(start, first) for name, first in rows.values_list("name", "first") if first is not None}


def _breached(mirror: Mirror, branches: Sequence[str], now: datetime) -> dict[str, timedelta]:
    """How long each branch was too late in the last 30 days."""
    start = now - MEASURED
    live = SourceBranch.objects.filter(repository=mirror.source_id, name=OuterRef("branch"), gone_at=None)
    rows = mirror.breaches.filter(Q(ended_at=None) | Q(ended_at__gt=start), branch__in=branches)
    rows = rows.annotate(first=Subquery(live.annotate(at=_first_seen()).values("at")[:1]))
    length = ExpressionWrapper(Coalesce(F("ended_at"), now) - Greatest(F("began_at"), start), DurationField())
    summed = rows.filter(began_at__gte=F("first")).order_by().values("branch").annotate(breached=Sum(length))
    return dict(summed.values_list("branch", "breached"))


def _last(mirror: Mirror, branches: Sequence[str]) -> QuerySet[LagBreach]:
    place = Window(RowNumber(), partition_by=[F("branch")], order_by=["-began_at", "-pk"])
    rows = mirror.breaches.filter(branch__in=branches).annotate(place=place)
    return rows.filter(place__lte=SHOWN).order_by("-began_at", "-pk")


def targets(mirror: Mirror) -> Targets:
    """From when on waiting is late, by the mirror's own target and this deployment's intervals."""
    settings = config.current()
    return Targets(
        look_interval=settings.commit_sensor.process_branches_duration,
        promote_interval=settings.validator.run_interval,
        late_after=target_of(mirror),
    )


def last_seen(mirror: Mirror) -> datetime | None:
    """When all that a mirror follows of its source was seen last; None: never."""
    source = mirror.source
    if source.looked_at is None or not mirror.tags or source.tags_unseen_since is None:
        return source.looked_at
    return min(source.looked_at, source.tags_unseen_since)


def is_seen(mirror: Mirror, now: datetime) -> bool:
    """Whether both sides were seen lately, and are what they were when the mirror was made and checked; without a
    query."""
    looked_at, aims = last_seen(mirror), targets(mirror)
    if mirror.state != Mirror.State.ACTIVE or mirror.source.frozen_reason or not is_at_its_store(mirror):
        return False
    if looked_at is None or is_stale(looked_at, now, aims):
        return False
    return not is_destination_stale(mirror.destination_looked_at, now, aims)


def unchecked(mirror: Mirror, now: datetime) -> Q:
    """Checks of which none has ended for so long that the last one says nothing of now. One that is under way counts,
    however long it takes."""
    long_ago = now - targets(mirror).destination_stale_after
    free = Q(until=None) | Q(until__lt=now)
    return free & Q(kind=MirrorDuty.VALIDATE) & (Q(ended_at__lt=long_ago) | Q(ended_at=None, due_at__lt=long_ago))


def unchecked_since(mirrors: Collection[Mirror], now: datetime) -> dict[int, datetime]:
    """When the last check of each mirror's destination ended, by the mirror's key, where that is so long ago."""
    if not mirrors:
        return {}
    checks = Duty.objects.filter(unchecked(next(iter(mirrors)), now), subject__in=[mirror.pk for mirror in mirrors])
    return dict(checks.values_list("subject", Coalesce("ended_at", "due_at")))
