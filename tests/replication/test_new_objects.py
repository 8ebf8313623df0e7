"""What was never at its target is brought without asking first: only where that can't write anything twice, or over
what somebody else has put there since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.errors import Invalid, RemoteFailure, Unreachable
from db import clock
from replication.engine import settling
from replication.models import Link, OpenObject
from replication.transitions import touching
from tests.replication.world import HOME, World, refusing

pytestmark = pytest.mark.django_db


def heads(w: World, run: Callable[[], object]) -> int:
    """How many HEADs the target gets meanwhile."""
    before = w.away.asked["HEAD"]
    run()
    return w.away.asked["HEAD"] - before


@pytest.fixture
def noted(w: World) -> World:
    """Three objects are noted."""
    for key in ("a", "b", "empty"):
        w.put(key, b"" if key == "empty" else b"data")
    w.rule()
    w.scan()
    return w


def test_a_new_object_costs_no_look_at_the_target(noted: World) -> None:
    assert heads(noted, noted.copy) == 0
    assert noted.there() == noted.home.buckets["src"] and noted.rows() == []


def test_one_that_an_event_named_costs_one_look_at_the_target_in_all(w: World) -> None:
    w.rule()
    w.work(1)
    w.put("a")
    touching.objects_changed(HOME, {("src", "a")})
    assert heads(w, lambda: w.work(1)) == 1
    assert w.there() == {"a": b"data"}


def test_what_is_there_by_then_is_looked_at_and_not_written_again(noted: World) -> None:
    noted.away.buckets["out"]["a"] = b"data"
    noted.away.buckets["out"]["b"] = b"other"
    assert heads(noted, noted.copy) == 2
    assert [(key, data) for _, key, data in noted.away.written] == [("b", b"data"), ("empty", b"")]
    assert noted.rows() == []


def test_a_store_that_knows_no_condition_is_asked_first(noted: World) -> None:
    real = noted.away._put

    def put(bucket: Any, key: str, given: Any, body: bytes) -> Any:
        if "if-none-match" in given:
            raise Invalid("501 NotImplemented")
        return real(bucket, key, given, body)

    noted.away._put = put  # type: ignore[method-assign]
    noted.copy()
    assert noted.there() == noted.home.buckets["src"] and noted.rows() == []
    assert len(noted.away.written) == 3


@pytest.mark.parametrize("conditional", [True, False])
def test_what_was_tried_before_is_looked_at_first(noted: World, *, conditional: bool) -> None:
    """Of a write that got no answer nobody knows whether it was carried out."""
    noted.away.conditional = conditional

    def lost(method: str, bucket: str, key: str) -> None:
        if method == "PUT":
            raise RemoteFailure("500")

    noted.away.after = lost
    noted.copy()
    assert {row.absent for row in noted.rows()} <= {False}
    noted.away.after = lambda method, bucket, key: None
    written = len(noted.away.written)
    noted.later(100)
    noted.copy()
    assert noted.rows() == [] and len(noted.away.written) == written


class Killed(BaseException):
    """The worker is gone."""


@pytest.mark.parametrize("conditional", [True, False])
def test_after_a_lost_worker_everything_that_was_noted_is_looked_at_first(
    noted: World, monkeypatch: pytest.MonkeyPatch, *, conditional: bool
) -> None:
    noted.away.conditional = conditional
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(settling, "settle", lambda *_: (_ for _ in ()).throw(Killed()))
        noted.copy()
    written = len(noted.away.written)
    assert written == 3 and len(noted.rows()) == 3
    noted.later(1000)
    # Also where the round that comes next can't do any of it.
    noted.away.before = refusing(Unreachable("?"), "HEAD")
    noted.copy()
    assert len(noted.rows()) == 3
    noted.away.before = lambda method, bucket, key: None
    noted.put("later")
    OpenObject.objects.update(next_try=clock.now())
    noted.later(1000)
    noted.work(4)
    assert noted.rows() == [] and len(noted.away.written) == written + 1
    assert Link.objects.get().asks_up_to > 0


def test_what_was_open_while_the_target_was_listed_counts_for_tried(w: World) -> None:
    w.put("a")
    w.rule()
    w.scan()
    OpenObject.objects.update(absent=False)
    w.put("b")
    w.later(600)
    w.scan()
    assert [(row.name, row.absent) for row in w.rows()] == [("a", False), ("b", False)]
