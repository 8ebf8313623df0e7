"""Scenarios of promotion with real servers and real Spark, read through the mirror's lakeFS.

Their numbers are those of docs/promotion.md. Each begins with main at its first commit, A, at both sides.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from unittest import mock

import pytest
from django.db.models import F
from django.db.models.functions import Now

from adapters.lakefs import LakeFSAdapter
from core.mirroring.branch_selection import OnUnselect
from core.mirroring.object_check import Imported
from core.mirroring.states import State
from jobs.models import Duty
from mirrors.models import Coverage, Mirror, MirrorBranch, MirrorCommit, Promotion, Repository, SourceBranch, SourceTag
from mirrors.services.settings import mirror_update
from mirrors.status.mirror import mirror_status
from rbac.models import User
from sandbox.bulk import publish
from sandbox.bundle import Stored
from sandbox.client import Sandbox
from sandbox.journal import DELETE
from sandbox.lakefs_http import LakeFSError
from sandbox.side_door import SideDoor
from tests.e2e.conftest import World
from tests.sandbox.conftest import s3

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
    assert world.sandbox.wait_replicated()  # else what was made before is held
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
    reading = mirror_status(Mirror.objects.get(pk=world.mirror.pk))
    return next(one.state for one in reading.branches if one.name == branch)


def reason(world: World) -> str:
    """Why the mirror is as it is, as the API says it."""
    return mirror_status(Mirror.objects.get(pk=world.mirror.pk)).reason_code


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


def play_5_6_and_38_what_neither_side_has(world: World) -> None:
    a = world.head()
    x = grow_held(world, "x")
    world.take_away(world.sandbox.source, world.key_of("x.csv"))
    settle(world, 3)
    assert (world.head(), state(world), reason(world)) == (a, State.BLOCKED, "object_gone_at_source")
    world.source.delete(world.repo, "main", "x.csv")
    b = world.source.commit(world.repo, "main", "without x", {})
    settle(world)
    assert (world.head(), MirrorCommit.objects.get(commit__sha=x).data) == (b, "gone")
    same = world.source.commit_record(world.repo, x)["meta_range_id"]
    c = publish(world.source, world.repo, "main", same, "revert")
    settle(world, 3)
    assert (world.head(), MirrorCommit.objects.get(commit__sha=c).data) == (b, "gone")


def play_7_8_and_9_a_merged_branch_is_history(world: World) -> None:
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
    before = world.head()
    branch_off(world, "brief")
    grow_held(world, "g", "brief", kind="range")
    world.source.merge(world.repo, "brief", "main", "merge", {})
    world.source.delete_branch(world.repo, "brief")
    settle(world)
    assert world.head() == before
    world.sandbox.release()
    settle(world, 3)
    assert (world.head(), world.head("brief")) == (world.source.head(world.repo, "main"), "")


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


def play_14_what_was_pointed_to_before_a_rewind(world: World) -> None:
    a = world.head()
    c = grow_held(world, "c")
    held = world.key_of("c.csv")
    settle(world, 1)
    world.source.hard_reset(world.repo, "main", world.source.commit_record(world.repo, a)["parents"][0])
    x = grow_held(world, "x")
    settle(world)
    assert world.head() == a
    world.sandbox.release(held)
    settle(world)
    assert (world.head(), state(world)) == (c, State.REWOUND)
    world.sandbox.release()
    settle(world)
    assert (world.head(), whys()) == (x, ["source-moved", "advanced", "first-promotion"])


def play_15_16_17_18_and_42_branches_come_and_go(world: World) -> None:
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
    dev = grow(world, "dev", "new")
    settle(world)
    world.source.delete_branch(world.repo, "new")
    settle(world, 1)
    assert world.head("new") == dev
    branch_off(world, "new")
    settle(world)
    assert (world.head("new"), whys("new")[0]) == (a, "source-moved")


def play_19_and_39_a_new_branch_shows_its_first_head_or_nothing(world: World) -> None:
    branch_off(world, "y")
    grow(world, "y1", "y")
    y2 = grow_held(world, "y2", "y")
    branch_off(world, "x", "y")
    settle(world)
    assert (world.head("y"), world.head("x")) == ("", "")
    world.sandbox.release()
    settle(world)
    assert (world.head("y"), world.head("x")) == (y2, y2)
    assert set(Promotion.objects.exclude(branch="main").values_list("to_commit", flat=True)) == {y2}


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
    assert (world.head(), whys()[:2]) == (b, ["put-back", "back-where-it-was"])
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
    make_anew(world, read_only=True)
    world.work_until(lambda: world.head() == a)
    assert (state(world), world.mirror.runs.count()) == (State.UP_TO_DATE, 2)


def make_anew(world: World, *, read_only: bool) -> None:
    """Delete the mirror's repository and make another one in its place, with nothing in it."""
    pinned = Mirror.objects.get(pk=world.mirror.pk).pinned_creation_date
    while time.time() < (pinned or 0) + 1:  # lakeFS tells the date of the new one in whole seconds
        time.sleep(0.05)
    force(world, "DELETE", "", params={"force": "true"})
    deadline = time.monotonic() + 30
    while not _made_anew(world, read_only):
        assert time.monotonic() < deadline
        time.sleep(0.5)


