"""Objects that were seen to be missing outside of the mirror's own checks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction

from core.mirroring.doubt import Suspect, address_crc, that_may_name
from db import clock
from db.chunks import chunks
from jobs import duties
from mirrors.models import Blocker, Coverage, Mirror, MirrorDuty
from mirrors.queries.proof_facts import is_at_its_store
from mirrors.transitions.doubt import KEY_BYTES, doubt_all_of, known_ranges

_TOLD = ("pk", "path", "address", "crc")


def complete_that_may_name(mirror: int, suspect: Suspect) -> set[str]:
    """Ranges that are complete at the mirror of this key and may name an object, by what is kept of them; none where
    the region's store is another one than that of the checks, of which nothing is said by what this one has."""
    row = Mirror.objects.filter(pk=mirror).first()
    return _complete_that_may_name(row, [suspect]) if row and is_at_its_store(row) else set()


def doubt_seen(mirror: int, suspect: Suspect, without_it: Collection[str]) -> None:
    """The store of the mirror of this key told somebody who asked for an object that it is missing or wrong: all that
    may name it and was complete is looked through before it counts again, but for ranges that were read and are
    `without_it`."""
    with transaction.atomic():
        row = _locked(mirror)
        complete = complete_that_may_name(mirror, suspect).difference(without_it)
        if row and complete:
            doubt_all_of(row, complete)
            duties.wake(MirrorDuty.VALIDATE, mirror)


def note_losses(mirror: Mirror, blockers: Sequence[int]) -> None:
    """Blockers, by their keys, were found to be gone at the source just now: its other mirrors are told of them,
    whatever becomes of this worker. Inside of the transaction that notes that, under the mirror's lock."""
    for some in chunks(blockers):
        mirror.blockers.filter(pk__in=some, kind=Blocker.Kind.OBJECT).update(loss_untold=True)


def tell_others(mirror: Mirror) -> None:
    """Objects are missing at a mirror and gone at the source: whatever deleted them there may have done so at its other
    mirrors. These verify now what may name them; until then it stays proven.

    Outside of any transaction: it locks one mirror after the other. Where it ends early all of them are told once more.
    """
    untold = {
        pk: Suspect(path.encode("utf-8", "surrogateescape"), address_crc(address) if crc is None else crc)
        for pk, path, address, crc in mirror.blockers.filter(loss_untold=True).values_list(*_TOLD)
    }
    if not untold:
        return
    _verify_at_others(mirror, list(untold.values()))
    with transaction.atomic():
        _locked(mirror.pk)  # others write to the same rows, in another order
        for some in chunks(sorted(untold)):
            mirror.blockers.filter(pk__in=some).update(loss_untold=False)


def _verify_at_others(mirror: Mirror, suspects: Sequence[Suspect]) -> None:
    others = Mirror.objects.live().filter(source_id=mirror.source_id).exclude(pk=mirror.pk)
    for pk in others.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            other = _locked(pk)
            if other is None:
                continue
            complete = _complete_that_may_name(other, suspects)
            for some in chunks(sorted(complete)):
                other.coverage.filter(range_id__in=some).update(verify_at=clock.now())
            if complete:
                duties.wake(MirrorDuty.VALIDATE, pk)


def _locked(mirror: int) -> Mirror | None:
    """None: it was deleted just now."""
    return Mirror.objects.select_for_update(no_key=True).filter(pk=mirror).first()


def _complete_that_may_name(mirror: Mirror, suspects: Sequence[Suspect]) -> set[str]:
    paths = [suspect.path[:KEY_BYTES] for suspect in suspects]
    named = that_may_name(suspects, known_ranges(mirror, min(paths), max(paths)))
    complete: set[str] = set()
    for some in chunks(sorted(named)):
        rows = mirror.coverage.filter(range_id__in=some, state=Coverage.State.COMPLETE)
        complete.update(rows.values_list("range_id", flat=True))
    return complete
