"""What recurs for a mirror and its source: six kinds of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string

from deployment import config
from jobs import kinds
from jobs.kinds import DutyKind
from jobs.lease import Handler
from mirroring.compat import beyond_us
from mirrors.models import Mirror, MirrorDuty, Repository

WORK = {
    MirrorDuty.MANAGE: "mirroring.manage.manage",
    MirrorDuty.SENSE: "mirroring.sense.branches.sense",
    MirrorDuty.COPY_RECORDS: "mirroring.copy_records.copy_records",
    MirrorDuty.VALIDATE: "mirroring.validate.commits.validate",
    MirrorDuty.PROMOTE: "mirroring.promote.branches.promote",
    MirrorDuty.SWEEP: "mirroring.sweep.look.sweep",
}
"""What does the work: loaded by who works, not by who serves pages."""

LABELS = {
    MirrorDuty.MANAGE: "Provision",
    MirrorDuty.SENSE: "Poll source",
    MirrorDuty.COPY_RECORDS: "Copy commits",
    MirrorDuty.VALIDATE: "Validate",
    MirrorDuty.PROMOTE: "Move branches",
    MirrorDuty.SWEEP: "Sweep",
}
"""What pages call the work."""


def register() -> None:
    """Make the work known to the queues and the controller that all apps share."""
    kinds.register(
        _of_a_mirror(MirrorDuty.MANAGE, _manage_seconds),
        DutyKind(
            MirrorDuty.SENSE.value,
            _work(MirrorDuty.SENSE),
            _sense_seconds,
            _sources,
            _changed,
            label=LABELS[MirrorDuty.SENSE],
        ),
        _of_a_mirror(MirrorDuty.COPY_RECORDS, _sense_seconds),
        _of_a_mirror(MirrorDuty.VALIDATE, _validate_seconds, heavy=True),
        _of_a_mirror(MirrorDuty.PROMOTE, _validate_seconds),
        DutyKind(
            MirrorDuty.SWEEP.value,
            _work(MirrorDuty.SWEEP),
            _sweep_seconds,
            _sweeping,
            beyond_us=beyond_us,
            heavy=True,
            label=LABELS[MirrorDuty.SWEEP],
        ),
    )


def _of_a_mirror(kind: MirrorDuty, interval: Callable[[], float], *, heavy: bool = False) -> DutyKind:
    return DutyKind(kind.value, _work(kind), interval, _mirrors, beyond_us=beyond_us, heavy=heavy, label=LABELS[kind])


def _work(kind: MirrorDuty) -> Handler:
    return lambda lease: import_string(WORK[kind])(lease)


def _manage_seconds() -> float:
    return config.current().mirrors_manager.process_mirrors_interval_duration.total_seconds()


def _sense_seconds() -> float:
    return config.current().commit_sensor.process_branches_duration.total_seconds()


def _validate_seconds() -> float:
    return config.current().validator.run_interval.total_seconds()


def _sweep_seconds() -> float:
    """A sweep says itself when the next one is; what keeps it from one is looked at as often."""
    return 3600.0


def _sweeping(regions: list[str]) -> Any:
    return Mirror.objects.served(regions).filter(follow_gc=True).values("pk")


def _mirrors(regions: list[str]) -> Any:
    return Mirror.objects.served(regions).values("pk")


def _sources(regions: list[str]) -> Any:
    return Mirror.objects.served(regions).values("source")


def _changed(region: str, repository: str) -> list[int]:
    """The sources that are this repository."""
    return list(Repository.objects.filter(region=region, name=repository).values_list("pk", flat=True))
