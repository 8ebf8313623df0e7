"""Several rules share a limit of the store that they lead to, by priority; what is open has its turn in an order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from core.access.documents import allow, policy_document
from core.replicating.states import Order
from db import clock
from rbac import services as rbac
from rbac.models import User
from replication.engine import round as rounds
from replication.engine.sharing import limits_of
from replication.models import Link, OpenObject, StoreLimit
from tests.api import Api
from tests.cast import person
from tests.mirrors.harness import Deployment
from tests.replication.factories import a_rule, open_object
from tests.replication.world import AWAY, World

pytestmark = pytest.mark.django_db

RULES = "/service/replication/v1/rules"
LIMIT = 100_000_000


def busy(name: str, priority: int, **more: Any) -> Link:
    """The link of a rule that has something to copy."""
    link = a_rule(name, priority=priority).links.get()
    open_object(link, "a", next_try=clock.now())
    Link.objects.filter(pk=link.pk).update(**more)
    return Link.objects.select_related("rule").get(pk=link.pk)


def bytes_of(link: Link) -> float:
    return limits_of(Link.objects.select_related("rule").get(pk=link.pk)).bytes_per_second


def test_35_two_rules_share_a_limit_of_their_store_by_priority() -> None:
    first, second = busy("first", 1), busy("second", 2)
    assert (bytes_of(first), bytes_of(second)) == (0, 0), "there is none yet"
    StoreLimit.objects.create(region=AWAY, bytes_per_second=LIMIT)
    assert (bytes_of(first), bytes_of(second)) == (95_000_000, 5_000_000)
    Link.objects.filter(pk=first.pk).update(pace_bytes=20_000_000)  # all that it can use
    assert (bytes_of(first), bytes_of(second)) == (28_000_000, 72_000_000)
    Link.objects.filter(pk=first.pk).update(paused=True)
    assert bytes_of(second) == LIMIT
    Link.objects.filter(pk=first.pk).update(paused=False, bytes_per_second=10_000_000)
    assert bytes_of(first) == 10_000_000 and bytes_of(second) == 90_000_000
    StoreLimit.objects.all().delete()
    assert (bytes_of(first), bytes_of(second)) == (10_000_000, 0)
    assert not Link.objects.exclude(share_bytes=None).exists()


def test_those_that_have_nothing_to_copy_share_nothing() -> None:
    first = busy("first", 1)
    StoreLimit.objects.create(region=AWAY, bytes_per_second=LIMIT)
    a_rule("idle", priority=0)
    busy("down", 0, health="down")
    elsewhere = busy("elsewhere", 0, region="ap-southeast-2")
    assert bytes_of(first) == LIMIT and bytes_of(elsewhere) == 0


def test_those_whose_objects_wait_for_their_next_try_share_nothing() -> None:
    first, failing = busy("first", 1), busy("failing", 0)
    StoreLimit.objects.create(region=AWAY, bytes_per_second=LIMIT)
    OpenObject.objects.filter(link=failing).update(next_try=clock.now() + timedelta(hours=1))
    assert bytes_of(first) == LIMIT


def test_a_round_goes_by_its_share(w: World) -> None:
    StoreLimit.objects.create(region=AWAY, bytes_per_second=LIMIT)
    w.put("a")
    w.rule(priority=3)
    w.work(1)
    assert w.there() == {"a": b"data"} and w.link().share_bytes == LIMIT


def turns(w: World, order: Order, number: int = 40) -> list[int]:
    """In which order so many objects of a link have their turn, one at a time."""
    rule = w.rule(order=order.value)
    Link.objects.update(workers=1)
    for at in range(number):
        w.put(f"k{at:02}")
    w.scan()
    assert OpenObject.objects.filter(link__rule=rule).count() == number
    w.copy()
    return [int(key[1:]) for _, key, _ in w.away.written]


def test_35_what_was_noted_last_comes_first_and_nothing_waits_for_ever(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "CLAIMED", 8)
    written = turns(w, Order.NEW_FIRST)
    assert sorted(written) == list(range(40))
    assert sorted(written[:8]) == [0, 1, 34, 35, 36, 37, 38, 39]


def test_35_what_waits_longest_comes_first(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "CLAIMED", 8)
    assert turns(w, Order.OLDEST_FIRST) == list(range(40))


# --- the API ----------------------------------------------------------------------------------------------------------


def limits(api: Api, body: dict[str, Any], rule: str = "one") -> tuple[int, Any]:
    return api.call("POST", f"{RULES}/{rule}/links/1/limits", body)


def test_a_limit_of_a_store_is_told_by_all_links_to_it(api: Api) -> None:
    a_rule("one")
    a_rule("two")
    status, told = limits(api, {"store_bytes_per_second": LIMIT})
    assert status == 200 and told["links"][0]["store_bytes_per_second"] == LIMIT
    two = api.call("GET", f"{RULES}/two")[1]["links"][0]
    assert (two["store_bytes_per_second"], two["share_bytes_per_second"]) == (LIMIT, None)
    assert limits(api, {"workers": 3})[1]["links"][0]["store_bytes_per_second"] == LIMIT, "it stays"
    for wrong in (999_999, 10**15 + 1, "5", True):
        assert limits(api, {"store_bytes_per_second": wrong})[0] == 400, wrong
    assert limits(api, {"store_bytes_per_second": None})[1]["links"][0]["store_bytes_per_second"] is None
    assert not StoreLimit.objects.exists()


def may_operate(user: User, rule: str) -> None:
    rights = allow(["fs:OperateReplicationRule", "fs:ReadReplicationRule"], f"arn:lakefs:fs:::replication/{rule}")
    document = policy_document(f"Runs-{rule}", rights)
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=user)


def test_it_needs_the_right_on_every_rule_that_leads_there(lm: Deployment) -> None:
    a_rule("one")
    a_rule("two")
    user = person("otis")
    may_operate(user, "one")
    otis = Api(user)
    assert limits(otis, {"workers": 2})[0] == 200
    status, told = limits(otis, {"store_bytes_per_second": LIMIT})
    assert status == 403 and "on each of them" in told["message"] and "two" not in told["message"]
    StoreLimit.objects.create(region=AWAY, bytes_per_second=LIMIT)
    assert limits(otis, {"workers": 3, "store_bytes_per_second": LIMIT})[0] == 200, "nothing is changed"
    may_operate(user, "two")
    assert limits(otis, {"store_bytes_per_second": None})[0] == 200


def test_priority_and_order_are_changed_like_other_settings(api: Api) -> None:
    a_rule("one")
    told = api.call("GET", f"{RULES}/one")[1]
    assert (told["priority"], told["order"]) == (0, "oldest-first")
    told = api.call("PATCH", f"{RULES}/one", {"priority": 7, "order": "new-first"})[1]
    assert (told["priority"], told["order"]) == (7, "new-first")
    for wrong in ({"priority": -1}, {"priority": 1001}, {"order": "x"}, {"priority": "1"}):
        status, refused = api.call("PATCH", f"{RULES}/one", wrong)
        assert (status, refused["field"]) == (400, next(iter(wrong)))
