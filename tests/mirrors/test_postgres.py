"""The engine's tests once more, on a PostgreSQL server of their own."""

from __future__ import annotations

from pathlib import Path

from tests.postgres import passes_on_postgresql

MODULES = (
    "../rbac/test_last_administrator.py",
    "test_duties.py",
    "test_idempotency.py",
    "test_loops.py",
    "test_many_blockers.py",
    "test_measuring.py",
    "test_promise_database.py",
    "test_readings.py",
    "test_rebuild.py",
    "test_sensor.py",
)


def test_the_engine_on_postgresql() -> None:
    passes_on_postgresql(Path(__file__).parent, MODULES)
