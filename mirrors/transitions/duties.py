"""The duties of a mirror and its source: that they exist, end, and what they are about."""

from __future__ import annotations

from jobs.duties import ensure, wake
from jobs.lease import Lease
from jobs.models import Duty
from mirrors.models import Mirror, MirrorDuty, Repository
from mirrors.queries.duties import ABOUT_A_MIRROR, OF_A_MIRROR


def ensure_mirror_duties(mirror: Mirror) -> None:
    """The duties of a mirror, and its source's, exist; new ones are due at once."""
    for kind in OF_A_MIRROR:
        ensure(kind, mirror.pk, mirror.region)
    if mirror.follow_gc:
        ensure(MirrorDuty.SWEEP, mirror.pk, mirror.region)
    ensure(MirrorDuty.SENSE, mirror.source_id, mirror.region)


def follow_collection(mirror: Mirror) -> None:
    """The duty of sweeps exists for a mirror that follows its source's garbage collection, and for no other one."""
    if mirror.follow_gc:
        ensure(MirrorDuty.SWEEP, mirror.pk, mirror.region)
    else:
        Duty.objects.filter(kind=MirrorDuty.SWEEP, subject=mirror.pk).delete()


def sweep_soon(mirror: int) -> None:
    """The next sweep of the mirror of this key is due now. Inside of a transaction."""
    Mirror.objects.filter(pk=mirror, follow_gc=True).update(sweep_asked=True)
    wake(MirrorDuty.SWEEP, mirror)


def drop_mirror_duties(mirror: Mirror) -> None:
    """The duties of a mirror that is gone; its source's too when nobody else needs it. Inside of a transaction.

    The lock of the source's row makes a mirror that is just being created keep, or make again, the source's duty.
    """
    Repository.objects.select_for_update(no_key=True).get(pk=mirror.source_id)
    Duty.objects.filter(kind__in=ABOUT_A_MIRROR, subject=mirror.pk).delete()
    others = Mirror.objects.filter(source_id=mirror.source_id).exclude(pk=mirror.pk)
    if not others.exists():
        Duty.objects.filter(kind=MirrorDuty.SENSE, subject=mirror.source_id).delete()


def subject_mirror(lease: Lease) -> Mirror:
    """The mirror that a duty is about."""
    return Mirror.objects.select_related("source").get(pk=lease.duty.subject)


def subject_repository(lease: Lease) -> Repository:
    """The source repository that a duty is about."""
    return Repository.objects.get(pk=lease.duty.subject)
