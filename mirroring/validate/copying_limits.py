"""Limits of copying that somebody changes while a check is at work."""

from __future__ import annotations

from deployment.wiring import check_jobs
from mirrors.models import Mirror

LIMITS = ("copy_workers", "copy_bytes_per_second", "copy_objects_per_second")


class CopiedOtherwise(Exception):
    """Somebody changed how this mirror's objects are copied: what goes on by the old limits ends, and begins anew."""


def follow_limits(mirror: Mirror) -> None:
    """Tells the job at work of limits that were changed, and notes them.

    Raises CopiedOtherwise after a change that its tasks can't heed, or once the mirror brings nothing any more: it was
    switched, paused or stopped, or its source frozen.
    """
    now = Mirror.objects.select_related("source").filter(pk=mirror.pk).first()
    if now is None:
        raise CopiedOtherwise
    changed = {name: getattr(now, name) for name in LIMITS if getattr(now, name) != getattr(mirror, name)}
    if not now.brings or (changed and not check_jobs.change_limits(mirror, now)):
        check_jobs.end_bringing(now)
        raise CopiedOtherwise
    for name, value in changed.items():
        setattr(mirror, name, value)
