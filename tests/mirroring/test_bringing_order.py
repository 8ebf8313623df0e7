"""Whose objects a mirror that brings them itself brings first: heads, then tags, then history, the newest first."""

from __future__ import annotations

import pytest

from core.errors import Invalid
from core.mirroring.branch_selection import check_priority, rank_of
from jobs.models import Duty
from mirrors.models import Mirror
from tests.fakes import FakeMover
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db


@pytest.fixture
def lake(lm: Deployment) -> Deployment:
    """A managed mirror with main's first commit."""
    Mirror.objects.update(object_replication="managed")
    lm.lake.commit(files={"a": b"first"})
    lm.work()
    return lm


def run(lake: Deployment, kind: str) -> None:
    lake.run(Duty.objects.get(kind=kind).pk)


def sensed(lake: Deployment, branch: str, number: int) -> list[str]:
    """So many commits to a branch, each with other bytes of one file; they were seen at the source."""
    if branch != "main":
        lake.lake.repository.branches[branch] = lake.lake.repository.branches["main"]
    made = [lake.lake.commit(branch, files={"a": f"{branch} {n}".encode()}) for n in range(number)]
    run(lake, "sense")
    return made


def brought(lake: Deployment, rounds: int) -> list[str]:
    """The objects that so many rounds of checks bring, one or more in each."""
    mover: FakeMover = lake.mover(None)
    before = len(mover.brought)
    for _ in range(rounds):
        run(lake, "validate")
    return [uri.removeprefix(f"{NAMESPACE}/") for uri in mover.brought[before:]]


def objects(lake: Deployment, *commits: str) -> list[str]:
    return [lake.lake.address_of(commit, "a") for commit in commits]


def odd_round(lake: Deployment) -> None:
    """The next round is one that takes heads alone."""
    Duty.objects.filter(kind="validate").update(attempt=10)


def test_heads_come_first_in_the_order_that_somebody_chose_and_history_from_new_to_old(lake: Deployment) -> None:
    Mirror.objects.update(branch_priority=["release-*", "hot"])
    old = sensed(lake, "zoo", 1)
    release, hot, new = sensed(lake, "release-1", 2), sensed(lake, "hot", 1), sensed(lake, "any", 1)
    main = sensed(lake, "main", 3)
    order: list[str] = []
    for _ in range(5):
        odd_round(lake)
        order += brought(lake, 1)
    heads = [main[-1], release[-1], hot[-1], new[-1], old[-1]]
    assert order[:3] == objects(lake, *heads[:3])
    assert set(order[3:5]) == set(objects(lake, *heads[3:])), "wanted alike: in one round"
    assert set(order[5:]) == set(objects(lake, release[0], main[1], main[0]))
    lake.work()
    assert lake.head() == main[-1]
    assert lake.torn() == []


def test_a_source_that_moves_on_all_the_time_keeps_no_history_from_coming(lake: Deployment) -> None:
    history = objects(lake, *sensed(lake, "main", 4)[:-1])
    came: list[str] = []
    for _ in range(4):
        came += brought(lake, 1)
        sensed(lake, "main", 1)
    assert set(history) <= set(came)


def test_a_head_that_comes_late_is_first_in_the_next_round(lake: Deployment) -> None:
    first = sensed(lake, "main", 6)
    odd_round(lake)
    assert brought(lake, 1) == objects(lake, first[-1])
    second = sensed(lake, "main", 1)
    mover: FakeMover = lake.mover(None)
    mover.limit = 1
    assert brought(lake, 1) == objects(lake, second[-1]), "history goes along, behind it"
    mover.limit = None
    lake.work()
    assert lake.head() == second[-1]


def test_tags_come_before_history(lake: Deployment) -> None:
    Mirror.objects.update(tags=True)
    made = sensed(lake, "main", 5)
    lake.lake.repository.tags["v1"] = made[1]
    run(lake, "sense")
    odd_round(lake)
    assert brought(lake, 1) == objects(lake, made[-1])
    assert brought(lake, 1)[:1] == objects(lake, made[1])


def test_a_native_mirror_and_one_that_failed_check_the_oldest_first(lake: Deployment) -> None:
    made = sensed(lake, "main", 3)
    Duty.objects.filter(kind="validate").update(failures=1)
    assert sorted(brought(lake, 1)) == sorted(objects(lake, *made))
    assert rank_of("main", "main", ["main"]) == 0
    assert [rank_of(name, "main", ["a*", "*z"]) for name in ("az", "xz", "b")] == [1, 2, 3]


@pytest.mark.parametrize("globs", [[""], [" a"], ["x" * 257], ["a\n"], ["a"] * 101])
def test_what_is_no_glob_is_refused(globs: list[str]) -> None:
    with pytest.raises(Invalid) as caught:
        check_priority(globs)
    assert caught.value.field == "branch_priority"
