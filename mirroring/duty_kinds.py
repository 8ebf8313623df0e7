"""What recurs for a mirror and its source: five kinds of work."""

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


def register() -> None:
    """Make the work known to the queues and the controller that all apps share."""
    kinds.register(
        _of_a_mirror(MirrorDuty.MANAGE, "manage.manage", _manage_seconds),
        DutyKind(MirrorDuty.SENSE.value, _work("sense.branches.sense"), _sense_seconds, _sources, _changed),
        _of_a_mirror(MirrorDuty.COPY_RECORDS, "copy_records.copy_records", _sense_seconds),
        _of_a_mirror(MirrorDuty.VALIDATE, "validate.commits.validate", _validate_seconds, heavy=True),
        _of_a_mirror(MirrorDuty.PROMOTE, "promote.branches.promote", _validate_seconds),
    )


def _of_a_mirror(kind: MirrorDuty, path: str, interval: Callable[[], float], *, heavy: bool = False) -> DutyKind:
    return DutyKind(kind.value, _work(path), interval, _mirrors, beyond_us=beyond_us, heavy=heavy)


def _work(path: str) -> Handler:
    """A function of `mirroring` that does the work: it is loaded by who works, not by who serves pages."""
    return lambda lease: import_string(f"mirroring.{path}")(lease)


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
