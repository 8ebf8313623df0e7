"""Duties, installations and the audit changed their app and kept their tables: what a database has of them from before
is there after it, and the version before goes on beside the new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from installations.models import Contact, Installation, InstallationTest
from jobs.models import Deployment, Duty, JobLine, Worker
from mirrors import tasks
from tests.emptying import empty_tables

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


@dataclass
class Takeover:
    """Of a database that the version before has filled: `before`, the models as that version knows them, and what was
    `said` to the database by the move itself; `head` of the audit's chain as it was."""

    before: Any
    said: list[str]
    head: str


@pytest.fixture(scope="module")
def taken_over(django_db_setup: None, django_db_blocker: Any) -> Iterator[Takeover]:
    """Once for all tests, which leave alone what the others look at."""
    with django_db_blocker.unblock():
        MigrationExecutor(connection).migrate(BEFORE)
        try:
            before = MigrationExecutor(connection).loader.project_state([one for one in BEFORE if one[1]]).apps
            fill(before)
            chain.append_waiting()  # by the tables' names, which both versions have
            head = before.get_model("rbac", "AuditChain").objects.get().digest
            yield Takeover(before, move(), head)
        finally:
            to_the_newest()
            empty_tables()


def fill(before: Any) -> None:
    """A row for each of the tables that move, but for those that fill themselves."""
    now = clock.now()
    duty = before.get_model("mirrors", "Duty").objects.create(kind="copy", subject=7, queue="eu", due_at=now)
    before.get_model("mirrors", "JobLine").objects.create(duty=duty, at=now, level="INFO", worker="w", text="x")
    before.get_model("mirrors", "Installation").objects.create(
        region="mars", changed_at=now, served_by="eu", sealed="sealed"
    )
    before.get_model("mirrors", "InstallationTest").objects.create(
        region="mars", tested_at=now, reachable=True, checks=[]
    )
    before.get_model("rbac", "RefusalCount").objects.create(since=now, key="k", last_at=now)
    before.get_model("rbac", "AuditEvent").objects.create(
        actor="ann", action="auth:SignIn", arn="arn:lakefs:auth:::ann"
    )


YOUNGER = (Deployment, Contact, Worker)


@pytest.fixture(scope="module")
def newest(taken_over: Takeover) -> Takeover:
    """The rest of the way, too."""
    to_the_newest()
    return taken_over


def test_nothing_is_done_to_the_tables(taken_over: Takeover) -> None:
    assert taken_over.said == []


def test_the_tables_are_those_of_before(taken_over: Takeover) -> None:
    names = [(old, name) for old, all_of_it in MOVED.items() for name in all_of_it]
    moved = MigrationExecutor(connection).loader.project_state(AFTER).apps
    now = {
        model.__name__: moved.get_model(model._meta.app_label, model.__name__)
        for app in ("jobs", "audit", "installations")
        for model in apps.get_app_config(app).get_models()
        if model not in YOUNGER
    }
    assert {name for _, name in names} == set(now)
    for old, name in names:
        model = taken_over.before.get_model(old, name)
        assert model._meta.db_table == now[name]._meta.db_table
        assert columns_of(model) == columns_of(now[name])


def test_what_was_there_is_there(newest: Takeover) -> None:
    duty = Duty.objects.get(kind="copy")
    assert duty.lines.get().text == "x" and JobLine.objects.get().duty_id == duty.pk
    assert Installation.objects.get().sealed == "sealed" and InstallationTest.objects.get().reachable
    assert RefusalCount.objects.get().key == "k"
    assert Duty.objects.claim(duty.pk, holder="h", lease=60, interval=60)


def test_the_chain_goes_on_where_it_was(newest: Takeover) -> None:
    assert (AuditChain.objects.get().number, AuditChain.objects.get().digest) == (1, newest.head)
    AuditEvent.objects.create(actor="ben", action="auth:SignIn", arn="arn:lakefs:auth:::user/ben")
    chain.append_waiting()
    found = verify.verify()
    assert (found.wrong, found.place.number) == ("", 2) and not AuditCheckpoint.objects.exists()


def test_the_version_before_sees_what_the_new_one_writes(newest: Takeover) -> None:
    made = Duty.objects.create(kind="sense", subject=1, queue="eu", due_at=Now())
    assert newest.before.get_model("mirrors", "Duty").objects.get(kind="sense").pk == made.pk


def test_the_database_refuses_to_change_what_was_written_before(newest: Takeover) -> None:
    db_triggers.install()
    try:
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("UPDATE rbac_auditevent SET actor = 'eve' WHERE actor = 'ann'")
    finally:
        db_triggers.remove()


def test_a_message_of_the_version_before_is_still_heard(newest: Takeover) -> None:
    assert import_string("mirrors.tasks.run_duty") is tasks.run_duty
    assert tasks.run_duty(0) == "this task no longer exists"
