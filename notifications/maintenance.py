"""Maintenance windows: create one, end one early, which there are. With rights and audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.access.policies import maintenance_arn
from core.errors import Conflict, NotFound
from core.notifications.maintenance import Maintenance
from db import clock
from notifications.models import MaintenanceWindow
from rbac import services as rbac
from web.serializers import rfc3339

MANAGE = "fs:ManageMaintenance"
PLANNED, RUNNING, ENDED = "planned", "running", "ended"


def current(now: datetime) -> list[MaintenanceWindow]:
    """Those that have begun and not ended."""
    return list(MaintenanceWindow.objects.filter(starts_at__lte=now, ends_at__gt=now).order_by("pk"))


def coming(now: datetime) -> list[MaintenanceWindow]:
    """Those that have not ended, by their start."""
    return list(MaintenanceWindow.objects.filter(ends_at__gt=now).order_by("starts_at", "pk"))


def maintenance_create(*, actor: Any, wish: Maintenance) -> MaintenanceWindow:
    """Plan one, or begin it now. Raises Denied and Invalid."""
    right = (MANAGE, maintenance_arn("new"))
    rbac.require(actor, right)
    now = clock.now()
    wish.check(now)
    row = MaintenanceWindow(
        names=list(wish.names),
        regions=list(wish.regions),
        starts_at=wish.starts_at,
        ends_at=wish.ends_at,
        reason=wish.reason,
        created_by=str(actor),
        created_at=now,
    )
    with transaction.atomic():
        row.save(force_insert=True)
        rbac.audit(actor=actor, right=right, verb=Verb.CREATE, before=None, after=_shown(row), reason=row.reason)
    return row


def maintenance_end(*, actor: Any, number: int) -> MaintenanceWindow:
    """End one now, or call it off before it has begun. Raises Denied, NotFound and Conflict."""
    right = (MANAGE, maintenance_arn(number))
    rbac.require(actor, right)
    with transaction.atomic():
        row = MaintenanceWindow.objects.select_for_update().filter(pk=number).first()
        if row is None:
            raise NotFound(f"there is no maintenance window {number}")
        now = clock.now()
        if row.ends_at <= now:
            raise Conflict(f"the maintenance window {number} has ended")
        before = _shown(row)
        row.ends_at, row.starts_at, row.ended_by = now, min(row.starts_at, now), str(actor)
        row.save(update_fields=["ends_at", "starts_at", "ended_by"])
        rbac.audit(actor=actor, right=right, verb=Verb.END, before=before, after=_shown(row))
    return row


def state_of(row: MaintenanceWindow, now: datetime) -> str:
    """Whether it is still to come, runs, or is over."""
    if row.ends_at <= now:
        return ENDED
    return RUNNING if row.starts_at <= now else PLANNED


def maintenance_json(row: MaintenanceWindow) -> dict[str, Any]:
    """For the API."""
    return {
        "id": row.pk,
        "state": state_of(row, clock.now()),
        "names": row.names,
        "regions": row.regions,
        "starts_at": rfc3339(row.starts_at),
        "ends_at": rfc3339(row.ends_at),
        "reason": row.reason,
        "created_by": row.created_by,
        "created_at": rfc3339(row.created_at),
        "ended_by": row.ended_by or None,
    }


def _shown(row: MaintenanceWindow) -> dict[str, Any]:
    """What the audit has of it."""
    shown = maintenance_json(row)
    return {name: shown[name] for name in ("id", "names", "regions", "starts_at", "ends_at", "reason")}
