"""The duties of a mirror and its source: that they exist, end, and what they are about."""

from __future__ import annotations

from django.db.models import Q

from jobs.duties import Lease, ensure
from jobs.models import Duty
from mirrors.models import Mirror, Repository


def needed(regions: list[str]) -> Q:
    """The duties that mirrors of these regions need."""
    ours = Mirror.objects.served(regions)
    return Q(kind="sense", subject__in=ours.values("source")) | ~Q(kind="sense") & Q(subject__in=ours.values("pk"))


def ensure_mirror_duties(mirror: Mirror) -> None:
    """The four duties of a mirror, and its source's, exist; new ones are due at once."""
    for kind in (Duty.Kind.MANAGE, Duty.Kind.COPY, Duty.Kind.VALIDATE, Duty.Kind.PROMOTE):
        ensure(kind, mirror.pk, mirror.region)
    ensure(Duty.Kind.SENSE, mirror.source_id, mirror.region)


def drop_mirror_duties(mirror: Mirror) -> None:
    """The duties of a mirror that is gone; its source's too when nobody else needs it. Inside of a transaction.

    The lock of the source's row makes a mirror that is just being created keep, or make again, the source's duty.
    """
    Repository.objects.select_for_update(no_key=True).get(pk=mirror.source_id)
    Duty.objects.filter(subject=mirror.pk).exclude(kind="sense").delete()
    others = Mirror.objects.filter(source_id=mirror.source_id).exclude(pk=mirror.pk)
    if not others.exists():
        Duty.objects.filter(kind="sense", subject=mirror.source_id).delete()


def subject_mirror(lease: Lease) -> Mirror:
    """The mirror that a duty is about."""
    return Mirror.objects.select_related("source").get(pk=lease.duty.subject)


def subject_repository(lease: Lease) -> Repository:
    """The source repository that a duty is about."""
    return Repository.objects.get(pk=lease.duty.subject)
