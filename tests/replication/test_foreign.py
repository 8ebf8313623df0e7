"""What lies at a target alone and is none of a link's: how much, and the first of it, is told."""

from __future__ import annotations

from unittest import mock

import pytest
from django.test import Client

from console.metrics.prometheus import gauges
from rbac.models import User
from replication.engine import piece
from replication.models import Link, Rule, Shard
from replication.transitions import shards
from tests.api import Api
from tests.console.test_metrics import samples
from tests.replication.test_deletes import copied, follow, go, look
from tests.replication.world import World

pytestmark = pytest.mark.django_db
RULE = "/service/replication/v1/rules/r"
THEIRS = [f"theirs-{number:02}" for number in range(25)]


def told() -> tuple[int | None, list[str]]:
    link = Link.objects.get()
    return link.foreign_objects, link.foreign_keys


def test_it_is_told_by_api_page_and_metrics_once_all_is_compared(
    w: World, api: Api, olga: Client, teammate: User
) -> None:
    w.put("a")
    w.rule(markers=True)
    assert api.call("GET", RULE)[1]["links"][0]["foreign_objects"] is None
    w.work()
    assert api.call("GET", RULE)[1]["links"][0]["foreign_objects"] == 0
    assert "did not copy" not in olga.get("/replication/r/").content.decode()
    w.away.buckets["out"] |= dict.fromkeys(THEIRS, b"1") | {"_lakemirror/x": b"1", "zz<b>": b"1"}
    look(w)
    link = api.call("GET", RULE)[1]["links"][0]
    assert (link["foreign_objects"], link["foreign_keys"]) == (26, THEIRS[:20])
    page = olga.get("/replication/r/").content.decode()
    assert "26 objects at the target that this link did not copy" in page and THEIRS[19] in page
    assert samples(teammate)["lakemirror_link_foreign_objects", "1", "eu-west-1", "r"] == 26
    for key in THEIRS[1:]:
        del w.away.buckets["out"][key]
    look(w)
    assert told() == (2, [THEIRS[0], "zz<b>"])
    assert "zz&lt;b&gt;" in olga.get("/replication/r/").content.decode()


def test_what_the_link_copied_and_the_source_has_no_more_is_none_of_it(w: World) -> None:
    copied(w, "a", "b", "c")
    go(w, "b")
    look(w)
    assert told() == (0, [])
    w.away.buckets["out"]["b"] = b"theirs"
    follow(w)
    look(w)
    assert told() == (1, ["b"])


def test_stretches_count_together_and_a_look_goes_on_where_it_was(w: World) -> None:
    for number in range(12):
        w.put(f"k{number:02}")
    w.rule(markers=True)
    with mock.patch.object(shards, "SPLIT_AT", 4), mock.patch.object(piece, "SLICE_SECONDS", 0.0):
        w.away.buckets["out"] |= {f"k{number:02}x": b"1" for number in range(12)} | {"zz": b"1"}
        for _ in range(30):
            w.scan()
        look(w, 2)
        for _ in range(30):
            w.scan()
    assert Shard.objects.count() > 1
    assert told() == (13, sorted([*(f"k{number:02}x" for number in range(12)), "zz"]))


def test_nobody_knows_it_of_a_rule_that_does_not_follow_deletions(w: World, teammate: User) -> None:
    copied(w, "a")
    w.away.buckets["out"]["x"] = b"1"
    look(w)
    assert told() == (1, ["x"])
    Rule.objects.update(markers=False)
    look(w)
    assert told() == (None, [])
    assert ("lakemirror_link_foreign_objects", "1", "eu-west-1", "r") not in samples(teammate)


def test_a_name_that_no_column_could_hold_is_told_as_far_as_it_can_be(w: World) -> None:
    copied(w, "a")
    w.away.buckets["out"]["n\0ul"] = b"1"
    look(w)
    assert told() == (1, ["n\ufffdul"])


def test_stretches_that_are_looked_through_again_are_counted(w: World, teammate: User) -> None:
    copied(w, "a")
    assert samples(teammate)["lakemirror_link_dirty_shards", "1", "eu-west-1", "r"] == 0
    shards.mark_dirty(Rule.objects.get().pk, [b"a"])
    assert samples(teammate)["lakemirror_link_dirty_shards", "1", "eu-west-1", "r"] == 1
    assert "lakemirror_link_dirty_shards" in {gauge.name for gauge in gauges(teammate)}
