"""What is looked at a second time, by whom and how deep, must not prove more than was seen.

The numbers are those of docs/promotion.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied
from core.mirroring.object_check import Depth
from graveler.ranges import write_ranges
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror
from mirrors.services.locate.locate import object_locate
from mirrors.services.settings import OnUnselect, mirror_update
from mirrors.status.mirror import mirror_status
from rbac.models import User
from tests.mirroring.test_found_by_breaking import age, ask, branches, change, lose, mirrored, uri_of
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = timedelta(weeks=2)


def weeks_pass() -> None:
    """Since everything was checked."""
    Coverage.objects.update(checked_at=datetime.now(UTC) - LONG_AGO)


def one_range_for_each_file() -> AbstractContextManager[Any]:
    def one_each(entries: Iterable[Any]) -> Iterator[Any]:
        for entry in entries:
            yield from write_ranges([entry])

    return mock.patch("tests.fakes.write_ranges", one_each)


def arrive_but(lm: Deployment, held: set[str]) -> None:
    """All that is new, and nothing of what was held back before."""
    lm.arrive()
    lm.eu_store.hidden = held


def test_97_what_a_lesser_check_had_found_is_looked_at_as_deep_as_the_mirror_looks_now(lm: Deployment) -> None:
    Mirror.objects.update(depth="presence")
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, m=b"main")
    bad = mirrored(lm, "t", a=b"12")
    lm.eu_store.objects[uri_of(lm, bad, "a")] = b"1"
    ask(commit=bad, depth=Depth.SIZE)
    lm.work(1)
    with mock.patch("mirrors.services.settings.rbac.require"):
        left_out = {"selected": {"include": ["*"], "exclude": ["t"]}}
        mirror_update(
            actor="system:tests", mirror=Mirror.objects.get(), on_unselect=OnUnselect.DELETE, changes=left_out
        )
    lm.work(1)
    change(depth="etag")
    lm.work(2)
    weeks_pass()
    lm.eu_store.objects[uri_of(lm, bad, "a")] = b"XX"  # the right size, other bytes
    lm.work(3)
    change(selected={"include": ["*"], "exclude": []})
    lm.lake.repository.branches["new"] = bad
    lm.work(3)
    assert "new" not in branches(lm)


def test_98_a_lesser_check_makes_no_old_check_young(lm: Deployment) -> None:
    Mirror.objects.update(history="head")
    commit = mirrored(lm, a=b"1", b=b"2")
    lose(lm, commit, "a")
    age(commit, lm=lm)
    lm.work(1)
    lm.eu_store.objects[uri_of(lm, commit, "b")] = b"X"  # the same size, other bytes
    weeks_pass()
    ask(commit=commit, depth=Depth.PRESENCE)
    lm.work(1)
    lm.eu_store.hidden.clear()
    lm.work(3)
    lm.lake.repository.branches["new"] = commit
    lm.work(2)
    assert "new" not in branches(lm)


def test_99_a_range_that_becomes_gone_after_weeks_is_looked_through_once_more(lm: Deployment) -> None:
    first = lm.lake.commit(files={"x": b"1", "y": b"2"})
    lm.arrive(lm.lake.address_of(first, "x"))
    lm.work(2)
    lose(lm, first, "y")
    weeks_pass()
    held = set(lm.eu_store.hidden)
    second = lm.lake.commit(files={"x": None, "y": None, "z": b"3"})
    arrive_but(lm, held)
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(first, 'x')}"]
    lm.work(4)
    assert lm.head() != second
    assert set(Blocker.objects.values_list("path", "gone_at_source")) == {("x", True), ("y", False)}


def test_100_what_is_gone_is_checked_again_by_its_age_and_what_it_lost_since_is_found(lm: Deployment) -> None:
    first = lm.lake.commit(files={"x": b"1", "y": b"2"})
    lm.arrive(lm.lake.address_of(first, "x"))
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(first, 'x')}"]
    held = set(lm.eu_store.hidden)
    second = lm.lake.commit(files={"x": None, "y": None, "z": b"3"})
    arrive_but(lm, held)
    lm.work(4)
    assert (state_of(first).data, lm.head()) == ("gone", second)
    age(first, lm=lm)
    lm.work(2)
    assert (state_of(first).data, mirror_status(Mirror.objects.get()).state) == ("gone", "up_to_date")
    lose(lm, first, "y")
    age(first, lm=lm)
    lm.work(2)
    assert set(Blocker.objects.values_list("path", "gone_at_source")) == {("x", True), ("y", False)}


def test_101_a_commit_waits_for_more_than_it_names(lm: Deployment) -> None:
    """One of the last of 110 things that both sides lost is back at the source."""
    names = [f"f{number:03}" for number in range(110)]
    with one_range_for_each_file():
        first = lm.lake.commit(files={name: name.encode() for name in names})
    lm.arrive(*(lm.lake.address_of(first, name) for name in names))
    kept = {name: lm.us_store.objects.pop(f"s3://src/lake/{lm.lake.address_of(first, name)}") for name in names}
    lm.work(3)
    assert state_of(first).data == "gone"
    lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(first, 'f105')}"] = kept["f105"]
    lm.work(3)
    assert state_of(first).data == "waiting"


def test_102_what_is_on_its_way_for_the_first_time_is_no_damage(lm: Deployment) -> None:
    """The files of the last ranges arrive first, and what they list is still on its way."""
    names = [f"f{number:03}" for number in range(130)]
    with one_range_for_each_file():
        first = lm.lake.commit(files={name: name.encode() for name in names})
    files = [f"_lakefs/{one}" for one in lm.lake.files_of(first)[1:]]
    lm.arrive(*files, *(lm.lake.address_of(first, name) for name in names))
    lm.work(1)
    lm.eu_store.hidden -= {f"{NAMESPACE}/{one}" for one in files[100:]}
    lm.work(3)
    assert Blocker.objects.exists() and not Blocker.objects.filter(damage=True).exists()


@pytest.fixture
def shared(lm: Deployment) -> tuple[str, list[Blocker]]:
    """Two ranges wait for x, each with a time of its own until it is looked for."""
    base = mirrored(lm, k=b"0")
    first = lm.lake.commit(files={"x": b"1"})
    lm.arrive(lm.lake.address_of(first, "x"))
    lm.work(2)
    held = set(lm.eu_store.hidden)
    lm.lake.commit(files={"y": b"2"})
    arrive_but(lm, held)
    lm.work(2)
    rows = list(Blocker.objects.filter(path="x").order_by("pk"))
    Blocker.objects.filter(pk=rows[0].pk).update(look_at=datetime.now(UTC))
    Blocker.objects.filter(pk=rows[1].pk).update(look_at=datetime.now(UTC) + timedelta(hours=1))
    return base, rows


def test_103_one_look_counts_for_all_ranges_that_wait_for_an_object(
    lm: Deployment, shared: tuple[str, list[Blocker]]
) -> None:
    lm.eu_store.hidden = set()
    lm.run(Duty.objects.get(kind="validate").pk)
    assert not Blocker.objects.exists()


@pytest.mark.parametrize("then", ["missing", "archived", "forbidden"])
def test_103_an_object_that_is_there_for_one_range_and_not_for_another_is_there_for_none(
    lm: Deployment, shared: tuple[str, list[Blocker]], then: str
) -> None:
    base, rows = shared
    answers = iter([True, False])
    plain = type(lm.eu_store).head

    def head(store: Any, uri: str) -> Any:
        if not uri.endswith(rows[0].address) or (not (there := next(answers, False)) and then == "missing"):
            return plain(store, uri)
        with mock.patch.object(store, "hidden", set()):
            info = plain(store, uri)
        if not there and then == "forbidden":
            raise Denied("403")
        return info if there else info._replace(storage_class="GLACIER")

    with mock.patch.object(type(lm.eu_store), "head", head):
        lm.run(Duty.objects.get(kind="validate").pk)
    lm.work(2)
    assert (lm.head(), Blocker.objects.filter(path="x").count()) == (base, 2)


def test_104_a_chain_that_is_inferred_later_is_looked_at_although_heads_alone_are_checked(lm: Deployment) -> None:
    Mirror.objects.update(history="head")
    first = lm.lake.commit(files={"a": b"1"})
    second = lm.lake.commit(files={"b": b"2"})
    lm.arrive(lm.lake.address_of(second, "b"))
    lm.work(2)
    change(first_sync="inferred")
    lm.work(6)
    assert lm.head() == first


def test_241_what_a_mirror_counts_as_arrived_and_its_store_lacks_is_checked_before_anything_moves(
    lm: Deployment, owner: User
) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(2)
    lm.eu_store.hidden.add(uri_of(lm, first, "a"))
    lm.lake.repository.branches["again"] = first
    look = partial(object_locate, actor=owner, repository="lake", source_region="us-east-1", ref="main", path="a")
    assert look(prefer="eu-west-1").region == "us-east-1"
    lm.work()
    assert lm.head("again") == ""
    blocker = Blocker.objects.get()
    assert (blocker.reason, blocker.damage) == ("missing", True)
    lm.eu_store.hidden.clear()
    lm.work(4)
    assert lm.head("again") == first
    assert look(prefer="eu-west-1").region == "eu-west-1"
    assert not Coverage.objects.filter(state="waiting").exists(), "what is there puts nothing in question"


@pytest.mark.parametrize("noted_by", ["this version", "0.1.0"])
def test_242_what_is_gone_at_the_source_too_is_verified_at_its_other_mirrors_at_once(
    lm: Deployment, noted_by: str
) -> None:
    first = lm.lake.commit(files={"x": b"1"})
    lm.arrive()
    lm.work(2)
    other = copy_of_the_mirror("lake-ap", "ap-southeast-2")
    before = other.coverage.get().verify_at
    assert before is not None and before > datetime.now(UTC) + timedelta(days=1)
    lose(lm, first, "x")
    age(first, lm=lm)
    other.coverage.update(verify_at=before)
    lm.work(2)
    assert Blocker.objects.get(path="x").reason == "missing"
    assert other.coverage.get().verify_at == before, "the source has it"
    if noted_by == "0.1.0":
        Blocker.objects.update(crc=None)
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(first, 'x')}"]
    lm.work(3)
    assert Blocker.objects.get(path="x").gone_at_source
    found = other.coverage.get()
    assert found.verify_at is not None and found.verify_at <= datetime.now(UTC)
    assert found.state == "complete", "until it is looked for it stays proven"
    other.coverage.update(verify_at=before)
    lm.work(3)
    assert other.coverage.get().verify_at == before, "told once"


@pytest.mark.parametrize(
    "killed_at", ["mirroring.validate.commits.tell_others", "mirrors.transitions.seen_missing.chunks"]
)
def test_242_also_where_the_worker_is_killed_before_it_has_told_them(lm: Deployment, killed_at: str) -> None:
    first = lm.lake.commit(files={"x": b"1"})
    lm.arrive()
    lm.work(2)
    other = copy_of_the_mirror("lake-ap", "ap-southeast-2")
    before = other.coverage.get().verify_at
    lose(lm, first, "x")
    age(first, lm=lm)
    other.coverage.update(verify_at=before)
    lm.work(2)
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(first, 'x')}"]
    module, _, name = killed_at.rpartition(".")
    plain, calls = getattr(import_module(module), name), []

    def killed(*args: object) -> object:
        calls.append(args)
        if Blocker.objects.filter(loss_untold=True).exists():
            raise SystemExit
        return plain(*args)

    with mock.patch(killed_at, killed), suppress(SystemExit):
        lm.work(3)
    Duty.objects.update(holder="", until=None, due_at=datetime.now(UTC))
    assert Blocker.objects.get(path="x").gone_at_source, "it is noted"
    Blocker.objects.update(look_at=datetime.now(UTC) + timedelta(hours=1))
    assert other.coverage.get().verify_at == before
    lm.work(1)
    found = other.coverage.get()
    assert found.verify_at is not None and found.verify_at <= datetime.now(UTC)
    other.coverage.update(verify_at=before)
    lm.work(2)
    assert other.coverage.get().verify_at == before, "told once"


def copy_of_the_mirror(name: str, region: str) -> Mirror:
    """Another mirror of the same source, of which the same was proven; it has no duties."""
    made = Mirror.objects.get()
    covered = list(made.coverage.all())
    made.pk, made.name, made.region, made.storage_namespace = None, name, region, f"s3://{region}/lake"
    made.save(force_insert=True)
    for row in covered:
        row.pk, row.mirror = None, made
        row.save(force_insert=True)
    return made
