"""What goes with bytes between stores in memory, when something fails or comes in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from core.errors import Archived, Denied, Invalid, LakeMirrorError, RemoteFailure, Unreachable
from core.travelling.describing import LOCK_HOLD, LOCK_MODE, LOCK_UNTIL, timestamp
from db import clock
from replication.engine import settling
from replication.models import Rule
from replication.transitions import touching
from tests.replication.world import HOME, World, refusing

pytestmark = pytest.mark.django_db
OUT = ("out", "a")


def told(w: World, *keys: str) -> None:
    touching.objects_changed(HOME, {("src", key) for key in keys})


def coded(error: LakeMirrorError, code: str) -> LakeMirrorError:
    error.store_code = code
    return error


def codes(w: World) -> list[tuple[str, str]]:
    return [(row.status, row.code) for row in w.rows()]


def retained(days: float, mode: str = "GOVERNANCE") -> dict[str, str]:
    return {LOCK_MODE: mode, LOCK_UNTIL: timestamp(clock.now() + timedelta(days=days))}


@pytest.fixture
def locked(w: World) -> World:
    """An object `a` with tags and a retention, at both sides of a rule."""
    w.home.locking, w.away.locking = {"src"}, {"out"}
    w.put("a", tags={"t": "1"})
    w.home.locks["src", "a"] = retained(10)
    w.rule(metadata="all")
    w.work()
    assert w.away.locks[OUT] == w.home.locks["src", "a"] and w.away.tags[OUT] == {"t": "1"}
    return w


def retag(w: World, **tags: str) -> None:
    w.home.tags["src", "a"] = tags
    told(w, "a")
    w.work(1)


def test_tags_that_a_store_does_not_keep_with_what_is_written_are_written_by_themselves(w: World) -> None:
    w.away.drops_tags = True
    for key in ("a", "b"):
        w.put(key, tags={"t": "1"})
    w.put("none")
    w.rule(metadata="all")
    w.work()
    assert w.away.tags == {("out", "a"): {"t": "1"}, ("out", "b"): {"t": "1"}, ("out", "none"): {}}
    assert w.rows() == [] and w.away.asked["PUT tagging"] == 2


def test_a_store_that_keeps_tags_is_asked_for_one_of_them(w: World) -> None:
    for number in range(20):
        w.put(f"k{number:02}", tags={"t": "1"})
    w.rule(metadata="all")
    w.scan()
    before = w.away.asked["HEAD"]
    w.copy()
    assert w.away.asked["PUT tagging"] == 0 and w.link().sent_objects == 20
    assert w.away.asked["HEAD"] - before <= 16  # as many as are under way at once


def test_a_lock_that_a_change_of_tags_takes_away_is_set_again(locked: World) -> None:
    locked.away.loses_locks = True
    written = len(locked.away.written)
    retag(locked, t="2")
    assert locked.away.tags[OUT] == {"t": "2"} and len(locked.away.written) == written
    assert locked.away.locks[OUT] == locked.home.locks["src", "a"] and locked.rows() == []


def test_a_lock_that_can_not_be_set_again_is_told_and_mended_by_the_next_try(locked: World) -> None:
    locked.away.loses_locks = True
    locked.away.before = refusing(Denied("403"), "PUT retention")
    retag(locked, t="2")
    assert codes(locked) == [("failed", "DstPutLockNotPermitted")] or codes(locked) == [
        ("pending", "DstPutLockNotPermitted")
    ]
    locked.away.before = lambda *_: None
    locked.later(90_000)
    locked.work(1)
    assert locked.rows() == [] and locked.away.locks[OUT] == locked.home.locks["src", "a"]


def test_a_worker_that_is_lost_between_tags_and_lock_leaves_it_to_the_next_one(locked: World) -> None:
    def kill(method: str, bucket: str, key: str) -> None:
        if method == "PUT tagging":
            raise RemoteFailure("the answer was lost")

    locked.away.loses_locks = True
    locked.away.after = kill
    retag(locked, t="2")
    assert OUT not in locked.away.locks and locked.names() == ["a"]
    locked.away.after = lambda *_: None
    locked.later(90_000)
    locked.work(1)
    assert locked.rows() == [] and locked.away.locks[OUT] == locked.home.locks["src", "a"]


def test_tags_that_change_while_the_object_is_copied_are_not_lost(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    w.put("a", tags={"t": "1"})
    w.rule(metadata="all")
    w.scan()
    real = settling.settle

    def settle(*args: Any) -> Any:
        monkeypatch.setattr(settling, "settle", real)
        w.home.tags["src", "a"] = {"t": "2"}
        told(w, "a")
        w.scan()
        return real(*args)

    monkeypatch.setattr(settling, "settle", settle)
    w.copy()
    assert w.away.tags[OUT] == {"t": "1"} and w.names() == ["a"]
    w.copy()
    assert w.away.tags[OUT] == {"t": "2"} and w.rows() == []


def test_a_shorter_retention_in_compliance_is_left_and_told(locked: World) -> None:
    locked.away.locks[OUT] = longer = retained(20, "COMPLIANCE")
    told(locked, "a")
    locked.work(1)
    assert codes(locked) == [("skipped", "Locked")] and locked.away.locks[OUT] == longer


def test_a_retention_in_governance_is_shortened(locked: World) -> None:
    locked.home.locks["src", "a"] = retained(5)
    told(locked, "a")
    locked.work(1)
    assert locked.away.locks[OUT] == locked.home.locks["src", "a"] and locked.rows() == []


def test_a_hold_that_only_the_target_has_stays(locked: World) -> None:
    locked.away.locks[OUT][LOCK_HOLD] = "ON"
    retag(locked, t="2")
    assert locked.away.locks[OUT][LOCK_HOLD] == "ON" and locked.rows() == []


def test_a_target_without_locks_refuses_what_is_locked(w: World) -> None:
    w.home.locking = {"src"}
    for number in range(25):
        w.put(f"k{number:02}")
        w.home.locks["src", f"k{number:02}"] = {LOCK_HOLD: "ON"}
    w.rule(metadata="all")
    w.work(1)
    link = w.link()
    assert (link.health, link.health_code) == ("blocked", "DstBucketObjectLockConfigMissing") and w.there() == {}
    Rule.objects.update(metadata="content")
    w.later(600)
    w.work(2)
    assert len(w.there()) == 25 and w.link().health == "up"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (coded(Denied("400"), "KMS.DisabledException"), "DstKmsKeyInvalidState"),
        (coded(Denied("400"), "KMS.NotFoundException"), "DstKmsKeyNotFound"),
        (coded(Denied("404"), "kms:KeyNotFound"), "DstKmsKeyNotFound"),
    ],
)
def test_a_key_of_kms_that_is_out_of_order_blocks(w: World, error: LakeMirrorError, code: str) -> None:
    for number in range(25):
        w.put(f"k{number:02}")
    w.rule(metadata="all")
    w.away.before = refusing(error, "PUT")
    w.work(1)
    assert (w.link().health, w.link().health_code) == ("blocked", code)


@pytest.mark.parametrize("word", ["MetadataTooLarge", "InvalidTag", "431", "InvalidArgument", "NotImplemented"])
def test_metadata_that_a_store_refuses_fails_one_object_alone(w: World, word: str) -> None:
    for key in ("a", "b"):
        w.put(key)
    w.rule(metadata="all")
    w.away.before = refusing(coded(Invalid("400"), word), "PUT", keys="a")
    w.work(1)
    assert codes(w) == [("failed", "MetadataRefused")] and w.names() == ["a"] and list(w.there()) == ["b"]


def test_tags_that_may_not_be_read_or_written_are_told_by_their_right(w: World) -> None:
    w.put("a", tags={"t": "1"})
    w.rule(metadata="all")
    w.home.before = refusing(Denied("403"), "GET tagging")
    w.work(1)
    assert codes(w)[0][1] == "SrcGetTaggingNotPermitted" and w.there() == {}
    w.home.before = lambda *_: None
    w.later(90_000)
    w.work(1)
    assert w.away.tags[OUT] == {"t": "1"}
    w.away.before = refusing(Denied("403"), "PUT tagging")
    retag(w, t="2")
    assert codes(w)[0][1] == "DstPutTaggingNotPermitted"


def test_an_archived_object_is_copied_once_an_event_tells_that_it_is_restored(w: World) -> None:
    w.put("a")
    w.rule(metadata="all")
    w.home.before = refusing(Archived("403 InvalidObjectState"), "GET")
    w.work(1)
    assert codes(w) == [("skipped", "SourceArchived")]
    w.home.before = lambda *_: None
    w.home.told = {"x-amz-restore": 'ongoing-request="false"'}
    told(w, "a")
    w.work(1)
    assert w.there() == {"a": b"data"} and w.rows() == []


def test_a_sweep_goes_on_where_it_was_and_ends(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        w.put(f"k{number}", tags={"t": "1"})
    w.rule(metadata="all", sweep_heads_per_second=1000)
    w.work()
    first = Rule.objects.get().swept_at
    assert first is not None
    for number in range(7):
        w.home.tags["src", f"k{number}"] = {"t": "2"}
    monkeypatch.setattr("replication.engine.sweeping.AT_ONCE", 1)
    w.home.before = _silent_from("k4")
    w.later(600)
    w.work(2)
    assert bytes(Rule.objects.get().swept_to or b"") == b"k3"
    w.home.before = lambda *_: None
    w.work(3)
    rule = Rule.objects.get()
    assert rule.swept_to is None and rule.swept_at is not None and rule.swept_at > first
    assert {w.away.tags["out", f"k{number}"]["t"] for number in range(7)} == {"2"}


def _silent_from(first: str) -> Callable[[str, str, str], None]:
    def before(method: str, bucket: str, key: str) -> None:
        if method == "HEAD" and key >= first:
            raise Unreachable("nobody answers")

    return before
