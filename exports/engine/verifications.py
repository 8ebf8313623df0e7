"""The life of a verification: somebody asks for it, a run that starts makes it outdated, it ends one way or another."""

from __future__ import annotations

from core.errors import Conflict
from core.exporting.deadline import Late
from db import clock
from exports.models import Export, ExportDrift, ExportVerification, VerificationUnit
from jobs import duties

KEPT = 10


def begin(export: Export, *, asked_by: str) -> ExportVerification:
    """Begin to compare; one that goes on already is given back. Raises Conflict where there is nothing to compare
    with, and NotFound for an export that was deleted. Inside of a transaction."""
    now = Export.objects.held(export.pk)
    if (going_on := now.verifications.open().first()) is not None:
        return going_on
    _check(now)
    made = ExportVerification.objects.create(
        export=now,
        ref=now.last_success_ref,
        path=now.path,
        actions=now.actions_at_success,
        asked_by=asked_by,
        started_at=clock.now(),
    )
    old = now.verifications.order_by("-pk").values_list("pk", flat=True)[KEPT:]
    last = now.verifications.filter(path=now.path).telling().values_list("pk", flat=True).first()
    ExportVerification.objects.filter(pk__in=list(old)).exclude(pk=last).delete()
    duties.wake("export", -now.pk)
    return made


def _check(export: Export) -> None:
    if export.runs.open().exists():
        raise Conflict("an export is in progress: the destination is being changed", hint="Verify it when it is done")
    if not export.last_success_ref or export.path_at_success != export.path:
        raise Conflict(f"nothing to verify: no commit was exported to {export.path} yet", hint="Export one first")


def outdate(export: Export, why: str) -> None:
    """A run changes the destination from now on, say: what is compared meanwhile would prove nothing."""
    export.verifications.open().update(ended_at=clock.now(), outcome=ExportVerification.Outcome.OUTDATED, error=why)
    VerificationUnit.objects.filter(verification__export=export).delete()


def outdate_all(export: Export, path: str, why: str) -> None:
    """Nor does any answer of before tell of this place any more."""
    outdate(export, why)
    outcomes = ExportVerification.Outcome
    answers = export.verifications.filter(path=path, outcome__in=[outcomes.EQUAL, outcomes.DRIFTED, outcomes.FAILED])
    answers.update(outcome=outcomes.OUTDATED, error=why)


def lock(verification: ExportVerification) -> None:
    """Inside of a transaction: it goes on until that ends. Raises Late when a run has begun."""
    if not ExportVerification.objects.select_for_update().filter(pk=verification.pk, ended_at=None).exists():
        raise Late


def end(verification: ExportVerification, outcome: str, error: str = "") -> None:
    """It is told; what earlier ones named is of no use any more. Inside of a transaction."""
    lock(verification)
    ExportVerification.objects.filter(pk=verification.pk).update(ended_at=clock.now(), outcome=outcome, error=error)
    verification.units.all().delete()
    ExportDrift.objects.filter(verification__export=verification.export_id, verification__lt=verification.pk).delete()
