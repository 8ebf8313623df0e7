"""Loss and damage after promotion with real servers and real Spark, read through the mirror's lakeFS.

Their numbers are those of docs/promotion.md. Each begins with main at its first commit, A, at both sides.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db.models.functions import Now

from core.mirroring.states import State
from deployment.wiring import clients
from graveler.metarange import read_metarange
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror
from sandbox.bulk import publish
from sandbox.bundle import Stored
from tests.e2e.conftest import World
from tests.e2e.test_scenarios import branch_off, grow, grow_held, reason, settle, state, whys

pytestmark = [pytest.mark.spark]


def metarange(world: World, commit: str) -> str:
    """The id of a commit's metarange."""
    return str(world.source.commit_record(world.repo, commit)["meta_range_id"])


def key_of_file(world: World, file_id: str) -> str:
    """The key of a metarange or a range, which is the same in both regions."""
    return f"{world.repo}/_lakefs/{file_id}"


def own_range(world: World, commit: str) -> str:
    """The id of the first range of a commit that was not looked through yet."""
    eu = world.sandbox.destination
    data = clients.objects(eu.name).get(f"s3://{eu.bucket}/{key_of_file(world, metarange(world, commit))}")
    known = set(Coverage.objects.values_list("range_id", flat=True))
    return next(ref.id for ref in read_metarange(data) if ref.id not in known)


def take_away(world: World, key: str) -> Stored:
    """Something is deleted at the destination only."""
    return world.take_away(world.sandbox.destination, key)


def give_back(world: World, lost: Stored) -> None:
    """It is there again as it was."""
    world.put(world.sandbox.destination, lost)
    settle(world, 3)


def archive(world: World, key: str) -> Stored:
    """A lifecycle rule moves something into the archive; gives what it was."""
    there = take_away(world, key)
    world.put(world.sandbox.destination, replace(there, storage_class="GLACIER"))
    return there


def verify(world: World) -> None:
    """Everything is looked at again, whatever is due."""
    Coverage.objects.filter(state="complete").update(verify_at=Now())
    Mirror.objects.get(pk=world.mirror.pk).metaranges.update(verify_at=Now())
    settle(world, 3)


def failing() -> list[tuple[str, str]]:
    """Duties that failed the last time."""
    return list(Duty.objects.filter(failures__gt=0).values_list("kind", "outcome"))


def test_43_a_branch_at_a_commit_that_lost_an_object_is_made_when_it_is_back(caught_up: World) -> None:
    """The commit was merged, and never a head."""
    world = caught_up
    branch_off(world, "f")
    f1 = grow(world, "x", "f")
    where = f"/repositories/{world.repo}/refs/{f1}/objects/stat"
    found = world.source.call("GET", where, params={"path": "x.csv"})
    key = str(found["physical_address"]).split("/", 3)[3]
    world.commit({"x.csv": b"second"}, "f")
    world.source.merge(world.repo, "f", "main", "merge", {})
    world.source.delete_branch(world.repo, "f")
    settle(world, 3)
    merged = world.source.head(world.repo, "main")
    assert world.head() == merged
    lost = take_away(world, key)
    verify(world)
    world.source.create_branch(world.repo, "old", f1)
    settle(world, 3)
    assert (world.head("old"), whys("old"), world.head()) == ("", [], merged)
    assert set(Blocker.objects.values_list("path", flat=True)) == {"x.csv"}
    give_back(world, lost)
    assert (world.head("old"), world.read("old")["x.csv"]) == (f1, b"x")
    assert reason(world) == "up_to_date"


def test_57_a_waiting_commit_whose_base_is_found_damaged_is_not_shown(caught_up: World) -> None:
    world, a = caught_up, caught_up.head()
    b = grow_held(world, "b")
    settle(world)
    assert world.head() == a
    lost = take_away(world, world.key_of("a.csv"))
    verify(world)
    world.sandbox.release()
    settle(world, 3)
    assert (world.head(), state(world), whys()) == (a, State.DAMAGED, ["first-promotion"])
    give_back(world, lost)
    assert (world.head(), sorted(world.read())) == (b, ["a.csv", "b.csv", "dir/b.csv"])


def test_59_a_revert_waits_for_the_metarange_that_vanished(caught_up: World) -> None:
    world, first = caught_up, metarange(caught_up, caught_up.head())
    b = grow(world, "b")
    settle(world)
    lost = take_away(world, key_of_file(world, first))
    c = publish(world.source, world.repo, "main", first, "revert")
    settle(world, 3)
    assert (world.head(), sorted(world.read())) == (b, ["a.csv", "b.csv", "dir/b.csv"])
    assert world.blocker().reason == "metarange-missing"
    give_back(world, lost)
    assert (world.head(), sorted(world.read())) == (c, ["a.csv", "dir/b.csv"])


def test_59_a_head_whose_metarange_vanished_is_damaged(caught_up: World) -> None:
    world, a = caught_up, caught_up.head()
    lost = take_away(world, key_of_file(world, metarange(world, a)))
    verify(world)
    assert (world.head(), state(world), reason(world)) == (a, State.DAMAGED, "damaged")
    give_back(world, lost)
    assert (state(world), sorted(world.read())) == (State.UP_TO_DATE, ["a.csv", "dir/b.csv"])


@pytest.mark.parametrize("kind", ["metarange", "range"])
def test_71_an_archived_file_of_metadata_holds_its_branch_and_no_other(caught_up: World, kind: str) -> None:
    world = caught_up
    a = branch_off(world, "x")
    settle(world)
    bad = grow(world, "bad", "x")
    assert world.sandbox.wait_replicated()
    file_id = metarange(world, bad) if kind == "metarange" else own_range(world, bad)
    was = archive(world, key_of_file(world, file_id))
    settle(world, 3)
    good = grow(world, "good")
    settle(world, 3)
    assert (world.head(), world.head("x"), failing()) == (good, a, [])
    assert world.blocker().reason == f"{kind}-archived"
    give_back(world, was)
    assert (world.head("x"), world.read("x")["bad.csv"]) == (bad, b"bad")


@pytest.mark.parametrize("kind", ["metarange", "range"])
def test_78_a_head_whose_metadata_is_archived_is_damaged(caught_up: World, kind: str) -> None:
    world, a = caught_up, caught_up.head()
    file_id = metarange(world, a) if kind == "metarange" else Coverage.objects.get().range_id
    was = archive(world, key_of_file(world, file_id))
    verify(world)
    assert (world.head(), state(world), failing()) == (a, State.DAMAGED, [])
    give_back(world, was)
    assert (state(world), sorted(world.read())) == (State.UP_TO_DATE, ["a.csv", "dir/b.csv"])
