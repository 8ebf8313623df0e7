"""A store that answers 500 for ever to one single key (an object without its read quorum, say): who waits for it?
The numbers are those of docs/promotion.md."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from core.errors import Denied, RemoteFailure, Unreachable
from core.mirroring.object_check import Depth
from core.mirroring.states import State
from db import clock
from deployment.wiring import check_jobs
from jobs.models import Duty
from mirroring import copy_records
from mirroring.copy_records import BATCH
from mirrors.models import Blocker, Coverage, Mirror
from mirrors.services.priority import mirror_prioritise
from mirrors.status.mirror import mirror_status
from rbac.models import User
from spark_jobs.check.job import WORK_COLUMNS, check_task
from tests.mirroring.test_found_by_breaking import age, ask, lose, mirrored, uri_of
from tests.mirrors.harness import NAMESPACE, Deployment, state_of
from tests.mirrors.promise import real_job

pytestmark = pytest.mark.django_db(transaction=True)
LOST_QUORUM = RemoteFailure("500: read quorum lost")


@pytest.fixture
def both(lm: Deployment) -> Iterator[str]:
    """Two branches, with the real check; gives the head of the second one."""
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, m=b"main")
    head = mirrored(lm, "t", a=b"12")
    with real_job(lm):
        yield head


def file_of(lm: Deployment, commit: str, number: int) -> str:
    """Its metarange (0), or one of its ranges."""
    return f"{NAMESPACE}/_lakefs/{lm.lake.files_of(commit)[number]}"


def main_goes_on(lm: Deployment, **files: bytes) -> bool:
    new = lm.lake.commit("main", files or {"n": b"new"})
    held = set(lm.eu_store.hidden)
    lm.arrive()
    lm.eu_store.hidden = held
    lm.work(6)
    return lm.head() == new


def test_105_what_was_missing_and_can_not_be_asked_for_stops_no_other_branch(lm: Deployment, both: str) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.arrive(lm.lake.address_of(late, "b"))
    lm.work(2)
    lm.eu_store.refused[uri_of(lm, late, "b")] = LOST_QUORUM
    assert main_goes_on(lm) and Blocker.objects.filter(path="b").exists()


@pytest.mark.parametrize("number", [0, 1])
def test_105_a_new_file_of_metadata_that_can_not_be_read_stops_no_other_branch(
    lm: Deployment, both: str, number: int
) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.arrive()
    lm.eu_store.unreadable[file_of(lm, late, number)] = LOST_QUORUM
    assert main_goes_on(lm)


def test_105_a_range_in_question_that_can_not_be_read_stops_no_other_branch(lm: Deployment, both: str) -> None:
    late = mirrored(lm, "t", b=b"3")
    lm.eu_store.unreadable[file_of(lm, late, 1)] = LOST_QUORUM
    lose(lm, both, "a")
    age(both, lm=lm)
    lm.work(2)
    assert main_goes_on(lm)


def test_105_what_is_old_has_its_turn_although_what_is_in_question_can_not_be_read(lm: Deployment, both: str) -> None:
    uri = file_of(lm, both, 1)
    lm.eu_store.hidden.add(uri)
    age(both, lm=lm)
    lm.work(2)
    assert Blocker.objects.filter(kind="range").exists()
    lm.eu_store.hidden.discard(uri)
    lm.eu_store.unreadable[uri] = LOST_QUORUM
    lm.work(2)
    lose(lm, lm.lake.repository.branches["main"], "m")
    Coverage.objects.filter(state="complete").update(verify_at=clock.now())
    lm.work(6)
    assert Blocker.objects.filter(path="m").exists()


@pytest.mark.parametrize("what", ["object", "range", "metarange"])
def test_106_no_page_is_up_to_date_while_a_head_can_not_be_read(lm: Deployment, what: str) -> None:
    head = mirrored(lm, b=b"3")
    fail(lm, head, "b", what)
    with real_job(lm):
        for _ in range(3):
            age(head, lm=lm)
            lm.work(2)
        status = mirror_status(Mirror.objects.get())
        assert (status.state, status.reason_code) == ("damaged", "damaged")
        assert "fails on this one" in Blocker.objects.get().detail
        lm.eu_store.refused.clear()
        lm.eu_store.unreadable.clear()
        lm.work(4)
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


# --- whatever fails, and however others meet it


def fail(lm: Deployment, commit: str, path: str, what: str, error: Exception = LOST_QUORUM) -> None:
    """An object, the range or the metarange of a commit can't be read any more."""
    if what == "object":
        lm.eu_store.refused[uri_of(lm, commit, path)] = error
    else:
        lm.eu_store.unreadable[file_of(lm, commit, what == "range")] = error
        lm.eu_store.refused[file_of(lm, commit, what == "range")] = error


