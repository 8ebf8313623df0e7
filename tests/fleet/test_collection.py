"""The world sees what a sweep, a bringing mirror and a held merge may not do, and collects only what it may."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from core.errors import RemoteFailure
from tests.fleet.books import misheld, misswept
from tests.fleet.collection import AGED, LEFT
from tests.fleet.merges import HOOK_SECONDS
from tests.fleet.reader import Reader
from tests.fleet.routes import Route
from tests.fleet.wire import Call
from tests.fleet.world import World

EU = "eu-west-1"
LATER = AGED + 1


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Three lakes; the mirror of the last one, in eu-west-1, brings its objects itself, follows the garbage collection
    and holds merges. It has all of three commits, of which the last one replaced what the second one wrote."""
    monkeypatch.setattr("tests.fleet.collection.PARTLY", 1.0)
    made = World(seed=1, routes=3, pause=0.0, most_branches=3)
    lake = made.routes[2].company.lake
    lake.commit(files={"kept": b"kept"})
    lake.commit(files={"f": b"before"})
    lake.commit(files={"f": b"after"})
    made.routes[2].company.note_heads()
    made.routes[2].collection.note(0.0)
    make(made, "create_mirror_repository", name="lake-2-mirror", storage_namespace="s3://eu", default_branch="main")
    bring(made)
    make(made, "create_branch", "lake-2-mirror", "main", lake.repository.branches["main"])
    assert made.report()["problems"] == []
    return made


def make(world: World, name: str, /, *args: Any, to: str = f"lakefs {EU}", **options: Any) -> Any:
    """A call of a worker in eu-west-1."""
    return world.handle(Call(EU, None, to, name, args, options))


def bring(world: World) -> None:
    """The mirror gets all that there is."""
    one = route(world)
    for commit in one.company.lake.repository.commits.values():
        make(world, "put_commit_record", "lake-2-mirror", commit)
    for uri, data in one.store.objects.items():
        if uri.startswith(one.namespace):
            one.there.objects.setdefault(uri.replace(one.namespace, one.mirrored), data)


def route(world: World) -> Route:
    return world.routes[2]


def address(world: World, commit: int, path: str) -> str:
    """Where a file lies by the so many-th commit after the first one, which is empty."""
    lake = route(world).company.lake
    return lake.address_of(list(lake.repository.commits)[commit], path)


def delete(world: World, key: str) -> str:
    """A sweep deletes something at the mirror; gives what the world says of that."""
    before = len(world._problems)
    make(world, "delete", f"{route(world).mirrored}/{key}", to=f"store {EU}")
    return " ".join(world._problems[before:])


def rewind(world: World) -> str:
    """The source's branch leaves its head for good; gives the address of what only that named."""
    left, company = address(world, 3, "f"), route(world).company
    company.heads["main"] = company.lake.repository.commits[company.heads["main"]].parents[0]
    route(world).company.note_heads()
    route(world).collection.note(0.0)
    return left


# --- the source's collection


def test_what_a_kept_commit_names_is_not_collected(world: World) -> None:
    assert route(world).collection.collect(AGED - 1) == 0
    assert route(world).collection.collect(LATER) == 1
    assert route(world).collection.has_taken(address(world, 2, "f"))
    assert not route(world).collection.has_taken(address(world, 1, "kept"))


def test_what_no_branch_leads_to_is_kept_for_a_moment_alone(world: World) -> None:
    left = rewind(world)
    assert route(world).collection.collect(LEFT - 1) == 0
    assert route(world).collection.collect(LEFT + 1) == 1
    assert route(world).collection.has_taken(left)


def test_what_a_held_merge_names_is_not_collected(world: World) -> None:
    company = route(world).company
    company.heads["b1"] = company.lake.commit(files={"b": b"b"})
    company.heads["main"] = company.order["main"][-1]
    world._working = True
    asked = world.next_merge("us-east-1")
    assert asked
    del company.heads["b1"]
    route(world).collection.collect(LATER)
    assert not route(world).collection.has_taken(company.lake.address_of(asked["commit"], "b"))


# --- what goes at the mirror


def test_what_a_branch_of_the_mirror_leads_to_may_not_go(world: World) -> None:
    left = rewind(world)
    route(world).collection.collect(LATER)
    history = address(world, 2, "f")
    assert "and main at" in delete(world, left)
    assert "which the source has" in delete(world, history)


def test_nor_what_its_history_names_and_the_source_has_collected(world: World) -> None:
    route(world).collection.collect(LATER)
    assert "and main at" in delete(world, address(world, 2, "f"))


def test_what_nothing_leads_to_may_go(world: World) -> None:
    left = rewind(world)
    route(world).collection.collect(LATER)
    make(world, "hard_reset_branch", "lake-2-mirror", "main", route(world).company.heads["main"])
    assert route(world).collection.left_over() == []  # what a branch that is still there pointed to is a candidate
    assert delete(world, left) == ""
    assert world.report()["deeds"]["objects deleted by sweeps"] == 1
    assert world.deleted()["lake-2-mirror"] == 1


def test_what_the_source_has_is_no_object_or_lies_elsewhere_may_not_go(world: World) -> None:
    left = rewind(world)
    assert "which the source has" in delete(world, left)
    metarange = route(world).company.lake.repository.commits[route(world).company.heads["main"]].metarange_id
    assert "which is no object" in delete(world, f"_lakefs/{metarange}")
    make(world, "delete", f"{world.routes[0].mirrored}/data/x", to=f"store {EU}")
    assert "a mirror that follows no collection" in world._problems[-1]


def test_another_deployment_may_delete_nothing(world: World) -> None:
    uri = f"{route(world).mirrored}/{rewind(world)}"
    world.handle(Call("us-east-1", None, f"store {EU}", "delete", (uri,), {}))
    assert "the deployment of us-east-1 wrote to eu-west-1: delete" in world._problems[0]


