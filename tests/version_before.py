"""A database as version 0.1.0 left it, and the regions beside it: tests/fixtures/version-0.1.0 says what is in it."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection

from audit import db_triggers
from tests.mirrors.harness import NAMESPACE, Deployment

FOLDER = Path(__file__).parent / "fixtures" / "version-0.1.0"
SECRET_KEY = "the key of 0.1.0"
"""Its auth.encrypt.secret_key."""
PROGRAM = "AKIAOLGA0000000000", "the secret of olga's key"
Left = dict[str, Any]


def left() -> Left:
    """What is not in the database: what the destination holds of its own, what a browser had in its cookie."""
    told: Left = json.loads((FOLDER / f"{connection.vendor}.json").read_text())
    return told


@contextmanager
def database() -> Iterator[None]:
    """In place of the tests' own. What ends after a time has just begun: sessions, calls to be repeated."""
    with _set_aside():
        _execute(gzip.decompress((FOLDER / f"{connection.vendor}.sql.gz").read_bytes()).decode())
        with connection.cursor() as cursor:
            cursor.execute("UPDATE rbac_session SET began_at = CURRENT_TIMESTAMP, seen_at = CURRENT_TIMESTAMP")
            cursor.execute("UPDATE rbac_session SET expire_date = %s", ["2999-01-01 00:00:00"])
            cursor.execute("UPDATE rbac_keyedcall SET begun_at = CURRENT_TIMESTAMP")
        yield


@contextmanager
def _set_aside() -> Iterator[None]:
    if connection.vendor == "sqlite":
        with _another_file():
            yield
        return
    try:
        _empty_schema()
        yield
    finally:
        _empty_schema()
        call_command("migrate", verbosity=0)
        db_triggers.remove()


@contextmanager
def _another_file() -> Iterator[None]:
    own = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = Path(f"{own}.of-the-version-before")
    try:
        yield
    finally:
        connection.close()
        for file in Path(own).parent.glob(f"{Path(own).name}.of-the-version-before*"):
            file.unlink()
        connection.settings_dict["NAME"] = own


def _empty_schema() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE")
        cursor.execute("CREATE SCHEMA public")


def _execute(script: str) -> None:
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as opened:
            opened.executescript(script)
        return
    with connection.cursor() as cursor:
        cursor.cursor.execute(script)  # the driver's own: there are percent signs in it


def put_regions(lm: Deployment, told: Left) -> None:
    """The source with the commits that were made there, and the destination as it stood."""
    lake = lm.lake.repository
    lm.lake.commit(files={"a": b"1", "b": b"2"})
    lake.branches["dev"] = lm.lake.commit(files={"c": b"3"})
    lake.tags["v1"] = lake.branches["main"]
    lm.lake.commit(files={"d": b"4"})
    lm.lake.commit("dev", files={"e": b"5"})
    assert lake.branches == told["heads of the source"], "the same commits have the same ids"
    lake.info = replace(lake.info, creation_date=told["created"]["lake"])
    there = lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
    there.info = replace(there.info, creation_date=told["created"]["lake-eu"])
    there.branches, there.tags = dict(told["branches"]), dict(told["tags"])
    there.commits = {sha: lake.commits[sha] for sha in told["commits"]}
    lm.arrive(told["held back"])
    for uri, data in told["own files"].items():
        lm.eu_store.put(uri, base64.b64decode(data))