def commit_again(lm: Deployment, times: int) -> None:
    """More commits on t, each of the same content as the one before."""
    branches = lm.lake.repository.branches
    for number in range(times):
        head = branches["t"]
        branches["t"] = lm.lake.record_tree((head,), lm.lake.trees[head], f"again {number}")
    lm.arrive()


@pytest.mark.parametrize("error", [LOST_QUORUM, Unreachable("no answer in 60 s"), Denied("a firewall's 403")])
@pytest.mark.parametrize("what", ["object", "range", "metarange"])
def test_119_what_fails_is_a_thing_of_its_branch_and_main_goes_on(
    lm: Deployment, both: str, what: str, error: Exception
) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.arrive()
    fail(lm, late, "b", what, error)
    assert main_goes_on(lm)
    assert {row.kind for row in Blocker.objects.all()} == {what}
    assert lm.head("t") == both


@pytest.mark.parametrize("what", ["object", "range"])
def test_119_what_fails_in_a_small_check_is_left_by_the_others_of_that_check(
    lm: Deployment, both: str, what: str
) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.arrive()
    fail(lm, late, "b", what)
    lm.small_checks = True
    assert main_goes_on(lm)


def test_119_what_fails_in_a_task_of_spark_is_left_by_the_others_of_that_task(lm: Deployment) -> None:
    late = mirrored(lm, a=b"1", b=b"2")
    new = lm.lake.commit("main", {"c": b"3"})
    lm.arrive()
    fail(lm, new, "c", "object")
    ranges = {one for commit in (late, new) for one in lm.lake.files_of(commit)[1:]}
    with real_job(lm):
        [task] = [list(check_task([batch_of(ranges)], check_jobs.settings_of(Mirror.objects.get())))]
    rows = [row for batch in task for row in batch.to_pylist()]
    assert {row["range_id"] for row in rows if row["kind"] == "range"} == ranges
    assert [row["kind"] for row in rows if row["kind"] == "failed"] == []


def batch_of(ranges: Iterable[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"range_id": one, "base_ids": []} for one in ranges], schema=WORK_COLUMNS)


def test_120_a_range_that_fails_is_named_by_as_many_commits_as_a_round_takes(lm: Deployment, both: str) -> None:
    first = lm.lake.commit("t", {"b": b"3"})
    lm.arrive()
    fail(lm, first, "b", "range")
    commit_again(lm, 5)
    with mock.patch("mirroring.validate.commits.BATCH", 5):
        assert main_goes_on(lm)


def test_120_as_many_missing_things_as_a_round_takes_fail(lm: Deployment, both: str) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.arrive(lm.lake.address_of(late, "b"))
    lm.work(2)
    new = lm.lake.commit("main", {"n": b"1"})
    lm.arrive(lm.lake.address_of(new, "n"), lm.lake.address_of(late, "b"))
    lm.work(2)
    fail(lm, late, "b", "object")
    lm.eu_store.hidden.discard(uri_of(lm, new, "n"))
    Blocker.objects.filter(path="b").update(look_at=clock.now() - timedelta(seconds=5))
    with mock.patch("mirroring.validate.recheck.BATCH", 1):
        for _ in range(3):
            Blocker.objects.filter(path="n").update(look_at=clock.now() - timedelta(seconds=1))
            lm.work(1, look=False)
    assert lm.head() == new


def test_121_one_object_of_a_big_range_fails_and_all_that_is_old_is_looked_at(lm: Deployment) -> None:
    Mirror.objects.update(depth="content")
    with real_job(lm), mock.patch.dict("mirroring.validate.reverify.MOST_LOOKS", {Depth.CONTENT: 2}):
        lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
        main = mirrored(lm, m=b"main")
        big = mirrored(lm, "t", a=b"1", b=b"2", c=b"3")
        fail(lm, big, "a", "object")
        age(big, lm=lm)
        lm.work(1)
        lose(lm, main, "m")
        age(main, lm=lm)
        lm.work(8)
    assert Blocker.objects.filter(path="m").exists()


