"""What two sweeps found is deleted, a few objects at a time, between two rounds of the mirror's check.

Under the lease of the check, so that no check is at work meanwhile: none can find an object there that is just going.
Before anything goes in a slice it is asked anew which commits are kept, and what was proven of ranges that none of them
names counts no more: a commit that comes to name one later has its objects looked for. Before each batch both stores
are asked once more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.db import transaction
from django.db.models import F

from core.errors import Denied, Fenced, LakeMirrorError, Stopped
from core.exporting.deadline import Late
from core.sweeping import EXPIRES, Candidate, Fate, NothingGoes, fate_of, tally, why_ask
from db import clock
from db.chunks import chunks
from deployment.wiring import sweep_jobs
from jobs.lease import Lease
from mirroring.sweep.circumstances import (
    pins_of,
    require_alone,
    require_committed,
    require_recorded,
    require_shown,
    require_source,
)
from mirroring.sweep.deletion_mark import STEP, leave_mark, newer_mark
from mirroring.sweep.kept_commits import Kept, kept_in_books, metaranges_of, named_now
from mirroring.sweep.kept_ranges import ranges_of
from mirrors.models import Mirror, Sweep
from mirrors.services.sweeps import lists
from mirrors.transitions.range_states import taken_down
from mirrors.transitions.required_commits import lock_source

State = Sweep.State
SLICE_SECONDS = 5.0
ROUNDS_APART = 10
"""While commits wait to be judged only every so many-th round of the check has a slice of deletions."""
BATCH = 100
BATCH_SECONDS = 15.0
"""No delete of a batch begins later; and the lease lasts for longer than the last of them may take."""
FENCED_SECONDS = 45.0
THREADS = 8
MOST_NEW_RANGES = 2000
"""So many ranges that came to be kept since the sweep are read in a slice; with more of them it is done anew."""
log = logging.getLogger("lakemirror.sweep")


def delete_due(mirror: Mirror, lease: Lease) -> bool:
    """A slice of what is to be deleted; gives whether more is to be done. What keeps it from that stands in the sweep's
    row: the check goes on without it."""
    if not mirror.follow_gc or (lease.attempt % ROUNDS_APART and mirror.commits.unjudged().exists()):
        return False
    sweep = mirror.sweeps.filter(state=State.DELETING).first()
    if sweep is None:
        return False
    now = Mirror.objects.select_related("source").get(pk=mirror.pk)
    if not now.sweeps_now or now.reselected:
        return False
    if not sweep.decided_by and (why := _why_ask(now, sweep)):
        _ask(sweep, why, lease)
        return False
    try:
        return _slice(now, sweep, lease)
    except (Fenced, Stopped):
        raise
    except LakeMirrorError as error:
        _freeze(now, sweep, str(error), lease)
        return False


def _why_ask(mirror: Mirror, sweep: Sweep) -> str:
    bounds = mirror.delete_percent, mirror.delete_most
    return why_ask(sweep.due, sweep.listed, *bounds, lately=sweep.deleted_lately)


def _ask(sweep: Sweep, why: str, lease: Lease) -> None:
    """Its bounds have come to be lower than what it would delete: now somebody has to approve that."""
    with lease.transaction():
        rows = Sweep.objects.filter(pk=sweep.pk, state=State.DELETING, decided_by="")
        rows.update(state=State.WAITING, reason=why, expires_at=clock.now() + EXPIRES)


def _freeze(mirror: Mirror, sweep: Sweep, why: str, lease: Lease) -> None:
    """Nothing more is deleted by this sweep: the next one looks again."""
    log.warning("%s: nothing more is deleted: %s", mirror.name, why)
    with lease.transaction():
        rows = Sweep.objects.filter(pk=sweep.pk, state=State.DELETING)
        rows.update(state=State.FROZEN, reason=why, ended_at=clock.now())


def _slice(mirror: Mirror, sweep: Sweep, lease: Lease) -> bool:
    if sweep.pins != pins_of(mirror):
        raise NothingGoes("the source, the mirror's repository or a store is another one than when the sweep began")
    if newer_mark(mirror) is not None:
        return True  # the books are older than what was deleted: once validation has begun anew
    require_source(mirror)
    require_alone(mirror)
    require_committed(mirror, afresh=False)
    require_recorded(mirror)
    todo = lists.read_due(mirror, sweep)
    kept = lists.read_kept(mirror, sweep)
    resolved = _keep_what_came(mirror, sweep, kept, {one.address for one in todo}, lease)
    if not _take_down_unkept(mirror, kept, resolved, lease):
        return True  # a commit came meanwhile: once more
    leave_mark(mirror)
    return _delete(mirror, sweep, todo[sweep.tried :], kept.named, lease)


# --- what is kept ---------------------------------------------------------------------------------------------------


def _keep_what_came(
    mirror: Mirror, sweep: Sweep, kept: lists.KeptList, candidates: Collection[str], lease: Lease
) -> Mapping[str, str]:
    """Commits that came to be kept since: what they name is taken out of what is to be deleted, for good. Gives the
    metaranges of commits that are known by their ids."""
    books = kept_in_books(mirror)
    resolved = metaranges_of(mirror, {*books.commits, *named_now(mirror)})
    new = {*books.metaranges, *resolved.values()} - kept.metaranges - {""}
    if not new:
        return resolved
    ranges = ranges_of(mirror, new).keys() - kept.ranges
    if len(ranges) > MOST_NEW_RANGES:
        raise NothingGoes("too many commits came since the sweep: the next one takes them into account")
    kept.named |= sweep_jobs.named_by(mirror, sorted(ranges)) & set(candidates)
    kept.metaranges |= new
    kept.ranges |= set(ranges)
    digest = lists.write_kept(mirror, sweep, kept)
    with lease.transaction():
        Sweep.objects.filter(pk=sweep.pk).update(kept_digest=digest)
    return resolved


def _take_down_unkept(mirror: Mirror, kept: lists.KeptList, resolved: Mapping[str, str], lease: Lease) -> bool:
    """What was proven of ranges that no kept commit names counts no more; false if a commit came to be kept that was
    not read yet. From here on nobody takes for whole what this slice deletes, for no check is at work."""
    with transaction.atomic():
        lock_source(mirror)
        lease.lock()
        Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
        if not _are_read(kept_in_books(mirror), kept, resolved):
            return False
        proving = mirror.coverage.exclude(depth="").values_list("range_id", flat=True)
        for some in chunks([one for one in proving.iterator() if one not in kept.ranges]):
            mirror.coverage.filter(range_id__in=some).update(**taken_down())
        Mirror.objects.filter(pk=mirror.pk).update(facts_epoch=F("facts_epoch") + STEP)
        return True


def _are_read(books: Kept, kept: lists.KeptList, resolved: Mapping[str, str]) -> bool:
    return books.metaranges <= kept.metaranges and books.commits <= resolved.keys()


# --- what goes ------------------------------------------------------------------------------------------------------


def _delete(mirror: Mirror, sweep: Sweep, todo: Sequence[Candidate], named: Collection[str], lease: Lease) -> bool:
    ends, at = time.monotonic() + SLICE_SECONDS, 0
    while at < len(todo) and time.monotonic() < ends:
        batch = todo[at : at + BATCH]
        if not _delete_batch(mirror, sweep, batch, named, lease):
            return True
        at += len(batch)
    if at < len(todo):
        return True
    with lease.transaction():
        rows = Sweep.objects.filter(pk=sweep.pk, state=State.DELETING)
        rows.update(state=State.DONE, reason="", ended_at=clock.now())
    return False


def _delete_batch(
    mirror: Mirror, sweep: Sweep, batch: Sequence[Candidate], named: Collection[str], lease: Lease
) -> bool:
    """Look at these once more, and delete what nothing speaks for; false when time was up before all of that."""
    remover = sweep_jobs.remover(mirror.region)
    fates, gone = _looked(mirror, sweep, batch, named)
    going = [place for place, fate in enumerate(fates) if fate is Fate.DELETE]
    _begin(mirror, sweep, going, gone, lease)
    lease.fence(FENCED_SECONDS)
    try:
        failed = remover.delete([_uri(mirror.namespace, batch[place]) for place in going], BATCH_SECONDS)
    except Late:
        return False  # the next slice finds, and counts, those that went
    failed = {uri: error for uri, error in failed.items() if isinstance(error, Denied) or remover.standing(uri)}
    gone += [place for place in going if _uri(mirror.namespace, batch[place]) not in failed]
    _note(mirror, sweep, fates, [batch[place] for place in gone], failed, lease)
    return True


def _looked(
    mirror: Mirror, sweep: Sweep, batch: Sequence[Candidate], named: Collection[str]
) -> tuple[list[Fate], list[int]]:
    """What becomes of each of a batch; and the places in it of those that this sweep has deleted already, which nobody
    has counted: time was up, or the worker has ended."""
    remover, source = sweep_jobs.remover(mirror.region), sweep_jobs.store(mirror.source.region)
    with ThreadPoolExecutor(THREADS) as pool:
        here = list(pool.map(lambda one: remover.standing(_uri(mirror.namespace, one)), batch))
        there = list(pool.map(lambda one: source.head(_uri(mirror.source.namespace, one)), batch))
    require_shown(mirror)  # or it was no 404 that proves anything
    now = clock.now()
    fates = [
        fate_of(one, standing, named=named, at_source=info is not None, now=now)
        for one, standing, info in zip(batch, here, there, strict=True)
    ]
    begun = {place - sweep.tried for place in sweep.under_way or ()}
    gone = [place for place, standing in enumerate(here) if standing is None and place in begun]
    for place in gone:
        fates[place] = Fate.GONE
    return fates, gone


def _begin(mirror: Mirror, sweep: Sweep, going: Sequence[int], gone: Sequence[int], lease: Lease) -> None:
    """Note which of a batch may be deleted from now on, whatever becomes of this worker; and see that nobody has ended
    the sweep, paused the mirror or changed its bounds since the slice began. Raises Fenced."""
    bounds = {"mirror__delete_percent": mirror.delete_percent, "mirror__delete_most": mirror.delete_most}
    rows = Sweep.objects.filter(pk=sweep.pk, state=State.DELETING, mirror__follow_gc=True, **bounds)
    rows = rows.filter(mirror__paused=False, mirror__copying_paused=False, mirror__source__frozen_reason="")
    places = [sweep.tried + place for place in sorted({*going, *gone})]
    with lease.transaction():
        noted = rows.update(under_way=places or None, **({"deleted_at": clock.now()} if going else {}))
    if not noted:
        raise Fenced(f"{mirror.name} was paused, or has other settings for its sweeps meanwhile")


def _uri(namespace: str, one: Candidate) -> str:
    return f"{namespace}/{one.address}"


def _note(
    mirror: Mirror,
    sweep: Sweep,
    fates: Sequence[Fate],
    gone: Sequence[Candidate],
    failed: Mapping[str, LakeMirrorError],
    lease: Lease,
) -> None:
    refused = {uri: error for uri, error in failed.items() if isinstance(error, Denied)}
    counts = {"tried": len(fates), "deleted": len(gone), "deleted_bytes": sum(one.size for one in gone)}
    counts |= tally(fates) | {"refused": len(failed)}
    so_far = {"swept": counts["deleted"], "swept_bytes": counts["deleted_bytes"]}
    with lease.transaction():
        Mirror.objects.filter(pk=mirror.pk).update(**{name: F(name) + number for name, number in so_far.items()})
        counted = {name: F(name) + number for name, number in counts.items()}
        Sweep.objects.filter(pk=sweep.pk).update(under_way=None, **counted)
    sweep.tried, sweep.under_way = sweep.tried + len(fates), None
    for one in gone:
        log.info("%s: deleted %s", mirror.name, one.address)
    if refused and len(refused) == fates.count(Fate.DELETE):
        raise next(iter(refused.values()))  # whoever may delete nothing need not try the rest
    for uri, error in failed.items():
        log.warning("%s: %s is not deleted: %s", mirror.name, uri, error.message)
