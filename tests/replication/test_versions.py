"""Rules that copy all versions and delete markers, in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.errors import Archived, Denied, RemoteFailure, Unreachable
from replication.models import OpenObject, Rule
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.replication.version_world import VersionWorld, version_world
from tests.replication.world import AWAY, FAR, HOME, refusing, silent

pytestmark = pytest.mark.django_db
RULES = "/service/replication/v1/rules"
BOTH = ((AWAY, "s3://out"), (FAR, "s3://out"))
OF = "x-amz-meta-lakemirror-source-version"


@pytest.fixture
def v(lm: Deployment) -> Iterator[VersionWorld]:
    """Stores that keep versions: a plain target and an exact one."""
    with version_world(lm) as made:
        yield made


def a_history(v: VersionWorld) -> None:
    for data in (b"1", b"22", None, b"1", b"1"):
        if data is None:
            v.drop("a")
        else:
            v.put("a", data)
    v.put("b", b"")
    v.drop("b")
    for key in ("é/ü", "x/../y", "k" * 1024, "a b+c%20"):
        v.put(key, key.encode())


def equal(v: VersionWorld) -> None:
    assert v.away.shown("out") == v.home.shown("src")
    assert v.far.ids("out") == v.home.ids("src")
    assert not OpenObject.objects.exists()
    v.check_counts()


def test_as_many_versions_and_markers_in_the_same_order(v: VersionWorld) -> None:
    a_history(v)
    v.rule(*BOTH)
    v.work(1)
    equal(v)
    versions = [one.id for one in v.home.chains["src"]["a"] if not one.marker]
    assert [one.told[OF] for one in v.away.chains["out"]["a"] if not one.marker] == versions
    assert all(OF not in one.told for one in v.far.chains["out"]["a"])
    written = (len(v.away.written), len(v.far.written))
    v.later(3600)
    v.look()
    assert (len(v.away.written), len(v.far.written)) == written
    equal(v)


def test_what_comes_later_follows(v: VersionWorld) -> None:
    a_history(v)
    v.rule(*BOTH)
    v.work(1)
    v.put("a", b"1")
    v.drop("é/ü")
    v.drop("é/ü")
    v.look()
    equal(v)
    rule = Rule.objects.get()
    assert rule.full_objects == 6 and rule.full_bytes == sum(
        len(one.data) for chain in v.home.chains["src"].values() for one in chain
    )


def test_a_named_key_is_compared_by_its_chain(v: VersionWorld) -> None:
    from replication.transitions import touching

    v.put("a", b"1")
    v.rule(*BOTH)
    v.work(1)
    v.drop("a")
    v.put("a", b"2")
    touching.objects_changed(HOME, {("src", "a"), ("src", "none")})
    v.work(1)
    equal(v)


def test_what_the_source_purged_stays_and_no_longer_hides(v: VersionWorld) -> None:
    v.put("a", b"1")
    v.put("b", b"1")
    v.drop("a")
    v.rule(*BOTH)
    v.work(1)
    v.home.chains["src"]["a"].pop()
    v.look()
    for store in (v.away, v.far):
        assert [one.data for one in store.chains["out"]["a"]] == [b"1", b"", b"1"]
    written = len(v.away.written) + len(v.far.written)
    v.look()
    assert len(v.away.written) + len(v.far.written) == written
    v.drop("a")
    v.look()
    assert v.away.chains["out"]["a"][-1].marker and v.far.chains["out"]["a"][-1].marker
    assert not OpenObject.objects.exists()


@pytest.mark.parametrize("chain", [[b"1"], [b"1", b"2"], [b"1", None]], ids=["one", "two", "deleted"])
def test_what_a_target_has_and_does_not_list_is_not_written_again_and_again(
    v: VersionWorld, chain: list[bytes | None]
) -> None:
    v.away.unlisted.add("b/c")
    v.put("b")
    for data in chain:
        v.home.add("src", "b/c", data)
    v.rule((AWAY, "s3://out"))
    for _ in range(3):
        v.look()
    there = v.away.shown("out")["b/c"]
    assert len(there) == len(chain) and v.away.shown("out")["b"]
    assert [(row.name, row.status, row.code) for row in v.rows()] == [("b/c", "failed", "NotListed")]


def test_what_somebody_hid_while_nothing_was_there_is_shown_with_the_copy(v: VersionWorld) -> None:
    v.put("a", b"1")
    v.put("a", b"2")
    v.rule((FAR, "s3://out"))
    v.later(10)
    v.far.add("out", "a", None)
    v.work(1)
    assert [one.data for one in v.far.chains["out"]["a"]] == [b"1", b"2", b"", b"2"]


def test_other_bytes_under_one_id_are_left_and_told(v: VersionWorld) -> None:
    v.put("a", b"1")
    v.put("a", b"2")
    first = v.home.chains["src"]["a"][0]
    v.far.add("out", "a", b"other", id=first.id, at=first.at)
    v.rule((FAR, "s3://out"))
    v.work(1)
    (row,) = v.rows()
    assert (row.status, row.code, row.version) == ("failed", "Conflict", first.id)
    assert [one.data for one in v.far.chains["out"]["a"]] == [b"other", b"2"]


def test_an_id_that_is_taken_between_looking_and_writing_is_not_replaced(v: VersionWorld) -> None:
    v.put("a", b"1")
    one = v.home.chains["src"]["a"][0]
    v.rule((FAR, "s3://out"))
    v.scan()

    def somebody(method: str, bucket: str, key: str) -> None:
        if method == "PUT" and not v.far.chains["out"].get("a"):
            v.far.add("out", "a", b"theirs", id=one.id, at=one.at)

    v.far.before = somebody
    v.copy()
    assert [each.data for each in v.far.chains["out"]["a"]] == [b"theirs"]
    assert [row.code for row in v.rows()] == ["Conflict"]


def test_one_that_is_there_already_counts_as_done(v: VersionWorld) -> None:
    v.put("a", b"1")
    one = v.home.chains["src"]["a"][0]
    v.rule((FAR, "s3://out"))
    v.scan()

    def another_worker(method: str, bucket: str, key: str) -> None:
        if method == "PUT" and not v.far.chains["out"].get("a"):
            v.far.add("out", "a", b"1", id=one.id, at=one.at)

    v.far.before = another_worker
    v.copy()
    equal_far = v.far.ids("out") == v.home.ids("src")
    assert equal_far and v.rows() == []


def test_a_version_that_cannot_be_copied_holds_up_no_other_and_nothing_is_copied_again_for_it(v: VersionWorld) -> None:
    for data in (b"1", b"22", b"333"):
        v.put("a", data)
    middle = v.home.chains["src"]["a"][1]
    v.rule(*BOTH)
    send = v.home.send

    def archived(method: str, url: str, doing: str, *more: object, **named: object) -> object:
        if method == "GET" and middle.id in url:
            raise Archived("it is archived")
        return send(method, url, doing, *more, **named)  # type: ignore[arg-type]

    v.home.send = archived  # type: ignore[method-assign,assignment]
    v.work(1)
    v.later(100_000)
    v.look()
    assert [one.data for one in v.away.chains["out"]["a"]] == [b"1", b"333"]
    assert [(row.code, row.version) for row in v.rows(1) + v.rows(2)] == [("SourceArchived", middle.id)] * 2
    v.home.send = send  # type: ignore[method-assign]
    v.later(100_000)
    v.look()
    assert [one.data for one in v.away.chains["out"]["a"]] == [b"1", b"333", b"22", b"333"]
    assert v.far.ids("out") == v.home.ids("src") and not OpenObject.objects.exists()


def test_what_may_pass_keeps_the_order_for_some_tries(v: VersionWorld) -> None:
    v.put("a", b"1")
    v.put("a", b"22")
    first = v.home.chains["src"]["a"][0]
    v.rule()
    send = v.home.send

    def broken(method: str, url: str, doing: str, *more: object, **named: object) -> object:
        if method == "GET" and first.id in url:
            raise RemoteFailure("500")
        return send(method, url, doing, *more, **named)  # type: ignore[arg-type]

    v.home.send = broken  # type: ignore[method-assign,assignment]
    for _ in range(5):
        v.work(1)
        assert v.away.chains["out"].get("a", []) == []
        v.later(4000)
    v.work(1)
    assert [one.data for one in v.away.chains["out"]["a"]] == [b"22"]
    (row,) = v.rows()
    assert (row.status, row.code, row.version) == ("pending", "SourceFailed", first.id)


def test_a_write_that_nobody_answered_is_looked_for_before_it_is_tried_again(v: VersionWorld) -> None:
    v.put("a", b"1")
    v.put("a", b"2")
    v.rule(*BOTH)
    v.scan()
    for store in (v.away, v.far):
        lost: list[str] = []

        def after(method: str, bucket: str, key: str, lost: list[str] = lost) -> None:
            if method == "PUT" and not lost:
                lost.append(key)
                raise Unreachable("the answer is lost")

        store.after = after
    v.copy()
    v.later(100)
    v.work(2)
    equal(v)


def test_versioning_that_is_off_at_the_target_stops_all_before_anything_is_written(v: VersionWorld) -> None:
    for number in range(3):
        v.put(f"k{number}")
    v.put("a", b"1")
    v.drop("a")
    v.rule()
    v.away.status["out"] = "Suspended"
    v.work(1)
    assert not v.away.written and v.away.asked["DELETE"] == 0
    assert {row.code for row in v.rows()} == {"DstBucketUnversioned"}
    v.away.status["out"] = "Enabled"
    v.later(100_000)
    v.work(2)
    assert v.away.shown("out") == v.home.shown("src")


def test_refused_everything_stops_after_two_versions_of_a_key(v: VersionWorld) -> None:
    for data in (b"1", b"2", b"3", b"4"):
        v.put("a", data)
    v.rule()
    v.away.before = refusing(Denied("403"), "PUT")
    v.work(1)
    assert v.away.asked["PUT"] == 2
    assert [row.code for row in v.rows()] == ["DstPutObjectNotPermitted"]


def test_directory_objects_of_a_store_that_keeps_one_version(v: VersionWorld) -> None:
    v.home.add("src", "a/", b"", id="null")
    v.rule((FAR, "s3://out"))
    v.work(1)
    assert v.far.ids("out") == v.home.ids("src")
    v.home.chains["src"]["a/"] = []
    v.home.add("src", "a/", b"new", id="null")
    v.look()
    assert [one.data for one in v.far.chains["out"]["a/"]] == [b"new"]
    assert not OpenObject.objects.exists()


def test_new_versions_alone(v: VersionWorld) -> None:
    v.put("a", b"old")
    v.later(100)
    v.rule(existing=False)
    v.later(100)
    v.put("a", b"new")
    v.work(1)
    assert [one.data for one in v.away.chains["out"]["a"]] == [b"new"]
    assert not OpenObject.objects.exists()


def test_versions_of_null_that_are_replaced_at_the_source_follow_as_versions(v: VersionWorld) -> None:
    v.home.add("src", "a", b"1", id="null")
    v.rule()
    v.work(1)
    v.home.chains["src"]["a"] = []
    v.home.add("src", "a", b"2", id="null")
    v.look()
    assert [one.data for one in v.away.chains["out"]["a"]] == [b"1", b"2"]


def test_copies_whose_etags_are_no_hashes_are_known_by_their_names(v: VersionWorld) -> None:
    v.put("a", b"1")
    v.put("a", b"2")
    v.away.etags = lambda data: "kms" + data.hex()
    v.away.told = {}
    v.rule()
    v.work(1)
    v.look()
    assert [one.data for one in v.away.chains["out"]["a"]] == [b"1", b"2"]
    assert not OpenObject.objects.exists()


# --- how one is created -----------------------------------------------------------------------------------------------


def body(**more: object) -> dict[str, object]:
    targets = [{"region": AWAY, "uri": "s3://out"}, {"region": FAR, "uri": "s3://two"}]
    return {"name": "r", "source": {"region": HOME, "uri": "s3://src"}, "targets": targets, "versions": "all"} | more


def test_a_rule_of_all_versions_tells_where_ids_stay(v: VersionWorld, api: Api) -> None:
    status, made = api.call("POST", RULES, body())
    assert status == 201, made
    assert made["versions"] == "all" and [link["exact"] for link in made["links"]] == [False, True]
    assert all(link["exact_at"] for link in made["links"])
    assert v.away.shown("out") == v.far.shown("two") == {}
    of = {"region": HOME, "uri": "s3://other"}
    target = [{"region": AWAY, "uri": "s3://three"}]
    status, latest = api.call("POST", RULES, body(name="l", source=of, versions="latest", targets=target))
    assert status == 201 and latest["versions"] == "latest" and latest["links"][0]["exact"] is None


def test_versions_are_refused_where_a_bucket_keeps_none(v: VersionWorld, api: Api) -> None:
    for store, bucket, field in ((v.home, "src", "source.uri"), (v.far, "two", "targets.1.uri")):
        for now in ("", "Suspended"):
            store.status[bucket] = now
            status, answer = api.call("POST", RULES, body())
            assert status == 400 and f"bucket '{bucket}'" in answer["message"] and answer["field"] == field
        store.status[bucket] = "Enabled"
    v.away.before = refusing(Denied("403"), "VERSIONING")
    assert api.call("POST", RULES, body())[0] == 409
    v.away.before = silent("VERSIONING")
    assert api.call("POST", RULES, body())[0] == 503
    assert not Rule.objects.exists()


def test_what_versions_may_be_and_that_they_stay(v: VersionWorld, api: Api) -> None:
    status, answer = api.call("POST", RULES, body(versions="some"))
    assert (status, answer["field"]) == (400, "versions")
    api.call("POST", RULES, body())
    assert api.call("PATCH", f"{RULES}/r", {"versions": "latest"})[0] == 400


def test_a_target_with_hidden_versions_is_not_empty(v: VersionWorld, api: Api) -> None:
    v.away.add("out", "old", b"1")
    v.away.add("out", "old", None)
    status, refused = api.call("POST", RULES, body())
    assert status == 409 and "versions already" in refused["message"]
    assert api.call("POST", RULES, body(overwrite=True))[0] == 201


def test_the_checks_ask_both_buckets_and_try_the_ids(v: VersionWorld, api: Api) -> None:
    v.home.status["src"] = "Suspended"
    _, found = api.call("POST", f"{RULES}/preflight", body())
    checks = {check["id"]: check for check in found["checks"]}
    assert not found["ok"]
    kept = [checks[f"{side}-versioning"]["state"] for side in ("source", "target-1", "target-2")]
    assert kept == ["failed", "ok", "ok"]
    assert "ids of their own" in checks["target-1-exact"]["message"]
    assert "keep their ids" in checks["target-2-exact"]["message"]
    v.home.status["src"] = "Enabled"
    v.far.add("two", "a", None)
    _, again = api.call("POST", f"{RULES}/preflight", body())
    assert {check["id"]: check["state"] for check in again["checks"]}["target-2-content"] == "failed"
    _, latest = api.call("POST", f"{RULES}/preflight", body(versions="latest"))
    assert "source-versioning" not in str(latest)


# --- one object -------------------------------------------------------------------------------------------------------


def test_one_object_is_told_version_by_version(v: VersionWorld, api: Api) -> None:
    for data in (b"1", b"22", None):
        v.home.add("src", "a", data)
    first, second, marker = (one.id for one in v.home.chains["src"]["a"])
    v.rule((AWAY, "s3://out"), (FAR, "s3://out"))
    v.work(1)
    v.far.chains["out"]["a"].pop(1)
    status, told = api.call("GET", f"{RULES}/r/objects?key=a")
    assert status == 200 and told["status"] == "PENDING" and told["source"] is None
    assert [target["status"] for target in told["targets"]] == ["VERIFIED", "PENDING"]
    assert [(one["version"], one["marker"], one["size"]) for one in told["versions"]] == [
        (marker, True, 0),
        (second, False, 2),
        (first, False, 1),
    ]
    assert [one["targets"][1]["status"] for one in told["versions"]] == ["VERIFIED", "PENDING", "VERIFIED"]
    copies = [one.id for one in reversed(v.away.chains["out"]["a"])]
    assert [one["targets"][0]["version"] for one in told["versions"]] == copies
    _, one = api.call("GET", f"{RULES}/r/objects?key=a&version={second}")
    assert [each["version"] for each in one["versions"]] == [second]
    assert api.call("GET", f"{RULES}/r/objects?key=a&version=none")[0] == 404
    assert api.call("GET", f"{RULES}/r/objects?key=none")[1]["status"] == "SOURCE_MISSING"
    v.far.before = silent()
    assert api.call("GET", f"{RULES}/r/objects?key=a")[1]["targets"][1]["status"] == "UNKNOWN"


def test_one_object_tells_which_version_failed(v: VersionWorld, api: Api) -> None:
    v.put("a", b"1")
    one = v.home.chains["src"]["a"][0]
    v.far.add("out", "a", b"other", id=one.id, at=one.at)
    v.rule((FAR, "s3://out"))
    v.work(1)
    _, told = api.call("GET", f"{RULES}/r/objects?key=a")
    assert told["status"] == "FAILED" and told["targets"][0]["code"] == "Conflict"
    assert told["versions"][0]["targets"] == [{"link": 1, "status": "FAILED", "version": None}]
    _, page = api.call("GET", f"{RULES}/r/links/1/open")
    assert page["results"][0]["version"] == one.id


def test_a_rule_of_the_latest_knows_no_versions(v: VersionWorld, api: Api) -> None:
    v.rule(versions="latest")
    assert api.call("GET", f"{RULES}/r/objects?key=a&version=1")[1]["field"] == "version"
    assert api.call("GET", f"{RULES}/r/objects?key=a")[1]["versions"] is None


def test_a_marker_that_somebody_else_has_just_put_there_counts_as_done(v: VersionWorld) -> None:
    v.put("a", b"1")
    v.drop("a")
    marker = v.home.chains["src"]["a"][-1]
    v.rule((FAR, "s3://out"))
    v.scan()

    def another_worker(method: str, bucket: str, key: str) -> None:
        chain = v.far.chains["out"].get("a", [])
        if method == "HEAD" and key and len(chain) == 1:
            v.far.add("out", "a", None, id=marker.id, at=marker.at)

    v.far.before = another_worker
    v.copy()
    assert v.far.ids("out") == v.home.ids("src") and v.rows() == []
    assert v.far.asked["DELETE"] == 0


def test_a_target_that_is_added_later_keeps_versions_too(v: VersionWorld, api: Api) -> None:
    assert api.call("POST", RULES, body(targets=[{"region": AWAY, "uri": "s3://out"}]))[0] == 201
    v.far.status["two"] = "Suspended"
    added = {"region": FAR, "uri": "s3://two"}
    status, refused = api.call("POST", f"{RULES}/r/links", added)
    assert status == 400 and "bucket 'two'" in refused["message"]
    v.far.status["two"] = "Enabled"
    status, told = api.call("POST", f"{RULES}/r/links", added)
    assert status == 201, told
    assert [link["exact"] for link in api.call("GET", f"{RULES}/r")[1]["links"]] == [False, True]
