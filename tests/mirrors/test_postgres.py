"""The engine's tests once more, on a PostgreSQL server of their own."""

from __future__ import annotations

from pathlib import Path

from tests.postgres import passes_on_postgresql

MODULES = (
    "../rbac/test_last_administrator.py",
    "../rbac/test_idempotency.py",
    "../jobs/test_duties.py",
    "../mirroring/test_loops.py",
    "../mirroring/test_promise_database.py",
    "../mirroring/test_sensor.py",
    "services/test_rebuild.py",
    "status/test_readings.py",
    "transitions/test_many_blockers.py",
    "transitions/test_measuring.py",
)


def test_the_engine_on_postgresql() -> None:
    passes_on_postgresql(Path(__file__).parent, MODULES)
