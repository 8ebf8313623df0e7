"""What is copied for a managed mirror now, and steering it: by API, page and command, for who may run the mirror."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from db import clock
from jobs.models import Duty
from mirroring.validate.bringing_progress import RunProgress
from mirrors.models import Mirror, MirrorDuty, Run
from rbac import services as rbac
from rbac.models import User
from spark_jobs.check.progress import Progress, told_by
from tests.api import MIRRORS, Api
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db
COPYING = f"{MIRRORS}/lake-eu/copying"
MIB = 1 << 20


@pytest.fixture
def mirror(lm: Deployment) -> Mirror:
    """A managed mirror of which nothing is copied yet."""
    Mirror.objects.update(object_replication="managed", state="active")
    return Mirror.objects.get(name="lake-eu")


@pytest.fixture
def operator(outsider: User) -> User:
    """Somebody who may see and run mirrors, and change none."""
    statement = [{"effect": "allow", "action": ["fs:List*", "fs:OperateMirror"], "resource": "*"}]
    policy = rbac.policy_create(actor="system:tests", document={"id": "Runs", "statement": statement})
    rbac.policy_attach(actor="system:tests", policy=policy, user=outsider)
    return outsider


def at_work(mirror: Mirror) -> Run:
    """A run ten seconds after its begin: of 12 objects found missing four are here, a large one is under way."""
    Duty.objects.update_or_create(
        kind=MirrorDuty.VALIDATE, subject=mirror.pk, defaults={"until": clock.now() + timedelta(minutes=1)}
    )
    run = Run.objects.create(mirror=mirror, job="check", started_at=clock.now() - timedelta(seconds=10))
    passed = [0]
    progress, told = Progress(lambda: passed[0]), RunProgress(run)
    progress.expect([10] * 10 + [20 * MIB] * 2)
    told.add(progress.take())
    progress.begin(20 * MIB)
    for copied in (1, 1, 1, 1, 0):
        progress.begin(10)
        progress.end(10, copied=copied, copied_bytes=10 * copied)
    passed[0] = 8 * MIB
    told.add(progress.take())
    run.refresh_from_db()
    return run


def test_lanes_pace_and_what_is_left_are_told_while_it_goes_on(mirror: Mirror, api: Api) -> None:
    status, idle = api.call("GET", COPYING)
    assert (status, idle["now"], idle["paused"]) == (200, None, False)
    assert idle["limits"] == {"workers": 16, "bytes_per_second": None, "objects_per_second": None}
    run = at_work(mirror)
    told = api.call("GET", COPYING)[1]
    now = told["now"]
    assert (now["run"], now["lacking"], now["copied"], now["left"], now["in_flight"]) == (run.pk, 12, 4, 8, 1)
    assert now["lanes"] == [
        {"lane": "small", "lacking": 10, "waiting": 5, "in_flight": 0, "copied": 4, "failed": 1},
        {"lane": "large", "lacking": 2, "waiting": 1, "in_flight": 1, "copied": 0, "failed": 0},
    ]
    assert 0 < now["objects_per_second"] <= 0.4
    assert now["bytes_per_second"] > 8 * MIB / 20, "what has passed of an object in flight counts"
    assert (told["copied_objects"], told["copied_bytes"]) == (4, 40)


def test_what_tasks_tell_is_shown_and_counted_once_also_if_their_rows_never_come(mirror: Mirror, api: Api) -> None:
    """Spark hands rows over when a task has ended; one that is ended before that gives none."""
    run = Run.objects.create(mirror=mirror, job="check", started_at=clock.now())
    told, tasks = RunProgress(run), [Progress(lambda: 100), Progress(lambda: 50)]
    for one in tasks:
        one.expect([10] * 4)
        for _ in range(3):
            one.begin(10)
        one.end(10, copied=1, copied_bytes=10)

    def lanes() -> list[Any]:
        return [told_by(one.file(1.0), since=0.0) for one in tasks]

    told.look(lanes())
    run.refresh_from_db()
    small = run.lanes["small"]
    assert (small["lacking"], small["begun"] - small["ended"], small["passed_bytes"]) == (8, 4, 150)
    assert (run.copied, Mirror.objects.get().copied) == (2, 0)
    tasks[0].end(10, copied=1, copied_bytes=10)
    told.add(tasks[0].take())
    tasks[1].end(10, copied=1, copied_bytes=10)
    told.look(lanes())
    told.end()
    run.refresh_from_db()
    assert (run.copied, run.copied_bytes, Mirror.objects.get().copied, Mirror.objects.get().copied_bytes) == (
        4,
        40,
        4,
        40,
    )


def test_a_run_whose_worker_is_gone_copies_nothing(mirror: Mirror, api: Api) -> None:
    at_work(mirror)
    Duty.objects.update(until=clock.now() - timedelta(seconds=1))
    assert api.call("GET", COPYING)[1]["now"] is None


def test_who_may_run_the_mirror_pauses_resumes_and_limits_it(mirror: Mirror, operator: User) -> None:
    api = Api(operator)
    assert api.call("POST", f"{COPYING}/pause")[1]["paused"] is True
    assert api.call("POST", f"{COPYING}/resume")[1]["paused"] is False
    status, told = api.call("POST", f"{COPYING}/limits", {"workers": 4, "bytes_per_second": 2_000_000})
    assert (status, told["limits"]) == (
        200,
        {"workers": 4, "bytes_per_second": 2_000_000, "objects_per_second": None},
    )
    assert api.call("POST", f"{COPYING}/limits", {"bytes_per_second": None})[1]["limits"]["bytes_per_second"] is None
    events = AuditEvent.objects.filter(subject="mirror/lake-eu", action="fs:OperateMirror").order_by("pk")
    assert [event.after for event in events][:3] == [
        {"mirror": "lake-eu", "copying_paused": True},
        {"mirror": "lake-eu", "copying_paused": False},
        {"mirror": "lake-eu", "copy_workers": 4, "copy_bytes_per_second": 2_000_000},
    ]
    assert api.call("PATCH", f"{MIRRORS}/lake-eu", {"workers": 5})[0] == 403, "settings are for who may change it"


def test_as_settings_they_are_changed_by_the_right_to_change_the_mirror_as_before(mirror: Mirror, api: Api) -> None:
    assert api.call("PATCH", f"{MIRRORS}/lake-eu", {"workers": 5})[0] == 200
    event = AuditEvent.objects.get(subject="mirror/lake-eu")
    assert (event.action, event.after["copy_workers"]) == ("fs:MirrorRepository", 5)


def test_who_may_only_look_steers_nothing(mirror: Mirror, teammate: User) -> None:
    api = Api(teammate)
    assert api.call("GET", COPYING)[0] == 200
    for verb, body in (("pause", None), ("resume", None), ("limits", {"workers": 1})):
        assert api.call("POST", f"{COPYING}/{verb}", body)[0] == 403
        assert api.call("POST", f"{MIRRORS}/none/copying/{verb}", body)[0] == 403
    assert not Mirror.objects.get().copying_paused


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "workers"),
        ({"workers": 0}, "workers"),
        ({"workers": 257}, "workers"),
        ({"workers": "4"}, "workers"),
        ({"bytes_per_second": 999_999}, "bytes_per_second"),
        ({"objects_per_second": 0}, "objects_per_second"),
        ({"paused": True}, "paused"),
    ],
)
def test_what_can_be_no_limit_is_refused_by_its_field(mirror: Mirror, api: Api, body: Any, field: str) -> None:
    status, told = api.call("POST", f"{COPYING}/limits", body)
    assert (status, told["field"]) == (400, field)


def test_of_a_mirror_whose_objects_the_stores_copy_nothing_is_steered(mirror: Mirror, api: Api) -> None:
    Mirror.objects.update(object_replication="native")
    told = api.call("GET", COPYING)[1]
    assert (told["object_replication"], told["now"], told["paused"]) == ("native", None, False)
    for verb, body in (("pause", None), ("resume", None), ("limits", {"workers": 1})):
        status, refused = api.call("POST", f"{COPYING}/{verb}", body)
        assert status == 409 and "the stores do" in refused["message"]


def test_the_page_shows_it_and_its_buttons_work(mirror: Mirror, owner: User, client: Client) -> None:
    client.force_login(owner)
    assert "Nothing is being copied" in text(client.get("/mirrors/lake-eu/"))
    at_work(mirror)
    shown = text(client.get("/mirrors/lake-eu/"))
    assert "8 objects left of 12, 1 in flight" in shown and "large (above 8 MB) 2 1 1 0 0" in shown
    client.post("/mirrors/lake-eu/copying/", {"verb": "pause"})
    assert Mirror.objects.get().copying_paused
    limits = {"verb": "limits", "copy_workers": "3", "copy_bytes_per_second": "", "copy_objects_per_second": "7"}
    client.post("/mirrors/lake-eu/copying/", limits)
    now = Mirror.objects.get()
    assert (now.copy_workers, now.copy_bytes_per_second, now.copy_objects_per_second) == (3, None, 7)
    refused = client.post("/mirrors/lake-eu/copying/", limits | {"copy_workers": "0"}, headers={"HX-Request": "true"})
    assert "Objects at once" in refused.content.decode() and Mirror.objects.get().copy_workers == 3
