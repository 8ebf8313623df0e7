"""The engine's tests once more, on a PostgreSQL server of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import quick_server

HERE = Path(__file__).resolve().parent
MODULES = (
    "test_blockers_api.py",
    "test_breaches.py",
    "test_certificates.py",
    "test_duties.py",
    "test_idempotency.py",
    "test_list_page.py",
    "test_loops.py",
    "test_many_blockers.py",
    "test_measuring.py",
    "test_metrics.py",
    "test_readings.py",
    "test_rebuild.py",
    "test_review.py",
    "test_sensor.py",
    "test_stopping.py",
)


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of a server of its own."""
    with quick_server() as url:
        yield url


def test_the_engine_on_postgresql(server: str) -> None:
    database = "REPLICATION_MIRRORS_DATABASE_"
    environment = os.environ | {
        f"{database}TYPE": "postgres",
        f"{database}POSTGRES_CONNECTION_STRING": server,
    }
    modules = [str(HERE / name) for name in MODULES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--create-db", *modules]
    done = subprocess.run(command, env=environment, cwd=HERE.parent.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:]
