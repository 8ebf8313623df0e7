"""What makes a process of LakeMirror one of the fleet: its adapters lead to the stand-ins, its leases are short."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from types import ModuleType
from typing import Any

from django.apps import AppConfig

from core.mirroring import source_moves
from tests.fakes import BulkStandIn, FakeMover
from tests.fleet import CALL_SECONDS, CLOCK, GONE_SECONDS, LEASE_SECONDS, SABOTAGE, WORLD
from tests.fleet.wire import Lease, Remote


class FleetConfig(AppConfig):
    name = "tests.fleet"
    label = "fleet"

    def ready(self) -> None:
        """Last of all apps: whatever is patched here is what the others have loaded."""
        from deployment import config
        from deployment.wiring import check_jobs, clients, sweep_jobs
        from jobs import duties, lease
        from mirroring import certificates, manage
        from mirroring.promote import move_ref
        from spark_jobs.check import job
        from tests.fleet import sabotage
        from tests.fleet.sweeping import Patient, Remover, SweptStandIn, quicken

        address, region = os.environ[WORLD], config.current().region
        clients.lakefs = functools.cache(lambda at: Remote(address, f"lakefs {at}", region, _lease))  # type: ignore[assignment]
        clients.objects = functools.cache(lambda at: Remote(address, f"store {at}", region, _lease))  # type: ignore[assignment]
        check_jobs.run_check = _run_check
        job.source_of = lambda settings: settings.source and BulkStandIn(clients.objects(settings.source.region))  # type: ignore[assignment]
        job.mover_of = lambda settings: FakeMover(  # type: ignore[assignment]
            clients.objects(settings.source.region),  # type: ignore[arg-type]
            clients.objects(settings.region),  # type: ignore[arg-type]
        )
        clients.bulk_objects = functools.cache(lambda at: BulkStandIn(clients.objects(at)))
        duties._work = _stamped(duties._work)
        lease.LEASE_SECONDS = LEASE_SECONDS
        manage.CALL_SECONDS = move_ref.CALL_SECONDS = certificates.PUT_SECONDS = CALL_SECONDS
        source_moves.is_gone = functools.partial(source_moves.is_gone, least_seconds=GONE_SECONDS)  # type: ignore[assignment]
        quicken()
        sweep_jobs.store = lambda at: SweptStandIn(Patient(clients.objects(at)))  # type: ignore[assignment]
        sweep_jobs.remover = lambda at: Remover(Patient(clients.objects(at)))  # type: ignore[assignment]
        if name := os.environ.get(SABOTAGE):
            sabotage.break_(name)
        if seconds := float(os.environ.get(CLOCK) or 0):
            _shift_clocks(timedelta(seconds=seconds))


# --- who calls

_held: Lease | None = None
"""A worker of django-q does one task at a time."""


def _lease() -> Lease | None:
    return _held


def _stamped(work: Callable[..., Any]) -> Callable[..., Any]:
    """Every call that the work makes says by which lease."""

    def stamped(lease: Any, *args: Any) -> Any:
        global _held
        _held = Lease(lease.duty.kind, lease.duty.subject, lease.attempt)
        try:
            return work(lease, *args)
        finally:
            _held = None

    return stamped


# --- the check job, in this process


def _run_check(
    mirror: Any, work: Sequence[tuple[str, list[str]]], on_rows: Callable[[Iterable[Mapping[str, Any]]], None]
) -> None:
    from deployment.wiring import check_jobs, clients
    from spark_jobs.check.job import check_batch

    for batch in check_batch(work, check_jobs.settings_of(mirror), clients.bulk_objects(mirror.region)):
        on_rows(batch.to_pylist())


# --- a clock that is wrong


def _shift_clocks(by: timedelta) -> None:
    """`now` is another in all that this process has loaded, Django and django-q included, and `monotonic` is not."""

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + by

    def has_it(module: ModuleType) -> bool:
        return vars(module).get("datetime") is datetime and module.__name__ != __name__

    from django.utils import timezone

    import mirroring.duty_kinds  # noqa: F401

    ours = (
        "lakemirror_site",
        "console",
        "mirrors",
        "mirroring",
        "notifications",
        "installations",
        "jobs",
        "web",
        "db",
        "deployment",
    )
    for module in list(sys.modules.values()):
        if module is timezone or (module.__name__.startswith(ours) and has_it(module)):
            module.datetime = Shifted  # type: ignore[attr-defined]
