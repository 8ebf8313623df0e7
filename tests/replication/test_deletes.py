"""Rules that follow deletions: what is deleted at a target, and what never is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from core.errors import Denied, Unreachable
from core.replicating.states import ApprovalState
from db import clock
from replication.models import Approval, Arrived, Link, Rule, ShardManifest
from replication.transitions import deletions, freezing, ledger
from tests.replication.world import AWAY, World, refusing

pytestmark = pytest.mark.django_db


def copied(w: World, *keys: str, **more: Any) -> None:
    """A rule that follows deletions has copied these, and seen that."""
    for key in keys:
        w.put(key, key.encode())
    w.rule(**{"markers": True, "delete_percent": 100, **more})
    w.work()
    look(w)
    assert w.there() == {key: key.encode() for key in keys}


def look(w: World, looks: int = 1) -> None:
    """Everything is looked through so many times."""
    for _ in range(looks):
        Rule.objects.update(scan_wanted=True)
        w.scan()
        w.scan()


def go(w: World, *keys: str) -> None:
    """They are deleted at the source."""
    for key in keys:
        del w.home.buckets["src"][key]


def follow(w: World) -> None:
    """A look, and more than a minute later what it has found."""
    look(w)
    w.later(61)
    w.copy()


def listed(w: World) -> int:
    """So many the manifests have."""
    return sum(row.objects_listed for row in ShardManifest.objects.filter(link=w.link()))


# --- what is followed -------------------------------------------------------------------------------------------------


def test_what_is_deleted_at_the_source_is_deleted_at_the_target(w: World) -> None:
    copied(w, "a", "b", "c")
    assert listed(w) == 3 and not Arrived.objects.exists()
    go(w, "b")
    look(w)
    assert w.names(kind="delete", status="deleting") == ["b"]
    w.copy()
    assert "b" in w.there(), "a minute lies between two looks at the source"
    w.later(61)
    w.copy()
    assert set(w.there()) == {"a", "c"} and w.rows() == []
    assert w.link().deleted_objects == 1
    look(w)
    assert listed(w) == 2 and not Arrived.objects.exists()
    w.check_counts()


def test_a_rule_that_does_not_follow_deletions_deletes_nothing(w: World) -> None:
    copied(w, "a", "b", markers=False)
    go(w, "a")
    follow(w)
    assert set(w.there()) == {"a", "b"} and not ShardManifest.objects.exists()


def test_what_comes_and_goes_between_two_looks_is_followed(w: World) -> None:
    copied(w, "a")
    w.put("n", b"new")
    look(w)
    w.copy()
    go(w, "n")
    follow(w)
    assert set(w.there()) == {"a"}


def test_what_lies_behind_the_last_key_of_the_source_is_followed(w: World) -> None:
    copied(w, *"abcdefgh")
    go(w, *"cdefgh")
    follow(w)
    assert set(w.there()) == {"a", "b"}


def test_what_was_written_by_a_round_that_was_lost_is_followed(w: World) -> None:
    copied(w, "a")
    w.put("n", b"new")
    look(w)

    class Killed(BaseException):
        pass

    def killed(method: str, bucket: str, key: str) -> None:
        if method == "PUT" and key == "n":
            raise Killed

    w.away.after = killed
    with pytest.raises(Killed):
        w.copy()
    w.away.after = lambda method, bucket, key: None
    go(w, "n")
    w.later(200)
    w.copy()
    follow(w)
    assert set(w.there()) == {"a"}


# --- what is left alone -----------------------------------------------------------------------------------------------


def test_what_is_somebody_elses_stays(w: World) -> None:
    copied(w, "a", "b")
    w.away.buckets["out"] |= {"x": b"foreign", "aa": b"foreign"}
    go(w, "b")
    follow(w)
    assert set(w.there()) == {"a", "aa", "x"}
    look(w)
    assert ShardManifest.objects.get().foreign_objects == 2


def test_what_somebody_has_overwritten_at_the_target_stays(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.away.buckets["out"]["b"] = b"theirs"
    w.later(61)
    w.copy()
    assert w.there()["b"] == b"theirs" and w.rows() == []
    follow(w)
    assert w.there()["b"] == b"theirs"


def test_what_somebody_overwrites_between_look_and_deletion_stays_where_the_store_heeds_a_condition(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)

    def late(method: str, bucket: str, key: str) -> None:
        if method == "DELETE":
            w.away.buckets["out"]["b"] = b"theirs"

    w.away.before = late
    w.copy()
    assert w.there()["b"] == b"theirs"


def test_what_is_at_the_source_again_stays_at_whatever_step(w: World) -> None:
    copied(w, "a", "b", "c")
    go(w, "b", "c")
    look(w)
    w.put("b", b"again")
    w.later(61)
    w.copy()
    assert set(w.there()) == {"a", "b"}
    look(w)
    w.copy()
    assert w.there() == {"a": b"a", "b": b"again"}


def test_what_was_rescued_by_hand_after_it_was_deleted_is_theirs(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    follow(w)
    w.away.buckets["out"]["b"] = b"b"
    follow(w)
    follow(w)
    assert w.there()["b"] == b"b"


def test_what_is_locked_stays_and_is_told(w: World) -> None:
    copied(w, "a", "b")
    w.away.locked.add("b")
    go(w, "b")
    follow(w)
    assert set(w.there()) == {"a", "b"}
    (row,) = w.rows()
    assert (row.status, row.code) == ("skipped", "Locked")


def test_who_may_not_delete_is_told_and_copies_go_on(w: World) -> None:
    copied(w, "a", *(f"b{n}" for n in range(25)))
    w.away.before = refusing(Denied("403"), "DELETE")
    go(w, *(f"b{n}" for n in range(25)))
    w.put("n", b"n")
    follow(w)
    assert w.link().health == "up" and w.there()["n"] == b"n"
    assert {row.code for row in w.rows()} == {"DstDelObjNotPermitted"}


def test_nothing_is_deleted_while_the_source_cannot_tell(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)
    for error in (Denied("403"), Unreachable("nobody")):
        w.home.before = refusing(error, "HEAD")
        w.copy()
        assert set(w.there()) == {"a", "b"}


# --- state that is lost, or older -------------------------------------------------------------------------------------


def manifest_files(w: World) -> list[str]:
    return [key for key in w.away.buckets["out"] if key.endswith(".parquet")]


def test_only_one_file_of_a_stretch_is_kept(w: World) -> None:
    copied(w, "a", "b")
    for name in "cde":
        w.put(name)
        look(w)
        w.copy()
    look(w)
    assert listed(w) == 5
    assert len(manifest_files(w)) == 1


def test_nothing_is_deleted_when_the_manifest_is_lost(w: World) -> None:
    copied(w, "a", "b", "c")
    go(w, "b")
    for key in manifest_files(w):
        del w.away.buckets["out"][key]
    follow(w)
    follow(w)
    assert set(w.there()) == {"a", "b", "c"} and listed(w) == 2
    go(w, "c")
    follow(w)
    assert set(w.there()) == {"a", "b"}


def test_nothing_is_deleted_on_the_word_of_a_database_that_was_restored(w: World) -> None:
    copied(w, "a", "b", "c")
    go(w, "b")
    look(w)
    before = {row.pk: (row.generation, row.file) for row in ShardManifest.objects.all()}
    kept = {key: w.away.buckets["out"][key] for key in manifest_files(w)}
    w.put("d")
    look(w)
    w.copy()
    look(w)
    assert len({*manifest_files(w), *kept}) == 2
    for pk, (generation, file) in before.items():
        ShardManifest.objects.filter(pk=pk).update(generation=generation, file=file)
    w.away.buckets["out"] |= kept
    w.later(61)
    w.copy()
    follow(w)
    assert "b" in w.there()
    go(w, "c")
    follow(w)
    assert set(w.there()) == {"a", "b", "d"}


# --- how many at once -------------------------------------------------------------------------------------------------


def many(w: World, **more: Any) -> list[str]:
    keys = [f"k{n:03}" for n in range(20)]
    copied(w, *keys, **{"delete_percent": 10, **more})
    return keys


def test_as_many_as_are_allowed_are_deleted(w: World) -> None:
    keys = many(w)
    go(w, *keys[:2])
    follow(w)
    assert len(w.there()) == 18 and not Approval.objects.exists()


def test_many_small_deletions_are_not_taken_for_few(w: World) -> None:
    keys = many(w)
    go(w, *keys[:2])
    follow(w)
    w.later(3600)
    go(w, keys[2])
    follow(w)
    approval = Approval.objects.get()
    assert (approval.number, approval.of, approval.lately, len(w.there())) == (1, 18, 2, 18)
    decide(w, ApprovalState.APPROVED)
    w.later(61)
    w.copy()
    assert len(w.there()) == 17
    w.later(24 * 3600)  # what was approved is not counted, and the others are of the day before
    go(w, keys[3])
    follow(w)
    assert len(w.there()) == 16 and Approval.objects.count() == 1


def test_more_wait_for_somebody_and_copies_go_on(w: World) -> None:
    keys = many(w)
    go(w, *keys[:3])
    w.put("n")
    follow(w)
    w.later(3600)
    w.work()
    assert len(w.there()) == 21
    approval = Approval.objects.get()
    assert (approval.state, approval.number, approval.of, approval.first_keys) == ("waiting", 3, 20, keys[:3])
    w.check_counts()


def test_what_is_approved_is_exactly_the_list(w: World) -> None:
    keys = many(w)
    go(w, *keys[:3])
    look(w)
    go(w, *keys[3:7])
    w.put(keys[0], b"again")
    look(w)
    decide(w, ApprovalState.APPROVED)
    w.later(61)
    w.copy()
    w.work()
    assert set(w.there()) == set(keys) - {keys[1], keys[2]}
    look(w)
    assert Approval.objects.get(state="waiting").first_keys == keys[3:7]


def decide(w: World, state: ApprovalState) -> None:
    approval = Approval.objects.get(state="waiting")
    deletions.decide(approval, state, "olga", clock.now())


def test_what_is_rejected_is_not_asked_for_again_until_it_changes(w: World) -> None:
    keys = many(w)
    go(w, *keys[:3])
    look(w)
    decide(w, ApprovalState.REJECTED)
    look(w, 3)
    assert w.rows() == [] and not Approval.objects.filter(state="waiting").exists()
    w.put(keys[0], b"again")
    look(w)
    w.copy()
    go(w, keys[0])
    look(w, 2)
    assert w.names() == [keys[0]]


def test_what_nobody_answers_is_asked_for_anew(w: World) -> None:
    keys = many(w)
    go(w, *keys[:3])
    look(w)
    w.later(7 * 86400 + 1)
    look(w)
    assert sorted(Approval.objects.values_list("state", flat=True)) == ["expired", "waiting"]
    assert len(w.there()) == 20


# --- sources and targets that are not what they were ------------------------------------------------------------------


def test_a_source_that_is_empty_freezes_its_links(w: World) -> None:
    keys = many(w, delete_percent=100)
    go(w, *keys)
    follow(w)
    follow(w)
    link = w.link()
    assert (len(w.there()), link.frozen_code) == (20, "SourceEmpty")
    freezing.thaw(link)
    follow(w)
    assert w.there() == {}


def test_a_source_that_was_recreated_freezes_its_links(w: World) -> None:
    w.home.created["src"] = "2026-01-01T00:00:00Z"
    copied(w, "a", "b", "c")
    w.home.created["src"] = "2026-02-01T00:00:00Z"
    go(w, "b")
    follow(w)
    assert w.link().frozen_code == "SourceRecreated" and "b" in w.there()
    freezing.thaw(w.link())
    follow(w)
    assert set(w.there()) == {"a", "c"}


def test_a_source_that_is_gone_freezes_its_links(w: World) -> None:
    copied(w, "a", "b")
    kept = w.home.buckets.pop("src")
    look(w)
    w.home.buckets["src"] = {"a": kept["a"]}
    follow(w)
    assert w.link().frozen_code == "SrcBucketNotFound" and "b" in w.there()


def test_a_target_that_was_recreated_is_not_written_to(w: World) -> None:
    copied(w, "a", "b")
    w.away.buckets["out"] = {}
    follow(w)
    assert w.away.buckets["out"] == {} and w.link().stale_since is not None
    w.work()
    assert w.away.buckets["out"] == {}


def test_a_link_of_before_gets_its_pin_and_one_in_another_folder_its_own(w: World) -> None:
    w.put("a")
    w.rule((AWAY, "s3://out/one"), (AWAY, "s3://out/two"), pinned=False)
    w.work()
    pins = [key for key in w.away.buckets["out"] if key.endswith("target.json")]
    assert sorted(pins) == ["one/_lakemirror/target.json", "two/_lakemirror/target.json"]
    assert Link.objects.filter(pinned_at=None).count() == 0
    assert len(set(Link.objects.values_list("identity", flat=True))) == 2


def test_the_place_of_another_link_is_not_written_to(w: World) -> None:
    w.away.buckets["out"]["_lakemirror/target.json"] = b'{"link": "abc", "name": "theirs"}'
    w.put("a")
    w.rule(pinned=False)
    w.work()
    assert w.there() == {} and "theirs" in w.link().stale_message


def test_the_pin_of_a_rule_that_is_gone_is_not_in_the_way_of_a_new_one(w: World) -> None:
    w.put("a")
    w.rule(pinned=False)
    w.work()
    Rule.objects.all().delete()
    w.put("b")
    w.rule(name="n", pinned=False)
    w.work()
    assert set(w.there()) == {"a", "b"} and w.link(1, "n").stale_since is None


# --- late deletions ---------------------------------------------------------------------------------------------------


def test_a_deletion_that_got_no_answer_hits_nothing_newer(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)

    def lost(method: str, bucket: str, key: str) -> None:
        if method == "DELETE":
            raise Unreachable("nobody answers")

    w.away.before = lost
    w.copy()
    w.away.before = lambda method, bucket, key: None
    (late,) = w.away.given_up
    w.put("b", b"again")
    look(w)
    w.later(5)
    w.copy()
    assert w.there()["b"] == b"b", "nothing is written before the deletion has certainly come to its end"
    late.do()
    w.later(timedelta(seconds=100).total_seconds())
    w.copy()
    assert w.there()["b"] == b"again" and ledger.hold(w.link().pk) is not None
    assert w.rows() == []
