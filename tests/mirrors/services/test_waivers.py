"""Waivers: history that was never replicated is accepted as unreadable, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.mirroring.states import State
from mirrors.models import Blocker, Mirror, MirrorCommit, Waiver
from mirrors.status.mirror import mirror_status
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.harness import Deployment, deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)

WAIVERS = f"{MIRRORS}/lake-eu/waivers"
WHY = "never replicated; the source's lifecycle removed it"


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


@pytest.fixture
def api(owner: User, lm: Deployment) -> Api:
    api = Api(owner)
    assert api.call("POST", MIRRORS, BODY)[0] == 201
    return api


@pytest.fixture
def old(lm: Deployment, api: Api) -> str:
    """An ancestor whose object never arrives; the head does not need it."""
    old = lm.lake.commit(files={"a": b"old"})
    lm.lake.commit(files={"a": b"new"})
    lm.arrive(lm.lake.address_of(old, "a"))
    lm.work()
    assert lm.head() == ""
    return old


def waive(api: Api, *commits: str, reason: str = WHY) -> tuple[int, Any]:
    return api.call("POST", WAIVERS, {"commits": list(commits), "reason": reason})


def test_what_descends_from_a_waived_commit_is_promoted(api: Api, lm: Deployment, old: str) -> None:
    status, waiver = waive(api, old)
    assert (status, waiver["commits"], waiver["reason"], waiver["given_by"]) == (201, [old], WHY, "olga")
    lm.work()
    assert lm.head() == lm.lake.repository.branches["main"]
    reading = mirror_status(Mirror.objects.get())
    assert (reading.state, reading.waiting) == (State.UP_TO_DATE, 0)
    assert Blocker.objects.get().path == "a"
    audited = AuditEvent.objects.get(after__waiver=waiver["id"])
    assert (audited.actor, audited.reason, audited.after["commits"]) == ("olga", WHY, [old])
    assert api.call("GET", f"{WAIVERS}/{waiver['id']}") == (200, waiver)
    assert api.call("GET", WAIVERS)[1]["results"] == [waiver]


def test_a_waived_commit_is_never_a_head_even_when_it_is_complete(api: Api, lm: Deployment, old: str) -> None:
    waive(api, old)
    lm.work()
    lm.arrive()
    lm.lake.repository.branches["dev"] = old
    lm.work()
    assert (state_of(old).data, lm.head("dev")) == ("complete", "")
    dev = {branch.name: branch for branch in mirror_status(Mirror.objects.get()).branches}["dev"]
    assert (dev.state, dev.reason_code) == (State.BLOCKED, "commit_waived")
    assert f"waived by olga ({WHY})" in dev.sentence
    api.call("DELETE", f"{WAIVERS}/{Waiver.objects.get().pk}")
    lm.work()
    assert lm.head("dev") == old


def test_its_record_has_to_be_accepted(api: Api, lm: Deployment, old: str) -> None:
    MirrorCommit.objects.filter(commit__sha=old).update(record="refused")
    waive(api, old)
    lm.work()
    assert lm.head() == ""


def test_its_own_ancestors_are_not_waived_with_it(api: Api, lm: Deployment) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    second = lm.lake.commit(files={"a": b"2"})
    head = lm.lake.commit(files={"a": b"3"})
    lm.arrive(*(lm.lake.address_of(commit, "a") for commit in (first, second)))
    lm.work()
    waive(api, second)
    lm.work()
    assert lm.head() == ""
    waive(api, first)
    lm.work()
    assert lm.head() == head


def test_withdrawing_moves_nothing_back_and_blocks_what_is_to_come(api: Api, lm: Deployment, old: str) -> None:
    waiver = waive(api, old)[1]["id"]
    lm.work()
    head = lm.head()
    assert api.call("DELETE", f"{WAIVERS}/{waiver}") == (204, None)
    assert api.call("DELETE", f"{WAIVERS}/{waiver}")[0] == 404
    assert AuditEvent.objects.filter(before__waiver=waiver, reason=WHY).exists()
    new = lm.lake.commit(files={"b": b"1"})
    lm.arrive(lm.lake.address_of(old, "a"))
    lm.work()
    assert (lm.head(), state_of(new).data) == (head, "complete")
    assert mirror_status(Mirror.objects.get()).waiting == 1
    lm.arrive()
    lm.work()
    assert lm.head() == new


def test_it_is_shown_on_the_commit(api: Api, lm: Deployment, old: str, owner: User) -> None:
    path = f"{MIRRORS}/lake-eu/commits/{old}"
    status, commit = api.call("GET", path)
    assert (status, commit["waived"], commit["data"], commit["blockers"][0]["path"]) == (200, None, "waiting", "a")
    lm.work()
    new = lm.lake.commit(files={"b": b"1"})
    lm.lake.repository.branches["main"] = old
    lm.work()
    lm.lake.repository.branches["main"] = new
    lm.arrive(lm.lake.address_of(old, "a"))
    lm.work()
    waive(api, old)
    commit = api.call("GET", path)[1]
    assert (commit["waived"]["given_by"], commit["waived"]["reason"], commit["promotable"]) == ("olga", WHY, False)
    client = Client()
    client.force_login(owner)
    page = client.get("/mirrors/lake-eu/?branch=main").content.decode()
    assert "waived by olga" in page
    assert "never replicated; the source&#x27;s lifecycle removed it" in page
    assert "1 waived" in page
    assert api.call("GET", f"{MIRRORS}/lake-eu/commits/{'0' * 64}")[0] == 404


def test_heads_are_not_waived(api: Api, lm: Deployment, old: str) -> None:
    source_head = lm.lake.repository.branches["main"]
    status, told = waive(api, source_head)
    assert (status, told["field"]) == (409, "commits")
    assert "is the head of main in us-east-1" in waive(api, old, source_head)[1]["message"]
    lm.arrive()
    lm.work()
    lm.lake.commit()
    lm.work()
    assert "is the head of main at 'lake-eu'" in waive(api, source_head)[1]["message"]
    assert not Waiver.objects.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ([], 400),
        ({"commits": [], "reason": "x"}, 400),
        ({"commits": ["0" * 64]}, 400),
        ({"commits": ["0" * 64], "reason": " "}, 400),
        ({"commits": ["abc"], "reason": "x"}, 400),
        ({"commits": "0" * 64, "reason": "x"}, 400),
        ({"commits": ["0" * 64], "reason": "x"}, 404),
    ],
)
def test_a_waiver_names_commits_and_says_why(api: Api, body: Any, status: int) -> None:
    assert api.call("POST", WAIVERS, body)[0] == status
    assert not Waiver.objects.exists()


def test_a_commit_is_waived_once(api: Api, lm: Deployment, old: str) -> None:
    waive(api, old)
    status, answer = waive(api, old)
    assert status == 409
    assert "is waived already" in answer["message"]


def test_outsiders_waive_nothing(api: Api, lm: Deployment, old: str, outsider: User) -> None:
    waiver = waive(api, old)[1]["id"]
    other = Api(outsider)
    assert waive(other, old)[0] == 403
    assert other.call("DELETE", f"{WAIVERS}/{waiver}")[0] == 403
    assert other.call("GET", WAIVERS)[0] == 403
    assert other.call("GET", f"{MIRRORS}/lake-eu/commits/{old}")[0] == 403
