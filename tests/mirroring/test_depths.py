"""How deep a mirror looks, from the check to the promotion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from unittest import mock

import pytest

from core.errors import Denied, Unreachable
from mirrors.models import Blocker, Mirror
from mirrors.transitions.validity import note_validated
from tests.mirroring.test_found_by_breaking import change
from tests.mirrors.harness import NAMESPACE, Deployment, deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


def wrong_at_both(lm: Deployment) -> str:
    """A commit whose entry says otherwise than the source's object."""
    lm.add_mirror()
    commit = lm.lake.commit(files={"a": b"as staged"})
    lm.us_store.put(f"{lm.lake.namespace}/{lm.lake.address_of(commit, 'a')}", b"as it is now")
    lm.arrive()
    return commit


def test_a_look_again_lets_the_source_decide(lm: Deployment) -> None:
    commit = wrong_at_both(lm)
    lm.work()
    assert lm.head() == commit
    assert not Blocker.objects.exists()


def test_a_mismatch_stays_while_the_source_is_away(lm: Deployment) -> None:
    commit = wrong_at_both(lm)
    lm.us_store.down = Unreachable("away")
    lm.work()
    assert lm.head() != commit
    assert "can't be asked" in Blocker.objects.get().detail
    lm.us_store.down = None
    lm.work()
    assert lm.head() == commit


def test_what_arrives_late_is_read_too_at_depth_content(lm: Deployment) -> None:
    Mirror.objects.filter(pk=lm.add_mirror().pk).update(depth="content")
    commit = lm.lake.commit(files={"a": b"bytes"})
    address = lm.lake.address_of(commit, "a")
    lm.arrive(address)
    lm.work()
    read: list[str] = []
    lm.eu_store.md5 = lambda uri: read.append(uri) or "0" * 32
    lm.arrive()
    lm.work()
    assert lm.head() != commit
    assert Blocker.objects.get().reason == "content-differs"
    del lm.eu_store.md5
    lm.work()
    assert lm.head() == commit
    assert set(read) == {f"{NAMESPACE}/{address}"}


def test_a_range_s_note_is_kept(lm: Deployment) -> None:
    mirror = lm.add_mirror()
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    plain = lm.run_check

    def noted(of: Mirror, work: object, on_rows: object) -> None:
        plain(of, work, lambda rows: on_rows([row | {"detail": "1 of its objects: by size"} for row in rows]))

    with mock.patch("deployment.wiring.check_jobs.run_check", noted):
        lm.work()
    assert set(mirror.coverage.values_list("note", flat=True)) == {"1 of its objects: by size"}


def test_an_imported_object_that_cannot_be_reached_is_looked_for_again(lm: Deployment) -> None:
    mirror = lm.add_mirror()
    Mirror.objects.filter(pk=mirror.pk).update(imported="allow")
    lm.work()
    now = datetime.now(UTC)
    mirror.coverage.create(looked=b"", range_id="r" * 64, state="waiting", depth="etag", problems=1, checked_at=now)
    uri = "s3://elsewhere/a"
    far = {"kind": "object", "holder_id": "r" * 64, "key": "k", "address": uri, "size": 1, "etag": ""}
    mirror.blockers.create(**far, reason="imported-unreachable", first_seen=now, look_at=now)
    lm.eu_store.refused = {uri: Denied("not for you")}
    lm.work(rounds=1)
    blocker = Blocker.objects.get()
    assert (blocker.reason, blocker.attempts) == ("imported-unreachable", 2)
    lm.eu_store.refused = {}
    lm.eu_store.put(uri, b"1")
    lm.work(rounds=1)
    assert not Blocker.objects.exists()
    assert mirror.coverage.get(range_id="r" * 64).state == "complete"


def test_nothing_was_validated_deeper_before_it_is(lm: Deployment) -> None:
    lm.add_mirror()
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    old = Mirror.objects.get()
    assert old.last_validated_at is not None
    change(depth="content")
    assert Mirror.objects.get().last_validated_at is None
    note_validated(old)
    assert Mirror.objects.get().last_validated_at is None, "that round judged by the depth of before"
    lm.work()
    assert Mirror.objects.get().last_validated_at is not None
