"""The weekly look through a mirror's namespace, for one that follows its source's garbage collection.

A duty of its own, which deletes nothing: that is done between the checks of the mirror (mirroring/sweep/deletions.py),
so that none of them relies on what is going.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core.errors import Corrupt, Fenced, LakeMirrorError, Stopped
from core.sweeping import (
    APART,
    EXPIRES,
    Candidate,
    Found,
    NothingGoes,
    carried,
    due,
    spread_over,
    stretches,
    why_ask,
)
from core.text.phrases import count
from db import clock
from deployment.wiring import sweep_jobs
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from mirroring.sweep.circumstances import pins_of, require_certain, require_source
from mirroring.sweep.kept_commits import kept_in_books, metaranges_of, named_now
from mirroring.sweep.kept_ranges import ranges_of
from mirrors.models import Mirror, MirrorDuty, Sweep
from mirrors.models.sweep import deleted_since
from mirrors.services.sweeps import lists
from mirrors.transitions import duties as mirror_duties

State = Sweep.State
AGAIN = timedelta(hours=1)
"""So long until it is looked whether what kept anything from being deleted is over."""
PRUNED_IN = 5.0
LITTLE = 200_000
"""Ranges of so many entries are read by the worker itself; more by Spark."""
MOST_STRETCHES, KEYS_A_STRETCH, SAMPLED = 128, 50_000, 16
KEPT_SWEEPS = 100
log = logging.getLogger("lakemirror.sweep")


def sweep(lease: Lease) -> DutyOutcome:
    """One round for one mirror: begin a sweep when it is time, and look; or see whether one has expired."""
    mirror = mirror_duties.subject_mirror(lease)
    if not mirror.sweeps_now:
        return DutyOutcome("the mirror does not follow its source's garbage collection now")
    now = clock.now()
    last = mirror.sweeps.first()
    if last is not None and last.state == State.WAITING and last.expires_at and last.expires_at <= now:
        mirror.sweeps.filter(pk=last.pk, state=State.WAITING).update(state=State.EXPIRED, ended_at=now)
        last.refresh_from_db()
    if last is not None and last.state in (State.WAITING, State.DELETING):
        return DutyOutcome(f"{last.get_state_display()}: {count(last.due, 'object')}")
    if last is None or last.state != State.LOOKING:
        wait = _due_at(last) - now if last is not None and not mirror.sweep_asked else timedelta()
        if wait > timedelta():
            return DutyOutcome("the next sweep is not due yet", next_in=wait.total_seconds())
    with lease.keep_alive():
        return _try(mirror, last, lease)


def _due_at(last: Sweep) -> datetime:
    """When the next sweep begins: a week after this one had looked, for what both find is due then."""
    if last.state == State.FROZEN:
        return (last.ended_at or last.began_at) + AGAIN
    return (last.looked_at or last.began_at) + APART


def _try(mirror: Mirror, last: Sweep | None, lease: Lease) -> DutyOutcome:
    """Look, or say why that would prove nothing."""
    row = last if last is not None and last.state == State.LOOKING else None
    try:
        require_certain(mirror)
        if row is None:
            row = _begin(mirror, lease)
        if Mirror.objects.filter(pk=mirror.pk, reselected=True).exists():
            duties.wake(MirrorDuty.VALIDATE, mirror.pk)
            return DutyOutcome("waits until commits that are needed no more are forgotten", next_in=PRUNED_IN)
        return _look(mirror, row, lease)
    except (Fenced, Stopped):
        raise
    except LakeMirrorError as error:
        return _freeze(mirror, row or last, str(error), lease)


def _begin(mirror: Mirror, lease: Lease) -> Sweep:
    """A new row. What no branch leads to any more is forgotten by the next check, as after branches were unselected."""
    with lease.transaction():
        mirror.sweeps.filter(state=State.FROZEN, digest="").delete()
        beyond = mirror.sweeps.values_list("pk", flat=True)[KEPT_SWEEPS:]
        counted = deleted_since(clock.now() - APART)  # for the bounds: Sweep.deleted_lately
        mirror.sweeps.filter(pk__in=list(beyond)).exclude(counted).delete()
        Mirror.objects.filter(pk=mirror.pk).update(reselected=True, sweep_asked=False)
        return Sweep.objects.create(mirror=mirror, began_at=clock.now(), pins=pins_of(mirror))


def _freeze(mirror: Mirror, row: Sweep | None, why: str, lease: Lease) -> DutyOutcome:
    """Nothing is deleted, and why; looked at again in an hour."""
    now = clock.now()
    with lease.transaction():
        if row is None or row.state not in (State.LOOKING, State.FROZEN):
            row = Sweep.objects.create(mirror=mirror, began_at=now, pins=pins_of(mirror))
        Mirror.objects.filter(pk=mirror.pk).update(sweep_asked=False)
        rows = Sweep.objects.filter(pk=row.pk, state__in=(State.LOOKING, State.FROZEN))
        rows.update(state=State.FROZEN, reason=why, ended_at=now)
    log.warning("%s: nothing is deleted: %s", mirror.name, why)
    return DutyOutcome(f"nothing is deleted: {why}", next_in=AGAIN.total_seconds(), whole=False)


# --- the look -------------------------------------------------------------------------------------------------------


@dataclass
class _Listing:
    """What the job tells: what was found, and how much lies there in all."""

    lease: Lease
    found: list[Found] = field(default_factory=list)
    objects: int = 0
    bytes: int = 0

    def take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of SWEEP_COLUMNS."""
        for row in rows:
            if row["kind"] == "object":
                self.found.append(Found(row["address"], row["size"], row["etag"]))
            else:
                self.objects += row["objects"]
                self.bytes += row["bytes"]


