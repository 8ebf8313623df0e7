"""Rules with `purges`: versions that the source has deleted for good go at the targets, too, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import Denied, Unreachable
from core.installations.replication_rights import Need, Side, store_policy
from core.replicating.preflight import deciding
from core.replicating.states import ApprovalState
from db import clock
from replication.models import Approval, Arrived, OpenObject, Rule, ShardManifest
from replication.services.rules import rule_update
from replication.transitions import deletions, touching
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.replication.version_world import VersionedStore, VersionWorld, version_world
from tests.replication.world import AWAY, FAR, HOME, refusing, silent

pytestmark = pytest.mark.django_db
BOTH = ((AWAY, "s3://out"), (FAR, "s3://out"))


RULES = "/service/replication/v1/rules"


@pytest.fixture
def v(lm: Deployment) -> Iterator[VersionWorld]:
    """Stores that keep versions: a plain target and an exact one."""
    with version_world(lm) as made:
        yield made


def copied(v: VersionWorld, **more: Any) -> None:
    """Three versions of `a`, and some of others, are at both targets, as was seen."""
    for data in (b"1", b"22", b"333"):
        v.put("a", data)
    v.put("b", b"b")
    v.put("z", b"z")
    v.rule(*BOTH, **{"purges": True} | more)
    v.work(1)
    v.look()
    equal(v)


def equal(v: VersionWorld) -> None:
    """The chains are the same on all sides, and nothing is open."""
    assert v.away.shown("out") == v.home.shown("src")
    assert v.far.ids("out") == v.home.ids("src")
    assert not OpenObject.objects.exists()
    v.check_counts()


def written(v: VersionWorld) -> int:
    """So many versions and markers of the rule's were written at the targets."""
    return sum(not key.startswith("_lakemirror/") for store in (v.away, v.far) for _, key, _ in store.written)


def purge(v: VersionWorld, key: str, at: int) -> None:
    """A version, or a marker, of the source is deleted for good."""
    chain = v.home.chains["src"][key]
    chain.pop(at)


def follow(v: VersionWorld) -> None:
    """A look, and more than a minute later what it has found."""
    v.look()
    v.later(61)
    v.copy()


def data(store: VersionedStore, key: str) -> list[bytes]:
    return [one.data for one in store.chains["out"].get(key, [])]


def both(v: VersionWorld, key: str) -> tuple[list[bytes], list[bytes]]:
    return data(v.away, key), data(v.far, key)


# --- what goes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_version_that_is_purged_at_the_source_goes_at_the_targets(v: VersionWorld, at: int) -> None:
    copied(v)
    before = written(v)
    purge(v, "a", at)
    v.look()
    assert len(data(v.away, "a")) == len(data(v.far, "a")) == 3, "a minute lies between two looks at the source"
    assert {(row.kind, row.status) for row in OpenObject.objects.all()} == {("purge", "deleting")}
    v.later(61)
    v.copy()
    equal(v)
    v.look()
    equal(v)
    assert written(v) == before
    assert [v.link(number).deleted_objects for number in (1, 2)] == [1, 1]
    assert [row.objects_listed for row in ShardManifest.objects.all()] == [4, 4] and not Arrived.objects.exists()


def test_a_marker_that_is_purged_shows_again_what_it_hid(v: VersionWorld) -> None:
    copied(v)
    v.drop("a")
    v.look()
    equal(v)
    purge(v, "a", 3)
    follow(v)
    equal(v)


def test_a_key_of_which_all_is_purged_goes(v: VersionWorld) -> None:
    copied(v)
    del v.home.chains["src"]["a"], v.home.chains["src"]["z"]
    follow(v)
    equal(v)


def test_a_rule_without_purges_keeps_them(v: VersionWorld) -> None:
    copied(v, purges=False)
    purge(v, "a", 0)
    follow(v)
    follow(v)
    assert both(v, "a") == ([b"1", b"22", b"333"],) * 2 and not OpenObject.objects.exists()


