"""What might be deleted for a wrong reason, or called well while it is not: deletions that meet other events."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from adapters.s3.fast_store import ListedPage
from core.errors import Denied
from core.replicating.eligible import is_own
from db import clock
from rbac.models import User
from replication.engine.deletes.ends import name_of
from replication.engine.deletes.following import Following
from replication.models import Approval, Link, OpenObject, Rule, Tombstone
from replication.services.approvals import approval_decide, confirm_source, confirm_target
from replication.services.rules import rule_retry, rule_update
from replication.transitions import deletions
from tests.api import Api
from tests.replication.test_both_ways import MESH, PAIR
from tests.replication.test_both_ways_deletes import Deleting
from tests.replication.test_deletes import copied, go, look
from tests.replication.world import AWAY, FAR, HOME, World, refusing, silent

pytestmark = pytest.mark.django_db


def look_at_all(w: World) -> None:
    """Everything is looked through, and nothing copied or deleted."""
    Rule.objects.update(scan_wanted=True)
    w.scan()
    w.scan()


def test_retry_has_nothing_deleted_before_a_minute_has_passed(w: World, owner: User) -> None:
    copied(w, "a", "b", "c")
    go(w, "b")
    look(w)
    assert w.names(kind="delete", status="deleting") == ["b"]
    rule_retry(actor=owner, name="r")
    w.copy()
    assert "b" in w.there(), "the source has been asked once"
    w.later(61)
    w.copy()
    assert set(w.there()) == {"a", "c"}
    w.check_counts()


def test_bounds_that_are_lowered_before_something_is_deleted_hold(w: World, owner: User) -> None:
    copied(w, *"abcdef")
    go(w, "b")
    look(w)
    assert w.names(kind="delete", status="deleting") == ["b"]
    rule_update(actor=owner, name="r", changes={"delete_percent": 0})
    w.later(61)
    w.copy()
    assert "b" in w.there()
    look(w)
    approval = Approval.objects.get(state="waiting")
    approval_decide(actor=owner, name="r", number=approval.pk, approved=True)
    rule_update(actor=owner, name="r", changes={"delete_most": 0})
    w.later(61)
    w.copy()
    assert set(w.there()) == set("acdef"), "what somebody has approved stays so"
    w.check_counts()


# --- both ways --------------------------------------------------------------------------------------------------------


def test_what_can_not_be_asked_about_is_not_taken_for_deleted_unseen(w: World) -> None:
    """A key that was deleted once, and is there again as something that the store refuses to tell of: it lacks."""
    ends = Deleting(w, PAIR)
    ends.begin("a")
    ends.go(HOME, "a")
    assert ends.check_alike() == {"z": "z"}
    w.later(5)
    ends.put(HOME, "a", "new")
    w.home.before = refusing(Denied("403 AccessDenied"), "HEAD", keys="a")
    ends.settle()
    [row] = Link.objects.get(rule__name=HOME).open_objects.all()
    assert (row.name, row.kind) == ("a", "copy") and row.code
    w.home.before = lambda *_: None
    w.later(90_000)
    assert ends.check_alike() == {"a": "new", "z": "z"}


def test_a_lost_bucket_gets_all_back_although_the_way_there_was_frozen(w: World, owner: User) -> None:
    ends = Deleting(w, PAIR)
    ends.begin(*"abcdefgh")
    w.home.buckets["src"].clear()
    ends.settle()
    there, back = Link.objects.get(rule__name=HOME), Link.objects.get(rule__name=AWAY)
    assert there.frozen_since is not None and back.stale_since is not None
    confirm_target(actor=owner, name=AWAY, number=1)
    ends.put(HOME, "new", "new")
    confirm_source(actor=owner, name=HOME, number=1)
    look_at_all(w)
    assert not OpenObject.objects.filter(kind="delete").exists()
    assert set(ends.check_alike()) == {*"abcdefgh", "z", "new"}
    assert ends.deleted == []


def test_what_a_bucket_without_its_pins_lacks_is_not_deleted_elsewhere(w: World, owner: User) -> None:
    """It was created anew, and most of it brought back from a backup."""
    ends = Deleting(w, PAIR)
    ends.begin(*"abcdefgh")
    ends.go(HOME, "a")
    for key in [key for key in w.home.buckets["src"] if key.startswith("_lakemirror/")]:
        del w.home.buckets["src"][key]
    w.scan()
    ends.settle()
    assert "a" in ends.there(AWAY) and ends.deleted == []
    confirm_target(actor=owner, name=AWAY, number=1)
    assert set(ends.check_alike()) == {*"abcdefgh", "z"}


def test_what_went_before_deletions_were_followed_again_stays(w: World, owner: User) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("a", "b")
    ends.go(HOME, "a")
    look_at_all(w)
    assert Tombstone.objects.exists()
    for markers in (False, True):
        for name in (HOME, AWAY):
            rule_update(actor=owner, name=name, changes={"markers": markers})
    assert ends.check_alike() == {"a": "a", "b": "b", "z": "z"}
    assert ends.deleted == []


def test_rules_that_are_made_later_know_nothing_of_older_deletions(w: World, api: Api) -> None:
    ends = Deleting(w, PAIR)
    ends.begin("a", "b")
    ends.go(HOME, "a")
    ends.check_alike()
    Rule.objects.all().delete()
    assert Tombstone.objects.filter(place=name_of(HOME, "s3://src")).exists()
    places = {"source": {"region": HOME, "uri": "s3://src"}, "targets": [{"region": AWAY, "uri": "s3://out"}]}
    how = {"conflict": "newest", "markers": True, "overwrite": True}
    assert api.call("POST", "/service/replication/v1/rules", {"name": "later", **places, **how})[0] == 201
    assert not Tombstone.objects.exists()


def test_what_is_rejected_comes_back_to_where_another_way_has_deleted_it(w: World, owner: User) -> None:
    ends = Deleting(w, MESH)
    ends.begin(*"abcdefgh")
    ends.go(HOME, "a")
    look_at_all(w)
    assert {row.link.region for row in OpenObject.objects.filter(kind="delete")} == {AWAY, FAR}
    deletions.hold_back(Link.objects.get(rule__name=HOME, region=AWAY), clock.now())
    Rule.objects.filter(name=HOME).update(delete_percent=0)
    look_at_all(w)
    approval = Approval.objects.get(state="waiting")
    w.later(61)
    w.copy()
    assert ends.deleted == [(FAR, "a")], "few enough there"
    approval_decide(actor=owner, name=HOME, number=approval.pk, approved=False)
    assert set(ends.check_alike()) == {*"abcdefgh", "z"}
    assert ends.deleted == [(FAR, "a")]


def test_what_a_target_lists_no_more_is_brought_up_to_date_all_the_same(w: World) -> None:
    """As MinIO does with what lies below the name of another object; of a key that was deleted once."""
    ends = Deleting(w, PAIR)
    ends.begin("a")
    ends.go(HOME, "a")
    ends.settle()
    ends.put(HOME, "a", "new")
    ends.settle()
    page = w.away.page

    def hiding(prefix_uri: str, after: str = "", *, dated: bool = False) -> ListedPage:
        found = page(prefix_uri, after, dated=dated)
        kept = [at for at, key in enumerate(found.keys) if key != "a"]
        for column in (found.keys, found.etags, found.sizes, found.modified):
            column[:] = [column[at] for at in kept if at < len(column)]
        return found

    w.later(5)
    ends.put(HOME, "a", "newer")
    with mock.patch.object(w.away, "page", hiding):
        ends.settle()
    assert ends.there(AWAY) == {"a": "newer", "z": "z"}


def test_what_another_way_may_have_lost_is_open_until_that_way_knows(w: World) -> None:
    """The same content is written again where it was deleted before, while a third place lists nothing."""
    ends = Deleting(w, MESH)
    ends.begin("a")
    w.far.before = lambda method, bucket, key: None if is_own(key) else silent()(method, bucket, key)
    ends.go(HOME, "a")
    ends.settle()
    assert ends.there(AWAY) == {"z": "z"}
    w.later(5)
    ends.put(AWAY, "a", "a")
    ends.settle()
    link = Link.objects.get(rule__name=AWAY, region=HOME)
    assert "a" in ends.there(HOME) or [row.name for row in link.open_objects.all()] == ["a"]
    w.far.before = lambda *_: None
    w.later(4000)
    assert ends.check_alike() == {"a": "a", "z": "z"}


def joined(ends: Deleting) -> None:
    """A third place copies to the first one, and is copied to, from now on."""
    ends.w.later(5)
    how = {"conflict": "newest", "markers": True, "delete_percent": 100}
    ends.w.rule((HOME, "s3://src"), name=FAR, region=FAR, uri="s3://two", **how)
    ends.w.rule((FAR, "s3://two"), name="joining", region=HOME, uri="s3://src", **how)
    ends.regions.append(FAR)


@pytest.mark.parametrize("approved", [True, False])
def test_what_a_place_has_that_joins_later_is_deleted_only_if_somebody_approves(
    w: World, owner: User, approved: bool
) -> None:
    """It is older than what was deleted elsewhere before, and no link has brought it."""
    ends = Deleting(w, PAIR)
    ends.put(FAR, "a", "somebody's")
    w.later(5)
    ends.begin("a")
    ends.go(HOME, "a")
    assert ends.check_alike() == {"z": "z"}
    joined(ends)
    ends.settle()
    ends.settle()
    assert ends.there(FAR)["a"] == "somebody's" and (FAR, "a") not in ends.deleted
    approval = Approval.objects.get(state="waiting")
    approval_decide(actor=owner, name="joining", number=approval.pk, approved=approved)
    assert ends.check_alike() == ({"z": "z"} if approved else {"a": "somebody's", "z": "z"})


# --- edits while something goes on ------------------------------------------------------------------------------------


def test_what_a_look_has_seen_before_deletions_were_followed_anew_is_not_noted(w: World, owner: User) -> None:
    copied(w, "a", "b", "c")
    go(w, "b")
    merged = Following.merge

    def switching(self: Following, window: Any, *, ends: bool) -> Any:
        found = merged(self, window, ends=ends)
        for markers in (False, True):
            rule_update(actor=owner, name="r", changes={"markers": markers})
        return found

    Rule.objects.update(scan_wanted=True)
    with mock.patch.object(Following, "merge", switching):
        w.scan()
    assert w.rows() == []
    w.later(400)
    w.work(3)
    assert set(w.there()) == {"a", "b", "c"}


def test_a_look_that_began_without_it_does_not_tell_what_is_at_the_target_alone(w: World, owner: User) -> None:
    copied(w, "a", markers=False)
    w.away.has_already("out", "stranger", b"x")
    merged = Following.merge

    def switching(self: Following, window: Any, *, ends: bool) -> Any:
        rule_update(actor=owner, name="r", changes={"markers": True})
        return merged(self, window, ends=ends)

    Rule.objects.update(scan_wanted=True)
    with mock.patch.object(Following, "merge", switching):
        w.scan()
    assert w.link().foreign_objects is None
    w.scan()
    assert w.link().foreign_objects == 1
