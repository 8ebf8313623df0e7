"""Somebody approves what a sweep would delete, where that is more than the mirror's settings let it; or rejects it."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.access.mirror_rights import to_approve
from core.access.policies import Right
from core.errors import Conflict, NotFound
from core.text.phrases import count
from db import clock
from jobs import duties
from mirrors.models import Mirror, MirrorDuty, Sweep
from mirrors.services.mirrors import mirror_lock
from rbac import services as rbac

State = Sweep.State
LARGEST = 10**18


def find_sweep(mirror: Mirror, number: int) -> Sweep:
    """The sweep of a mirror by its number. Raises NotFound."""
    sweep: Sweep | None = mirror.sweeps.filter(pk=number).first() if number < LARGEST else None
    if sweep is None:
        raise NotFound(f"there is no sweep {str(number)[:40]} at '{mirror.name}'")
    return sweep


def require_approval(user: Any, mirror: str) -> Right:
    """The right by which they decide about deletions at the mirror of this name. NotSignedIn, Denied."""
    right = to_approve(mirror)
    rbac.require(user, right)
    return right


def sweep_approve(*, actor: Any, mirror: Mirror, number: int) -> Sweep:
    """Let a sweep delete just what it has found and told, as far as nothing speaks for that when its turn comes.

    Raises Denied, NotFound and Conflict: it waits for nobody, or has expired.
    """
    return _decide(actor, mirror, number, State.DELETING, Verb.APPROVE)


def sweep_reject(*, actor: Any, mirror: Mirror, number: int) -> Sweep:
    """Nothing of it is deleted; the next sweep, a week later, may ask again. Raises as `sweep_approve`."""
    return _decide(actor, mirror, number, State.REJECTED, Verb.REJECT)


def _decide(actor: Any, mirror: Mirror, number: int, state: State, verb: Verb) -> Sweep:
    right = require_approval(actor, mirror.name)
    with transaction.atomic():
        mirror_lock(mirror)
        sweep, now = find_sweep(mirror, number), clock.now()
        rows = mirror.sweeps.filter(pk=sweep.pk, state=State.WAITING, expires_at__gt=now)
        ended = None if state == State.DELETING else now
        by = actor if isinstance(actor, str) else actor.username
        if not rows.update(state=state, decided_by=by, decided_at=now, ended_at=ended):
            raise Conflict(f"the sweep {sweep.pk} does not wait for approval: {_why(sweep)}")
        told = {"sweep": sweep.pk, "objects": sweep.due, "bytes": sweep.due_bytes, "list": sweep.digest}
        after = {"mirror": mirror.name, **told}
        rbac.audit(actor=actor, right=right, verb=verb, subject=mirror.audit_name, after=after)
        duties.wake(MirrorDuty.VALIDATE, mirror.pk)
    sweep.refresh_from_db()
    return sweep


def _why(sweep: Sweep) -> str:
    if sweep.state == State.WAITING:
        return "its list has expired. The next sweep makes a new one"
    words = sweep.get_state_display().lower()
    return f"{words}, {count(sweep.deleted, 'object')} deleted" if sweep.deleted else str(words)
