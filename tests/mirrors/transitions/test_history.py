"""Mirrors that check what branches point to, and of their ancestors take the records only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.mirroring.states import State
from jobs.models import Duty
from mirrors.models import Mirror, MirrorBranch, MirrorCommit, Repository
from mirrors.services.rebuild import rebuild
from mirrors.status.mirror import mirror_status
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.harness import NAMESPACE, Deployment, deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


@pytest.fixture
def api(owner: User, lm: Deployment) -> Api:
    api = Api(owner)
    status, made = api.call("POST", MIRRORS, BODY | {"history": "head"})
    assert (status, made["history"]) == (201, "head")
    return api


def files_of(lm: Deployment, commit: str) -> list[str]:
    """Everything that a commit alone brought: metadata, and its file `a`."""
    return [*(f"_lakefs/{name}" for name in lm.lake.files_of(commit)), lm.lake.address_of(commit, "a")]


@pytest.fixture
def old(api: Api, lm: Deployment) -> str:
    """An ancestor of which nothing but the record is at the mirror."""
    old = lm.lake.commit(files={"a": b"old"})
    lm.lake.commit(files={"a": b"new"})
    lm.arrive(*files_of(lm, old))
    lm.work()
    return old


def test_a_head_needs_the_records_of_its_ancestors_only(api: Api, lm: Deployment, old: str) -> None:
    head = lm.lake.repository.branches["main"]
    assert lm.head() == head
    assert [range_id for range_id, _ in lm.checked] == lm.lake.files_of(head)[1:]
    assert old in lm.eu.repositories["lake-eu"].commits
    commit = api.call("GET", f"{MIRRORS}/lake-eu/commits/{old}")[1]
    assert (commit["record"], commit["data"], commit["promotable"]) == ("accepted", "unchecked", False)
    reading = mirror_status(Mirror.objects.get())
    assert (reading.state, reading.waiting) == (State.UP_TO_DATE, 0)


def test_what_a_branch_points_to_is_checked_after_all(api: Api, lm: Deployment, old: str) -> None:
    held = {*lm.eu_store.hidden}
    lm.lake.repository.branches["dev"] = old
    lm.work()
    assert (lm.head("dev"), state_of(old).data) == ("", "waiting")
    assert lm.head() == lm.lake.repository.branches["main"]
    lm.eu_store.hidden -= held
    lm.work()
    assert lm.head("dev") == old


def test_a_commit_that_was_seen_before_its_branch_moved_is_checked(api: Api, lm: Deployment, old: str) -> None:
    """The validator may come between the storing of records and the move of the branch."""
    new = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    lm.work()
    row = state_of(new)
    MirrorCommit.objects.filter(pk=row.pk).update(data="unknown", history=False, promoted_at=None)
    branch = Repository.objects.get().branches.get()
    branch.candidates.filter(commit=row.commit).delete()
    branch.position -= 1
    branch.head = lm.lake.repository.commits[new].parents[0]
    branch.save()
    MirrorBranch.objects.update(head=branch.head, position=branch.position)
    lm.run(Duty.objects.get(kind="validate").pk)
    assert state_of(new).data == "unchecked"
    lm.work()
    assert (state_of(new).data, lm.head()) == ("complete", new)


def test_one_head_that_is_not_complete_is_in_no_other_s_way(api: Api, lm: Deployment, old: str) -> None:
    torn = lm.lake.commit(files={"a": b"torn"})
    lm.arrive(*files_of(lm, torn), *files_of(lm, old))
    lm.work()
    assert state_of(torn).data == "waiting"
    new = lm.lake.commit(files={"a": b"whole"})
    lm.arrive(*files_of(lm, torn), *files_of(lm, old))
    lm.work()
    assert lm.head() == new


def test_a_record_that_is_refused_is_in_the_way(api: Api, lm: Deployment, old: str) -> None:
    new = lm.lake.commit(files={"b": b"1"})
    MirrorCommit.objects.filter(commit__sha=old).update(record="refused")
    MirrorCommit.objects.update(history=False)
    lm.arrive()
    lm.work()
    assert lm.head() == lm.lake.repository.commits[new].parents[0]


def test_by_default_all_of_the_history_is_checked(owner: User, lm: Deployment) -> None:
    api = Api(owner)
    assert api.call("POST", MIRRORS, BODY | {"history": "some"})[0] == 400
    assert api.call("POST", MIRRORS, BODY)[1]["history"] == "full"
    old = lm.lake.commit(files={"a": b"old"})
    lm.lake.commit(files={"a": b"new"})
    lm.arrive(lm.lake.address_of(old, "a"))
    lm.work()
    assert (lm.head(), state_of(old).data) == ("", "waiting")


def test_the_choice_outlives_the_database(api: Api, lm: Deployment, old: str) -> None:
    assert b'"history": "head"' in lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"]
    for model in (Duty, Mirror, Repository):
        model.objects.all().delete()
    list(rebuild(actor="system:tests", regions=["eu-west-1"]))
    assert Mirror.objects.get().history == "head"
    new = lm.lake.commit(files={"b": b"1"})
    lm.arrive(*files_of(lm, old))
    lm.work()
    assert lm.head() == new
