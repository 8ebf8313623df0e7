"""What happens when two situations meet: each of these once went wrong."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from core.access.documents import allow, policy_document
from core.errors import Conflict, RemoteFailure, Throttled
from core.mirroring.states import State
from core.replicating.merging import Listed, Listing
from db import clock
from mirrors.services.placement import check_still_free
from rbac import services as rbac
from rbac.models import User
from replication.engine import removal, touched
from replication.models import Link, OpenObject, Rule, Touched
from replication.services import places, rules
from replication.status.rules import rule_reading
from replication.transitions import touching
from tests.api import Api
from tests.cast import person
from tests.mirrors.harness import Deployment
from tests.replication.factories import a_rule
from tests.replication.test_api import BODY, RULES
from tests.replication.world import AWAY, HOME, World, refusing

pytestmark = pytest.mark.django_db


def state(w: World, number: int = 1) -> State:
    """What the pages say of a link."""
    reading = rule_reading(Rule.objects.get(name="r"), clock.now())
    return next(link.told.state for link in reading.links if link.link.number == number)


def test_a_link_of_which_more_lacks_than_is_kept_is_not_up_to_date(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.transitions.ledger.MOST_OPEN", 2)
    for number in range(9):
        w.put(f"k{number}")
    w.rule()
    for _ in range(8):
        w.scan()
        w.copy()
        if w.there() != w.home.buckets["src"]:
            assert state(w) is State.SYNCING
    assert w.there() == w.home.buckets["src"]
    w.work(2)
    assert state(w) is State.UP_TO_DATE and not w.link().overflowed


def test_an_object_of_the_same_size_replaces_an_older_one_where_encryption_changes_etags(w: World) -> None:
    w.away.etag_of = lambda data: "f" * 32
    w.away.told = {"x-amz-server-side-encryption": "aws:kms"}
    w.put("a", b"one")
    w.rule()
    w.work()
    assert w.there() == {"a": b"one"}
    w.later(100)
    w.put("a", b"two")
    w.later(3600)
    w.work()
    assert w.there() == {"a": b"two"}
    w.later(3600)
    w.work()
    assert len(w.away.written) == 2 and w.rows() == []


def test_an_object_that_comes_in_the_second_of_its_rule_is_copied(w: World) -> None:
    made = datetime.fromisoformat("2026-01-01T10:00:00.700000+00:00")
    w.home.buckets["src"]["a"] = b"data"
    w.home.modified["src", "a"] = made.replace(microsecond=0)  # of 10:00:00.9, as stores tell it
    w.rule(created_at=made, existing=False)
    w.work()
    assert w.there() == {"a": b"data"}


def test_a_key_that_its_store_always_fails_at_holds_up_no_other(w: World) -> None:
    w.put("odd")
    w.rule()
    w.home.before = refusing(RemoteFailure("500"), "HEAD", "GET", keys="odd")
    touching.objects_changed(HOME, [("src", "odd")])
    w.put("other")
    w.work()
    assert w.there() == {"other": b"data"}
    assert w.names() == ["odd"] and not Touched.objects.exists()


def test_a_change_that_comes_while_named_keys_are_looked_at_holds_for_the_look_that_follows(w: World) -> None:
    w.put("old")
    w.later(10)
    rule = w.rule(existing=False)
    w.put("new")
    touching.objects_changed(HOME, [("src", "new")])

    def change(*looked: Any) -> None:
        look(*looked)
        Rule.objects.filter(pk=rule.pk).update(existing=True, scan_wanted=True)

    look = touched.look
    with mock.patch("replication.engine.touched.look", change):
        w.scan()
    w.work(1)
    assert sorted(w.there()) == ["new", "old"]


def test_what_a_rule_wants_from_now_on_lacks_until_all_is_compared(w: World, owner: User) -> None:
    w.put("old")
    w.later(10)
    w.rule(existing=False)
    w.work()
    assert state(w) is State.UP_TO_DATE
    rules.rule_update(actor=owner, name="r", changes={"existing": True})
    assert state(w) is State.SYNCING
    w.work()
    assert state(w) is State.UP_TO_DATE and sorted(w.there()) == ["old"]


def test_keys_of_events_beyond_what_is_kept_lack_until_all_is_compared(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replication.transitions.touching.MOST_TOUCHED", 0)
    w.rule()
    w.work()
    touching.objects_changed(HOME, [("src", "a")])
    touching.objects_changed(HOME, [("src", "b")])
    w.put("b")
    w.scan()
    assert state(w) is State.SYNCING
    w.work(3)
    assert state(w) is State.UP_TO_DATE and sorted(w.there()) == ["b"]


@pytest.mark.parametrize("kind", ["down", "blocked"])
def test_a_clock_that_was_ahead_keeps_no_link_from_being_tried(w: World, kind: str) -> None:
    w.put("a")
    w.rule()
    w.scan()
    Link.objects.update(
        health=kind, health_since=clock.now(), health_code="TargetDown", probe_at=clock.now() + timedelta(days=1)
    )
    w.copy()
    w.copy()
    assert w.there() == {"a": b"data"}


def test_a_clock_that_was_ahead_keeps_no_writes_waiting(w: World) -> None:
    w.put("a")
    w.rule()
    w.scan()
    Link.objects.update(writes_until=clock.now() + timedelta(days=1))
    w.copy()
    assert w.there() == {}
    w.later(110)
    w.copy()
    assert w.there() == {"a": b"data"}


def test_a_clock_that_was_ahead_keeps_no_comparison_from_beginning_nor_ending(w: World) -> None:
    rule = w.rule()
    w.work()
    ahead = clock.now() + timedelta(days=1)
    Rule.objects.update(full_began_at=ahead)
    w.put("a")
    w.work()
    assert w.there() == {"a": b"data"}
    rule.refresh_from_db()
    cycle = rule.cycle
    Rule.objects.update(cycle_began_at=ahead)
    rule.shards.update(began_at=ahead, due_at=ahead)
    w.put("b")
    w.work(2)
    rule.refresh_from_db()
    assert sorted(w.there()) == ["a", "b"]
    assert rule.cycle == cycle + 1 and rule.cycle_began_at is None


def test_a_row_of_a_clock_that_was_ahead_is_due_with_the_next_comparison(w: World) -> None:
    w.put("a")
    w.rule()
    w.scan()
    ahead = clock.now() + timedelta(days=2)
    OpenObject.objects.update(since=ahead, next_try=ahead)
    w.later(600)
    w.work()
    assert w.there() == {"a": b"data"}
    w.check_counts()


def test_a_rule_is_not_gone_while_a_round_that_began_before_may_write(w: World) -> None:
    w.put("a")
    rule = w.rule()
    w.scan()

    remove = removal._remove_some

    def begun_meanwhile(of: Rule, link_ids: list[int]) -> bool:
        left = remove(of, link_ids)
        Link.objects.filter(pk__in=link_ids).update(writes_until=clock.now() + timedelta(seconds=60))
        return left

    Rule.objects.filter(pk=rule.pk).update(deleting=True)
    with mock.patch("replication.engine.removal._remove_some", begun_meanwhile):
        w.scan()
    assert Rule.objects.exists()
    w.later(61)
    w.scan()
    assert not Rule.objects.exists()


def test_a_round_of_a_rule_that_is_gone_writes_nothing(w: World) -> None:
    w.put("a")
    w.rule()
    w.scan()
    with mock.patch("replication.engine.round.Round._note_writes", lambda *_: False):
        w.copy()
    assert w.there() == {}


def test_a_store_that_wants_to_be_left_alone_for_ever_is_tried_within_the_hour(w: World) -> None:
    w.put("a")
    w.rule()
    w.away.before = refusing(Throttled("429", retry_after=float("9" * 400)), "PUT")
    w.work(1)
    w.away.before = lambda *_: None
    w.later(3601)
    w.copy()
    assert w.there() == {"a": b"data"}


def test_keys_of_events_that_no_store_can_have_are_nobodys(w: World) -> None:
    w.rule()
    assert touching.objects_changed(HOME, [("src", "\U0001f600" * 1000), ("src", "a")]) == 1
    assert [bytes(row.key) for row in Touched.objects.all()] == [b"a"]


def test_a_link_whose_named_keys_nobody_has_looked_at_is_not_up_to_date(w: World) -> None:
    w.put("a")
    w.rule()
    w.work()
    assert state(w) is State.UP_TO_DATE
    touching.objects_changed(HOME, [("src", "b")])
    assert state(w) is State.SYNCING
    w.work()
    assert state(w) is State.UP_TO_DATE


def test_who_looks_for_a_place_of_a_mirror_is_not_told_the_name_of_a_rule(lm: Deployment) -> None:
    a_rule("secret", "s3://out/in")
    with pytest.raises(Conflict, match="where a replication rule copies to") as refused:
        check_still_free("s3://out/in/x", AWAY, "lake")
    assert "secret" not in refused.value.message


def test_a_target_that_holds_more_than_one_page_is_not_empty_whatever_lies_on_that(w: World) -> None:
    target = places.Target("targets.0.uri", AWAY, places.region_settings.place(AWAY, "s3://out"))
    own = [Listed("_lakemirror/1", 1, "e")]
    whole = mock.patch("adapters.places.reader.PlaceReader.listing", return_value=Listing(own, True))
    with whole, pytest.raises(Conflict, match="is not empty"):
        places.check_empty([target])
    with mock.patch("adapters.places.reader.PlaceReader.listing", return_value=Listing(own, False)):
        places.check_empty([target])


def test_a_place_that_is_written_otherwise_is_refused_as_it_is(lm: Deployment) -> None:
    denied = allow(["fs:AttachStorageNamespace"], "arn:lakefs:fs:::namespace/s3://src*") | {"effect": "deny"}
    document = policy_document("Limited", allow(["fs:*"]), denied)
    rita = person("rita")
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=rita)
    for uri in ("s3://src", "s3a://src", "s3a://src//"):
        body = BODY | {"source": {"region": HOME, "uri": uri}}
        assert Api(rita).call("POST", RULES, body)[0] == 403
        assert Api(rita).call("POST", f"{RULES}/preflight", body)[0] == 403