def _made_anew(world: World, read_only: bool) -> bool:
    """The name of a deleted repository is not free at once."""
    body = {"name": world.mirror_name, "storage_namespace": world.mirror.storage_namespace, "read_only": read_only}
    try:
        world.destination.call("POST", "/repositories", params={"bare": "true"}, json=body)
    except LakeFSError:
        return False
    return True


def play_27_an_object_vanishes_after_it_was_promoted(world: World) -> None:
    a = world.head()
    lost = world.take_away(world.sandbox.destination, world.key_of("a.csv"))
    Coverage.objects.update(verify_at=Now())
    settle(world)
    assert (world.head(), reason(world), world.blocker().path) == (a, "damaged", "a.csv")
    d = grow(world, "d")
    settle(world)
    assert world.head() == a
    world.put(world.sandbox.destination, lost)
    settle(world, 3)
    assert (world.head(), reason(world)) == (d, "up_to_date")


def play_31_answers_of_500(world: World) -> None:
    eu = world.sandbox.destination.name
    b = grow(world, "b")
    world.sandbox.server_faults(eu, "lakefs", "late-error", path="*/hard_reset", method="PUT", count=1)
    settle(world)
    assert (world.head(), whys()) == (b, ["advanced", "first-promotion"]), "done, and not done twice"
    c = grow(world, "c")
    world.sandbox.server_faults(eu, "lakefs", "error", path="*/hard_reset", method="PUT", count=1)
    settle(world, 1)
    assert world.head() == b
    settle(world, 1)
    assert (world.head(), whys()) == (c, ["advanced", "advanced", "first-promotion"]), "done again"


def play_32_two_workers_act_at_once(world: World) -> None:
    """The first one chose B and stalls in its call until its lease is over; meanwhile a second one promotes C."""
    b = grow(world, "b")
    plain, stalled = LakeFSAdapter.hard_reset_branch, list[str]()

    def stall(adapter: LakeFSAdapter, repository: str, branch: str, commit: str) -> None:
        if not stalled:
            stalled.append(grow(world, "c"))
            Duty.objects.filter(kind="promote").update(until=None)
            settle(world)
            assert world.head() == stalled[0]
        plain(adapter, repository, branch, commit)

    with mock.patch.object(LakeFSAdapter, "hard_reset_branch", stall):
        settle(world, 1)
    assert world.head() == b, "too late, and it wrote nothing down"
    settle(world, 1)
    assert (world.head(), whys()[:2]) == (stalled[0], ["put-back", "back-where-it-was"])


def play_33_a_record_with_another_generation(world: World) -> None:
    a = world.head()
    c = grow(world, "c")
    record = world.source.commit_record(world.repo, c)
    world.destination.copy_record(world.mirror_name, record | {"generation": record["generation"] + 5}, force=True)
    settle(world)
    assert (world.head(), state(world)) == (a, State.STOPPED)
    assert Mirror.objects.get().reason_code == "tampered-record"


