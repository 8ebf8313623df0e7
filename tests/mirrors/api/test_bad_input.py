"""What installations, stores, clocks and people may do wrong: each is told, moves nothing, and ends by itself.

The table of all of them, with the tests that stand elsewhere, is docs/bad-input.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from adapters.s3.refusals import answer_error
from core.errors import Conflict, Denied, Invalid, LakeMirrorError, RemoteFailure, Throttled, Unauthenticated
from core.mirroring.promotion import MOVED_BY_OTHERS
from core.mirroring.states import State
from deployment.wiring import clients
from mirrors.models import Blocker, Mirror, Promotion, Repository
from mirrors.services import mirrors
from mirrors.status.mirror import MirrorStatus, mirror_status
from rbac.models import User
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.kept import once

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400
REVOKED = Unauthenticated("could not do it at http://eu: error authenticating request", hint="Let the key in again")
REFUSALS = [
    REVOKED,
    Denied("could not do it at http://eu: insufficient permissions"),
    RemoteFailure("could not do it at http://eu: no space left on device (status 507)"),
    Throttled("http://eu answered 503 SlowDown"),
]

real_lakefs = clients.lakefs


class Every(dict[str, LakeMirrorError]):
    """Every call of an installation fails alike."""

    def __init__(self, error: LakeMirrorError) -> None:
        super().__init__()
        self.error = error

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> LakeMirrorError:
        return self.error


@pytest.fixture
def a(request: pytest.FixtureRequest, lm: Deployment) -> str:
    """A, which main points to at both sides."""
    return once(request, lm, lambda: mirrored(lm, a=b"1"))


def mirrored(lm: Deployment, **files: bytes) -> str:
    commit = lm.lake.commit(files=files)
    lm.arrive()
    lm.work()
    assert lm.head() == commit
    return commit


def reading() -> MirrorStatus:
    return mirror_status(Mirror.objects.get())


PERMANENT = (Unauthenticated, Denied)
"""What no further try mends: somebody has to grant the right."""


def told_later(side: str, error: LakeMirrorError | None = None) -> str:
    """What the page says when one side could not be asked for five minutes: Failed where it refused."""
    later = datetime.now(UTC) + timedelta(minutes=5)
    if side == "eu":
        Repository.objects.update(looked_at=later)
    known = mirror_status(Mirror.objects.get(), later)
    assert known.state is (State.FAILED if isinstance(error, PERMANENT) else State.UNKNOWN)
    return known.sentence


# --- namespaces and regions -------------------------------------------------------------------------------------------


def create(owner: User, namespace: str, **change: Any) -> Mirror:
    fields = {"source_repository": "lake", "name": "second", "region": "eu-west-1", "storage_namespace": namespace}
    return mirrors.mirror_create(actor=owner, **(fields | change))


@pytest.mark.parametrize("namespace", ["s3://src/lake", "s3://src/lake/inside", "s3://src"])
def test_a_namespace_that_overlaps_the_sources_is_refused(lm: Deployment, owner: User, namespace: str) -> None:
    with pytest.raises(Invalid, match=f"{namespace} overlaps the source's s3://src/lake"):
        create(owner, namespace)


@pytest.mark.parametrize("namespace", [NAMESPACE, f"{NAMESPACE}/inside", "s3://dst"])
def test_a_namespace_that_overlaps_another_mirrors_is_refused(lm: Deployment, owner: User, namespace: str) -> None:
    with pytest.raises(Conflict, match="overlaps that of the mirror 'lake-eu'"):
        create(owner, namespace)


@pytest.mark.parametrize("namespace", ["s3://people/work", "s3://people/work/inside", "s3://people"])
def test_a_namespace_that_overlaps_any_repositorys_there_is_refused(
    lm: Deployment, owner: User, namespace: str
) -> None:
    """Also one that nobody mirrors: its garbage collection would take the mirror's objects for its own."""
    lm.eu.add_repository("orders", "s3://people/work")
    with pytest.raises(Conflict, match="overlaps that of the repository 'orders' in eu-west-1"):
        create(owner, namespace)
    assert create(owner, "s3://people/workshop").name == "second"


