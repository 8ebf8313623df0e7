"""Duties, installations and the audit changed their app and kept their tables: what a database has of them from before
is there after it, and the version before goes on beside the new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils.module_loading import import_string

from audit import chain, db_triggers, verify
from audit.models import AuditChain, AuditCheckpoint, AuditEvent, RefusalCount
from db import clock
from installations.models import Installation, InstallationTest
from jobs.models import Duty, JobLine
from mirrors import tasks
from tests.postgres import passes_on_postgresql

MOVE = ("mirrors", "0009_duties_and_installations_move")
BEFORE = [
    ("jobs", None),
    ("audit", None),
    ("installations", None),
    ("mirrors", "0008_proof_at_the_act"),
    ("rbac", "0006_sessions_and_guesses"),
    ("exports", "0005_foreign_files_and_late_writes"),
]
AFTER = [
    MOVE,
    ("jobs", "0001_from_mirrors"),
    ("audit", "0001_from_rbac"),
    ("installations", "0001_from_mirrors"),
]
"""As the move left it; later migrations may change the tables."""
MOVED = {
    "mirrors": ("Duty", "JobLine", "Installation", "InstallationTest"),
    "rbac": ("AuditEvent", "AuditChain", "AuditCheckpoint", "RefusalCount"),
}
HARMLESS = ("BEGIN", "COMMIT", "PRAGMA", "SELECT")
pytestmark = pytest.mark.django_db(transaction=True)


def columns_of(model: Any) -> dict[str, str]:
    """With their types."""
    return {field.column: field.db_type(connection) for field in model._meta.fields}


def to_the_newest() -> None:
    """Migrate, as far as it goes."""
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def move() -> list[str]:
    """Let the tables move; gives what was done to the database for it, but for Django's own book of migrations."""
    executor = MigrationExecutor(connection)
    with CaptureQueriesContext(connection) as asked:
        executor.migrate(AFTER)
    said = [query["sql"].strip() for query in asked.captured_queries]
    return [one for one in said if "django_migrations" not in one and not one.startswith(HARMLESS)]


@pytest.fixture
def before() -> Iterator[Any]:
    """The models as the version before knows them, on a database that is migrated as far as it does."""
    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    known = [(app, name) for app, name in BEFORE if name]
    try:
        yield MigrationExecutor(connection).loader.project_state(known).apps
    finally:
        to_the_newest()


def test_the_tables_are_those_of_before(before: Any) -> None:
    names = [(old, name) for old, all_of_it in MOVED.items() for name in all_of_it]
    moved = MigrationExecutor(connection).loader.project_state(AFTER).apps
    now = {
        model.__name__: moved.get_model(model._meta.app_label, model.__name__)
        for app in ("jobs", "audit", "installations")
        for model in apps.get_app_config(app).get_models()
    }
    assert {name for _, name in names} == set(now)
    for old, name in names:
        model = before.get_model(old, name)
        assert model._meta.db_table == now[name]._meta.db_table
        assert columns_of(model) == columns_of(now[name])


def test_nothing_is_done_to_the_tables(before: Any) -> None:
    assert move() == []


def test_what_was_there_is_there(before: Any) -> None:
    duty = before.get_model("mirrors", "Duty").objects.create(kind="copy", subject=7, queue="eu", due_at=clock.now())
    before.get_model("mirrors", "JobLine").objects.create(duty=duty, at=clock.now(), level="INFO", worker="w", text="x")
    before.get_model("mirrors", "Installation").objects.create(
        region="mars", changed_at=clock.now(), served_by="eu", sealed="sealed"
    )
    before.get_model("mirrors", "InstallationTest").objects.create(
        region="mars", tested_at=clock.now(), reachable=True, checks=[]
    )
    before.get_model("rbac", "RefusalCount").objects.create(since=clock.now(), key="k", last_at=clock.now())
    to_the_newest()
    assert Duty.objects.get().lines.get().text == "x" and JobLine.objects.get().duty_id == duty.pk
    assert Installation.objects.get().sealed == "sealed" and InstallationTest.objects.get().reachable
    assert RefusalCount.objects.get().key == "k"
    assert Duty.objects.claim(duty.pk, holder="h", lease=60, interval=60)


def test_the_chain_goes_on_where_it_was(before: Any) -> None:
    old = before.get_model("rbac", "AuditEvent")
    old.objects.create(actor="ann", action="auth:SignIn", arn="arn:lakefs:auth:::user/ann")
    assert chain.append_waiting() == 1  # by the tables' names, which both versions have
    head = before.get_model("rbac", "AuditChain").objects.get()
    to_the_newest()
    assert (AuditChain.objects.get().number, AuditChain.objects.get().digest) == (1, head.digest)
    AuditEvent.objects.create(actor="ben", action="auth:SignIn", arn="arn:lakefs:auth:::user/ben")
    chain.append_waiting()
    found = verify.verify()
    assert (found.wrong, found.place.number) == ("", 2) and not AuditCheckpoint.objects.exists()


def test_the_version_before_sees_what_the_new_one_writes(before: Any) -> None:
    to_the_newest()
    made = Duty.objects.create(kind="sense", subject=1, queue="eu", due_at=Now())
    assert before.get_model("mirrors", "Duty").objects.get(kind="sense").pk == made.pk


def test_the_database_refuses_to_change_what_was_written_before(before: Any) -> None:
    before.get_model("rbac", "AuditEvent").objects.create(actor="ann", action="auth:SignIn", arn="a")
    to_the_newest()
    db_triggers.install()
    try:
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("UPDATE rbac_auditevent SET actor = 'eve'")
    finally:
        db_triggers.remove()


def test_a_message_of_the_version_before_is_still_heard(before: Any) -> None:
    to_the_newest()
    assert import_string("mirrors.tasks.run_duty") is tasks.run_duty
    assert tasks.run_duty(0) == "no such duty any more"


def test_the_same_on_postgresql() -> None:
    if connection.vendor == "sqlite":
        passes_on_postgresql(Path(__file__).parent, [Path(__file__).name])
