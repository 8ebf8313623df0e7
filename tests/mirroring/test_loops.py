"""The loops on fake installations: what becomes visible at the mirror, and what never does.

The numbered scenarios of promotion are in test_scenarios.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.errors import NotFound, Unreachable
from deployment import config
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, Run
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_commit_becomes_readable_once_everything_has_arrived(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1", "b": b"22"})
    lm.work()
    assert lm.head() == ""
    lm.arrive()
    lm.work()
    assert lm.head() == commit
    assert lm.torn() == []
    assert state_of(commit).promoted_at is not None
    assert not Blocker.objects.exists()


def test_a_missing_object_holds_the_branch_and_is_named(lm: Deployment) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    second = lm.lake.commit(files={"b": b"2"})
    held = lm.lake.address_of(second, "b")
    lm.arrive(held)
    lm.work()
    assert lm.head() == first
    blocker = Blocker.objects.get()
    assert (blocker.address, blocker.path, blocker.reason, blocker.gone_at_source) == (held, "b", "missing", False)
    assert blocker.attempts > 1
    lm.arrive()
    lm.work()
    assert lm.head() == second


@pytest.mark.parametrize("which", ["metarange", "range"])
def test_missing_metadata_holds_the_branch_and_is_named(lm: Deployment, which: str) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    second = lm.lake.commit(files={"b": b"2"})
    held = lm.lake.files_of(second)[0 if which == "metarange" else 1]
    lm.arrive(f"_lakefs/{held}")
    lm.work()
    assert lm.head() == first
    blocker = Blocker.objects.get()
    assert (blocker.kind, blocker.holder_id, blocker.reason) == (which, held, f"{which}-missing")
    lm.arrive()
    lm.work()
    assert lm.head() == second


@pytest.mark.parametrize("which", ["metarange", "range"])
def test_damaged_metadata_is_never_promoted_until_it_arrives_whole(lm: Deployment, which: str) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    key = f"_lakefs/{lm.lake.files_of(commit)[0 if which == 'metarange' else 1]}"
    lm.arrive()
    whole = lm.eu_store.objects[f"s3://dst/lake/{key}"]
    lm.eu_store.objects[f"s3://dst/lake/{key}"] = whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]
    lm.work()
    first_seen = Blocker.objects.get().first_seen
    lm.work()
    blocker = Blocker.objects.get()
    assert (blocker.reason, blocker.first_seen) == (f"{which}-damaged", first_seen)
    assert blocker.attempts > 2
    assert lm.head() == ""
    lm.eu_store.objects[f"s3://dst/lake/{key}"] = whole
    lm.work()
    assert lm.head() == commit


def test_a_corrupted_object_is_not_taken_for_the_right_one(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"right"})
    lm.arrive()
    uri = f"s3://dst/lake/{lm.lake.address_of(commit, 'a')}"
    lm.eu_store.objects[uri] = b"wrong"
    lm.work()
    assert lm.head() == ""
    assert Blocker.objects.get().reason == "etag-differs"
    lm.eu_store.objects[uri] = b"right"
    lm.work()
    assert lm.head() == commit


def test_a_source_that_can_not_be_asked_says_nothing_about_gone(lm: Deployment) -> None:
    b = lm.lake.commit(files={"x": b"old"})
    lm.arrive(lm.lake.address_of(b, "x"))
    lm.work(1)
    lm.us_store.down = Unreachable("the source's store is away")
    lm.work()
    assert state_of(b).data == "waiting"
    assert not Blocker.objects.get().gone_at_source


def test_only_what_no_earlier_check_covers_is_checked(lm: Deployment) -> None:
    lm.lake.commit(files={f"f{n:03}": b"x" for n in range(20)})
    lm.arrive()
    lm.work()
    before = len(lm.checked)
    lm.lake.commit(files={"f000": b"changed"})
    lm.arrive()
    lm.eu_store.heads = 0
    lm.work()
    new = lm.checked[before:]
    assert len(new) == 1
    assert new[0][1], "the new range is checked against the one that it follows"
    assert lm.eu_store.heads == 1
    lm.work()
    assert len(lm.checked) == before + 1


def test_a_job_that_breaks_off_keeps_what_it_had_and_is_done_again(lm: Deployment) -> None:
    commits = [lm.lake.commit(files={f"k{n}": b"x"}) for n in range(4)]
    lm.arrive()
    lm.check_error = Unreachable("Spark is gone")
    lm.work(1)
    assert lm.head() == ""
    assert Coverage.objects.count() == 2
    Run.objects.update(outcome="running", ended_at=None)
    lm.check_error = None
    lm.work()
    assert list(Run.objects.values_list("outcome", flat=True)) == ["done", "broken-off"]
    assert lm.head() == commits[-1]
    assert Coverage.objects.count() == 4


def test_a_store_that_is_away_is_not_taken_for_empty(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.eu_store.down = Unreachable("no answer")
    lm.work()
    assert not Blocker.objects.exists()
    lm.eu_store.down = None
    lm.work()
    assert lm.head() == commit


def test_a_deleted_mirror_loses_its_references_and_keeps_its_objects(lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    objects = dict(lm.eu_store.objects)
    Mirror.objects.update(state="deleting")
    lm.work()
    assert not Mirror.objects.exists()
    assert "lake-eu" not in lm.eu.repositories
    assert lm.eu_store.objects == objects


def test_a_repository_that_a_server_still_showed_is_deleted_once(lm: Deployment) -> None:
    lm.work()
    Mirror.objects.update(state="deleting")
    lm.eu.failing["delete_repository"] = NotFound("repository not found")
    lm.work()
    assert Duty.objects.get(kind="manage").failures == 0
    del lm.eu.repositories["lake-eu"]
    lm.work()
    assert not Mirror.objects.exists()


def test_deleting_never_touches_a_repository_that_is_not_ours(lm: Deployment) -> None:
    lm.work()
    theirs = lm.eu.repositories["lake-eu"]
    theirs.info = replace(theirs.info, creation_date=1)
    Mirror.objects.update(state="deleting")
    lm.work()
    assert not Mirror.objects.exists()
    assert "lake-eu" in lm.eu.repositories


def test_a_creation_that_was_cut_off_is_taken_up(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.eu.after["create_mirror_repository"] = Unreachable("the connection broke")
    lm.work()
    assert lm.head() == ""
    Mirror.objects.update(created_at=datetime.now(UTC) - timedelta(seconds=16))
    lm.work()
    assert Mirror.objects.get().state == "active"
    assert lm.head() == commit


def test_a_name_that_is_taken_at_the_destination_stops_the_mirror(lm: Deployment) -> None:
    lm.eu.add_repository("lake-eu", "s3://dst/other")
    lm.work()
    assert Mirror.objects.get().reason_code == "name-taken"
    assert lm.eu.repositories["lake-eu"].branches == {}
    lm.eu.delete_repository("lake-eu")
    lm.work()
    assert Mirror.objects.get().state == "active"


def test_a_commit_of_which_the_record_comes_last_is_promoted_at_once(lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    head = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    for kind in ("sense", "validate", "promote"):
        lm.run(Duty.objects.get(kind=kind).pk)
    lm.woken.clear()
    lm.run(Duty.objects.get(kind="copy").pk)
    assert ("promote", Mirror.objects.get().pk) in lm.woken
    lm.run(Duty.objects.get(kind="promote").pk)
    assert lm.head() == head


def test_a_destination_that_was_removed_stops_the_mirror(lm: Deployment) -> None:
    lm.work()
    removed = lm.eu.repositories.pop("lake-eu")
    lm.work()
    assert Mirror.objects.get().reason_code == "repository-removed"
    lm.eu.repositories["lake-eu"] = removed
    lm.work()
    assert Mirror.objects.get().state == "active"


def test_the_destination_tells_by_a_file_whose_mirror_it_is(lm: Deployment) -> None:
    lm.work()
    told = json.loads(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"])
    assert told["organization"] == config.current().organization_id == "demo"
    assert (told["mirror"], told["source"]["repository"]) == ("lake-eu", "lake")