def test_a_region_that_lost_its_endpoint_is_named_and_nothing_moves(lm: Deployment, a: str) -> None:
    """Somebody took it out of the configuration while a mirror was there."""
    Mirror.objects.update(region="mars-1")

    def of_region(region: str) -> Any:
        return real_lakefs(region) if region == "mars-1" else lm.lakefs(region)

    with mock.patch("deployment.wiring.clients.lakefs", of_region):
        lm.work(1)
    assert "unknown region 'mars-1': this deployment knows us-east-1" in told_later("eu")
    Mirror.objects.update(region="eu-west-1")
    mirrored(lm, b=b"2")


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", REFUSALS)
@pytest.mark.parametrize("side", ["us", "eu"])
def test_an_installation_that_refuses_is_named_and_work_goes_on_after_it(
    lm: Deployment, a: str, side: str, error: LakeMirrorError
) -> None:
    b = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    installation = getattr(lm, side)
    installation.failing = Every(error)
    lm.work(2)
    assert (lm.head(), Repository.objects.get().frozen_reason) == (a, "")
    assert str(error) in told_later(side, error)
    installation.failing = {}
    lm.work(2)
    assert (lm.head(), reading().state) == (b, State.UP_TO_DATE)


@pytest.mark.parametrize("error", REFUSALS)
def test_a_store_that_refuses_is_named_and_lacks_nothing(lm: Deployment, a: str, error: LakeMirrorError) -> None:
    b = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.eu_store.down = error
    lm.work(2)
    assert (lm.head(), Blocker.objects.count()) == (a, 0)
    assert (reading().state, str(error) in reading().sentence) == (State.RETRYING, True)
    lm.eu_store.down = None
    lm.work(2)
    assert lm.head() == b


@pytest.mark.parametrize("error", REFUSALS)
@pytest.mark.parametrize("method", ["put_commit_record", "create_branch", "hard_reset_branch"])
def test_a_destination_that_takes_no_writes_says_why(
    lm: Deployment, a: str, method: str, error: LakeMirrorError
) -> None:
    lm.lake.repository.branches["dev"] = a
    b = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.eu.failing[method] = error
    lm.work(2)
    stuck = {"put_commit_record": "main", "create_branch": "dev", "hard_reset_branch": "main"}[method]
    heads = {"main": b, "dev": a}
    assert {name for name in heads if lm.head(name) != heads[name]} == {stuck}
    assert (reading().state, error.message in reading().sentence) == (State.RETRYING, True)
    del lm.eu.failing[method]
    lm.work(2)
    assert {name: lm.head(name) for name in heads} == heads
    assert not {*MOVED_BY_OTHERS}.intersection(Promotion.objects.values_list("why", flat=True))


@pytest.mark.parametrize("error", REFUSALS)
def test_a_store_that_takes_none_of_our_own_files_holds_up_no_commit_and_is_told(
    lm: Deployment, a: str, error: LakeMirrorError
) -> None:
    with mock.patch.object(lm.eu_store, "put", side_effect=error):
        mirrored(lm, b=b"2")
        lm.work(2)
        state = State.FAILED if isinstance(error, PERMANENT) else State.RETRYING
        assert (reading().state, reading().reason_code) == (state, "manage_failed")
        assert "main is up to date" in reading().sentence
        assert error.message in reading().sentence
    lm.work(1)
    assert reading().state is State.UP_TO_DATE


def test_a_new_mirror_does_not_wait_for_a_store_that_takes_its_descriptor(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    full = RemoteFailure("http://eu answered 507 InsufficientStorage")
    with mock.patch.object(lm.eu_store, "put", side_effect=full):
        lm.work(3)
        assert (reading().state, reading().reason_code) == (State.RETRYING, "manage_failed")
        assert full.message in reading().sentence
        assert lm.head() == commit
    lm.work()
    assert reading().state is State.UP_TO_DATE


# --- clocks -----------------------------------------------------------------------------------------------------------


@contextmanager
def a_clock_off_by(seconds: int) -> Iterator[None]:
    """The installations' own clock, by which a repository gets its creation date."""
    with mock.patch("tests.fakes.time", SimpleNamespace(time=lambda: time.time() + seconds)):
        yield


@pytest.mark.parametrize("days", [1, -1])
def test_a_destinations_clock_may_be_a_day_off(lm: Deployment, days: int) -> None:
    with a_clock_off_by(days * DAY):
        mirrored(lm, a=b"1")
    head = mirrored(lm, b=b"2")
    assert reading().state is State.UP_TO_DATE
    del lm.eu.repositories["lake-eu"]
    lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
    lm.work()
    if days < 0:
        assert lm.head() == head, "made anew, later than the one that we pinned: filled again"
    else:
        assert (lm.head(), reading().reason_code) == ("", "repository_replaced"), "by its date an older one"


def test_a_store_that_refuses_for_its_clock_says_so() -> None:
    error = answer_error(403, "RequestTimeTooSkewed", "The difference is too large.", "get s3://b/k", "http://eu")
    assert "Synchronise the clocks of this machine and the store" in str(error)
    assert not error.retryable