def test_what_comes_and_is_purged_between_two_looks_goes(v: VersionWorld) -> None:
    copied(v)
    v.put("a", b"new")
    touching.objects_changed(HOME, {("src", "a")})
    v.work(1)
    assert data(v.away, "a")[-1] == data(v.far, "a")[-1] == b"new"
    purge(v, "a", 3)
    follow(v)
    equal(v)


def test_copies_of_a_version_that_were_written_twice_go_both(v: VersionWorld) -> None:
    copied(v)
    v.away.add("out", "a", b"theirs")
    v.far.add("out", "a", b"theirs")
    v.look()
    v.look()
    assert both(v, "a") == ([b"1", b"22", b"333", b"theirs", b"333"],) * 2
    purge(v, "a", 2)
    follow(v)
    assert both(v, "a") == ([b"1", b"22", b"theirs", b"22"],) * 2, "what the source shows is shown"
    v.look()
    assert both(v, "a") == ([b"1", b"22", b"theirs", b"22"],) * 2 and not OpenObject.objects.exists()


def test_equal_versions_are_not_taken_for_each_other(v: VersionWorld) -> None:
    copied(v)
    for _ in range(3):
        v.put("s", b"same")
    v.look()
    copies = [one.id for one in v.away.chains["out"]["s"]]
    purge(v, "s", 1)
    follow(v)
    assert [one.id for one in v.away.chains["out"]["s"]] == [copies[0], copies[2]]
    equal(v)
    purge(v, "s", 0)
    follow(v)
    assert [one.id for one in v.away.chains["out"]["s"]] == [copies[2]]
    equal(v)


def test_what_stands_for_another_version_goes_once_that_has_a_copy_of_its_own(v: VersionWorld) -> None:
    copied(v)
    v.put("s", b"same")
    v.look()
    v.put("s", b"same")
    purge(v, "s", 0)
    v.away.before = v.far.before = lambda method, bucket, key: None
    v.look()
    v.later(61)
    v.copy()
    assert v.home.shown("src")["s"] == v.away.shown("out")["s"] == [(b"same", False)]
    v.look()
    equal(v)


def test_an_event_of_a_purge_writes_nothing_again(v: VersionWorld) -> None:
    copied(v)
    before = written(v)
    purge(v, "a", 2)
    touching.objects_changed(HOME, {("src", "a")})
    v.work(1)
    assert written(v) == before
    follow(v)
    equal(v)


# --- what never goes --------------------------------------------------------------------------------------------------


def test_what_is_somebody_elses_stays(v: VersionWorld) -> None:
    copied(v)
    for store in (v.away, v.far):
        store.chains["out"]["a"].insert(0, store.add("out", "x", b"old"))
        store.chains["out"]["x"].clear()
        store.add("out", "theirs", b"foreign")
    purge(v, "a", 0)
    follow(v)
    follow(v)
    assert both(v, "a") == ([b"old", b"22", b"333"],) * 2
    assert both(v, "theirs") == ([b"foreign"],) * 2
    assert {row.foreign_objects for row in ShardManifest.objects.all()} == {1}


def test_somebodys_copy_of_ours_is_theirs_whatever_its_metadata_says(v: VersionWorld) -> None:
    copied(v)
    ours = v.away.chains["out"]["a"][0]
    v.away.add("out", "copy", ours.data, told=dict(ours.told))
    v.away.add("out", "a", b"by hand", told=dict(ours.told))
    purge(v, "a", 0)
    follow(v)
    follow(v)
    assert data(v.away, "copy") == [b"1"] and b"by hand" in data(v.away, "a")


def test_what_is_back_at_the_source_stays(v: VersionWorld) -> None:
    copied(v)
    gone = v.home.chains["src"]["a"].pop(0)
    v.look()
    v.home.chains["src"]["a"].insert(0, gone)
    v.later(61)
    v.copy()
    equal(v)