def play_34_dates_decide_nothing(world: World) -> None:
    for days in (1, -1):
        world.source.upload(world.repo, "main", "clock.csv", f"{days}".encode())
        date = int(time.time()) + days * 86_400
        last = world.source.commit(world.repo, "main", "by another clock", {}, date=date)
    settle(world)
    assert (world.head(), mirror_status(Mirror.objects.get()).lag) == (last, 0)


def play_36_a_look_that_is_none(world: World) -> None:
    a = world.head()
    us = world.sandbox.source.name
    branch_off(world, "dev")
    settle(world)
    world.sandbox.server_faults(us, "lakefs", "empty", path="*/branches", method="GET")
    settle(world)
    assert not SourceBranch.objects.exclude(missing_since=None).exists()
    assert "this answer is ignored" in Repository.objects.get().look_error
    world.sandbox.server_faults(us, "lakefs", "ok")
    settle(world, 1)
    assert (world.head(), world.head("dev"), Repository.objects.get().look_error) == (a, a, "")


def play_37_people_work_at_the_mirror_now(world: World) -> None:
    """As one fails over by hand: lakeFS can't make a repository writable, so another one takes its name and place."""
    a = world.head()
    make_anew(world, read_only=False)
    for record in reversed(world.source.log(world.repo, a)):
        world.destination.copy_record(world.mirror_name, record, force=False)
    world.destination.create_branch(world.mirror_name, "main", a)
    world.destination.upload(world.mirror_name, "main", "theirs.csv", b"new")
    theirs = world.destination.commit(world.mirror_name, "main", "people work here", {})
    grow(world, "b")
    settle(world)
    assert (world.head(), state(world), reason(world)) == (theirs, State.STOPPED, "failed_over")


def play_40_a_merged_branch_that_forks_before_what_is_mirrored(world: World) -> None:
    root = world.source.commit_record(world.repo, world.head())["parents"][0]
    grow(world, "b")
    settle(world)
    branch_off(world, "side", root)
    sides = [grow(world, f"side-{n}", "side") for n in range(3)]
    world.source.merge(world.repo, "side", "main", "merge", {})
    world.source.delete_branch(world.repo, "side")
    settle(world)
    assert world.head() == world.source.head(world.repo, "main")
    assert [world.destination.commit_record(world.mirror_name, side)["id"] for side in sides] == sides


def play_41_an_archived_object(world: World) -> None:
    a = world.head()
    c = grow(world, "c")
    assert world.sandbox.wait_replicated()
    region = world.sandbox.destination
    there = world.take_away(region, world.key_of("c.csv"))
    world.put(region, replace(there, storage_class="GLACIER"))
    settle(world)
    assert (world.head(), world.blocker().reason) == (a, "archived")
    world.put(region, there)
    settle(world)
    assert world.head() == c


def play_54_a_store_that_shows_what_only_the_other_site_has(world: World) -> None:
    """Rules lead both ways, and both stores answer for what they lack, as MinIO's do."""
    eu = world.sandbox.destination
    for region in (world.sandbox.source, eu):
        world.sandbox.server_faults(region.name, "s3", "proxy")
    shown = world.head()
    for kind in ("data", "range", "metarange"):
        commit = grow_held(world, kind, kind=kind)
        settle(world, 3)
        blocker = world.blocker()
        held = f"{world.repo}/{blocker.address}"
        assert (world.head(), blocker.reason) == (shown, LACKING[kind])
        assert s3(eu).head_object(Bucket=eu.bucket, Key=held), "others are shown it"
        assert SideDoor(eu.s3_url).read([(eu.bucket, held)])[0].op == DELETE, "it is not there"
        world.sandbox.release()
        settle(world)
        assert (world.head(), world.mirror.blockers.count()) == (commit, 0)
        shown = commit


LACKING = {"data": "missing", "range": "range-missing", "metarange": "metarange-missing"}


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


def test_20_a_first_copy_waits_for_the_head_as_first_seen(world: World) -> None:
    grow(world, "a")
    grow(world, "b")
    c = grow_held(world, "c")
    held = world.key_of("c.csv")
    settle(world)
    d = grow_held(world, "d")
    settle(world)
    assert world.head() == ""
    world.sandbox.release(held)
    settle(world)
    assert world.head() == c
    world.sandbox.release()
    settle(world)
    assert (world.head(), whys()) == (d, ["advanced", "first-promotion"])
    _read_every_head(world)


