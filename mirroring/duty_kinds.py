"""What recurs for a mirror and its source: five kinds of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deployment import config
from jobs import kinds
from jobs.kinds import DutyKind
from jobs.lease import DutyOutcome, Lease
from mirroring.compat import beyond_us
from mirrors.models import Mirror, MirrorDuty, Repository


def register() -> None:
    """Make the work known to the queues and the controller that all apps share."""
    kinds.register(
        _of_a_mirror(MirrorDuty.MANAGE, _manage, _manage_seconds),
        DutyKind(MirrorDuty.SENSE.value, _sense, _sense_seconds, _sources, _changed),
        _of_a_mirror(MirrorDuty.COPY_RECORDS, _copy_records, _sense_seconds),
        _of_a_mirror(MirrorDuty.VALIDATE, _validate, _validate_seconds, heavy=True),
        _of_a_mirror(MirrorDuty.PROMOTE, _promote, _validate_seconds),
    )


def _of_a_mirror(
    kind: MirrorDuty, handler: Callable[[Lease], DutyOutcome], interval: Callable[[], float], *, heavy: bool = False
) -> DutyKind:
    return DutyKind(kind.value, handler, interval, _mirrors, beyond_us=beyond_us, heavy=heavy)


# What does the work is loaded by who works, not by who serves pages.


def _manage(lease: Lease) -> DutyOutcome:
    from mirroring.manage import manage

    return manage(lease)


def _sense(lease: Lease) -> DutyOutcome:
    from mirroring.sense.branches import sense

    return sense(lease)


def _copy_records(lease: Lease) -> DutyOutcome:
    from mirroring.copy_records import copy_records

    return copy_records(lease)


def _validate(lease: Lease) -> DutyOutcome:
    from mirroring.validate.commits import validate

    return validate(lease)


def _promote(lease: Lease) -> DutyOutcome:
    from mirroring.promote.branches import promote

    return promote(lease)


def _manage_seconds() -> float:
    return config.current().mirrors_manager.process_mirrors_interval_duration.total_seconds()


def _sense_seconds() -> float:
    return config.current().commit_sensor.process_branches_duration.total_seconds()


def _validate_seconds() -> float:
    return config.current().validator.run_interval.total_seconds()


def _mirrors(regions: list[str]) -> Any:
    return Mirror.objects.served(regions).values("pk")


def _sources(regions: list[str]) -> Any:
    return Mirror.objects.served(regions).values("source")


def _changed(region: str, repository: str) -> list[int]:
    """The sources that are this repository."""
    return list(Repository.objects.filter(region=region, name=repository).values_list("pk", flat=True))
