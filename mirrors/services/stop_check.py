"""Having a check stopped: what was written down of it stays, nothing more is, and no commit is judged by it.

The worker finds out before it writes the next ranges down, and ends the Spark job then. Whoever stops and whoever
writes change the same rows, so one of them comes first: locks are taken in one order, the run before its validation.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.errors import Conflict
from db import clock
from jobs.job_ids import JobType, job_id
from jobs.models import Duty
from mirrors.models import MirrorDuty, Run, Validation
from mirrors.services.rights import require_operation
from rbac import services as rbac


def job_stop(*, actor: Any, kind: JobType, row: Any) -> str:
    """Have a check stopped; says what happens now. A run that is part of a check on demand stops that.

    Raises Denied, and Conflict when it has ended, when its worker is gone, or for a duty.
    """
    if kind is JobType.DUTY:
        raise Conflict("a task recurs, so it can't be stopped", hint="Pause the mirror or export, or stop its run")
    right = require_operation(actor, row.mirror)
    validation = row if kind is JobType.VALIDATION else row.validation
    with transaction.atomic():
        message = _stop_run(row) if validation is None else _stop_validation(validation, actor)
        after = {"stop": job_id(kind, row.pk), "mirror": row.mirror.name}
        rbac.audit(actor=actor, right=right, verb=Verb.STOP, subject=row.mirror.audit_name, after=after)
    if validation is not None:
        # Not before: whoever is just writing holds these rows, and waits for the validation's.
        validation.left.all().delete()
    return message


def _stop_run(run: Run) -> str:
    held = Duty.objects.filter(kind=MirrorDuty.VALIDATE, subject=run.mirror_id, until__gt=clock.now())
    if run.ended_at is None and not held.exists():
        raise Conflict(f"the worker of run {run.pk} is lost: there is nothing to stop")
    if not Run.objects.filter(pk=run.pk, ended_at=None).update(stop_asked=True):
        raise Conflict(f"run {run.pk} has ended already")
    return "stopping; the next round continues with what is left"


def _stop_validation(validation: Validation, actor: Any) -> str:
    who = actor if isinstance(actor, str) else actor.username
    Run.objects.filter(validation=validation.pk, ended_at=None).update(stop_asked=True)
    ended = {"ended_at": clock.now(), "stopped_by": who or "somebody", "metaranges": []}
    if not Validation.objects.filter(pk=validation.pk, ended_at=None).update(**ended):
        raise Conflict(f"validation {validation.pk} has ended already")
    return "stopped; what was found so far is kept"
