"""What a rule brings to its targets, and what it says of what it did not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.errors import Archived, Denied, Full, Invalid, RemoteFailure
from db import clock
from jobs.models import Duty
from replication.engine import settling
from replication.models import OpenObject, Rule
from tests.replication.world import AWAY, FAR, HOME, World, refusing, silent

pytestmark = pytest.mark.django_db

KEYS = ["a", "a/", "a/b", "é/ü", "x/../y", " ", "\u00ff", "\U0001f600", "k" * 1024]


def test_everything_is_at_every_target_and_nothing_is_written_twice(w: World) -> None:
    for key in KEYS:
        w.put(key, key.encode())
    w.put("empty", b"")
    rule = w.rule((AWAY, "s3://out"), (FAR, "s3://two"), (HOME, "s3://two"))
    w.work()
    for region, bucket in ((AWAY, "out"), (FAR, "two"), (HOME, "two")):
        assert w.there(region, bucket) == w.home.buckets["src"]
    assert [w.rows(number) for number in (1, 2, 3)] == [[], [], []]
    link = w.link()
    assert (link.sent_objects, link.sent_bytes) == (10, sum(len(key.encode()) for key in KEYS))
    assert link.oldest_at is None and link.pace_objects > 0
    rule.refresh_from_db()
    assert (rule.cycle, rule.full_objects, rule.full_bytes) == (1, 10, link.sent_bytes)
    written = [len(store.written) for store in w.stores.values()]
    w.later(3600)
    w.work()
    assert [len(store.written) for store in w.stores.values()] == written
    rule.refresh_from_db()
    assert rule.cycle > 1
    w.check_counts()


def test_places_with_prefixes_keep_apart_from_their_neighbours(w: World) -> None:
    for key in ("p/a", "p/", "p", "pp/b", "q/p/c"):
        w.put(key)
    w.away.buckets["out"] = {"t/foreign": b"theirs", "other": b"theirs"}
    w.rule((AWAY, "s3://out/t"), uri="s3://src/p")
    w.work()
    assert w.there() == {"t/foreign": b"theirs", "other": b"theirs", "t/a": b"data"}


def test_what_is_gone_at_the_source_stays_at_the_target(w: World) -> None:
    w.put("a")
    w.put("b")
    w.rule()
    w.work()
    del w.home.buckets["src"]["a"]
    w.later(3600)
    w.work()
    assert sorted(w.there()) == ["a", "b"]
    assert w.away.asked["DELETE"] == w.away.asked["DELETES"] == 0


def test_what_is_overwritten_is_copied_anew(w: World) -> None:
    w.put("a", b"one")
    w.rule()
    w.work()
    w.put("a", b"two")
    w.later(3600)
    w.work()
    assert w.there() == {"a": b"two"}


def test_an_object_that_changes_while_it_is_read_is_copied_as_it_is_then(w: World) -> None:
    w.put("a", b"one")
    w.rule()
    w.scan()

    def overwrite(method: str, bucket: str, key: str) -> None:
        if method == "GET" and key == "a":
            w.home.buckets["src"]["a"] = b"another"

    w.home.before = overwrite
    w.copy()
    assert w.there() == {"a": b"another"}
    assert w.rows() == []


def test_an_object_that_never_stops_changing_has_its_turn_later(w: World) -> None:
    w.put("a", b"0")
    w.rule()
    w.scan()

    def overwrite(method: str, bucket: str, key: str) -> None:
        if method == "GET" and key == "a":
            w.home.buckets["src"]["a"] += b"+"

    w.home.before = overwrite
    w.copy()
    (row,) = w.rows()
    assert (row.status, row.code, row.attempts) == ("pending", "SourceChanged", 0)
    assert w.there() == {}
    w.home.before = lambda method, bucket, key: None
    w.later(2)
    w.copy()
    assert w.there() == {"a": w.home.buckets["src"]["a"]}


def test_what_lakemirror_keeps_there_is_not_copied(w: World) -> None:
    for key in ("_lakemirror/mirror.json", "ns/_lakemirror/x", "_lakemirror_probe_12", "data"):
        w.put(key)
    w.rule()
    w.work()
    assert sorted(w.there()) == ["data"]


def test_a_key_that_would_be_too_long_is_skipped_and_told(w: World) -> None:
    w.put("k" * 1024)
    w.rule((AWAY, "s3://out/longer"))
    w.work()
    (row,) = w.rows()
    assert (row.status, row.code) == ("skipped", "KeyTooLong")
    assert w.link().health == "up"
    w.check_counts()


def test_an_archived_object_is_skipped_until_it_is_restored(w: World) -> None:
    w.put("a")
    w.rule()
    w.home.before = refusing(Archived("in GLACIER"), "GET")
    w.work()
    (row,) = w.rows()
    assert (row.status, row.code, row.detail) == ("skipped", "SourceArchived", "in GLACIER")
    assert row.next_try > clock.now() + timedelta(hours=23)
    w.home.before = lambda method, bucket, key: None
    w.later(86_400)
    w.work()
    assert w.there() == {"a": b"data"} and w.rows() == []


def test_an_object_under_a_customers_key_is_skipped(w: World) -> None:
    w.put("a")
    w.rule()
    w.home.before = refusing(Invalid("400 to head"), "GET", "HEAD", keys="a")
    w.work()
    (row,) = w.rows()
    assert (row.status, row.code) == ("skipped", "CustomerKey")


def test_only_existing_objects(w: World) -> None:
    w.put("old")
    w.later(10)
    w.rule(new=False)
    w.later(10)
    w.put("new")
    w.work()
    assert sorted(w.there()) == ["old"]


def test_only_new_objects(w: World) -> None:
    w.put("old")
    w.later(10)
    w.rule(existing=False)
    w.later(10)
    w.put("new")
    w.work()
    assert sorted(w.there()) == ["new"]


def test_one_key_that_the_target_refuses_fails_alone_and_is_tried_again_once_a_day(w: World) -> None:
    for key in ("bad", "good"):
        w.put(key)
    w.rule()
    w.away.before = refusing(Invalid("MetadataTooLarge"), "PUT", keys="bad")
    w.work()
    (row,) = w.rows()
    assert (row.name, row.status, row.code, row.attempts) == ("bad", "failed", "TargetRefused", 1)
    assert row.next_try > clock.now() + timedelta(hours=23)
    assert w.there() == {"good": b"data"}
    w.check_counts()
    w.away.before = lambda method, bucket, key: None
    w.later(600)
    w.work()
    assert w.names() == ["bad"]
    w.later(86_400)
    w.work()
    assert w.rows() == [] and sorted(w.there()) == ["bad", "good"]
    w.check_counts()


def test_a_failed_key_that_changes_at_the_source_is_tried_at_once(w: World) -> None:
    w.put("a", b"one")
    w.rule()
    w.away.before = refusing(Invalid("no"), "PUT")
    w.work()
    assert w.names(status="failed") == ["a"]
    w.away.before = lambda method, bucket, key: None
    w.put("a", b"other")
    w.later(600)
    w.work()
    assert w.there() == {"a": b"other"} and w.rows() == []


def test_a_store_that_fails_is_tried_again_after_growing_pauses(w: World) -> None:
    w.put("a")
    w.rule()
    w.away.before = refusing(RemoteFailure("500"), "PUT")
    w.scan()
    pauses = []
    for _ in range(4):
        w.copy()
        (row,) = w.rows()
        assert (row.status, row.code) == ("pending", "TargetFailed")
        pauses.append((row.next_try - clock.now()).total_seconds())
        w.later(pauses[-1] + 0.1)
    assert row.attempts == 4
    for pause, longest in zip(pauses, (1, 4, 16, 64), strict=True):
        assert longest / 2 - 0.5 <= pause <= longest
    assert w.link().health == "up" and w.link().retries == 4
    w.check_counts()


def test_twenty_refusals_block_the_link_and_burn_no_attempt(w: World) -> None:
    for number in range(60):
        w.put(f"k{number:02}")
    w.rule()
    w.away.before = refusing(Denied("403 to put"), "PUT")
    w.work(1)
    link = w.link()
    assert (link.health, link.health_code, link.health_message) == ("blocked", "DstPutObjectNotPermitted", "403 to put")
    assert {(row.status, row.attempts) for row in w.rows()} == {("pending", 0)}
    assert len(w.rows()) == 60
    w.check_counts()
    asked = w.away.asked["PUT"]
    w.copy()
    assert w.away.asked["PUT"] == asked
    w.later(61)
    w.copy()
    assert w.away.asked["PUT"] == asked + 1
    assert {(row.status, row.attempts) for row in w.rows()} == {("pending", 0)}
    w.away.before = lambda method, bucket, key: None
    w.later(61)
    w.work(2)
    assert w.link().health == "up" and w.link().health_code == ""
    assert len(w.there()) == 60 and w.rows() == []


def test_a_full_store_blocks(w: World) -> None:
    for number in range(30):
        w.put(f"k{number:02}")
    w.rule()
    w.away.before = refusing(Full("507"), "PUT")
    w.work(1)
    assert (w.link().health, w.link().health_code) == ("blocked", "TargetFull")


def test_a_bucket_that_is_not_there_blocks(w: World) -> None:
    for number in range(30):
        w.put(f"k{number:02}")
    w.rule()
    w.scan()
    del w.away.buckets["out"]
    w.copy()
    assert (w.link().health, w.link().health_code) == ("blocked", "DstBucketNotFound")


def test_one_target_down_keeps_the_others_going(w: World) -> None:
    for number in range(10):
        w.put(f"k{number}")
    rule = w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    w.away.before = silent()
    w.work(3)
    assert len(w.there(FAR, "two")) == 10
    link = w.link()
    assert (link.health, link.health_code) == ("down", "TargetDown")
    assert rule.shards.filter(dirty=True).exists()
    w.put("k10")
    w.later(600)
    w.work(2)
    assert len(w.there(FAR, "two")) == 11
    w.away.before = lambda method, bucket, key: None
    w.later(60)
    w.work(3)
    assert w.there() == w.home.buckets["src"]
    assert w.link().health == "up" and not rule.shards.filter(dirty=True).exists()
    w.check_counts()


def test_a_target_that_goes_down_with_work_open_counts_no_failures_and_goes_on_at_once(w: World) -> None:
    for number in range(40):
        w.put(f"k{number:02}")
    w.rule()
    w.scan()
    w.away.before = silent()
    w.copy()
    assert w.link().health == "down"
    assert sum(row.attempts for row in w.rows()) <= 16 * 2
    assert {row.status for row in w.rows()} == {"pending"}
    told = w.copy()
    assert told[0].startswith("down")
    w.away.before = lambda method, bucket, key: None
    w.later(31)
    w.copy()
    assert w.rows() == [] and len(w.there()) == 40
    w.check_counts()


def test_a_source_that_does_not_answer_is_told_and_nothing_is_lost(w: World) -> None:
    w.put("a")
    rule = w.rule()
    w.scan()
    w.home.before = silent()
    w.later(600)
    w.work(2)
    rule.refresh_from_db()
    assert "nobody answers" in rule.error and rule.error_since is not None
    w.copy()
    w.copy()
    assert (w.link().health, w.link().health_code) == ("down", "SourceDown")
    assert w.names(status="pending") == ["a"]
    w.home.before = lambda method, bucket, key: None
    w.later(600)
    w.work()
    rule.refresh_from_db()
    assert (rule.error, rule.error_since) == ("", None)
    assert w.there() == {"a": b"data"}


def test_an_object_that_went_before_its_turn_goes_from_the_ledger(w: World) -> None:
    w.put("a")
    w.put("b")
    w.rule()
    w.scan()
    del w.home.buckets["src"]["a"]
    w.copy()
    assert w.rows() == [] and sorted(w.there()) == ["b"]


def test_a_source_bucket_that_is_gone_says_nothing_of_its_objects(w: World) -> None:
    w.put("a")
    w.rule()
    w.scan()
    kept = w.home.buckets.pop("src")
    w.copy()
    assert [(row.status, row.code) for row in w.rows()] == [("failed", "SrcBucketNotFound")]
    w.home.buckets["src"] = kept


def test_a_region_that_is_not_configured_any_more_blocks_its_link_alone(w: World) -> None:
    w.put("a")
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    link = w.link(2)
    link.region = "atlantis"
    link.save()
    real = w.stores
    w.stores = type("Known", (dict,), {"__missing__": _unknown})(real)
    w.work(2)
    assert w.there() == {"a": b"data"}
    assert (w.link(2).health, w.link(2).health_code) == ("blocked", "NotConfigured")


def _unknown(stores: dict[str, object], region: str) -> None:
    raise Invalid(f"unknown region '{region}'")


def test_what_is_paused_begins_nothing_and_goes_on_noting(w: World) -> None:
    w.put("a")
    rule = w.rule()
    link = w.link()
    link.paused = True
    link.save()
    w.work()
    assert w.names() == ["a"] and w.there() == {}
    link.paused = False
    link.save()
    Rule.objects.filter(pk=rule.pk).update(paused=True)
    told = w.work()
    assert set(told) == {"paused"} and w.there() == {}
    Rule.objects.filter(pk=rule.pk).update(paused=False)
    w.work()
    assert w.there() == {"a": b"data"}


def test_a_pause_reaches_what_is_under_way(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.engine.round.TOLD_SECONDS", 0.0)
    monkeypatch.setattr("replication.engine.round.CLAIMED", 4)
    for number in range(40):
        w.put(f"k{number:02}")
    w.rule()
    w.scan()

    real = settling.settle

    def settle(*args: object) -> object:
        told = real(*args)  # type: ignore[arg-type]
        Rule.objects.filter(name="r").update(paused=True)
        return told

    monkeypatch.setattr(settling, "settle", settle)
    w.copy()
    assert 0 < len(w.there()) <= 8
    assert len(w.rows()) == 40 - len(w.there())
    w.check_counts()


def test_limits_that_change_reach_what_is_under_way(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.engine.round.TOLD_SECONDS", 0.0)
    paced: list[tuple[float, float]] = []
    monkeypatch.setattr("adapters.s3.mover.Mover.pace", lambda self, size, number: paced.append((size, number)))
    w.put("a")
    w.rule()
    w.scan()
    link = w.link()
    link.bytes_per_second, link.objects_per_second = 7_000_000, 40
    link.save()
    w.copy()
    assert paced[-1] == (7_000_000.0, 40.0)


def test_more_than_the_ledger_takes_is_marked_and_found_again(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.transitions.ledger.MOST_OPEN", 4)
    for number in range(25):
        w.put(f"k{number:02}")
    rule = w.rule()
    w.scan()
    assert len(w.rows()) == 4 and w.link().overflowed
    assert rule.shards.get().dirty
    for _ in range(12):
        w.copy()
        w.scan()
        assert len(w.rows()) <= 4
    assert w.there() == w.home.buckets["src"]
    w.later(600)
    w.work(2)
    assert not w.link().overflowed and not rule.shards.get().dirty
    w.check_counts()


def test_long_places_are_cut_and_each_piece_is_looked_through(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.transitions.shards.SPLIT_AT", 5)
    for number in range(23):
        w.put(f"k{number:02}")
    rule = w.rule()
    w.work(2)
    assert rule.shards.count() > 2
    ends = list(rule.shards.order_by("low").values_list("low", "high"))
    assert bytes(ends[0][0]) == b"" and ends[-1][1] is None
    assert [bytes(high) for _, high in ends[:-1]] == [bytes(low) for low, _ in ends[1:]]
    assert w.there() == w.home.buckets["src"]
    rule.refresh_from_db()
    assert (rule.cycle, rule.full_objects) == (1, 23)
    w.put("k00+")
    w.put("zz")
    w.later(600)
    w.work(2)
    assert w.there() == w.home.buckets["src"]


def test_deleting_a_rule_takes_its_rows_and_duties_and_no_object(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.engine.removal.BATCH", 3)
    for number in range(10):
        w.put(f"k{number}")
    rule = w.rule()
    w.rule((FAR, "s3://two"), name="other")
    w.away.before = refusing(Invalid("no"), "PUT")
    w.work(1)
    assert len(w.rows()) == 10
    Rule.objects.filter(pk=rule.pk).update(deleting=True)
    w.away.before = silent()
    w.work(2)
    assert list(Rule.objects.values_list("name", flat=True)) == ["other"]
    assert not OpenObject.objects.exists()
    assert Duty.objects.filter(kind__startswith="replication-").count() == 2
    assert len(w.there(FAR, "two")) == 10


def test_a_target_whose_etags_prove_nothing_is_told_and_not_written_each_time(w: World) -> None:
    w.put("a")
    w.rule()
    w.away.etag_of = lambda data: f"0x{len(data)}"
    w.work()
    (row,) = w.rows()
    assert (row.status, row.code) == ("failed", "PartsDiffer") and "0x4" in row.detail
    assert w.there() == {"a": b"data"}
    w.later(3600)
    w.work()
    assert len(w.away.written) == 1


def test_where_encryption_changes_etags_the_size_decides(w: World) -> None:
    w.put("a")
    w.later(2)
    w.rule()
    w.away.etag_of = lambda data: "f" * 32
    w.away.told = {"x-amz-server-side-encryption": "aws:kms"}
    w.work()
    w.later(3600)
    w.work()
    assert w.rows() == [] and len(w.away.written) == 1
    w.put("a", b"longer")
    w.later(3600)
    w.work()
    assert w.there() == {"a": b"longer"} and w.rows() == []


def test_many_objects_that_are_refused_alone_keep_the_others_for_a_while_and_then_fail_alone(w: World) -> None:
    for number in range(25):
        w.put(f"a-secret/{number:02}")
    w.rule()
    w.away.before = refusing(Denied("403"), "PUT", keys="a-secret/")
    w.work(1)
    assert w.link().health == "blocked"
    for number in range(30):
        w.put(f"open/{number:02}")
    w.later(600)
    for _ in range(4):
        w.work(1)
        w.later(61)
    assert sorted(w.there()) == [f"open/{number:02}" for number in range(30)]
    assert w.link().health == "up"
    assert {(row.status, row.code, row.attempts) for row in w.rows()} == {("failed", "DstPutObjectNotPermitted", 1)}
    w.check_counts()


def test_what_a_changed_rule_does_not_want_any_more_goes_from_the_ledger(w: World) -> None:
    w.put("old")
    w.later(10)
    w.rule()
    w.later(10)
    w.put("new")
    w.scan()
    assert w.names() == ["new", "old"]
    Rule.objects.update(existing=False)
    w.copy()
    assert sorted(w.there()) == ["new"] and w.rows() == []
    w.check_counts()


def test_a_target_that_may_not_be_listed_is_told_and_looked_at_again(w: World) -> None:
    w.put("a")
    rule = w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    w.away.before = refusing(Denied("403 to list"), "LIST")
    w.work()
    assert w.link().listing_error == "403 to list" and w.link(2).listing_error == ""
    assert rule.shards.get().dirty and w.rows() == []
    assert w.there(FAR, "two") == {"a": b"data"}
    w.away.before = lambda method, bucket, key: None
    w.later(600)
    w.work()
    assert w.link().listing_error == "" and not rule.shards.get().dirty
    assert w.there() == {"a": b"data"}
