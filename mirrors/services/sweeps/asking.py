"""Somebody wants the next sweep of a mirror now, and not when a week is over."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.errors import Conflict
from mirrors.models import Mirror
from mirrors.services.mirrors import mirror_lock
from mirrors.services.rights import require_operation
from mirrors.transitions.duties import sweep_soon
from rbac import services as rbac


def sweep_now(*, actor: Any, mirror: Mirror) -> None:
    """Look through the mirror's namespace at once. What may be deleted, and when, stays as it is: what this sweep finds
    for the first time goes in a week at the earliest.

    Raises Denied, NotFound (it is being deleted) and Conflict: it makes no sweeps now, or one is not through yet.
    """
    right = require_operation(actor, mirror)
    with transaction.atomic():
        now = mirror_lock(mirror)
        if why := _why_not(now):
            raise Conflict(why)
        sweep_soon(now.pk)
        after = {"sweep": now.name}
        rbac.audit(actor=actor, right=right, verb=Verb.SWEEP, subject=mirror.audit_name, after=after)


def _why_not(mirror: Mirror) -> str:
    if not mirror.follow_gc:
        return f"'{mirror.name}' does not follow its source's garbage collection"
    if not mirror.sweeps_now:
        return f"'{mirror.name}' makes no sweeps while it, or its copying, is paused or stopped"
    last = mirror.sweeps.first()
    if last is not None and last.is_open:
        return f"the sweep {last.pk} of '{mirror.name}' is not through yet: {last.get_state_display().lower()}"
    return ""
