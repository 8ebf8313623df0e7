"""Scenarios of promotion with real servers and real Spark, read through the mirror's lakeFS.

Their numbers are those of docs/promotion.md. Each begins with main at its first commit, A, at both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F

from core.states import State
from mirrors.models import Mirror, MirrorBranch, MirrorCommit, Promotion, Repository, SourceBranch, SourceTag
from mirrors.options import mirror_update
from mirrors.readings import mirror_reading
from rbac.models import User
from sandbox.lakefs_http import LakeFSError
from tests.e2e.conftest import World

pytestmark = [pytest.mark.spark]


def settle(world: World, rounds: int = 2) -> None:
    """Everything that is not held back has arrived, and the duties have seen it."""
    assert world.sandbox.wait_replicated()
    for _ in range(rounds):
        world.work()


def grow(world: World, name: str, branch: str = "main") -> str:
    """A commit of one file that is named for it."""
    return world.commit({f"{name}.csv": name.encode()}, branch)


def grow_held(world: World, name: str, branch: str = "main", kind: str = "data") -> str:
    """A commit of which something is held back on the way."""
    world.sandbox.hold(kind=kind, count=1)
    commit = grow(world, name, branch)
    assert world.sandbox.wait_replicated()
    return commit


def branch_off(world: World, name: str, source: str = "main") -> str:
    """A new branch of the source."""
    world.source.create_branch(world.repo, name, source)
    return world.source.head(world.repo, name)


def force(world: World, method: str, path: str, **options: object) -> None:
    """What somebody does to the mirror behind our back."""
    world.destination.call(method, f"/repositories/{world.mirror_name}{path}", **options)


def state(world: World, branch: str = "main") -> State:
    """What the page says of a branch."""
    reading = mirror_reading(Mirror.objects.get(pk=world.mirror.pk))
    return next(one.state for one in reading.branches if one.name == branch)


def whys(branch: str = "main") -> list[str]:
    """Why a branch moved, the last time first."""
    return list(Promotion.objects.filter(branch=branch).values_list("why", flat=True))


# --- the scenarios ----------------------------------------------------------------------------------------------------


def play_1_2_and_3_the_newest_complete_commit_wins(world: World) -> None:
    b = grow(world, "b")
    c = grow_held(world, "c")
    settle(world)
    assert world.head() == b
    world.sandbox.release()
    settle(world)
    assert world.head() == c
    d, e = grow(world, "d"), grow(world, "e")
    settle(world)
    assert world.head() == e
    assert MirrorCommit.objects.get(commit__sha=d).superseded_at is not None


def play_4_what_only_an_ancestor_lacks(world: World) -> None:
    a = world.head()
    grow_held(world, "x")
    c = world.commit({"x.csv": b"overwritten"})
    settle(world)
    assert world.head() == a
    assert world.blocker().path == "x.csv"
    world.sandbox.release()
    settle(world)
    assert world.head() == c


def play_7_and_8_a_merged_branch_is_history(world: World) -> None:
    a = world.head()
    branch_off(world, "feature")
    grow_held(world, "f1", "feature", kind="range")
    grow(world, "f2", "feature")
    world.source.merge(world.repo, "feature", "main", "merge", {})
    settle(world)
    assert world.head() == a
    world.sandbox.release()
    settle(world, 3)
    assert world.head() == world.source.head(world.repo, "main")
    assert world.head("feature") == world.source.head(world.repo, "feature")


def play_10_11_12_and_13_a_rewind(world: World) -> None:
    a = world.head()
    c = grow(world, "c")
    settle(world)
    world.source.hard_reset(world.repo, "main", a)
    other = grow_held(world, "other")
    settle(world)
    assert (world.head(), state(world)) == (c, State.REWOUND)
    world.sandbox.release()
    settle(world)
    assert (world.head(), whys()[0]) == (other, "source-moved")
    world.source.hard_reset(world.repo, "main", a)
    settle(world)
    assert (world.head(), whys()[0]) == (a, "source-moved")
    moves = len(whys())
    grow(world, "d")
    world.source.hard_reset(world.repo, "main", a)
    settle(world)
    assert (world.head(), len(whys())) == (a, moves), "there and back between two looks"


def play_15_16_18_and_42_branches_come_and_go(world: World) -> None:
    a, jobs = world.head(), world.mirror.runs.count()
    branch_off(world, "old")
    settle(world, 1)
    branch_off(world, "new")
    world.source.delete_branch(world.repo, "old")
    settle(world, 1)
    assert (world.head("old"), world.head("new"), world.mirror.runs.count()) == (a, a, jobs)
    SourceBranch.objects.filter(name="old").update(missing_since=F("missing_since") - timedelta(seconds=61))
    settle(world, 1)
    assert (world.head("old"), world.head("new")) == ("", a)


def play_21_an_emptied_branch(world: World) -> None:
    for path in ("a.csv", "dir/b.csv"):
        world.source.delete(world.repo, "main", path)
    emptied = world.source.commit(world.repo, "main", "empty", {})
    settle(world)
    assert (world.head(), world.read()) == (emptied, {})


def play_22_a_stuck_branch_delays_nobody(world: World) -> None:
    names = ["b1", "b2", "b3", "b4"]
    for name in names:
        branch_off(world, name)
    heads = {"b1": grow_held(world, "b1", "b1")} | {name: grow(world, name, name) for name in names[1:]}
    settle(world)
    assert [name for name in names if world.head(name) != heads[name]] == ["b1"]


def play_23_branches_that_somebody_moved_and_made(world: World) -> None:
    a = world.head()
    b = grow(world, "b")
    settle(world)
    force(world, "PUT", "/branches/main/hard_reset", params={"ref": a, "force": "true"})
    assert world.head() == a
    settle(world, 1)
    assert (world.head(), whys()[:2]) == (b, ["put-back", "moved-by-somebody"])
    force(world, "POST", "/branches", json={"name": "by-hand", "source": "main", "force": True})
    settle(world, 1)
    assert (world.head("by-hand"), state(world, "by-hand")) == (world.head(), State.TAMPERED)


def play_24_a_forced_write(world: World) -> None:
    a = world.head()
    body = {"files": {"content": b"not the source's"}}
    force(world, "POST", "/branches/main/objects", params={"path": "z.csv", "force": "true"}, **body)
    MirrorBranch.objects.update(looked_at=None)
    settle(world, 1)
    assert "z.csv" in world.read()
    assert (world.head(), state(world)) == (a, State.TAMPERED)
    b = grow(world, "b")
    settle(world)
    assert (world.head(), state(world)) == (b, State.TAMPERED)
    MirrorBranch.objects.update(reset_asked=True)
    settle(world, 1)
    assert state(world) is State.UP_TO_DATE


def play_25_somebody_makes_the_repository_anew(world: World) -> None:
    a = world.head()
    force(world, "DELETE", "", params={"force": "true"})
    deadline = time.monotonic() + 30
    while not _made_anew(world):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    world.work_until(lambda: world.head() == a)
    assert (state(world), world.mirror.runs.count()) == (State.UP_TO_DATE, 1)


def _made_anew(world: World) -> bool:
    """The name of a deleted repository is not free at once."""
    body = {"name": world.mirror_name, "storage_namespace": world.mirror.storage_namespace, "read_only": True}
    try:
        world.destination.call("POST", "/repositories", params={"bare": "true"}, json=body)
    except LakeFSError:
        return False
    return True


def play_33_a_record_with_another_generation(world: World) -> None:
    a = world.head()
    c = grow(world, "c")
    record = world.source.commit_record(world.repo, c)
    world.destination.copy_record(world.mirror_name, record | {"generation": record["generation"] + 5}, force=True)
    settle(world)
    assert (world.head(), state(world)) == (a, State.STOPPED)
    assert Mirror.objects.get().reason_code == "tampered-record"


def play_35_the_source_is_deleted(world: World) -> None:
    before = world.read()
    world.source.call("DELETE", f"/repositories/{world.repo}")
    world.work_until(lambda: Repository.objects.get().frozen_reason != "")
    assert (world.read(), state(world)) == (before, State.FROZEN)


SCENARIOS = [play for name, play in list(globals().items()) if name.startswith("play_")]


@pytest.mark.parametrize("play", SCENARIOS, ids=lambda play: play.__name__.removeprefix("play_"))
def test_scenario(caught_up: World, play: Callable[[World], None]) -> None:
    play(caught_up)
    _read_every_head(caught_up)


def _read_every_head(world: World) -> None:
    """What readers of the mirror get is what the source has of the same commit."""
    for branch, commit in world.destination.branches(world.mirror_name).items():
        try:
            listed = world.source.listing(world.repo, commit)
        except LakeFSError:  # the source was deleted
            continue
        wanted = {one["path"]: one["checksum"] for one in listed}
        found = {one["path"]: one["checksum"] for one in world.destination.listing(world.mirror_name, branch)}
        assert found == wanted
        assert world.read(branch).keys() == wanted.keys()


def test_30_tags_follow_when_their_commits_are_complete(caught_up: World, owner: User) -> None:
    world, a = caught_up, caught_up.head()
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"tags": True})
    branch_off(world, "lone")
    lone = grow_held(world, "t", "lone")
    for name, commit in (("v1", a), ("v2", lone)):
        tag(world, name, commit)
    world.source.delete_branch(world.repo, "lone")
    settle(world, 3)
    assert tags(world) == {"v1": a}
    world.sandbox.release()
    world.work_until(lambda: tags(world) == {"v1": a, "v2": lone})
    world.source.call("DELETE", f"/repositories/{world.repo}/tags/v1")
    tag(world, "v1", lone)
    world.work_until(lambda: tags(world) == {"v1": lone, "v2": lone})
    assert world.read("v1").keys() == {"a.csv", "dir/b.csv", "t.csv"}
    world.source.call("DELETE", f"/repositories/{world.repo}/tags/v2")
    world.work()
    SourceTag.objects.filter(name="v2").update(missing_since=F("missing_since") - timedelta(seconds=61))
    world.work_until(lambda: tags(world) == {"v1": lone})


def tag(world: World, name: str, commit: str) -> None:
    """A tag of the source."""
    world.source.call("POST", f"/repositories/{world.repo}/tags", json={"id": name, "ref": commit})


def tags(world: World) -> dict[str, str]:
    """The mirror's tags, as its lakeFS says."""
    found = world.destination.call("GET", f"/repositories/{world.mirror_name}/tags")
    return {one["id"]: one["commit_id"] for one in found["results"]}