def test_105_what_could_not_be_read_is_over_when_it_was_read_not_when_it_shows_itself(lm: Deployment) -> None:
    Mirror.objects.update(depth="content")
    with real_job(lm):
        head = lm.lake.commit("main", {"b": b"3"})
        lm.arrive()
        lm.eu_store.unreadable[uri_of(lm, head, "b")] = LOST_QUORUM
        lm.work(2)
        Mirror.objects.update(content_sample=0.000001)
        lm.work(4)
        assert [row.reason for row in Blocker.objects.all()] == ["unreadable"]
        assert lm.head() != head
        lm.eu_store.unreadable.clear()
        lm.work(2)
    assert lm.head() == head


@pytest.mark.parametrize("error", [LOST_QUORUM, Denied("403")])
def test_122_a_range_that_only_an_older_commit_names_fails(lm: Deployment, error: Exception) -> None:
    with real_job(lm):
        old = mirrored(lm, a=b"1")
        lm.eu_store.unreadable[file_of(lm, old, 1)] = error
        new = lm.lake.commit(files={"b": b"2"})
        lm.arrive()
        lm.work(8)
    assert lm.head() == new


def test_123_what_both_sides_lost_comes_back_and_a_check_by_age_is_the_first_to_see_it(lm: Deployment) -> None:
    head = lm.lake.commit(files={"x": b"1", "y": b"2"})
    address = lm.lake.address_of(head, "x")
    lm.arrive(address)
    kept = lm.us_store.objects.pop(f"s3://src/lake/{address}")
    lm.work(4)
    assert state_of(head).data == "gone"
    lm.eu_store.hidden = set()
    lm.us_store.objects[f"s3://src/lake/{address}"] = kept
    Blocker.objects.update(look_at=clock.now() + timedelta(minutes=1))
    age(head, lm=lm)
    lm.work(1, look=False)
    assert not Blocker.objects.exists()
    lm.work(2)
    assert lm.head() == head


def test_124_a_check_of_all_branches_looks_at_the_others(lm: Deployment, both: str) -> None:
    fail(lm, both, "a", "metarange")
    lose(lm, lm.lake.repository.branches["main"], "m")
    ask()
    lm.work(6)
    assert Blocker.objects.filter(path="m").exists()


@pytest.mark.parametrize("error", [LOST_QUORUM, Unreachable("no answer in 60 s"), Denied("a firewall's 403")])
def test_125_a_record_that_is_not_taken_keeps_only_what_is_built_on_it(
    lm: Deployment, both: str, error: Exception
) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.run(Duty.objects.get(kind="sense").pk)
    for number in range(20):
        lm.lake.commit("main", {"m": b"%d" % number})
    lm.arrive()
    put = lm.eu.put_commit_record

    def post(repository: str, commit: Any) -> Any:
        if commit.id == late:
            raise error
        return put(repository, commit)

    with mock.patch.object(lm.eu, "put_commit_record", post):
        lm.work(4)
    assert lm.head() == lm.lake.repository.branches["main"]


def test_125_many_records_that_are_not_taken_leave_the_others_their_turn(lm: Deployment, both: str) -> None:
    branches = lm.lake.repository.branches
    root = branches["main"]
    refused = {lm.lake.record_tree((root,), lm.lake.trees[root], f"refused {number}") for number in range(9)}
    branches.update({f"b{number}": head for number, head in enumerate(sorted(refused))})
    lm.run(Duty.objects.get(kind="sense").pk)
    new = lm.lake.commit("main", {"n": b"new"})
    lm.arrive()
    put = lm.eu.put_commit_record

    def post(repository: str, commit: Any) -> Any:
        if commit.id in refused:
            raise Denied("a firewall's 403")
        return put(repository, commit)

    with mock.patch.object(lm.eu, "put_commit_record", post):
        lm.work(4)
    assert lm.head() == new


