"""A mirror that follows its source's garbage collection, after its database was lost: by its descriptor it still does,
and deletes nothing that its branches lead to, however little the books know by then."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from core.errors import Invalid
from core.sweeping import NothingGoes
from jobs.models import Duty
from mirroring.sweep.circumstances import require_recorded
from mirrors.models import Mirror, Repository, Sweep
from mirrors.queries.certificates import describe, descriptor_bytes, parse_descriptor
from mirrors.services.rebuild import rebuild
from tests.mirroring.swept import SOURCE, follow, lies_here, pass_time, sweep
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db
State = Sweep.State
DESCRIPTOR = f"{NAMESPACE}/_lakemirror/mirror.json"


@pytest.fixture
def older(lm: Deployment) -> str:
    """The address of an object that only the history of main names. The source's collection took it; the mirror has
    it."""
    follow(lm, delete_percent=40, delete_most=7)
    first = lm.lake.commit(files={"a": b"old", "b": b"kept"})
    lm.work()
    lm.lake.commit(files={"a": b"new"})
    lm.work()
    assert lm.torn() == []
    address: str = lm.lake.trees[first][b"a"].address
    del lm.us_store.objects[f"{SOURCE}/{address}"]
    assert lies_here(lm, address)
    lm.run(Duty.objects.get(kind="manage").pk)
    return address


def lose_database(lm: Deployment) -> Mirror:
    Duty.objects.all().delete()
    Sweep.objects.all().delete()
    Mirror.objects.all().delete()
    Repository.objects.all().delete()
    (line,) = [one for one in rebuild(actor="system:tests", regions=["eu-west-1"]) if one.name == "lake-eu"]
    assert line.result == "rebuilt"
    return Mirror.objects.get()


def test_240_it_follows_it_again_and_what_history_names_stays(lm: Deployment, older: str) -> None:
    mirror = lose_database(lm)
    assert (mirror.follow_gc, mirror.delete_percent, mirror.delete_most) == (True, 40, 7)
    lm.run(Duty.objects.get(kind="sweep").pk)
    assert Sweep.objects.get().state == State.FROZEN, "the source's log was not read yet"
    lm.work()
    left_over = f"{NAMESPACE}/data/left-over"
    lm.eu_store.objects[left_over] = b"x"
    for _ in range(2):
        pass_time(lm, timedelta(days=7, hours=2))
        last = sweep(lm)
        assert last is not None and (last.state, last.found) == (State.DONE, 1), last.reason
    assert (lm.remover.deleted, lies_here(lm, older)) == ([left_over], True)


def test_branches_of_others_and_those_that_others_moved_hold_up_nothing(lm: Deployment, older: str) -> None:
    mirror = Mirror.objects.get()
    require_recorded(mirror)
    mirror.branches.create(name="theirs", head="ab" * 32, stray=True)
    mirror.branches.create(name="moved", head="cd" * 32, misplaced=True)
    require_recorded(mirror)
    mirror.branches.create(name="ours", head="ef" * 32)
    with pytest.raises(NothingGoes, match="the branch ours at the mirror is not recorded yet"):
        require_recorded(mirror)


@pytest.mark.parametrize(
    ("settings", "follows"),
    [
        ({}, True),
        ({"follow_gc": False}, False),
        ({"follow_gc": None}, False),
        ({"follow_gc": "true"}, False),
        ({"follow_gc": 1}, False),
        ({"object_replication": "native"}, False),
    ],
)
def test_only_a_plain_yes_of_a_managed_mirror_has_it_follow(
    lm: Deployment, older: str, settings: dict[str, Any], follows: bool
) -> None:
    body = json.loads(lm.eu_store.objects[DESCRIPTOR])
    body["settings"] |= settings
    lm.eu_store.objects[DESCRIPTOR] = json.dumps(body).encode()
    assert lose_database(lm).follow_gc is follows
    assert Duty.objects.filter(kind="sweep").exists() is follows


def test_a_descriptor_of_the_version_before_follows_nothing(lm: Deployment, older: str) -> None:
    body = json.loads(lm.eu_store.objects[DESCRIPTOR])
    for name in ("follow_gc", "delete_percent", "delete_most"):
        del body["settings"][name]
    told = parse_descriptor(json.dumps(body).encode())
    assert (told.follow_gc, told.delete_percent, told.delete_most) == (False, 10, 10_000)
    body["settings"]["delete_percent"] = 101
    with pytest.raises(Invalid, match="delete_percent"):
        parse_descriptor(json.dumps(body).encode())


def test_it_travels(lm: Deployment, older: str) -> None:
    mirror = Mirror.objects.select_related("source").get()
    assert parse_descriptor(descriptor_bytes(describe(mirror))) == describe(mirror)
    assert parse_descriptor(lm.eu_store.objects[DESCRIPTOR]).follow_gc
