"""Races, crashes between two writes, and states that nothing ever left: each was found by reading the engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, transaction
from django.db.models.functions import Now
from django.test import Client

from core.errors import Corrupt, Denied, NotFound, RemoteFailure, Unreachable
from core.mirroring.check_planning import Data
from core.types import RecordOutcome
from deployment import config
from jobs import duties
from jobs.models import Duty
from mirroring.sense import branches as sensor
from mirroring.sense.identity import Identity
from mirroring.validate.commits import _judge_row
from mirrors.models import Blocker, Coverage, Mirror, Repository, SourceBranch
from mirrors.queries.metaranges import load_metaranges
from mirrors.services import mirrors
from tests.fakes import id_of
from tests.mirrors.harness import Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


# --- gone at both sides -----------------------------------------------------------------------------------------------


def test_objects_that_go_at_different_times_leave_their_range_gone(lm: Deployment) -> None:
    b = lm.lake.commit(files={"x": b"old", "y": b"old too"})
    c = lm.lake.commit(files={"x": b"new", "y": b"new too"})
    x, y = (lm.lake.address_of(b, path) for path in "xy")
    lm.arrive(x, y)
    del lm.us_store.objects[f"s3://src/lake/{x}"]
    lm.work()
    assert state_of(b).data == "waiting"
    del lm.us_store.objects[f"s3://src/lake/{y}"]
    lm.work()
    assert state_of(b).data == "gone"
    assert lm.head() == c


def test_a_range_with_more_gone_objects_than_are_kept_by_name_is_gone_in_the_end(lm: Deployment) -> None:
    with (
        mock.patch("mirroring.validate.run_check.KEPT_PER_HOLDER", 2),
        mock.patch("mirroring.validate.doubt_new_coverage.KEPT_PER_HOLDER", 2),
        mock.patch("mirrors.transitions.range_states.KEPT_PER_HOLDER", 2),
    ):
        b = lm.lake.commit(files={f"f{n}": b"old" for n in range(9)})
        c = lm.lake.commit(files={f"f{n}": b"new" for n in range(9)})
        for n in range(9):
            del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(b, f'f{n}')}"]
        lm.arrive()
        lm.work(8)
    assert state_of(b).data == "gone"
    assert lm.head() == c


def test_more_than_a_hundred_gone_ranges_do_not_hide_what_still_arrives(lm: Deployment) -> None:
    b = lm.lake.commit(files={"a": b"old", "b": b"old"})
    lm.arrive(lm.lake.address_of(b, "a"))
    lm.work()
    row, waiting = state_of(b), Blocker.objects.get().holder_id
    found = load_metaranges(Mirror.objects.get(), [row.commit.metarange_id])[row.commit.metarange_id]
    ids = [f"{n:064}" for n in range(150)]
    many = replace(found, ranges=(*(replace(found.ranges[0], id=i) for i in ids), found.ranges[0]))
    _judge_row(row, many, {**dict.fromkeys(ids, Data.GONE), waiting: Data.WAITING}, set(), set())
    assert waiting in row.waits_for


def test_what_comes_back_at_the_source_is_waited_for_by_all_descendants(lm: Deployment) -> None:
    """A later head may not be promoted over an ancestor that can still be had."""
    b = lm.lake.commit(files={"x": b"old"})
    uri = f"s3://src/lake/{lm.lake.address_of(b, 'x')}"
    kept = lm.us_store.objects.pop(uri)
    c = lm.lake.commit(files={"x": b"new"})
    lm.arrive()
    lm.work(5)
    assert lm.head() == c
    lm.us_store.objects[uri] = kept
    lm.work(2)
    assert state_of(b).data == "waiting"
    d = lm.lake.commit(files={"x": b"newer"})
    lm.arrive(lm.lake.address_of(b, "x"))
    lm.work()
    assert lm.head() == c
    lm.arrive()
    lm.work()
    assert lm.head() == d


def test_a_bucket_of_the_source_without_any_metadata_proves_nothing(lm: Deployment) -> None:
    """A wrong endpoint or bucket answers 404 to everything."""
    b = lm.lake.commit(files={"x": b"old"})
    lm.lake.commit(files={"x": b"new"})
    lm.arrive(lm.lake.address_of(b, "x"))
    with mock.patch.object(lm.us_store, "objects", {}):
        lm.work()
    assert state_of(b).data == "waiting"
    assert lm.head() == ""


@pytest.mark.parametrize("error", [Unreachable("away"), Denied("403")])
def test_what_arrives_counts_although_the_sources_store_is_away(lm: Deployment, error: Exception) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.lake.repository.branches["dev"] = first
    dev = lm.lake.commit("dev", {"d": b"1"})
    main = lm.lake.commit("main", {"m": b"1"})
    lm.arrive(lm.lake.address_of(dev, "d"), lm.lake.address_of(main, "m"))
    lm.work(1)
    lm.us_store.down = error  # type: ignore[assignment]
    lm.arrive(lm.lake.address_of(dev, "d"))
    lm.work()
    assert (lm.head(), lm.head("dev")) == (main, "")


# --- one bad thing delays nobody else ---------------------------------------------------------------------------------


def test_a_range_that_can_not_be_checked_delays_only_those_who_need_it(lm: Deployment) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    lm.lake.repository.branches["dev"] = first
    dev = lm.lake.commit("dev", {"d": b"1"})
    main = lm.lake.commit("main", {"m": b"1"})
    lm.arrive()
    barred, plain = lm.lake.files_of(dev)[1], lm.run_check

    def check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        plain(mirror, [one for one in work if one[0] != barred], on_rows)
        if any(one[0] == barred for one in work):
            raise Denied("one of its objects answers 403")

    with mock.patch("deployment.wiring.check_jobs.run_check", check):
        lm.work()
    assert (lm.head(), lm.head("dev")) == (main, "")
    lm.work()
    assert lm.head("dev") == dev


@pytest.mark.parametrize("fault", ["log", "parent"])
def test_a_head_whose_history_can_not_be_read_delays_no_other_branch(lm: Deployment, fault: str) -> None:
    good = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    lm.lake.repository.branches["dev"] = good
    bad = lm.lake.commit("dev", {"b": b"2"})
    newer = lm.lake.commit("main", {"c": b"3"})
    whole, plain = lm.lake.repository.commits[bad], lm.us.log_commits
    if fault == "parent":
        lm.lake.repository.commits[bad] = replace(whole, parents=("f" * 64,))
        lm.lake.repository.commits["f" * 64] = replace(whole, id="e" * 64, parents=())

    def log(repository: str, commit_id: str, **page: Any) -> Any:
        if commit_id == bad and fault == "log":
            raise RemoteFailure("500")
        return plain(repository, commit_id, **page)

    lm.arrive()
    with mock.patch.object(lm.us, "log_commits", log):
        lm.work()
    assert lm.head() == newer
    assert "dev" in Repository.objects.get().look_error
    lm.lake.repository.commits[bad] = whole
    lm.work()
    assert lm.head("dev") == bad
    assert Repository.objects.get().look_error == ""


def test_a_record_that_the_destination_can_not_take_delays_only_its_descendants(lm: Deployment) -> None:
    good = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    lm.lake.repository.branches["dev"] = good
    bad = lm.lake.commit("dev", {"b": b"2"})
    newer = lm.lake.commit("main", {"c": b"3"})
    lm.arrive()
    plain = lm.eu.put_commit_record

    def put(repository: str, commit: Any) -> RecordOutcome:
        if commit.id == bad:
            raise RemoteFailure("500")
        return plain(repository, commit)

    with mock.patch.object(lm.eu, "put_commit_record", put):
        lm.work()
    assert (lm.head(), lm.head("dev")) == (newer, "")
    lm.work()
    assert lm.head("dev") == bad


def test_a_right_record_is_never_given_up_because_of_a_400(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.eu.failing["put_commit_record"] = Corrupt("400 by something in between")
    lm.work()
    assert state_of(commit).record == "pending"
    del lm.eu.failing["put_commit_record"]
    lm.work()
    assert lm.head() == commit


# --- other repositories under our names -------------------------------------------------------------------------------


def test_records_that_another_repository_took_do_not_count(lm: Deployment) -> None:
    """Requests went to another server for a while, where a repository of the same name stands."""
    lm.work()
    ours = lm.eu.repositories["lake-eu"]
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    info = replace(ours.info, creation_date=ours.info.creation_date + 7)
    lm.eu.repositories["lake-eu"] = replace(ours, info=info, commits={}, branches={})
    for kind in ("sense", "copy"):
        lm.run(Duty.objects.get(kind=kind).pk)
    assert state_of(commit).record == "pending"
    assert lm.eu.repositories["lake-eu"].commits == {}
    lm.eu.repositories["lake-eu"] = ours
    lm.work()
    assert lm.head() == commit


def test_the_ghost_of_a_deleted_repository_is_not_adopted(lm: Deployment) -> None:
    """For some seconds a server still knows a deleted repository, with no branches, and answers 409 to its name."""
    ghost = lm.eu.add_repository("lake-eu", "s3://dst/lake", read_only=True)
    ghost.info = replace(ghost.info, creation_date=1)
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    assert Mirror.objects.get().pinned_creation_date is None
    del lm.eu.repositories["lake-eu"]
    lm.work()
    assert Mirror.objects.get().pinned_creation_date > 1
    assert lm.head() == commit


def test_a_404_for_the_branches_alone_freezes_nothing(lm: Deployment) -> None:
    lm.work()
    lm.us.failing["list_branches"] = NotFound("not found")
    lm.work()
    assert Repository.objects.get().frozen_reason == ""


def test_a_new_mirror_of_the_pinned_source_ends_a_freeze(lm: Deployment) -> None:
    lm.work()
    Repository.objects.update(frozen_reason="the source repository is gone")
    with transaction.atomic():
        assert mirrors._pin_source(lm.lake.repository.info, "us-east-1").frozen_reason == ""
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    assert lm.head() == commit


def test_a_repository_that_we_made_is_known_again_when_its_descriptor_could_not_be_written(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.eu_store.down = Unreachable("the store is away")
    lm.work()
    lm.eu_store.down = None
    lm.work()
    assert lm.head() == commit


# --- what a database can't hold ---------------------------------------------------------------------------------------


def test_a_nul_in_a_commit_is_mirrored_like_any_other(lm: Deployment) -> None:
    """PostgreSQL refuses it in text and JSON: one such message would have stopped all branches."""
    commits, root = lm.lake.repository.commits, lm.lake.repository.branches["main"]
    odd = replace(commits[root], parents=(root,), message="a\0b\x1ac\x1a0", metadata={"k\0": "\0\x1a1"}, generation=2)
    odd = replace(odd, id=id_of(odd))
    commits[odd.id], lm.lake.trees[odd.id] = odd, {}
    lm.lake.repository.branches["main"] = odd.id
    lm.work()
    assert lm.head() == odd.id
    assert lm.eu.repositories["lake-eu"].commits[odd.id] == odd


def test_a_nul_in_a_missing_objects_path_is_named(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a\0b": b"1"})
    lm.arrive(lm.lake.address_of(commit, "a\0b"))
    lm.work()
    assert Blocker.objects.get().path == "a\\x00b"


@pytest.mark.parametrize("address", ["/service/replication/v1/repositories/a%00/mirrors", "/?after=%00", "/a%00b"])
def test_a_nul_in_an_address_is_a_400(address: str) -> None:
    assert Client().get(address).status_code == 400


@pytest.mark.parametrize("name", ["a\0b", "\ud800", 5, None])
def test_a_webhook_that_names_no_repository_is_a_400(name: Any) -> None:
    secret = config.current().hook_secret("us-east-1").reveal()
    answer = Client().post(
        "/service/replication/v1/hooks/lakefs/us-east-1",
        {"repository_id": name},
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 400


# --- races and crashes ------------------------------------------------------------------------------------------------


def test_a_crash_while_a_mirror_is_forgotten_does_not_keep_its_name(lm: Deployment) -> None:
    lm.work()
    Mirror.objects.update(state="deleting")
    with mock.patch.object(Mirror, "delete", side_effect=OperationalError("killed")):
        lm.work()
    lm.work()
    assert not Mirror.objects.exists()
    assert not Duty.objects.exists()


def test_a_look_that_another_one_overtook_is_thrown_away(lm: Deployment) -> None:
    """Stored late it would move the branch back to what it was before."""
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    older = lm.lake.commit(files={"b": b"2"})
    duty = Duty.objects.get(kind="sense")
    plain, newer = sensor.ask_identity, []

    def overtaken(*args: Any) -> Identity:
        if not newer:
            newer.append(lm.lake.commit(files={"c": b"3"}))
            Duty.objects.filter(pk=duty.pk).update(until=datetime.now(UTC) - timedelta(seconds=1))
            lm.run(duty.pk, holder="worker-2")
        return plain(*args)

    with mock.patch.object(sensor, "ask_identity", overtaken):
        lm.run(duty.pk)
    branch = SourceBranch.objects.get(name="main")
    assert branch.head == newer[0]
    assert list(branch.candidates.values_list("commit__sha", flat=True))[-2:] == [older, newer[0]]


def test_results_of_a_worker_that_lost_its_lease_are_not_written(lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    plain = lm.run_check

    def late(mirror: Mirror, work: Any, on_rows: Any) -> None:
        Duty.objects.filter(kind="validate").update(holder="worker-2", attempt=99)
        plain(mirror, work, on_rows)

    with mock.patch("deployment.wiring.check_jobs.run_check", late):
        lm.work(1)
    assert not Coverage.objects.exists()


def test_a_lease_is_kept_through_a_hiccup_of_the_database(lm: Deployment) -> None:
    duty = Duty.objects.get(kind="copy")
    Duty.objects.filter(pk=duty.pk).update(due_at=Now())
    assert Duty.objects.claim(duty.pk, holder="w", lease=60, interval=60)
    duty.refresh_from_db()
    lease = duties.Lease(duty, "w", duty.attempt)
    lease.renewed -= 30
    with mock.patch.object(type(Duty.objects.all()), "renew", side_effect=OperationalError("away")):
        lease._renew_through()
    lease._renew_through()
    lease.fence(50)
