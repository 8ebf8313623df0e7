"""Sweeps by call, page and command, the settings that they follow from, and the alerts that tell of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from console.jobs.listing import duty_retry
from core.notifications.kinds import AlertKind
from core.sweeping import Candidate
from db import clock
from jobs.models import Duty
from mirrors.models import Mirror, Sweep
from mirrors.services.sweeps import lists
from mirrors.transitions.duties import follow_collection
from notifications.conditions import observe
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.cli.conftest import terminal_of
from tests.cli.speaking import Terminal
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

__all__ = ["terminal_of"]
pytestmark = pytest.mark.django_db
MIRROR = f"{MIRRORS}/lake-eu"
State = Sweep.State
LISTED = 120


@pytest.fixture
def olga(owner: User) -> Client:
    return browser_of(owner)


@pytest.fixture
def tom(teammate: User) -> Client:
    return browser_of(teammate)


def browser_of(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def waiting(lm: Deployment) -> Sweep:
    """A sweep that asks whether it may delete 120 objects."""
    Mirror.objects.update(object_replication="managed", follow_gc=True, state="active")
    now = clock.now()
    sweep = Sweep.objects.create(
        mirror=Mirror.objects.get(),
        state=State.WAITING,
        reason="120 of 200 objects would be deleted, more than 10 %",
        pins="p",
        began_at=now,
        looked_at=now,
        expires_at=now + timedelta(days=7),
        listed=200,
        found=LISTED + 1,
        due=LISTED,
        due_bytes=1200,
    )
    old = (now - timedelta(days=8)).timestamp()
    rows = [Candidate(f"data/{number:04}", 10, "e", old) for number in range(LISTED)]
    young = Candidate("data/young", 10, "e", now.timestamp())
    Sweep.objects.update(digest=lists.write_found(sweep.mirror, sweep, [*rows, young]))
    return Sweep.objects.get()


def test_sweeps_are_listed_and_shown_with_the_beginning_of_their_list(owner: User, waiting: Sweep) -> None:
    api = Api(owner)
    status, page = api.call("GET", f"{MIRROR}/sweeps")
    [told] = page["results"]
    assert (status, told["id"], told["state"], told["due"]) == (200, waiting.pk, "waiting", LISTED)
    assert (told["reason"], told["decided_by"]) == (waiting.reason, None)
    status, told = api.call("GET", f"{MIRROR}/sweeps/{waiting.pk}")
    assert (status, len(told["objects"])) == (200, 100)
    assert told["objects"][0] | {"found_at": ""} == {"address": "data/0000", "size": 10, "etag": "e", "found_at": ""}
    assert api.call("GET", f"{MIRROR}/sweeps/{waiting.pk + 1}")[0] == 404


def test_all_of_a_list_is_a_file(olga: Client, waiting: Sweep) -> None:
    answer = olga.get(f"{MIRROR}/sweeps/{waiting.pk}?format=csv")
    lines = b"".join(answer).decode().splitlines()  # type: ignore[arg-type]
    assert (lines[0], len(lines)) == ("address,size,etag,found_at", LISTED + 1)


def test_a_list_that_can_not_be_read_is_told(owner: User, waiting: Sweep, lm: Deployment) -> None:
    del lm.eu_store.objects[lists.uri_of(waiting.mirror, waiting, "found")]
    status, answer = Api(owner).call("GET", f"{MIRROR}/sweeps/{waiting.pk}")
    assert (status, "is not there" in answer["message"]) == (502, True)


def test_a_sweep_is_approved_once(owner: User, waiting: Sweep) -> None:
    api = Api(owner)
    status, told = api.call("POST", f"{MIRROR}/sweeps/{waiting.pk}/approve")
    assert (status, told["state"], told["decided_by"]) == (200, "deleting", "olga")
    status, answer = api.call("POST", f"{MIRROR}/sweeps/{waiting.pk}/approve")
    assert (status, "does not wait for approval" in answer["message"]) == (409, True)


def test_or_rejected(owner: User, waiting: Sweep) -> None:
    status, told = Api(owner).call("POST", f"{MIRROR}/sweeps/{waiting.pk}/reject")
    assert (status, told["state"], told["ended_at"] is not None) == (200, "rejected", True)


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_deciding_needs_a_right_of_its_own(teammate: User, waiting: Sweep, verb: str) -> None:
    status, answer = Api(teammate).call("POST", f"{MIRROR}/sweeps/{waiting.pk}/{verb}")
    assert (status, "fs:ApproveMirrorDeletes on arn:lakefs:fs:::repository/lake-eu" in answer["message"]) == (403, True)
    waiting.refresh_from_db()
    assert waiting.state == State.WAITING


def test_the_settings_are_changed_by_call_command_and_form(
    lm: Deployment, owner: User, olga: Client, terminal_of: Callable[[User], Terminal]
) -> None:
    api = Api(owner)
    status, answer = api.call("PATCH", MIRROR, {"follow_gc": True})
    assert (status, answer["field"]) == (400, "follow_gc")
    status, mirror = api.call("PATCH", MIRROR, {"follow_gc": True, "object_replication": "managed"})
    assert (status, mirror["follow_gc"], mirror["delete_percent"], mirror["delete_most"]) == (200, True, 10, 10_000)
    done = terminal_of(owner)("mirror", "edit", "lake-eu", "--no-follow-gc", "--delete-percent", "5")
    assert done.exit_code == 0, done.output
    assert (Mirror.objects.get().follow_gc, Mirror.objects.get().delete_percent) == (False, 5)
    form = olga.get("/mirrors/lake-eu/settings/").context["form"]
    given = {name: value for name, value in form.initial.items() if value not in (None, False)}
    answer = olga.post("/mirrors/lake-eu/settings/", given | {"follow_gc": "on", "delete_most": "7"})
    assert answer.status_code == 302, text(answer)
    assert (Mirror.objects.get().follow_gc, Mirror.objects.get().delete_most) == (True, 7)
    api.call("PATCH", MIRROR, {"object_replication": "native"})
    assert not Mirror.objects.get().follow_gc


@pytest.mark.parametrize(
    "wrong",
    [{"delete_percent": 101}, {"delete_percent": -1}, {"delete_most": True}, {"delete_most": "7"}, {"follow_gc": 2}],
)
def test_wrong_settings_are_refused(lm: Deployment, owner: User, wrong: dict[str, Any]) -> None:
    status, answer = Api(owner).call("PATCH", MIRROR, wrong)
    assert (status, answer["field"]) == (400, next(iter(wrong)))


def test_the_page_shows_what_waits_and_takes_a_decision(olga: Client, waiting: Sweep) -> None:
    page = text(olga.get("/mirrors/lake-eu/sweeps/"))
    assert "Waits for approval" in page and waiting.reason in page and "The first 100 of 120 objects" in page
    answer = olga.post(f"/mirrors/lake-eu/sweeps/{waiting.pk}/approve/", follow=True)
    assert "Approved: 120 objects will be deleted" in text(answer)
    waiting.refresh_from_db()
    assert waiting.state == State.DELETING


def test_who_may_only_look_is_shown_no_button(tom: Client, waiting: Sweep) -> None:
    page = text(tom.get("/mirrors/lake-eu/sweeps/"))
    assert "fs:ApproveMirrorDeletes" in page and "Approve: delete" not in page
    assert tom.post(f"/mirrors/lake-eu/sweeps/{waiting.pk}/approve/").status_code == 403


def test_the_tab_is_there_for_mirrors_that_follow_it(lm: Deployment, olga: Client) -> None:
    assert "/mirrors/lake-eu/sweeps/" not in olga.get("/mirrors/lake-eu/").content.decode()
    Mirror.objects.update(follow_gc=True)
    assert "/mirrors/lake-eu/sweeps/" in olga.get("/mirrors/lake-eu/").content.decode()


def test_commands_list_show_and_decide(owner: User, waiting: Sweep, terminal_of: Callable[[User], Terminal]) -> None:
    terminal = terminal_of(owner)
    assert waiting.reason in terminal("mirror", "sweeps", "lake-eu").stdout
    shown = terminal("mirror", "sweep", "lake-eu", str(waiting.pk))
    assert shown.exit_code == 0 and "data/0000" in shown.stdout and "and 20 more objects" in shown.stdout
    done = terminal("mirror", "approve", "lake-eu", str(waiting.pk))
    assert done.exit_code == 0 and "deleting" in done.stdout
    assert terminal("mirror", "reject", "lake-eu", str(waiting.pk)).exit_code == 5


def test_a_sweep_is_asked_for_by_call_page_and_command(
    lm: Deployment, owner: User, olga: Client, terminal_of: Callable[[User], Terminal]
) -> None:
    Mirror.objects.update(object_replication="managed", follow_gc=True, state="active")

    def asked() -> bool:
        was = Mirror.objects.get().sweep_asked
        Mirror.objects.update(sweep_asked=False)
        return was

    status, told = Api(owner).call("POST", f"{MIRROR}/sweeps")
    assert (status, asked()) == (202, True) and "looking through s3://dst/lake now" in told["message"]
    assert "Sweep now" in text(olga.get("/mirrors/lake-eu/sweeps/"))
    answer = olga.post("/mirrors/lake-eu/sweeps/now/", follow=True)
    assert "is looked through now" in text(answer) and asked()
    done = terminal_of(owner)("mirror", "sweep-now", "lake-eu")
    assert (done.exit_code, asked()) == (0, True)


def test_one_that_is_not_through_is_a_conflict(waiting: Sweep, owner: User, olga: Client, tom: Client) -> None:
    status, told = Api(owner).call("POST", f"{MIRROR}/sweeps")
    assert (status, "not through yet: waiting for approval" in told["message"]) == (409, True)
    assert "Sweep now" not in text(olga.get("/mirrors/lake-eu/sweeps/"))
    assert tom.post("/mirrors/lake-eu/sweeps/now/").status_code == 403


def test_run_now_of_its_task_is_a_sweep_too(lm: Deployment, owner: User, olga: Client) -> None:
    mirror = Mirror.objects.get()
    Mirror.objects.update(object_replication="managed", follow_gc=True, state="active")
    follow_collection(Mirror.objects.get())
    duty_retry(actor=owner, duty=Duty.objects.get(kind="sweep", subject=mirror.pk))
    assert Mirror.objects.get().sweep_asked


def test_what_waits_and_what_is_frozen_open_alerts(waiting: Sweep) -> None:
    def told() -> dict[AlertKind, str]:
        return {one.condition.kind: one.condition.sentence for one in observe(clock.now()).troubles}

    assert told()[AlertKind.DELETIONS_WAITING].startswith("Garbage collection at lake-eu waits for approval: 120 of")
    Sweep.objects.update(state=State.FROZEN, reason="the source repository is gone")
    frozen = told()
    assert AlertKind.DELETIONS_WAITING not in frozen
    words = "which follows garbage collection: the source repository is gone."
    assert frozen[AlertKind.DELETIONS_FROZEN].endswith(words)
    Mirror.objects.update(paused=True)
    assert AlertKind.DELETIONS_FROZEN not in told()
