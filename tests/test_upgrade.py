"""From 0.1.0 to this version: what was there is there, what was under way goes on, what was queued is carried out."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils.module_loading import import_string
from django_q.signing import SignedPackage

from audit import chain, db_triggers, verify
from audit.models import AuditEvent
from core.installations.settings import Secrets
from db import clock, tables
from deployment import config
from exports.models import Export
from installations.models import OLD_KEY, Installation
from jobs.broker import AttentiveBroker
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, MirrorBranch
from tests import version_before
from tests.cast import PASSWORD
from tests.mirrors.harness import Deployment, deployment

API = "/service/replication/v1/repositories/lake/mirrors"
KEY = base64.b64encode(":".join(version_before.PROGRAM).encode()).decode()
BODY = {"name": "lake-eu", "region": "eu-west-1", "storage_namespace": "s3://dst/lake"}


@pytest.fixture(scope="module", autouse=True)
def upgraded(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Once for all tests, of which each leaves it as it was."""
    with django_db_blocker.unblock(), version_before.database():
        assert tables.Watch().missing() > 20
        call_command("migrate", verbosity=0)
        yield


@pytest.fixture
def lm(db: None) -> Iterator[Deployment]:
    """The regions as they were left, and the deployment of this version."""
    with deployment() as made:
        version_before.put_regions(made, version_before.left())
        yield made


@pytest.fixture
def program() -> Client:
    """Olga's, with the key of then."""
    return Client(headers={"Authorization": f"Basic {KEY}"})


def mirror_of(program: Client) -> dict[str, Any]:
    answer = program.get(f"{API}/lake-eu")
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


def test_no_migration_is_left(db: None) -> None:
    assert tables.Watch().missing() == 0


def test_the_mirror_goes_on(lm: Deployment, program: Client) -> None:
    lm.arrive()
    lm.work()
    heads = lm.lake.repository.branches
    assert (lm.head("main"), lm.head("dev")) == (heads["main"], heads["dev"])
    assert lm.torn() == [] and not Blocker.objects.exists()
    assert mirror_of(program)["status"] == "Up to date"


def test_what_is_still_missing_is_found_again_and_not_promoted(lm: Deployment, program: Client) -> None:
    was = lm.head()
    lm.work()
    assert lm.head() == was == MirrorBranch.objects.get(name="main").head
    assert lm.torn() == []
    branches = {one["name"]: one for one in mirror_of(program)["branches"]}
    assert [one["path"] for one in branches["main"]["blockers"]] == ["d"]
    assert branches["main"]["mirror_head"] == was and branches["dev"]["status"] == "Up to date"


def test_before_the_first_round_nothing_is_said_to_be_well(lm: Deployment, program: Client) -> None:
    told = mirror_of(program)
    assert {one["status"] for one in told["branches"]} == {"Unknown"} == {told["status"]}
    assert {one["name"]: one["mirror_head"] for one in told["branches"]} == version_before.left()["branches"]


def test_what_a_worker_of_then_checks_after_the_migration_proves_nothing_and_hangs_nowhere(lm: Deployment) -> None:
    """As it leaves the rows: it builds on its own checks, and the migration took away what was missing."""
    commits = Mirror.objects.get().commits
    commits.update(data="complete", history=True)
    last = commits.latest("commit_id")
    last.data, last.waits_for = "waiting", [Coverage.objects.get(state="waiting").range_id]
    last.save()
    lm.arrive("data/p0/00003")  # of a commit that it found complete
    lm.work()
    assert lm.head() == version_before.left()["branches"]["main"]
    assert {row.path for row in Blocker.objects.all()} == {"c"}
    assert not MirrorBranch.objects.get(name="main").proven
    lm.arrive()
    lm.work()
    assert lm.head() == lm.lake.repository.branches["main"] and lm.torn() == []


def test_what_a_worker_left_that_died_is_taken_up(lm: Deployment) -> None:
    duty = Duty.objects.get(kind="copy")
    assert duty.holder == "a worker that died" and duty.until < clock.now()
    lm.run(duty.pk)
    assert Duty.objects.get(pk=duty.pk).ended_at > duty.until


def test_messages_that_were_queued_are_carried_out(lm: Deployment) -> None:
    lm.arrive()
    done = {}
    for queue in (config.current().worker_queue, config.current().spark_queue):
        broker = AttentiveBroker(queue)
        while messages := broker.dequeue():
            ((pk, payload),) = messages
            message = SignedPackage.loads(payload)
            duty = Duty.objects.get(pk=message["args"][0])
            done[duty.kind] = import_string(message["func"])(*message["args"], **message["kwargs"])
            assert Duty.objects.get(pk=duty.pk).attempt == duty.attempt + 1
            broker.acknowledge(pk)
    assert set(done) == {"sense", "promote", "export"}


def test_who_was_signed_in_is_signed_in(lm: Deployment) -> None:
    browser = Client()
    browser.cookies["lakemirror_session"] = version_before.left()["session"]
    for path in ("/", "/mirrors", "/exports", "/jobs", "/audit", "/access", "/installations", reverse("keys")):
        answer = browser.get(path, follow=True)
        assert answer.status_code == 200 and "olga" in answer.content.decode(), path


def test_passwords_and_rights_are_as_they_were(lm: Deployment) -> None:
    browser = Client()
    answer = browser.post("/login/", {"username": "tom", "password": PASSWORD})
    assert answer.status_code == 302
    assert browser.get("/mirrors", follow=True).status_code == 200
    assert browser.get("/audit", follow=True).status_code == 403


def test_a_request_that_is_repeated_is_not_carried_out_twice(lm: Deployment, program: Client) -> None:
    answer = program.post(API, BODY, content_type="application/json", headers={"Idempotency-Key": "once"})
    assert (answer.status_code, answer["Idempotency-Replayed"]) == (201, "true")
    assert Mirror.objects.count() == 1


def test_an_export_does_what_it_did(lm: Deployment, program: Client) -> None:
    export = Export.objects.get()
    assert (export.path, export.status_path) == ("s3://out/latest", "s3://out/states")
    assert (export.manifest, export.actions) == ("always", True)
    assert program.get("/api/v1/repositories/lake/branches/main/export-status").status_code == 200


def test_sealed_secrets_open(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OLD_KEY, version_before.SECRET_KEY)  # the tests' own is another one
    assert Installation.objects.get().secrets() == Secrets(lakefs="the-secret-of-mars")


def test_the_audit_is_whole_and_goes_on(db: None) -> None:
    place = verify.verify().place.number
    waiting = AuditEvent.objects.filter(number=None).count()
    assert place > 10 and waiting > 0
    AuditEvent.objects.create(actor="ben", action="auth:SignIn", arn="arn:lakefs:auth:::user/ben")
    chain.append_waiting()
    found = verify.verify()
    assert (found.wrong, found.place.number) == ("", place + waiting + 1)


def test_the_database_still_refuses_to_change_what_was_written(db: None) -> None:
    db_triggers.install()
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE rbac_auditevent SET actor = 'eve' WHERE actor = 'olga'")
