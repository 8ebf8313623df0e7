"""The mirror's own files at the destination: where they lie, until when a certificate counts, and what one that is
refused holds up. Numbers are those of docs/promotion.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied, NotFound, Unreachable
from core.mirroring.states import State
from db import clock
from jobs.models import Duty
from mirrors.models import Commit, Mirror, MirrorBranch, SourceBranch
from mirrors.queries.certificates import certificate_uri, certify, parse_descriptor, read_certificate
from mirrors.status.mirror import brief_statuses, mirror_status
from mirrors.status.readable_regions import places_of
from mirrors.status.tags import tag_readings
from tests.fakes import FakeStore, replicate
from tests.mirroring.test_found_by_breaking import branches, change, mirrored
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)

DESCRIPTOR = f"{NAMESPACE}/_lakemirror/mirror.json"
ELSEWHERE = "http://elsewhere"


def run(lm: Deployment, *kinds: str) -> None:
    for kind in kinds:
        lm.run(Duty.objects.get(kind=kind).pk)


def certified(branch: str) -> str:
    """The commit of a branch's certificate at the destination; "" if there is none, or it was retired."""
    proof = read_certificate("eu-west-1", NAMESPACE, branch)
    return proof.commit if proof else ""


@contextmanager
def another_store(store: str = ELSEWHERE) -> Iterator[None]:
    with mock.patch("deployment.wiring.region_settings.store_identity", lambda region: store):
        yield


@contextmanager
def refusing(lm: Deployment, name: str) -> Iterator[None]:
    """The store takes no file of that name."""
    plain = lm.eu_store.put

    def put(uri: str, data: bytes) -> None:
        if uri.endswith(name):
            raise Denied("403: object lock")
        plain(uri, data)

    with mock.patch.object(lm.eu_store, "put", put):
        yield


def test_180_at_another_store_nothing_is_proven_from_the_first_moment(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    head = mirrored(lm, a=b"1")
    lm.lake.repository.tags["v1"] = head
    lm.work(2)
    with another_store():
        lm.eu_store.objects = {}
        run(lm, "manage", "sense", "copy", "promote")  # and validate is busy
        mirror = Mirror.objects.select_related("source").get()
        for reading in (mirror_status(mirror), brief_statuses([mirror])[0]):
            assert (reading.state, reading.reason_code) == (State.UNPROVEN, "another_store")
        assert [tag.status for tag in tag_readings(mirror, amount=2)] == ["Unknown"]
        with pytest.raises(NotFound, match="another store now"):
            certify(mirror, Commit.objects.get(sha=head))
        answers = {place.role: place.readable.answer for place in places_of([mirror], head)[1]}
        assert answers == {"source": True, "mirror": None}
        lm.work(2)
        assert mirror_status(Mirror.objects.get()).state is State.DAMAGED
    assert lm.head() == head


def test_205_what_was_found_at_another_store_is_not_taken_for_the_first_ones(lm: Deployment) -> None:
    """It was configured for a moment only, in the middle of a round."""
    head = mirrored(lm, m=b"main")
    new = lm.lake.commit("main", {"a": b"1"})
    lm.arrive(lm.lake.address_of(new, "a"))
    there, other, plain = lm.eu_store, FakeStore(), lm.run_check
    replicate(lm.us_store, other)

    def check(*given: Any) -> None:
        with another_store(), mock.patch.object(lm, "eu_store", other):
            plain(*given)

    run(lm, "sense", "copy")
    with mock.patch("deployment.wiring.check_jobs.run_check", check):
        run(lm, "validate")
    run(lm, "promote")
    assert branches(lm)["main"] == head and not lm.torn()
    there.hidden.clear()
    lm.work(3)
    assert branches(lm)["main"] == new


def test_180_another_store_is_given_the_mirrors_own_files(lm: Deployment) -> None:
    """So that it can be made again from there."""
    head = mirrored(lm, a=b"1")
    for store in (ELSEWHERE, "http://where-it-was"):
        with another_store(store):
            lm.eu_store.objects = {uri: data for uri, data in lm.eu_store.objects.items() if "_lakemirror" not in uri}
            lm.work(3)
            assert parse_descriptor(lm.eu_store.objects[DESCRIPTOR]).mirror == "lake-eu"
            assert (certified("main"), mirror_status(Mirror.objects.get()).state) == (head, State.UP_TO_DATE)


def test_180_a_certificate_that_went_to_the_old_store_counts_for_none(lm: Deployment) -> None:
    """Its store was changed after the manager had begun to write."""
    mirrored(lm, a=b"1")
    lm.lake.commit("main", {"a": b"2"})
    lm.arrive()
    run(lm, "sense", "copy", "validate", "promote")
    plain = lm.eu_store.put

    def put(uri: str, data: bytes) -> None:
        if uri.endswith("/main.json"):
            Mirror.objects.update(store=ELSEWHERE)
        plain(uri, data)

    with mock.patch.object(lm.eu_store, "put", put):
        run(lm, "manage")
    row = MirrorBranch.objects.get()
    assert row.certified != row.head


def _about_to_be_certified(lm: Deployment) -> str:
    """The branch t, which its manager has not certified yet, and which the source has just deleted."""
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, m=b"main")
    head = lm.lake.commit("t", {"a": b"1"})
    lm.arrive()
    for _ in range(2):
        run(lm, "sense", "copy", "validate", "promote")
    assert branches(lm)["t"] == head != certified("t")
    del lm.lake.repository.branches["t"]
    run(lm, "sense")
    SourceBranch.objects.filter(name="t").update(missing_since=clock.now() - timedelta(minutes=2))
    run(lm, "sense")
    return head


