"""Which checks the worker makes by itself, and that nothing depends on who makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from core.errors import Unreachable
from deployment import config
from mirrors.models import Blocker, Coverage, Mirror, Run
from tests.mirrors.harness import Deployment, state_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def lake(lm: Deployment) -> Iterator[Deployment]:
    """A mirror that has caught up with one commit of twenty files."""
    lm.small_checks = True
    lm.lake.commit(files={f"f{n:03}": b"x" for n in range(20)})
    lm.arrive()
    lm.work()
    assert len(lm.checked) == 1, "what builds upon nothing is Spark's"
    lm.checked.clear()
    yield lm


def test_what_changes_little_is_checked_here(lake: Deployment) -> None:
    head = lake.lake.commit(files={"f000": b"changed"})
    lake.arrive()
    lake.eu_store.heads = 0
    lake.work()
    assert (lake.head(), lake.checked) == (head, [])
    assert lake.torn() == []
    run = Run.objects.first()
    assert run is not None
    assert (run.job, run.outcome, run.ranges_done, run.entries, run.looked_up) == ("check", "done", 1, 20, 1)
    assert Coverage.objects.filter(state="complete").count() == 2


def test_what_is_missing_blocks_and_arrives(lake: Deployment) -> None:
    before = lake.head()
    head = lake.lake.commit(files={"f000": b"changed"})
    address = lake.lake.trees[head][b"f000"].address
    lake.arrive(address)
    lake.work()
    assert (lake.head(), state_of(head).data, lake.checked) == (before, "waiting", [])
    assert Blocker.objects.get().address == address
    lake.arrive()
    lake.work()
    assert lake.head() == head


def test_what_differs_is_left_to_spark(lake: Deployment) -> None:
    before = lake.head()
    head = lake.lake.commit(files={"f000": b"changed"})
    lake.arrive()
    uri = f"s3://dst/lake/{lake.lake.trees[head][b'f000'].address}"
    right, lake.eu_store.objects[uri] = lake.eu_store.objects[uri], b"something else"
    lake.work()
    assert [work[0] for work in lake.checked] == lake.lake.files_of(head)[1:]
    assert (lake.head(), Blocker.objects.get().reason) == (before, "size-differs")
    lake.eu_store.objects[uri] = right
    lake.work()
    assert lake.head() == head


def test_a_store_that_is_away_is_no_verdict(lake: Deployment) -> None:
    before = lake.head()
    head = lake.lake.commit(files={"f000": b"changed"})
    lake.arrive()
    with mock.patch.object(type(lake.eu_store), "head", side_effect=Unreachable("away")):
        lake.work(1)
    assert (lake.head(), Blocker.objects.count(), state_of(head).data) == (before, 0, "unknown")
    assert Run.objects.first().outcome == "failed"  # type: ignore[union-attr]
    lake.work()
    assert lake.head() == head


@pytest.mark.parametrize(("entries", "here"), [(40, True), (39, False), (0, False)])
def test_as_much_is_small_as_the_configuration_says(lake: Deployment, entries: int, here: bool) -> None:
    told = config.current()
    other = replace(told, validator=replace(told.validator, small_check_entries=entries))
    head = lake.lake.commit(files={"f000": b"changed"})
    lake.arrive()
    with mock.patch.object(config, "current", lambda: other):
        lake.work()
    assert lake.head() == head
    assert (lake.checked == []) is here


def test_content_is_read_by_spark(lake: Deployment) -> None:
    Mirror.objects.update(depth="content")
    Coverage.objects.update(depth="content")
    head = lake.lake.commit(files={"f000": b"changed"})
    lake.arrive()
    lake.work()
    assert lake.head() == head
    assert len(lake.checked) == 1
