"""How deep a mirror looks, from the check to the promotion."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from core.errors import Unreachable
from mirrors.models import Blocker, Mirror
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

    with mock.patch("lakemirror_site.wiring.run_check", noted):
        lm.work()
    assert set(mirror.coverage.values_list("note", flat=True)) == {"1 of its objects: by size"}