@pytest.mark.parametrize("heard", [True, False])
def test_181_a_certificate_that_is_written_while_its_branch_is_deleted_is_retired(lm: Deployment, heard: bool) -> None:
    _about_to_be_certified(lm)
    plain, done = lm.eu_store.put, list[str]()

    def put(uri: str, data: bytes) -> None:
        first = uri == certificate_uri(NAMESPACE, "t") and not done
        if first:
            done.append(uri)
            run(lm, "promote")
            assert "t" not in branches(lm)
        plain(uri, data)
        if first and not heard:
            raise Unreachable("no answer")

    with mock.patch.object(lm.eu_store, "put", put):
        run(lm, "manage")
    assert (len(done), certified("t"), certified("main")) == (1, "", lm.head())


def test_181_the_same_between_its_retirement_and_the_deletion(lm: Deployment) -> None:
    head = _about_to_be_certified(lm)
    plain, found = lm.eu.delete_branch, list[str]()

    def delete(repository: str, branch: str) -> None:
        run(lm, "manage")
        found.append(certified(branch))
        plain(repository, branch)

    with mock.patch.object(lm.eu, "delete_branch", delete):
        run(lm, "promote")
    assert (found, certified("t"), "t" in branches(lm)) == ([head], "", False)


def test_181_that_of_a_branch_which_somebody_deleted_at_both_sides_is_retired(lm: Deployment) -> None:
    _about_to_be_certified(lm)
    run(lm, "manage")
    assert certified("t")
    del lm.eu.repositories["lake-eu"].branches["t"]
    lm.work(1)
    assert (certified("t"), MirrorBranch.objects.filter(name="t").exists()) == ("", False)


def test_200_what_somebody_has_put_there_is_not_certified(lm: Deployment) -> None:
    """It is whole, but the source's branch was never there: after a rebuild its certificate would say that it was."""
    head = mirrored(lm, m=b"main")
    lm.lake.repository.branches["t"] = head
    other = mirrored(lm, "t", a=b"1")
    branches(lm)["main"] = other
    with mock.patch.object(lm.eu, "hard_reset_branch", side_effect=Denied("it is protected")):
        lm.work(2)
        assert (branches(lm)["main"], certified("main"), certified("t")) == (other, head, other)
    lm.work(2)
    assert (branches(lm)["main"], certified("main")) == (head, head)


def test_201_books_that_are_older_than_a_retirement_leave_no_branch_without_its_certificate(lm: Deployment) -> None:
    head = _about_to_be_certified(lm)
    run(lm, "manage")
    older = MirrorBranch.objects.get(name="t")
    assert older.certified == certified("t") == head
    run(lm, "promote")
    assert (certified("t"), "t" in branches(lm)) == ("", False)
    older.save(force_insert=True)
    lm.lake.repository.branches["t"] = head
    lm.work(3)
    assert (branches(lm)["t"], certified("t")) == (head, head)


@pytest.mark.parametrize("refused", [True, False])
def test_207_no_certificate_outlives_the_repository_that_it_tells_of(lm: Deployment, refused: bool) -> None:
    """The repository is made anew, and the source deletes a branch before it is filled again."""
    head = _about_to_be_certified(lm)
    run(lm, "manage")
    assert certified("t") == head
    SourceBranch.objects.filter(name="t").update(missing_since=clock.now() - timedelta(minutes=2))
    run(lm, "sense")
    assert SourceBranch.objects.get(name="t").gone_at
    there = lm.eu.repositories["lake-eu"]
    there.info = replace(there.info, creation_date=there.info.creation_date + 9)
    there.branches.clear()
    there.commits.clear()
    with refusing(lm, "t.json") if refused else nullcontext():
        lm.work(4)
    assert certified("t") == (head if refused else "")
    assert branches(lm) == {"main": certified("main")}


def test_182_a_descriptor_that_is_refused_holds_up_no_certificate(lm: Deployment) -> None:
    mirrored(lm, m=b"main")
    with refusing(lm, "mirror.json"):
        change(rpo_seconds=77)
        head = mirrored(lm, n=b"2")
        lm.work(2)
        assert (MirrorBranch.objects.get().certified, certified("main")) == (head, head)
        assert mirror_status(Mirror.objects.get()).reason_code == "manage_failed"


def test_182_a_descriptor_that_is_refused_holds_up_no_new_mirror(lm: Deployment) -> None:
    with refusing(lm, "mirror.json"):
        head = mirrored(lm, n=b"2")
        assert lm.head() == head
    lm.work(1)
    assert DESCRIPTOR in lm.eu_store.objects
