"""Rules from the call that creates them to their end: services, engine and what is told of both."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import Conflict, Denied
from jobs.models import Duty
from replication.models import Link, OpenCount, OpenObject, Rule, Shard
from tests.api import Api
from tests.replication.world import AWAY, FAR, World, refusing, silent

pytestmark = pytest.mark.django_db
RULES = "/service/replication/v1/rules"
BODY = {
    "name": "logs",
    "source": {"region": "us-east-1", "uri": "s3://src/in"},
    "targets": [{"region": AWAY, "uri": "s3://out/copies"}, {"region": FAR, "uri": "s3://two"}],
}


@pytest.fixture
def made(w: World, api: Api) -> World:
    """A rule to two targets, with three objects at the source of which one lies beside its place."""
    for key in ("in/a", "in/b c/é", "into/beside"):
        w.put(key)
    status, told = api.call("POST", RULES, BODY)
    assert status == 201, told
    return w


def told(api: Api) -> dict[str, Any]:
    return api.call("GET", f"{RULES}/logs")[1]


def test_a_rule_brings_everything_to_each_target_and_says_so(made: World, api: Api) -> None:
    assert told(api)["word"] == "Comparing"
    made.work()
    assert made.there() == {"copies/a": b"data", "copies/b c/é": b"data"}
    assert made.there(FAR, "two") == {"a": b"data", "b c/é": b"data"}
    now = told(api)
    assert (now["word"], now["scanned_objects"], now["pending_objects"]) == ("Up to date", 2, 0)
    assert [(link["sent_objects"], link["sent_bytes"]) for link in now["links"]] == [(2, 8), (2, 8)]
    look = api.call("GET", f"{RULES}/logs/objects?key=b%20c/%C3%A9")[1]
    assert look["status"] == "COMPLETED" and {one["status"] for one in look["targets"]} == {"VERIFIED"}
    made.put("in/new")
    assert api.call("GET", f"{RULES}/logs/objects?key=new")[1]["status"] == "PENDING"
    assert api.call("POST", f"{RULES}/logs/scan")[0] == 202
    made.work()
    assert made.there()["copies/new"] == b"data"


def test_a_paused_link_begins_nothing_and_the_others_go_on(made: World, api: Api) -> None:
    api.call("POST", f"{RULES}/logs/links/1/pause")
    made.work()
    assert made.there() == {} and len(made.there(FAR, "two")) == 2
    now = told(api)
    assert (now["word"], now["links"][0]["pending_objects"], now["links"][1]["word"]) == ("Paused", 2, "Up to date")
    api.call("POST", f"{RULES}/logs/links/1/resume")
    made.work()
    assert len(made.there()) == 2 and told(api)["word"] == "Up to date"


def test_a_target_that_refuses_everything_is_blocked_and_goes_on_by_itself(made: World, api: Api) -> None:
    for number in range(25):
        made.put(f"in/{number}")
    made.away.before = refusing(Denied("403 to put"), "PUT")
    made.work()
    first, second = told(api)["links"]
    assert (first["health"], first["health_code"], first["state"]) == ("blocked", "DstPutObjectNotPermitted", "blocked")
    assert "s3://out/copies has refused everything" in first["reason"] and "403 to put" in first["reason"]
    assert (first["failed_objects"], second["word"]) == (0, "Up to date")
    made.away.before = lambda method, bucket, key: None
    made.later(61)
    made.work()
    assert len(made.there()) == 27 and told(api)["word"] == "Up to date"


def test_a_source_that_does_not_answer_is_told_as_the_source(made: World, api: Api) -> None:
    made.scan()
    made.home.before = silent()
    made.later(301)
    made.work(4)
    now = told(api)
    assert (now["word"], now["links"][0]["word"], now["links"][0]["health_code"]) == ("Unknown", "Down", "SourceDown")
    assert "the store of us-east-1 has not answered" in now["links"][0]["reason"].lower()
    assert now["scan_error"] and "can't be compared" in now["reason"]


def test_one_object_that_fails_is_listed_and_retried(made: World, api: Api) -> None:
    made.away.before = refusing(Conflict("metadata is too large"), "PUT", keys="copies/b")
    made.work()
    now = told(api)
    assert (now["state"], now["failed_objects"], now["links"][0]["failed_by_code"][0]["code"]) == (
        "failed",
        1,
        "TargetRefused",
    )
    [row] = api.call("GET", f"{RULES}/logs/links/1/open?status=failed")[1]["results"]
    assert (row["key"], row["attempts"]) == ("b c/é", 1) and "metadata is too large" in row["message"]
    assert api.call("GET", f"{RULES}/logs/objects?key=b%20c/%C3%A9")[1]["status"] == "FAILED"
    made.away.before = lambda method, bucket, key: None
    made.work()
    assert len(made.there()) == 1  # its next try is tomorrow
    assert api.call("POST", f"{RULES}/logs/retry", {"code": "TargetRefused"}) == (202, {"number": 1})
    made.work()
    assert len(made.there()) == 2 and told(api)["word"] == "Up to date"
    made.check_counts()


def test_only_new_objects_are_copied_where_that_is_wanted(w: World, api: Api) -> None:
    w.put("in/old")
    w.later(10)
    status, _ = api.call("POST", RULES, BODY | {"existing": False})
    assert status == 201
    w.later(10)
    w.put("in/new")
    w.work()
    assert set(w.there()) == {"copies/new"}
    assert api.call("GET", f"{RULES}/logs/objects?key=old")[1]["status"] == "SKIPPED"
    assert api.call("PATCH", f"{RULES}/logs", {"existing": True})[0] == 200
    w.work()
    assert set(w.there()) == {"copies/new", "copies/old"}


def test_a_deleted_rule_goes_with_its_rows_and_leaves_every_object(made: World, api: Api) -> None:
    made.away.before = refusing(Conflict("no"), "PUT", keys="copies/b")
    made.work()
    assert api.call("DELETE", f"{RULES}/logs") == (204, None)
    made.later(600)
    made.work()
    assert [model.objects.count() for model in (Rule, Link, Shard, OpenObject, OpenCount)] == [0] * 5
    assert not Duty.objects.filter(kind__startswith="replication").exists()
    assert set(made.there()) == {"copies/a"} and len(made.there(FAR, "two")) == 2
    assert {"in/a", "in/b c/é"} <= set(made.home.buckets["src"])
    made.away.before = lambda method, bucket, key: None
    assert api.call("POST", RULES, BODY)[0] == 409  # its targets are not empty now
    assert api.call("POST", RULES, BODY | {"overwrite": True})[0] == 201


def test_places_are_really_tried_before(w: World, api: Api) -> None:
    w.put("in/a")
    body = BODY | {"targets": [{"region": AWAY, "uri": "s3://absent"}, {"region": FAR, "uri": "s3://two"}]}
    w.far.before = refusing(Denied("403 to put"), "PUT")
    checks = {one["id"]: one for one in api.call("POST", f"{RULES}/preflight", body)[1]["checks"]}
    assert checks["target-1-bucket"]["state"] == "failed" and "no bucket absent" in checks["target-1-bucket"]["message"]
    assert checks["target-1-bucket"]["fix"] == "Create the bucket, or choose the region in whose store it is"
    assert checks["source-right:s3:GetObject"]["state"] == "ok"
    assert checks["target-2-right:s3:ListBucket"]["state"] == "ok"
    refused = checks["target-2-right:s3:PutObject"]
    assert refused["state"] == "failed" and "403 to put" in refused["message"]
    assert w.there(FAR, "two") == {}
