"""The world sees what the soak is there to find."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from core.errors import LakeMirrorError
from core.types import RecordOutcome
from tests.fleet.reader import Reader
from tests.fleet.wire import Call, Cut, Lease
from tests.fleet.world import World

EU = "eu-west-1"


@pytest.fixture
def world() -> World:
    """One lake with three commits, and its mirror in eu-west-1 with all of their records and objects."""
    made = World(seed=1, routes=1, pause=0.0, most_branches=3)
    company = made.routes[0].company
    for _ in range(3):
        company.lake.commit(files={"f": random.randbytes(8)})
        company.note_heads()
    make(made, "create_mirror_repository", name="lake-0-mirror", storage_namespace="s3://eu", default_branch="main")
    for commit in company.lake.repository.commits.values():
        assert make(made, "put_commit_record", "lake-0-mirror", commit) is RecordOutcome.CREATED
    made._transit.step(time.monotonic())
    return made


def make(world: World, name: str, /, *args: Any, attempt: int = 1, deployment: str = EU, **options: Any) -> Any:
    """A call of a worker to the lakeFS in eu-west-1."""
    return world.handle(Call(deployment, Lease("promote", 1, attempt), f"lakefs {EU}", name, args, options))


def commits(world: World) -> list[str]:
    """The first one, which has no data, and those after it."""
    return list(world.routes[0].company.lake.repository.commits)


def problems(world: World) -> str:
    return " ".join(world.report()["problems"])


def test_moves_as_the_source_made_them_are_no_problem(world: World) -> None:
    for number, commit in enumerate(commits(world)):
        make(world, "hard_reset_branch" if number else "create_branch", "lake-0-mirror", "main", commit)
    assert problems(world) == ""
    assert (world.report()["promotions"], world.behind()) == (4, [])


def test_a_commit_of_which_something_is_missing_or_damaged_is_torn(world: World) -> None:
    route, (_, one, two, _) = world.routes[0], commits(world)
    address = f"{route.mirrored}/{route.company.lake.address_of(one, 'f')}"
    route.there.objects[address] = b"damaged!"
    make(world, "create_branch", "lake-0-mirror", "main", two)
    assert f"shows {two[:8]}, but of {one[:8]} data/" in problems(world)
    reader = Reader(world.lakefs[EU], route.there, "lake-0-mirror", route.mirrored)
    [told] = reader.look()[1]
    assert "has other bytes" in told


def test_a_branch_that_goes_where_the_source_did_not_is_seen(world: World) -> None:
    _, one, two, _ = commits(world)
    make(world, "create_branch", "lake-0-mirror", "main", two)
    make(world, "hard_reset_branch", "lake-0-mirror", "main", one)
    assert f"main goes back from {two[:8]} to {one[:8]}" in problems(world)
    make(world, "create_branch", "lake-0-mirror", "other", one)
    assert "which the source branch never pointed to" in problems(world)


def test_who_forces_something_after_the_lease_went_on_is_seen(world: World) -> None:
    _, one, two, _ = commits(world)
    make(world, "create_branch", "lake-0-mirror", "main", one, attempt=2)
    make(world, "get_branch", "lake-0-mirror", "main", attempt=1)
    assert (problems(world), world.report()["overlaps"]) == ("", 1)
    make(world, "hard_reset_branch", "lake-0-mirror", "main", two, attempt=1)
    assert "held by two: hard_reset_branch of attempt 1 < 2" in problems(world)


def test_a_deployment_that_writes_elsewhere_is_seen(world: World) -> None:
    make(world, "create_branch", "lake-0-mirror", "main", commits(world)[1], deployment="us-east-1")
    assert "the deployment of us-east-1 wrote to eu-west-1" in problems(world)


def test_calls_fail_before_and_after_they_took_place(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fleet.world.LAKEFS_FAULTS", 1.0)
    monkeypatch.setattr("tests.fleet.world.SLOWEST", 0.1)
    world.begin(faulty=True)
    world.end()
    world._faulty = True
    for number in range(60):
        try:
            make(world, "create_branch", "lake-0-mirror", f"b{number}", commits(world)[1])
        except (LakeMirrorError, Cut):
            continue
    faults = world.report()["faults"]
    assert set(faults) >= {
        f"{fault} at a lakefs" for fault in ("slow", "500 before", "500 after", "cut before", "cut after")
    }
    took_place = 60 - faults["500 before at a lakefs"] - faults["cut before at a lakefs"]
    assert len(world.lakefs[EU].repositories["lake-0-mirror"].branches) == took_place


def test_what_arrived_whole_is_not_damaged_by_being_sent_again(world: World) -> None:
    route, transit = world.routes[0], world._transit
    uri = next(uri for uri in route.store.objects if uri.startswith(f"{route.namespace}/_lakefs/"))
    key, whole = uri.removeprefix(f"{route.namespace}/"), route.store.objects[uri]
    del route.there.objects[f"{route.mirrored}/{key}"]
    for damaged, arrived in ((True, False), (False, True), (True, True)):
        transit._put(0.0, route, key, damaged=damaged)
        transit.step(1.0)
        assert (route.there.objects[f"{route.mirrored}/{key}"] == whole) is arrived