@pytest.mark.usefixtures("deployment", "transactional_db")
def test_26_imported_objects_hold_a_mirror_unless_it_allows_them(sandbox: Sandbox, owner: User) -> None:
    blocking = World(sandbox, owner)
    body = b"from elsewhere"
    of = {"checksum": hashlib.md5(body).hexdigest(), "size_bytes": len(body)}
    place = Stored(sandbox.destination.bucket, f"elsewhere/{blocking.repo}.csv", body)
    address = f"s3://{place.bucket}/{place.key}"
    blocking.link("x.csv", address, **of)
    blocking.put(sandbox.destination, place)
    settle(blocking)
    assert (blocking.head(), blocking.blocker().reason) == ("", "imported")
    blocking.take_away(sandbox.destination, place.key)

    allowing = World(sandbox, owner, imported=Imported.ALLOW)
    linked = allowing.link("x.csv", address, **of)
    settle(allowing)
    assert (allowing.head(), allowing.blocker().address) == ("", address)
    allowing.put(sandbox.destination, place)
    settle(allowing)
    assert (allowing.head(), allowing.read()) == (linked, {"x.csv": body})


def change(world: World, owner: User, **settings: object) -> None:
    """What the operator chooses, as PATCH does."""
    mirror_update(actor=owner, mirror=Mirror.objects.get(pk=world.mirror.pk), changes=settings)


@pytest.mark.usefixtures("deployment", "transactional_db")
def test_20_a_first_copy_may_show_an_older_commit_of_its_line(sandbox: Sandbox, owner: User) -> None:
    world = World(sandbox, owner, first_sync="inferred")
    grow(world, "a")
    b = grow(world, "b")
    c = grow_held(world, "c")
    settle(world, 3)
    assert (world.head(), sorted(world.read())) == (b, ["a.csv", "b.csv"])
    world.sandbox.release()
    settle(world)
    assert world.head() == c


def test_24_a_forced_write_is_undone_at_once_by_setting(caught_up: World, owner: User) -> None:
    world, a = caught_up, caught_up.head()
    change(world, owner, repair_tampering="auto")
    body = {"files": {"content": b"not the source's"}}
    force(world, "POST", "/branches/main/objects", params={"path": "z.csv", "force": "true"}, **body)
    MirrorBranch.objects.update(looked_at=None)
    settle(world, 1)
    assert "z.csv" not in world.read()
    assert (world.head(), state(world)) == (a, State.UP_TO_DATE)


def test_28_after_a_pause_the_mirror_goes_straight_to_the_newest(caught_up: World, owner: User) -> None:
    world, a = caught_up, caught_up.head()
    change(world, owner, paused=True)
    for number in range(9):
        grow(world, f"p{number}")
    last = grow(world, "last")
    settle(world)
    assert world.head() == a
    change(world, owner, paused=False)
    settle(world, 1)
    assert (world.head(), whys()) == (last, ["advanced", "first-promotion"])


def test_29_an_unselected_branch_stays_goes_on_and_goes(caught_up: World, owner: User) -> None:
    world = caught_up
    branch_off(world, "dev")
    kept = grow(world, "d1", "dev")
    settle(world)
    change(world, owner, selected={"include": ["*"], "exclude": ["dev"]})
    newer = grow(world, "d2", "dev")
    settle(world)
    assert (world.head("dev"), "d2.csv" in world.read("dev")) == (kept, False)
    change(world, owner, selected={"include": ["*"], "exclude": []})
    world.work_until(lambda: world.head("dev") == newer)
    everything_but = {"include": ["*"], "exclude": ["dev"]}
    mirror = Mirror.objects.get(pk=world.mirror.pk)
    mirror_update(actor=owner, mirror=mirror, changes={"selected": everything_but}, on_unselect=OnUnselect.DELETE)
    world.work_until(lambda: world.head("dev") == "")
    assert world.head()


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