# --- what is shown, and written, once something was collected


def test_history_may_lack_what_the_source_has_collected_and_a_head_may_not(world: World) -> None:
    one, history = route(world), address(world, 2, "f")
    one.collection.collect(LATER)
    commits = list(one.company.lake.repository.commits)
    one._whole.clear()
    one._arrived.clear()
    del one.there.objects[f"{one.mirrored}/{history}"]
    assert one.lacks(commits[3]) == []
    assert one.lacks(commits[2]) == [f"of {commits[2][:8]} {history} is not there, or damaged"]
    reader = Reader(
        world.lakefs[EU], one.there, one.mirror, one.mirrored, lambda *asked: world.excuses(one.mirror, *asked)
    )
    assert reader.look() == (1, [])
    one.there.objects[f"{one.mirrored}/{history}"] = b"damaged"
    one._whole.clear()
    assert "or damaged" in one.lacks(commits[3])[0]


def test_a_range_may_come_before_what_the_source_has_collected_alone(world: World) -> None:
    one, history = route(world), address(world, 2, "f")
    name = one.company.lake.files_of(list(one.company.lake.repository.commits)[2])[1]
    data = one.store.objects[f"{one.namespace}/_lakefs/{name}"]
    del one.there.objects[f"{one.mirrored}/{history}"]
    make(world, "put", f"{one.mirrored}/_lakefs/{name}", data, to=f"store {EU}")
    assert f"_lakefs/{name} was written before {history}" in world._problems[0]
    one.collection.collect(LATER)
    make(world, "put", f"{one.mirrored}/_lakefs/{name}", data, to=f"store {EU}")
    assert len(world._problems) == 1


# --- held merges


def held(world: World) -> str:
    """A merge that lakeFS asks about."""
    company = route(world).company
    company.heads["b1"] = company.heads["main"]
    company.lake.commit("b1", {"b": random.randbytes(8)})
    company.note_heads()
    world._working = True
    asked = world.next_merge("us-east-1")
    assert asked
    return str(asked["commit"])


def test_a_merge_that_is_released_and_whole_moves_its_branch(world: World) -> None:
    commit = held(world)
    bring(world)
    world.answer_merge("lake-2", commit, True, [EU])
    assert (world._problems, route(world).company.heads["main"]) == ([], commit)
    assert world.released() == [("lake-2", commit)]


def test_a_merge_that_is_released_and_not_whole_is_seen(world: World) -> None:
    commit = held(world)
    world.answer_merge("lake-2", commit, True, [EU])
    assert "the record is not there" in world._problems[0]


def test_a_merge_that_may_go_on_without_being_anywhere_or_elsewhere_is_seen(world: World) -> None:
    commit = held(world)
    bring(world)
    world.answer_merge("lake-2", commit, True, [])
    assert "it is nowhere" in " ".join(world._problems)
    world.answer_merge("lake-2", commit, True, ["ap-southeast-2"])
    assert "is said to be in ap-southeast-2" in world._problems[-1]


def test_a_refused_merge_and_one_that_was_answered_late_move_nothing(world: World) -> None:
    before = route(world).company.heads["main"]
    world.answer_merge("lake-2", held(world), False, [])
    late = held(world)
    bring(world)
    route(world).merges.expire(time.monotonic() + HOOK_SECONDS + 1)
    world.answer_merge("lake-2", late, True, [EU])
    assert (world._problems, route(world).company.heads["main"]) == ([], before)
    deeds = world.report()["deeds"]
    assert (deeds["held merges refused"], deeds["answers that came too late"]) == (1, 1)


# --- what lasts


def test_a_store_that_is_away_answers_nobody_but_readers(world: World) -> None:
    uri = f"{route(world).mirrored}/{address(world, 1, 'kept')}"
    world._faulty, world.stores[EU].away_until = True, time.monotonic() + 60
    with pytest.raises(RemoteFailure):
        make(world, "get", uri, to=f"store {EU}")
    assert world.handle(Call("", None, f"store {EU}", "get", (uri,), {})) == b"kept"
    assert world.report()["faults"]["calls to a store that was away"] == 1
    world.end()
    assert make(world, "get", uri, to=f"store {EU}") == b"kept"


def test_branches_of_a_mirror_that_is_stuck_stay_where_they_are(world: World) -> None:
    head = route(world).heads["main"]
    world._faulty, world._stuck["lake-2-mirror"] = True, time.monotonic() + 60
    with pytest.raises(RemoteFailure):
        make(world, "hard_reset_branch", "lake-2-mirror", "main", list(route(world).company.lake.repository.commits)[1])
    assert route(world).heads["main"] == head


# --- the books


def test_books_that_tell_of_merges_otherwise_are_seen() -> None:
    rows = [("lake", "a" * 64, "released", [EU], "now"), ("lake", "b" * 64, "refused", [], None)]
    assert misheld(lambda query: rows, [("lake", "a" * 64)]) == []
    [told] = misheld(lambda query: rows, [("lake", "b" * 64)])
    assert told == "lake: the merge bbbbbbbb went on by its release, and is refused"
    [told] = misheld(lambda query: [("lake", "a" * 64, "released", [EU], None)], [("lake", "a" * 64)])
    assert "nobody has seen" in told
    [told] = misheld(lambda query: [("lake", "c" * 64, "ungated", [], "now")], [])
    assert "without a release" in told


def test_books_that_tell_of_more_deletions_than_were_made_are_seen() -> None:
    assert misswept(lambda query: [("m", 2)], {"m": 3}) == []
    assert misswept(lambda query: [("m", 2)], {"m": 1}) == ["m: 2 deletions are in the books, and 1 were made"]