@pytest.mark.parametrize("error", [LOST_QUORUM, Denied("403")])
@pytest.mark.parametrize("found_by", ["a look again", "a check by age"])
def test_126_what_both_sides_lost_stays_given_up_although_it_fails_now(
    lm: Deployment, both: str, error: Exception, found_by: str
) -> None:
    lost = lm.lake.commit(files={"x": b"1"})
    address = lm.lake.address_of(lost, "x")
    lm.arrive(address)
    del lm.us_store.objects[f"s3://src/lake/{address}"]
    lm.work(4)
    assert state_of(lost).data == "gone"
    assert main_goes_on(lm, x=b"2")
    lm.eu_store.refused[f"{NAMESPACE}/{address}"] = error
    if found_by == "a check by age":
        Blocker.objects.update(look_at=clock.now() + timedelta(minutes=9))
        age(lost, lm=lm)
    lm.work(3, look=found_by == "a look again")
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE
    assert main_goes_on(lm, y=b"3")


@contextmanager
def refusing(lm: Deployment, refused: Collection[str]) -> Iterator[None]:
    """The destination does not take some records."""
    put = lm.eu.put_commit_record

    def post(repository: str, commit: Any) -> Any:
        if commit.id in refused:
            raise Denied("a firewall's 403")
        return put(repository, commit)

    with mock.patch.object(lm.eu, "put_commit_record", post):
        yield


@pytest.mark.parametrize(("batch", "descendants"), [(12, 1), (BATCH, 100)])
def test_135_so_many_records_wait_for_some_that_are_not_taken_as_fill_a_batch(
    lm: Deployment, both: str, batch: int, descendants: int
) -> None:
    root = lm.lake.repository.branches["main"]
    refused = [lm.lake._record((root,), "", f"refused {number}", {}) for number in range(9)]
    for number, tip in enumerate(refused):
        for n in range(descendants):
            tip = lm.lake._record((tip,), "", f"after {number} {n}", {})
        lm.lake.repository.branches[f"b{number}"] = tip
    lm.run(Duty.objects.get(kind="sense").pk)
    new = lm.lake.commit("main", {"n": b"new"})
    lm.arrive()
    with mock.patch.object(copy_records, "BATCH", batch), refusing(lm, refused):
        lm.work(8)
        assert lm.head() == new
    lm.work(8)
    assert not Mirror.objects.get().commits.to_copy().exists()


def test_135_urgent_ones_that_are_not_taken_leave_the_others_their_turn(lm: Deployment, both: str, owner: User) -> None:
    branches = lm.lake.repository.branches
    refused = [lm.lake._record((branches["main"],), "", f"refused {number}", {}) for number in range(6)]
    branches["m"] = lm.lake._record(tuple(refused), "", "merge", {})
    lm.run(Duty.objects.get(kind="sense").pk)
    mirror_prioritise(actor=owner, mirror=Mirror.objects.get(), branch="m")
    new = lm.lake.commit("main", {"n": b"new"})
    lm.arrive()
    with refusing(lm, refused):
        lm.work(8)
        assert lm.head() == new


# --- the descriptor ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("error", [LOST_QUORUM, Denied("403: disabled")])
def test_188_what_fails_is_that_key_although_the_descriptor_fails_with_it(
    lm: Deployment, both: str, error: Exception, small: bool
) -> None:
    """They lie on the same broken disks."""
    lm.small_checks = small
    late = lm.lake.commit("t", {"b": b"3"})
    new = lm.lake.commit("main", {"n": b"new"})
    lm.arrive()
    uri, descriptor = uri_of(lm, late, "b"), f"{NAMESPACE}/_lakemirror/mirror.json"
    lm.eu_store.refused |= {uri: error, descriptor: LOST_QUORUM}
    lm.eu_store.unreadable |= {uri: error, descriptor: LOST_QUORUM}
    lm.work(6)
    assert lm.head() == new and Blocker.objects.filter(path="b").exists()


def test_188_a_store_that_answers_for_nothing_says_nothing_of_a_key(lm: Deployment, both: str) -> None:
    lm.lake.commit("t", {"b": b"3"})
    lm.arrive()
    lm.work(1)
    before = Blocker.objects.count()
    lm.lake.commit("t", {"c": b"3"})
    lm.arrive()
    lm.eu_store.down = LOST_QUORUM
    lm.work(3)
    assert Blocker.objects.count() == before and Duty.objects.get(kind="validate").failures