def test_what_is_locked_stays_and_is_told(v: VersionWorld) -> None:
    copied(v)
    for store in (v.away, v.far):
        store.chains["out"]["a"][0].told = {"x-amz-object-lock-legal-hold": "ON"}
    purge(v, "a", 0)
    follow(v)
    assert both(v, "a") == ([b"1", b"22", b"333"],) * 2
    assert {(row.kind, row.status, row.code) for row in OpenObject.objects.all()} == {("purge", "skipped", "Locked")}


def test_who_may_not_delete_versions_is_told_and_copies_go_on(v: VersionWorld) -> None:
    copied(v)
    for store in (v.away, v.far):
        store.before = refusing(Denied("403"), "DELETE")
    purge(v, "a", 0)
    v.put("new")
    follow(v)
    assert both(v, "new") == ([b"data"],) * 2 and len(data(v.away, "a")) == 3
    assert {(row.status, row.code) for row in OpenObject.objects.all()} == {("failed", "DstDelObjNotPermitted")}


def test_nothing_goes_while_the_source_cannot_tell(v: VersionWorld) -> None:
    copied(v)
    purge(v, "a", 0)
    v.look()
    v.later(61)
    for error in (Denied("403"), Unreachable("nobody")):
        v.home.before = refusing(error, "VERSIONS")
        v.copy()
        assert len(data(v.away, "a")) == len(data(v.far, "a")) == 3
        v.later(100)


def test_a_version_that_answers_although_no_listing_has_it_stays(v: VersionWorld) -> None:
    copied(v)
    hidden = v.home.chains["src"]["a"].pop(0)
    v.look()
    v.later(61)
    found = VersionedStore._found

    def also(self: VersionedStore, bucket: str, key: str, version: str) -> Any:
        return hidden if version == hidden.id and self is v.home else found(self, bucket, key, version)

    VersionedStore._found = also  # type: ignore[method-assign]
    try:
        v.copy()
    finally:
        VersionedStore._found = found  # type: ignore[method-assign]
    assert len(data(v.away, "a")) == len(data(v.far, "a")) == 3


def test_a_marker_that_answers_although_no_listing_has_it_stays(v: VersionWorld) -> None:
    copied(v)
    v.drop("a")
    v.look()
    equal(v)
    send = v.home.send
    going = [(key, one.id) for key, one in (("a", one) for one in v.home.chains["src"]["a"])]
    chain = v.home.chains["src"].pop("a")

    def unlisted(method: str, url: str, doing: str, *more: Any, **named: Any) -> Any:
        if method != "HEAD" or "versionId" not in url:
            return send(method, url, doing, *more, **named)
        v.home.chains["src"]["a"] = chain
        try:
            return send(method, url, doing, *more, **named)
        finally:
            del v.home.chains["src"]["a"]

    v.home.send = unlisted  # type: ignore[method-assign]
    follow(v)
    assert len(going) == len(v.away.chains["out"]["a"]) == len(v.far.chains["out"]["a"]) == 4


def test_nothing_goes_where_the_manifest_is_lost(v: VersionWorld) -> None:
    copied(v)
    for store in (v.away, v.far):
        for key in [key for key in store.chains["out"] if key.endswith(".parquet")]:
            del store.chains["out"][key]
    purge(v, "a", 0)
    follow(v)
    follow(v)
    assert both(v, "a") == ([b"1", b"22", b"333"],) * 2
    purge(v, "b", 0)
    v.put("b", b"2")
    follow(v)
    follow(v)
    assert both(v, "b") == ([b"2"],) * 2, "what was seen to be equal since is the link's"


def test_29_an_emptied_source_purges_nothing(v: VersionWorld) -> None:
    copied(v)
    v.home.chains["src"].clear()
    follow(v)
    follow(v)
    assert len(data(v.away, "a")) == len(data(v.far, "a")) == 3
    assert {v.link(number).frozen_code for number in (1, 2)} == {"SourceEmpty"}


# --- thresholds -------------------------------------------------------------------------------------------------------


