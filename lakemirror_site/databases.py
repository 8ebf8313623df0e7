"""Django's database settings from `mirrors_database`: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deployment.config import Config


def default(config: Config, var: Path) -> dict[str, Any]:
    """The entry `DATABASES["default"]`."""
    database = config.mirrors_database
    if database.type == "postgres":
        return _postgres(config)
    return sqlite(var / (database.sqlite.path or "lakemirror.sqlite3"))


def sqlite(path: Path) -> dict[str, Any]:
    """A file in WAL mode. Transactions take the write lock at once: waiting for it is safe, upgrading to it is not.

    Connections stay open: each would have to set the mode again, and what polls would do little else.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def _postgres(config: Config) -> dict[str, Any]:
    """A server; its connection string goes to the driver as it is, so every libpq option works."""
    postgres = config.mirrors_database.postgres
    return {
        "ENGINE": "django.db.backends.postgresql",
        **_parts(postgres.connection_string),
        "CONN_MAX_AGE": int(postgres.max_connection_age.total_seconds()),
        "CONN_HEALTH_CHECKS": True,
    }


def _parts(connection_string: str) -> dict[str, Any]:
    """A URL or key=value string as Django's settings: its five names, all else as driver options."""
    from psycopg.conninfo import conninfo_to_dict

    parts = {key: str(value) for key, value in conninfo_to_dict(connection_string).items() if value is not None}
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    known = {setting: parts.pop(key, "") for setting, key in names.items()}
    return {**known, "OPTIONS": parts}