def _look(mirror: Mirror, row: Sweep, lease: Lease) -> DutyOutcome:
    if row.pins != pins_of(mirror):
        raise NothingGoes("the source, the mirror's repository or a store is another one than when the sweep began")
    row.began_at = clock.now()
    books = kept_in_books(mirror)
    kept = {*books.metaranges, *metaranges_of(mirror, {*books.commits, *named_now(mirror)}).values()} - {""}
    ranges = ranges_of(mirror, kept)
    before = _known_before(mirror, row)
    listing = _Listing(lease)
    ids, here = sorted(ranges), sum(ranges.values()) <= LITTLE
    sweep_jobs.look(mirror, _stretches(mirror, ids, ranges, here=here), ids, listing.take, here=here)
    require_source(mirror)  # or it was no 404 that proves anything
    row.looked_at = clock.now()
    candidates = carried(listing.found, before, row.looked_at.timestamp())
    chosen = due(candidates, row.began_at.timestamp())
    row.digest = lists.write_found(mirror, row, candidates)
    row.kept_digest = lists.write_kept(mirror, row, lists.KeptList(kept, set(ranges)))
    row.listed, row.listed_bytes = listing.objects, listing.bytes
    return _conclude(mirror, row, candidates, chosen, lease)


def _known_before(mirror: Mirror, row: Sweep) -> dict[str, Candidate]:
    """What the sweep before found, by address; of other repositories or stores it says nothing. Where its list was
    lost, or somebody changed it, nothing is known: then all begins anew."""
    last = mirror.sweeps.filter(looked_at__isnull=False, pk__lt=row.pk).exclude(digest="").first()
    if last is None or last.pins != row.pins:
        return {}
    try:
        return {one.address: one for one in lists.read_found(mirror, last)}
    except Corrupt as error:
        log.warning("%s: nothing is known of before: %s", mirror.name, error.message)
        return {}


def _stretches(mirror: Mirror, ids: Sequence[str], ranges: Mapping[str, int], *, here: bool) -> list[tuple[str, str]]:
    """The namespace in parts for the tasks, by where what a few of the ranges name lies."""
    if here:
        return stretches([], 1)
    number = min(MOST_STRETCHES, 1 + sum(ranges.values()) // KEYS_A_STRETCH)
    return stretches(sweep_jobs.named_by(mirror, spread_over(ids, SAMPLED)), number)


def _conclude(
    mirror: Mirror, row: Sweep, candidates: Sequence[Candidate], chosen: Sequence[Candidate], lease: Lease
) -> DutyOutcome:
    """What comes of a look: nothing yet, a question to somebody, or deletions."""
    row.found, row.found_bytes = len(candidates), sum(one.size for one in candidates)
    row.due, row.due_bytes = len(chosen), sum(one.size for one in chosen)
    bounds = Mirror.objects.values_list("delete_percent", "delete_most").get(pk=mirror.pk)  # as they are by now
    row.reason = why_ask(row.due, row.listed, *bounds, lately=row.deleted_lately)
    if not chosen:
        row.state, row.ended_at = State.DONE, row.looked_at
    elif row.reason:
        row.state, row.expires_at = State.WAITING, clock.now() + EXPIRES
    else:
        row.state = State.DELETING
    with lease.transaction():
        if not mirror.sweeps.filter(pk=row.pk, state=State.LOOKING).exists():
            raise Fenced(f"the sweep of {mirror.name} was ended meanwhile")
        row.save()
        if row.state == State.DELETING:
            duties.wake(MirrorDuty.VALIDATE, mirror.pk)
    told = f"{count(row.found, 'object')} of {row.listed:,} that nobody needs, {row.due:,} of them for a week"
    log.info("%s: %s", mirror.name, told)
    return DutyOutcome(told)