def test_more_than_the_threshold_waits_and_what_is_approved_goes(v: VersionWorld) -> None:
    copied(v, delete_percent=30)
    purge(v, "a", 0)
    purge(v, "a", 0)
    v.put("b", b"copies go on")
    follow(v)
    assert [(one.number, one.of, one.first_keys) for one in Approval.objects.all()] == [(2, 5, ["a", "a"])] * 2
    assert len(data(v.away, "a")) == 3 and data(v.away, "b")[-1] == data(v.far, "b")[-1] == b"copies go on"
    purge(v, "b", 0)
    for approval in Approval.objects.filter(state="waiting"):
        deletions.decide(approval, ApprovalState.APPROVED, "olga", clock.now())
    v.later(61)
    v.copy()
    assert both(v, "a") == ([b"333"],) * 2 and both(v, "b") == ([b"b", b"copies go on"],) * 2
    follow(v)
    equal(v)


def test_what_is_rejected_is_not_the_links_any_more(v: VersionWorld) -> None:
    copied(v, delete_percent=0)
    purge(v, "a", 0)
    follow(v)
    for approval in Approval.objects.filter(state="waiting"):
        deletions.decide(approval, ApprovalState.REJECTED, "olga", clock.now())
    Rule.objects.update(delete_percent=100)
    follow(v)
    follow(v)
    assert both(v, "a") == ([b"1", b"22", b"333"],) * 2 and not OpenObject.objects.exists()


def test_a_rejected_purge_of_the_latest_has_the_sources_latest_shown(v: VersionWorld) -> None:
    copied(v, delete_percent=0)
    purge(v, "a", 2)
    v.look()
    assert both(v, "a") == ([b"1", b"22", b"333"],) * 2
    for approval in Approval.objects.filter(state="waiting"):
        deletions.decide(approval, ApprovalState.REJECTED, "olga", clock.now())
    v.look()
    v.look()
    assert both(v, "a") == ([b"1", b"22", b"333", b"22"],) * 2


# --- outages ----------------------------------------------------------------------------------------------------------


def test_17_a_purge_while_the_target_is_down_is_done_once_it_is_up(v: VersionWorld) -> None:
    copied(v)
    purge(v, "a", 0)
    v.look()
    for store in (v.away, v.far):
        store.before = silent()
    v.later(61)
    for _ in range(3):
        v.copy()
        v.later(40)
    assert {row.status for row in OpenObject.objects.all()} == {"deleting"}, "it is pending"
    for store in (v.away, v.far):
        store.before = lambda method, bucket, key: None
    written = len(v.home.written)
    v.later(200)
    v.copy()
    v.copy()
    v.look()
    equal(v)
    assert len(v.home.written) == written, "nothing comes back from the target's side"


def test_17_a_purge_that_is_first_seen_while_the_target_is_down_is_found_later(v: VersionWorld) -> None:
    copied(v)
    for store in (v.away, v.far):
        store.before = silent()
    purge(v, "a", 0)
    v.look()
    assert len(data(v.away, "a")) == 3 and not OpenObject.objects.exists()
    for store in (v.away, v.far):
        store.before = lambda method, bucket, key: None
    v.later(400)
    v.look()
    v.later(61)
    v.copy()
    v.look()
    equal(v)


def test_a_purge_of_which_no_answer_came_is_not_tried_before_that_is_over(v: VersionWorld) -> None:
    copied(v)
    purge(v, "a", 0)
    v.look()
    v.later(61)

    def lost(method: str, bucket: str, key: str) -> None:
        if method == "DELETE":
            raise Unreachable("the answer is lost")

    for store in (v.away, v.far):
        store.before = lost
    v.copy()
    for store in (v.away, v.far):
        store.before = lambda method, bucket, key: None
        for write in store.given_up:
            write.do()
    v.later(100)
    v.look()
    equal(v)


# --- how it is asked for ----------------------------------------------------------------------------------------------


def body(**more: object) -> dict[str, object]:
    target = [{"region": AWAY, "uri": "s3://out"}]
    told = {"name": "r", "source": {"region": HOME, "uri": "s3://src"}, "targets": target}
    return told | {"versions": "all", "purges": True} | more


