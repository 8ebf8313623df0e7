"""By which settings is a mirror judged, and what of an earlier judgement still counts when they change?

`Coverage.depth` says what a check has proven of a range: that, and all that is less deep. Where the settings ask for
more than a check has looked at, its depth is taken down. No branch is moved back for that: what it shows is checked
anew too, and is not called proven until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import Fenced
from core.mirroring.object_check import Depth, Imported, Reason
from db import clock
from db.chunks import chunks
from jobs import duties
from jobs.lease import Lease
from mirrors.models import Coverage, Mirror, MirrorDuty
from mirrors.queries.proof_facts import is_at_its_store
from mirrors.transitions.doubt import doubt_judgements

NOTHING = ""
"""The depth of a check that proves nothing any more."""
_SETTINGS = ("depth", "content_sample", "imported", "pinned_creation_date")
"""Those by which something is judged; with them the repository that it was looked for in."""


def note_validated(mirror: Mirror) -> None:
    """Note that commits were found whole just now; unless the settings by which they were are others by now."""
    judged_by = {name: getattr(mirror, name) for name in _SETTINGS}
    Mirror.objects.filter(pk=mirror.pk, **judged_by).update(last_validated_at=clock.now())


@contextmanager
def locked_mirror(mirror: Mirror, lease: Lease, *, settings: bool = True) -> Iterator[None]:
    """A transaction that writes down a judgement: the lease is ours, and it was made by today's settings, of the
    repository and at the store that are there today.

    Raises Fenced when one of these has changed since `mirror` was read: then it is judged again. Without `settings`
    it only keeps others from writing judgements until the transaction ends.
    """
    with lease.transaction():
        # Without a key's lock: who inserts rows that name the mirror need not wait, nor be waited for.
        now = Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).values_list(*_SETTINGS).first()
        if settings and now != tuple(getattr(mirror, name) for name in _SETTINGS):
            raise Fenced(f"the settings or the repository of {mirror.name} have changed meanwhile")
        if settings and not is_at_its_store(mirror):
            raise Fenced(f"another store is configured for the region of {mirror.name} meanwhile")
        yield


def invalidate_for_settings(old: Mirror, new: Mirror) -> None:
    """What follows from other settings, in the transaction that changes them, under the mirror's lock."""
    if _take_down(old, new):
        doubt_judgements(new)
        new.last_validated_at = None  # nothing was, by these settings
        new.save(update_fields=["last_validated_at"])
    new.blockers.update(look_at=clock.now())  # it may pass now
    duties.wake(MirrorDuty.VALIDATE, new.pk)


def _take_down(old: Mirror, new: Mirror) -> bool:
    """Let no coverage say more than it proves by the new settings; true if some of it doesn't count any more."""
    deeper = new.depth in Depth(old.depth).deeper
    reads_more = new.content_sample > old.content_sample
    bars_more = (old.imported, new.imported) == (Imported.ALLOW, Imported.BLOCK)
    # What still waits is completed by looks of the new depth.
    waiting = new.coverage.exclude(state=Coverage.State.COMPLETE)
    waiting.filter(depth__in=Depth(new.depth).deeper).update(depth=new.depth)
    if old.depth == Depth.CONTENT and new.depth != old.depth:
        _keep_what_was_read(new)
    if reads_more:
        new.coverage.filter(depth=Depth.CONTENT).update(depth=Depth.ETAG)
    if bars_more:
        new.coverage.update(depth=NOTHING)
    return deeper or bars_more or (reads_more and new.depth == Depth.CONTENT)


def _keep_what_was_read(mirror: Mirror) -> None:
    """What reading has found wrong is read until it is right, although the mirror's own looks read nothing any more.
    What only could not be compared is not known to be wrong."""
    wrong = mirror.blockers.filter(must_read=True).exclude(reason=Reason.UNPROVEN).order_by()
    for some in chunks(sorted(set(wrong.values_list("holder_id", flat=True)))):
        mirror.coverage.filter(range_id__in=some).update(deeper=Depth.CONTENT)
