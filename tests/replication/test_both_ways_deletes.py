"""Deletions where rules lead both ways: who deletes at one place has it deleted at all, and nothing comes back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from core.replicating.states import ApprovalState
from db import clock
from rbac.models import User
from replication.models import Approval, Link, Rule, Tombstone
from replication.services.approvals import approval_decide, confirm_target
from replication.transitions import deletions, freezing
from tests.replication.test_both_ways import ENDS, MESH, PAIR, RING, Ends
from tests.replication.world import AWAY, FAR, HOME, World, silent

pytestmark = pytest.mark.django_db


class Deleting(Ends):
    """Whose rules follow deletions."""

    def __init__(self, w: World, ways: Sequence[tuple[str, str]], **more: Any) -> None:
        super().__init__(w, ways, **{"markers": True, "delete_percent": 100, **more})

    def go(self, region: str, key: str) -> None:
        """Somebody deletes there."""
        del self.w.stores[region].buckets[ENDS[region]][key]

    def begin(self, *keys: str, at: str = HOME) -> None:
        """These were written there, and are everywhere."""
        for key in (*keys, "z"):
            self.put(at, key, key)
        assert set(self.check_alike()) == {*keys, "z"}

    @property
    def deleted(self) -> list[tuple[str, str]]:
        """What we have deleted, and where."""
        return [(region, key) for region in self.regions for _, key, _ in self.w.stores[region].deleted]


@pytest.mark.parametrize("ways", [PAIR, RING, MESH], ids=["pair", "ring", "mesh"])
@pytest.mark.parametrize("where", [HOME, AWAY])
def test_who_deletes_anywhere_has_it_deleted_everywhere(w: World, ways: Any, where: str) -> None:
    ends = Deleting(w, ways)
    ends.begin("a", "b")
    ends.go(where, "a")
    ends.settle()
    assert ends.check_alike() == {"b": "b", "z": "z"}
    others = {region for region in ends.regions if region != where}
    assert sorted(ends.deleted) == sorted((region, "a") for region in others), "once at each of the others"
    assert not Approval.objects.exists()


def test_what_comes_and_goes_before_the_other_rule_has_looked(w: World) -> None:
    """The copy is deleted before any look saw it: the link that brought it knows."""
    ends = Deleting(w, PAIR)
    ends.put(HOME, "a", "x")
    w.scan()
    w.copy()
    assert ends.there(AWAY) == {"a": "x"}
    ends.put(AWAY, "z", "z")
    ends.go(AWAY, "a")
    assert ends.check_alike() == {"z": "z"}
    assert ends.deleted == [(HOME, "a")]


@pytest.mark.parametrize(("where", "once_more"), [(HOME, False), (AWAY, False), (FAR, True)])
def test_what_was_written_anew_comes_back_once_where_nobody_knew(w: World, where: str, once_more: bool) -> None:
    """In a ring only the next place knows how new the content is that all have."""
    ends = Deleting(w, RING)
    ends.begin("a")
    w.later(5)
    ends.put(HOME, "a", "a")
    ends.check_alike()
    ends.go(where, "a")
    if once_more:
        assert ends.check_alike() == {"a": "a", "z": "z"} and ends.deleted == []
        ends.go(where, "a")
    assert ends.check_alike() == {"z": "z"}
    ends.put(AWAY, "a", "a")
    assert ends.check_alike() == {"a": "a", "z": "z"}


def test_what_won_in_a_ring_is_deleted_as_it_came(w: World) -> None:
    """What replaced another object by its newest write elsewhere is known to be as new as that."""
    ends = Deleting(w, RING)
    ends.begin("a")
    w.later(5)
    ends.put(FAR, "a", "y")
    w.later(5)
    ends.put(HOME, "a", "a")
    assert ends.check_alike() == {"a": "a", "z": "z"}
    ends.go(FAR, "a")
    assert ends.check_alike() == {"z": "z"}


def test_what_is_written_anew_after_a_deletion_in_a_ring_stays(w: World) -> None:
    """Whichever place of the ring it is that had it still."""
    ends = Deleting(w, RING)
    ends.begin("a", "b")
    w.later(5)
    ends.go(FAR, "a")
    ends.go(FAR, "b")
    w.later(5)
    ends.put(HOME, "a", "a")
    ends.put(AWAY, "b", "b")
    assert ends.check_alike() == {"a": "a", "b": "b", "z": "z"}


@pytest.mark.parametrize("where", [HOME, AWAY])
def test_a_late_event_brings_nothing_back(w: World, where: str) -> None:
    """No look has found yet that it is gone."""
    from replication.transitions import touching

    ends = Deleting(w, PAIR)
    ends.begin("a")
    ends.go(where, "a")
    for region in ends.regions:
        touching.objects_changed(region, {(ENDS[region], "a")})
    Rule.objects.update(cycle_began_at=None, full_began_at=clock.now(), scan_wanted=False)
    written = ends.written
    w.work(2)
    assert "a" not in ends.there(where) and ends.written == written
    assert ends.check_alike() == {"z": "z"}


def test_what_is_written_after_a_deletion_stays(w: World) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("same", "other", "there")
    for key in ("same", "other", "there"):
        ends.go(HOME, key)
    w.later(5)
    ends.put(HOME, "same", "same")
    ends.put(HOME, "other", "else")
    ends.put(AWAY, "there", "there")
    assert ends.check_alike() == {"same": "same", "other": "else", "there": "there", "z": "z"}
    assert ends.deleted == []


@pytest.mark.parametrize("where", [HOME, AWAY])
def test_what_is_written_anew_while_its_deletion_waits_stays(w: World, where: str) -> None:
    """On either side, also the same content again: a minute lies between."""
    ends = Deleting(w, PAIR)
    ends.begin("a")
    ends.go(HOME, "a")
    Rule.objects.update(scan_wanted=True)
    w.scan()
    assert [row.name for row in w.link(name=HOME).open_objects.all()] == ["a"]
    w.later(120)
    ends.put(where, "a", "a")
    w.copy()
    assert ends.check_alike() == {"a": "a", "z": "z"}
    assert ends.deleted == []


def test_a_write_that_the_place_had_not_seen_comes_back_to_it(w: World) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("a")
    w.later(5)
    ends.put(HOME, "a", "newer")
    ends.go(AWAY, "a")
    assert ends.check_alike() == {"a": "newer", "z": "z"}
    assert ends.deleted == []


def test_an_older_object_does_not_reappear(w: World) -> None:
    """One place was away while the key was overwritten, and deleted."""
    ends = Deleting(w, MESH)
    ends.begin("a")
    w.far.before = silent()
    w.later(5)
    ends.put(HOME, "a", "second")
    ends.settle()
    ends.go(AWAY, "a")
    ends.settle()
    assert ends.there(HOME) == ends.there(AWAY) == {"z": "z"} and ends.there(FAR)["a"] == "a"
    w.far.before = lambda *_: None
    w.later(4000)
    assert ends.check_alike() == {"z": "z"}


def test_28_deleted_on_both_sides_at_once(w: World) -> None:
    """Scenario 28: nothing is left to be deleted by us."""
    ends = Deleting(w, PAIR)
    ends.begin("a", "b")
    ends.go(HOME, "a")
    ends.go(AWAY, "a")
    assert ends.check_alike() == {"b": "b", "z": "z"}
    assert ends.deleted == []


def test_28_a_ring_of_which_one_is_down_for_a_while(w: World) -> None:
    """Scenario 28."""
    ends = Deleting(w, RING)
    ends.begin("a", "b", "c")
    w.far.before = silent()
    ends.go(HOME, "a")
    ends.go(AWAY, "b")
    w.later(5)
    ends.put(AWAY, "c", "newer")
    ends.settle()
    w.far.before = lambda *_: None
    w.later(4000)
    assert ends.check_alike() == {"c": "newer", "z": "z"}


def test_27_many_writes_on_both_sides_at_once(w: World) -> None:
    """Scenario 27: 200 puts at each side of the same 50 keys; each key is written at most once per side."""
    ends = Deleting(w, PAIR)
    chance = random.Random(27)
    for number in range(200):
        for region in (HOME, AWAY):
            ends.put(region, f"{chance.randrange(50):02}", f"{region}-{number}")
        w.later(0.1)
    found = ends.check_alike()
    assert len(found) == 50
    for region in (HOME, AWAY):
        keys = [key for _, key, _ in w.stores[region].written]
        assert len(keys) == len(set(keys))
    w.later(600)
    written = ends.written
    ends.settle()
    assert ends.written == written


# --- what keeps deletions safe, in both directions --------------------------------------------------------------------


def test_too_many_wait_for_approval_and_do_not_come_back(w: World) -> None:
    ends = Deleting(w, PAIR, delete_percent=10)
    ends.begin(*"abcdefgh")
    for key in "abc":
        ends.go(AWAY, key)
    ends.settle()
    ends.settle()
    assert set(ends.there(AWAY)) == set("defghz"), "nothing comes back while it waits"
    assert set(ends.there(HOME)) == set("abcdefghz")
    approval = Approval.objects.get(state="waiting")
    assert approval.link.rule.name == AWAY and approval.number == 3
    deletions.decide(approval, ApprovalState.APPROVED, "olga", clock.now())
    assert set(ends.check_alike()) == set("defghz")


def test_what_is_rejected_comes_back(w: World, owner: User) -> None:
    ends = Deleting(w, PAIR, delete_percent=10)
    ends.begin(*"abcdefgh")
    for key in "abc":
        ends.go(AWAY, key)
    ends.settle()
    approval = Approval.objects.get(state="waiting")
    approval_decide(actor=owner, name=AWAY, number=approval.pk, approved=False)
    assert set(ends.check_alike()) == set("abcdefghz")
    assert ends.deleted == [] and not Approval.objects.filter(state="waiting").exists()


def test_a_source_that_is_empty_freezes_deletions(w: World) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("a", "b")
    for key in "abz":
        ends.go(HOME, key)
    ends.settle()
    assert set(ends.there(AWAY)) == {"a", "b", "z"} and ends.there(HOME) == {}
    link = Link.objects.get(rule__name=HOME)
    assert link.frozen_code == "SourceEmpty" and ends.deleted == []
    freezing.thaw(link)
    assert ends.check_alike() == {}


def test_a_bucket_that_was_lost_gets_everything_again(w: World, owner: User) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("a", "b")
    w.home.buckets["src"].clear()
    ends.settle()
    back = Link.objects.get(rule__name=AWAY)
    assert back.stale_since is not None and ends.there(HOME) == {}
    confirm_target(actor=owner, name=AWAY, number=1)
    assert set(ends.check_alike()) == {"a", "b", "z"}
    assert ends.deleted == []


def test_what_is_known_of_a_target_and_can_not_be_read_brings_nothing_back(w: World) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("a")
    ends.go(AWAY, "a")
    w.away.before = lambda method, bucket, key: silent()(method, bucket, key) if ".parquet" in key else None
    ends.settle()
    assert ends.there(AWAY) == {"z": "z"}
    w.away.before = lambda *_: None
    w.later(4000)
    assert ends.check_alike() == {"z": "z"}


def test_of_one_that_does_not_follow_deletions_they_come_back(w: World) -> None:
    ends = Deleting(w, PAIR)
    Rule.objects.filter(name=AWAY).update(markers=False)
    ends.begin("a")
    ends.go(AWAY, "a")
    ends.settle()
    assert ends.there(HOME) == {"a": "a", "z": "z"}, "nobody follows what is deleted there"


def test_tombstones_go_after_a_month(w: World) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("a", "b")
    ends.go(HOME, "a")
    ends.check_alike()
    assert Tombstone.objects.exists()
    w.later(31 * 86400)
    assert ends.check_alike() == {"b": "b", "z": "z"}
    assert not Tombstone.objects.exists()