def test_purges_are_a_field_of_rules_that_copy_all_versions(v: VersionWorld, api: Api) -> None:
    status, made = api.call("POST", RULES, body())
    assert status == 201 and made["purges"] is True
    status, changed = api.call("PATCH", f"{RULES}/r", {"purges": False})
    assert status == 200 and changed["purges"] is False


def test_purges_of_the_latest_objects_alone_are_refused(v: VersionWorld, api: Api) -> None:
    status, answer = api.call("POST", RULES, body(versions="latest"))
    assert (status, answer["field"]) == (400, "purges") and "all versions" in answer["message"]
    assert api.call("POST", RULES, body(versions="latest", purges=False))[0] == 201
    status, answer = api.call("PATCH", f"{RULES}/r", {"purges": True})
    assert (status, answer["field"]) == (400, "purges")


def test_purges_both_ways_are_refused(v: VersionWorld, api: Api) -> None:
    target = [{"region": FAR, "uri": "s3://out"}]
    status, answer = api.call("POST", RULES, body(conflict="newest", targets=target))
    assert (status, answer["field"]) == (400, "purges")


def test_a_change_of_purges_purges_nothing_that_was_purged_before(v: VersionWorld, owner: Any) -> None:
    copied(v, purges=False)
    purge(v, "a", 0)
    rule_update(actor=owner, name="r", changes={"purges": True})
    follow(v)
    follow(v)
    assert both(v, "a") == ([b"1", b"22", b"333"],) * 2
    purge(v, "a", 0)
    follow(v)
    assert both(v, "a") == ([b"1", b"333"],) * 2


def test_the_checks_try_to_delete_a_version(v: VersionWorld, api: Api) -> None:
    _, found = api.call("POST", f"{RULES}/preflight", body())
    checks = {check["id"]: check["state"] for check in found["checks"]}
    assert checks["target-1-right:s3:DeleteObjectVersion"] == "ok"
    assert "target-1-right:s3:DeleteObjectVersion" in deciding(1, versions=True, purges=True) - deciding(
        1, versions=True
    )
    assert v.away.shown("out") == {}
    _, without = api.call("POST", f"{RULES}/preflight", body(purges=False))
    assert "DeleteObjectVersion" not in str(without)
    v.away.before = refusing(Denied("403"), "DELETE")
    _, refused = api.call("POST", f"{RULES}/preflight", body())
    checks = {check["id"]: check["state"] for check in refused["checks"]}
    assert not refused["ok"] and checks["target-1-right:s3:DeleteObjectVersion"] == "failed"


def test_the_policy_for_the_key_lets_versions_be_deleted_where_a_rule_purges() -> None:
    def on(purges: bool) -> list[str]:
        need = Need(Side.COPIED_TO, "", place="s3://out/t", versions=True, purges=purges)
        told = store_policy([need])
        assert told is not None
        return [on for one in told["Statement"] if "s3:DeleteObjectVersion" in one["Action"] for on in one["Resource"]]

    assert on(True) == ["arn:aws:s3:::out/t/*"] and on(False) == ["arn:aws:s3:::out/t/_lakemirror_probe_*"]
    both_ways = store_policy([Need(Side.COPIED_TO, "", place="s3://out/t", versions=True, purges=True)])
    assert "s3:GetObjectLegalHold" in str(both_ways)


def test_what_waits_names_versions(v: VersionWorld, api: Api) -> None:
    copied(v, delete_percent=0)
    going = v.away.chains["out"]["a"][0].id
    purge(v, "a", 0)
    v.drop("b")
    v.look()
    _, page = api.call("GET", f"{RULES}/r/links/1/open?status=waiting")
    marker = v.home.chains["src"]["b"][-1].id
    assert sorted((one["key"], one["kind"], one["version"]) for one in page["results"]) == [
        ("a", "purge", going),
        ("b", "hide", marker),
    ]
    _, asked = api.call("GET", f"{RULES}/r/approvals?state=waiting")
    assert {(one["objects"], one["of_objects"]) for one in asked["results"]} == {(2, 5)}
