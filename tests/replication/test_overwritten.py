"""Objects that somebody wrote at a place, and newer ones from another place have replaced."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client

from core.replicating.both_ways.losers import Loser, loser_of
from db import clock
from replication.models import Link, Overwritten
from replication.transitions import losers
from tests.api import Api
from tests.replication.test_both_ways import PAIR, Ends
from tests.replication.world import AWAY, HOME, World

pytestmark = pytest.mark.django_db
RULES = "/service/replication/v1/rules"


def conflict(w: World, keys: str = "a") -> Ends:
    """Two people write the same keys, each at one side; HOME's is the newer one."""
    ends = Ends(w, PAIR)
    for key in keys:
        ends.put(AWAY, key, f"older {key}")
    w.later(5)
    for key in keys:
        ends.put(HOME, key, "newer")
    assert set(ends.check_alike().values()) == {"newer"}
    return ends


def test_the_loser_is_counted_and_named(w: World) -> None:
    conflict(w)
    lost = Overwritten.objects.get()
    assert (lost.name, lost.size, lost.link.rule.name) == ("a", len("older a"), HOME)
    assert lost.written_at < lost.overwritten_at
    counts = dict(Link.objects.values_list("rule__name", "overwritten_objects"))
    assert counts == {HOME: 1, AWAY: 0}


def test_copies_of_ours_are_replaced_and_nothing_is_lost(w: World) -> None:
    ends = Ends(w, PAIR)
    for number in range(3):
        ends.put(AWAY, "a", f"{number}")
        assert ends.check_alike() == {"a": f"{number}"}
        w.later(5)
    assert not Overwritten.objects.exists()


def test_what_is_still_a_version_is_not_lost(w: World) -> None:
    for store in w.stores.values():
        store.told = {"x-amz-version-id": "v1"}
    conflict(w)
    assert not Overwritten.objects.exists()


def test_only_the_last_ones_are_named(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losers, "MOST_LOSERS", 2)
    conflict(w, "abcd")
    assert Link.objects.get(rule__name=HOME).overwritten_objects == 4
    assert Overwritten.objects.count() == 2


def test_a_loser_is_told_by_a_text() -> None:
    one = Loser(clock.now().replace(microsecond=0), 3, "a:b")
    assert loser_of(one.told()) == one and loser_of("") is None


def test_what_was_overwritten_comes_by_the_page_and_as_csv(w: World, api: Api, olga: Client) -> None:
    conflict(w, "ab")
    path = f"{RULES}/{HOME}/links/1/overwritten"
    status, first = api.call("GET", f"{path}?amount=1")
    assert status == 200 and len(first["results"]) == 1
    rest = api.call("GET", f"{path}?amount=1&after={first['pagination']['next_offset']}")[1]
    assert {first["results"][0]["key"], rest["results"][0]["key"]} == {"a", "b"}
    assert first["results"][0]["region"] == AWAY and rest["pagination"]["has_more"] is False
    assert api.call("GET", f"{path}?after=x")[0] == 400
    told = olga.get(f"{path}?format=csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(told.streaming_content).decode())))
    assert {row["key"] for row in rows} == {"a", "b"}
    assert api.call("GET", f"{RULES}/{HOME}")[1]["links"][0]["overwritten_objects"] == 2
    page = olga.get(f"/replication/{HOME}/").content.decode()
    assert "2 objects overwritten by newer ones" in page and "format=csv" in page
