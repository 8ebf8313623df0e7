"""The API of replication rules: what each call answers, and what it refuses."""

from __future__ import annotations

import csv
import io
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from adapters.places.reader import Seen
from adapters.s3.write_probe import TRIED, Probed
from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from core.errors import Denied, NoBucket, Unreachable
from core.replicating.states import OpenStatus
from core.types import ObjectInfo
from jobs.models import Duty
from mirrors.models import Mirror, Repository
from rbac import services as rbac
from rbac.models import User
from replication.models import Link, OpenObject, Rule, Shard
from tests.api import Api
from tests.cast import person
from tests.exports.test_pages import an_export
from tests.fakes import EmptyRulePlace
from tests.mirrors.harness import Deployment
from tests.replication.factories import NOW, a_link, a_rule, assert_counted, in_trouble, open_object
from tests.replication.world import World, refusing

pytestmark = pytest.mark.django_db
API = "/service/replication/v1"
RULES = f"{API}/rules"
BODY = {
    "name": "copies",
    "source": {"region": "us-east-1", "uri": "s3://src/in/"},
    "targets": [
        {"region": "eu-west-1", "uri": "s3://out/in"},
        {"region": "ap-southeast-2", "uri": "s3://far", "workers": 4, "bytes_per_second": 10**8},
    ],
}


def target(uri: str, region: str = "eu-west-1", **more: Any) -> dict[str, Any]:
    return {"targets": [{"region": region, "uri": uri} | more]}


# --- creating ---------------------------------------------------------------------------------------------------------


def test_a_rule_is_created_with_what_it_needs(lm: Deployment, api: Api) -> None:
    status, told = api.call("POST", RULES, BODY | {"labels": {"team": "sales"}})
    assert status == 201, told
    assert (told["name"], told["state"], told["existing"], told["new"], told["scan_every"]) == (
        "copies",
        "new",
        True,
        True,
        300,
    )
    assert told["source"] == {"region": "us-east-1", "uri": "s3://src/in"}
    assert [(one["number"], one["uri"], one["workers"], one["bytes_per_second"]) for one in told["links"]] == [
        (1, "s3://out/in", 16, None),
        (2, "s3://far", 4, 10**8),
    ]
    rule = Rule.objects.get()
    assert [(bytes(one.low), one.high) for one in Shard.objects.all()] == [(b"", None)]
    duties = set(Duty.objects.filter(kind__startswith="replication").values_list("kind", "subject"))
    links = {("replication-link", -link.pk) for link in rule.links.all()}
    assert duties == {("replication-scan", -rule.pk)} | links
    event = AuditEvent.objects.get(subject="replication/copies")
    assert (event.verb, event.action, event.arn) == (
        "create",
        "fs:CreateReplicationRule",
        "arn:lakefs:fs:::replication/copies",
    )


def test_a_target_that_is_not_empty_is_taken_only_by_who_says_so(w: World, api: Api) -> None:
    w.away.buckets["out"] = {"in/a": b"theirs"}
    status, answer = api.call("POST", RULES, BODY)
    assert (status, answer["field"]) == (409, "targets.0.uri"), answer
    assert "s3://out/in is not empty" in answer["message"] and "--overwrite" in answer["message"]
    assert not Rule.objects.exists() and not AuditEvent.objects.filter(subject="replication/copies").exists()
    assert api.call("POST", f"{RULES}/preflight", BODY)[1]["ok"] is False
    assert api.call("POST", RULES, BODY | {"overwrite": True})[0] == 201
    assert AuditEvent.objects.get(subject="replication/copies").after["overwrite"] is True


def test_a_target_that_cannot_be_listed_may_not_be_empty(w: World, api: Api) -> None:
    w.away.before = refusing(Denied("403 to list"), "LIST")
    status, answer = api.call("POST", RULES, BODY)
    assert (status, answer["field"]) == (409, "targets.0.uri"), answer
    assert "can't be listed" in answer["message"]


def test_what_lakemirror_keeps_at_a_target_is_nobodys(w: World, api: Api) -> None:
    w.away.buckets["out"], w.far.buckets["far"] = {"in/_lakemirror/probe": b"ours"}, {}
    assert api.call("POST", RULES, BODY)[0] == 201


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"name": "Copies"}, "name", "is not a valid rule name"),
        ({"name": "a" * 64}, "name", "63"),
        ({"name": "new"}, "name", "LakeMirror uses it itself"),
        ({"name": "a\0"}, "name", "NUL"),
        ({"name": "a\ud800"}, "name", "surrogate"),
        ({"source": {"region": "mars", "uri": "s3://src"}}, "source.region", "unknown region 'mars'"),
        ({"source": {"region": "us-east-1", "uri": "gs://src"}}, "source.uri", "is not an s3:// address"),
        ({"source": {"region": "us-east-1", "uri": "s3://S"}}, "source.uri", "not a valid bucket name"),
        ({"source": {"region": "us-east-1"}}, "source.uri", "required"),
        (target("s3://out", "mars"), "targets.0.region", "unknown region 'mars'"),
        (target("s3://"), "targets.0.uri", "not a valid bucket name"),
        (target("s3://out", prefix="x"), "targets.0.prefix", "is not a field here"),
        (target("s3://out", workers=0), "targets.0.workers", "1"),
        (target("s3://out", workers=1001), "targets.0.workers", "1000"),
        (target("s3://out", bytes_per_second=0), "targets.0.bytes_per_second", "1"),
        (target("s3://out", workers=True), "targets.0.workers", "whole number"),
        ({"targets": []}, "targets", "1"),
        ({"targets": [{"region": "eu-west-1", "uri": f"s3://out-{n}"} for n in range(9)]}, "targets", "8"),
        (target("s3://src/in"), "targets.0.uri", "s3://src/in is the source"),
        (target("s3://src/in/deeper"), "targets.0.uri", "lies in the source"),
        (target("s3://src"), "targets.0.uri", "holds the source"),
        ({"targets": [*target("s3://out/a")["targets"], *target("s3://out")["targets"]]}, "targets.1.uri", "holds"),
        ({"existing": False, "new": False}, "new", "neither existing nor new"),
        ({"scan_every": 59}, "scan_every", "60"),
        ({"scan_every": "300"}, "scan_every", "whole number"),
        ({"labels": {"Team": "x"}}, "labels", "is no key"),
        ({"markers": "yes"}, "markers", "valid boolean"),
        ({"purges": True}, "purges", "only a rule that copies all versions can follow purges"),
        ({"tags": {"a": ""}}, "tags", "the tag 'a' has no value"),
        ({"tags": {"a": None}}, "tags", "has no value"),
        ({"tags": {"a": 1}}, "tags", "has no value"),
        ({"tags": {"": "x"}}, "tags", "has no key"),
        ({"tags": ["a"]}, "tags", "must be an object"),
        ({"tags": {str(n): "x" for n in range(11)}}, "tags", "10 tags at most"),
        ({"tags": {"k" * 129: "x"}}, "tags", "128 characters at most"),
        ({"tags": {"k": "x" * 257}}, "tags", "256 characters at most"),
        ({"metadata": "some"}, "metadata", "some"),
        ({"storage_class": "a b"}, "storage_class", "is not a storage class"),
        ({"sweep_heads_per_second": -1}, "sweep_heads_per_second", "0"),
        ({"metadata": "content", "sweep_heads_per_second": 5}, "sweep_heads_per_second", "no change of metadata"),
    ],
)
def test_what_is_wrong_is_named(lm: Deployment, api: Api, changes: dict[str, Any], field: str, told: str) -> None:
    status, answer = api.call("POST", RULES, BODY | changes)
    assert (status, answer["field"]) == (400, field), answer
    assert told in answer["message"]
    assert not Rule.objects.exists()


def test_places_of_others_are_refused(lm: Deployment, api: Api) -> None:
    source = Repository.objects.create(
        name="lake", region="us-east-1", storage_namespace="s3://taken/lake", creation_date=1, default_branch="main"
    )
    Mirror.objects.create(name="lake-eu", source=source, region="eu-west-1", storage_namespace="s3://mirror/lake")
    an_export(path="s3://exported/latest")
    lm.eu.create_mirror_repository(name="other", storage_namespace="s3://far-away/lake", default_branch="main")
    for uri, whose in (
        ("s3://taken", "the storage namespace of 'lake'"),
        ("s3://mirror/lake/below", "where the mirror 'lake-eu' lies"),
        ("s3://exported/latest", "is exported to"),
        ("s3://far-away/lake", "the repository 'other' in"),
    ):
        status, answer = api.call("POST", RULES, BODY | target(uri))
        assert (status, answer["field"]) == (400, "targets.0.uri"), answer
        assert whose in answer["message"]
    status, answer = api.call("POST", RULES, BODY | {"source": {"region": "us-east-1", "uri": "s3://taken/lake"}})
    assert status == 201, answer  # who reads there harms nobody


def test_others_keep_away_from_where_a_rule_copies_to(lm: Deployment, api: Api) -> None:
    a_rule("copies", "s3://out/in")
    lm.lake.commit(files={"a": b"1"})
    export = "/api/v1/repositories/lake/branches/main/continuous-export"
    status, answer = api.call("PUT", export, {"exportPath": "s3://out/in/deeper"})
    assert (status, answer["field"]) == (400, "exportPath"), answer
    assert "where a replication rule copies to" in answer["message"]
    mirror = {"name": "lake-eu", "region": "eu-west-1", "storage_namespace": "s3://out"}
    status, answer = api.call("POST", f"{API}/repositories/lake/mirrors", mirror)
    assert (status, answer["field"]) == (409, "storage_namespace") and "a replication rule" in answer["message"], answer


def test_places_of_rules_conflict(lm: Deployment, api: Api) -> None:
    assert api.call("POST", RULES, BODY)[0] == 201
    again, answer = api.call("POST", RULES, BODY | target("s3://elsewhere"))
    assert (again, answer["field"]) == (409, "name")
    over, answer = api.call("POST", RULES, BODY | {"name": "other"} | target("s3://out"))
    assert (over, answer["field"]) == (409, "targets.0.uri") and "where the rule 'copies' copies to" in answer[
        "message"
    ]
    chain = {"name": "chain", "source": {"region": "eu-west-1", "uri": "s3://out/in"}}
    assert api.call("POST", RULES, BODY | chain | target("s3://third"))[0] == 201
    back = {"name": "back", "source": {"region": "eu-west-1", "uri": "s3://third"}}
    status, answer = api.call("POST", RULES, BODY | back | target("s3://src/in/back"))
    assert status == 409 and "comes back to s3://third by the rule" in answer["message"], answer


def test_a_name_is_free_once_the_rule_is_gone(lm: Deployment, api: Api) -> None:
    Rule.objects.filter(pk=a_rule("copies").pk).update(deleting=True)
    status, answer = api.call("POST", RULES, BODY)
    assert (status, answer["field"]) == (409, "name") and "is being deleted" in answer["message"]


def test_nothing_is_stored_while_a_store_is_away(lm: Deployment, api: Api) -> None:
    class Away(EmptyRulePlace):
        def answers(self) -> None:
            if self.at == "s3://far":
                raise Unreachable("http://far does not answer")

    with mock.patch("deployment.wiring.replication_jobs.quick_place_of", Away):
        status, answer = api.call("POST", RULES, BODY)
    assert (status, answer["field"]) == (503, "targets.1.uri") and not Rule.objects.exists()
    missing = mock.patch.object(EmptyRulePlace, "answers", side_effect=NoBucket("no such bucket"))
    with missing:  # which may still be made: the link tells of it
        assert api.call("POST", RULES, BODY)[0] == 201


def test_once_per_idempotency_key(lm: Deployment, api: Api) -> None:
    api.headers["Idempotency-Key"] = "k"
    first, second = api.call("POST", RULES, BODY), api.call("POST", RULES, BODY)
    assert first == second and first[0] == 201 and Rule.objects.count() == 1
    assert api.call("POST", RULES, BODY | {"name": "other"})[0] == 422


def test_a_plan_is_checked_and_nothing_stored(lm: Deployment, api: Api) -> None:
    status, told = api.call("POST", f"{RULES}/preflight", BODY)
    states = {check["id"]: check["state"] for check in told["checks"]}
    assert (status, told["ok"], set(states.values())) == (200, True, {"ok"}), told
    assert {"name", "source", "source-bucket", "source-right:s3:GetObject", "target-2-right:s3:PutObject"} <= set(
        states
    )
    denied = Probed(dict.fromkeys(TRIED, Denied("s3 answered 403")))
    with mock.patch("replication.preflight.checks.probe", return_value=denied):
        refused = api.call("POST", f"{RULES}/preflight", BODY)[1]
    assert not refused["ok"]
    assert "s3 answered 403" in next(one for one in refused["checks"] if one["state"] == "failed")["message"]
    wrong = api.call("POST", f"{RULES}/preflight", BODY | {"name": "new"} | target("s3://src/in/deeper"))[1]
    failed = {check["id"]: check["message"] for check in wrong["checks"] if check["state"] == "failed"}
    assert set(failed) == {"name", "target-1-apart"} and "lies in the source" in failed["target-1-apart"]
    assert not Rule.objects.exists()


def test_what_travels_is_kept_and_changed(lm: Deployment, api: Api) -> None:
    wanted = {"tags": {"team": "sales"}, "storage_class": "same", "sweep_heads_per_second": 10}
    status, made = api.call("POST", RULES, BODY | wanted)
    assert (status, made["metadata"], made["swept_at"]) == (201, "all", None)
    assert {name: made[name] for name in wanted} == wanted
    status, changed = api.call(
        "PATCH", f"{RULES}/copies", {"metadata": "content", "sweep_heads_per_second": 0, "tags": {}}
    )
    assert (status, changed["metadata"], changed["tags"]) == (200, "content", {})
    status, refused = api.call("PATCH", f"{RULES}/copies", {"sweep_heads_per_second": 5})
    assert (status, refused["field"]) == (400, "sweep_heads_per_second")


# --- seeing and changing ----------------------------------------------------------------------------------------------


def test_rules_are_listed_by_name_and_chosen(api: Api) -> None:
    for name in ("b", "a", "c"):
        a_rule(name, labels={"tier": "gold"} if name == "a" else {})
    in_trouble()
    page = api.call("GET", f"{RULES}?amount=2")[1]
    assert [one["name"] for one in page["results"]] == ["a", "b"] and page["pagination"]["next_offset"] == "b"
    assert [one["name"] for one in api.call("GET", f"{RULES}?amount=2&after=b")[1]["results"]] == ["c", "orders"]
    assert [one["name"] for one in api.call("GET", f"{RULES}?label=tier")[1]["results"]] == ["a"]
    assert [one["name"] for one in api.call("GET", f"{RULES}?state=blocked")[1]["results"]] == ["orders"]
    assert api.call("GET", f"{RULES}?state=great")[0] == 400


def test_a_rule_tells_how_each_link_stands(api: Api) -> None:
    in_trouble()
    told = api.call("GET", f"{RULES}/orders")[1]
    first, second = told["links"]
    assert (told["state"], told["pending_objects"], told["failed_objects"], told["skipped_objects"]) == (
        "blocked",
        2,
        2,
        1,
    )
    assert (first["health"], first["health_code"], first["state"]) == ("blocked", "DstPutObjectNotPermitted", "blocked")
    assert second["state"] == "failed" and second["failed_by_code"] == [
        {
            "code": "TargetRefused",
            "status": "failed",
            "words": "the target's store refuses to take it",
            "objects": 2,
            "bytes": 200,
        },
        {
            "code": "SourceArchived",
            "status": "skipped",
            "words": "it is archived at the source, and not restored",
            "objects": 1,
            "bytes": 100,
        },
    ]
    assert api.call("GET", f"{RULES}/none")[0] == 404


def test_as_many_queries_for_many_rules_as_for_one(api: Api, django_assert_max_num_queries: Any) -> None:
    for number in range(20):
        rule = a_rule(f"r{number}", f"s3://x/{number}", f"s3://y/{number}")
        open_object(rule.links.first(), "a")  # type: ignore[arg-type]
    with django_assert_max_num_queries(12):
        assert len(api.call("GET", RULES)[1]["results"]) == 20


def test_settings_are_changed_by_who_has_seen_them(api: Api) -> None:
    rule = a_rule()
    answer = api.client.get(f"{RULES}/logs", headers=api.headers)
    api.headers["If-Match"] = answer["ETag"]
    status, told = api.call("PATCH", f"{RULES}/logs", {"scan_every": 900, "labels": {"team": "sales"}})
    assert (status, told["scan_every"], told["labels"]) == (200, 900, {"team": "sales"})
    assert api.call("PATCH", f"{RULES}/logs", {"scan_every": 60})[0] == 412
    assert api.call("DELETE", f"{RULES}/logs")[0] == 412
    del api.headers["If-Match"]
    event = AuditEvent.objects.get(subject="replication/logs", verb="change")
    assert (event.before, event.after) == (
        {"scan_every": 300, "labels": {}},
        {"scan_every": 900, "labels": {"team": "sales"}},
    )
    rule.refresh_from_db()
    assert not rule.scan_wanted
    assert api.call("PATCH", f"{RULES}/logs", {"existing": False})[0] == 200
    rule.refresh_from_db()
    assert rule.scan_wanted
    for wrong, field in (({"new": False}, "new"), ({"source": {}}, "source"), ({"scan_every": 1}, "scan_every")):
        status, told = api.call("PATCH", f"{RULES}/logs", wrong)
        assert (status, told["field"]) == (400, field)


def test_deletion_answers_at_once_and_leaves_the_rows_to_the_background(api: Api) -> None:
    rule = a_rule()
    open_object(rule.links.get(), "a")
    assert api.call("DELETE", f"{RULES}/logs") == (204, None)
    rule.refresh_from_db()
    assert rule.deleting and OpenObject.objects.count() == 1
    assert api.call("GET", f"{RULES}/logs")[0] == 404 and api.call("DELETE", f"{RULES}/logs")[0] == 404
    assert api.call("GET", RULES)[1]["results"] == []


# --- running ----------------------------------------------------------------------------------------------------------


def test_a_pause_says_why_and_until_when(api: Api) -> None:
    a_rule()
    status, told = api.call("POST", f"{RULES}/logs/pause", {"reason": "new disks", "for_seconds": 3600})
    assert (status, told["paused"], told["pause_reason"], told["state"]) == (200, True, "new disks", "paused")
    assert "paused by olga (new disks)" in told["reason"].lower()
    assert api.call("POST", f"{RULES}/logs/scan")[0] == 409
    assert api.call("POST", f"{RULES}/logs/resume")[1]["pause_reason"] is None
    told = api.call("POST", f"{RULES}/logs/links/1/pause", {"reason": "slow"})[1]
    assert (told["paused"], told["links"][0]["paused"], told["links"][0]["pause_reason"]) == (False, True, "slow")
    assert told["state"] == "paused"
    assert not api.call("POST", f"{RULES}/logs/links/1/resume")[1]["links"][0]["paused"]
    assert api.call("POST", f"{RULES}/logs/links/2/pause")[0] == 404
    verbs = AuditEvent.objects.filter(subject__startswith="replication/").order_by("pk")
    assert list(verbs.values_list("subject", "verb")) == [
        ("replication/logs", "pause"),
        ("replication/logs", "resume"),
        ("replication/logs/links/1", "pause"),
        ("replication/logs/links/1", "resume"),
    ]


def test_a_scan_is_wanted_and_its_duty_woken(lm: Deployment, api: Api) -> None:
    rule = a_rule()
    assert api.call("POST", f"{RULES}/logs/scan")[0] == 202
    rule.refresh_from_db()
    assert rule.scan_wanted
    assert ("replication-scan", -rule.pk) in lm.woken


def test_objects_are_retried_and_counts_stay_right(lm: Deployment, api: Api) -> None:
    rule = in_trouble()
    first, second = rule.links.order_by("number")
    place = f"{RULES}/orders"
    one = OpenObject.objects.filter(link=second, status=OpenStatus.FAILED.value).first()
    assert one is not None
    assert api.call("POST", f"{place}/links/1/retry", {"items": [one.pk]}) == (202, {"number": 0})
    assert api.call("POST", f"{place}/links/2/retry", {"items": [one.pk]}) == (202, {"number": 1})
    one.refresh_from_db()
    assert (one.status, one.attempts) == ("pending", 0) and ("replication-link", -second.pk) in lm.woken
    assert_counted(second)
    assert api.call("POST", f"{place}/retry", {"code": "TargetRefused"}) == (202, {"number": 1})
    assert api.call("POST", f"{place}/retry", {"all": True}) == (202, {"number": 5})
    assert {*OpenObject.objects.values_list("status", flat=True)} == {"pending"}
    for link in (first, second):
        assert_counted(link)
    for wrong in ({}, {"all": False}, {"all": True, "code": "x"}, {"items": []}, {"items": [0]}, {"items": ["1"]}):
        assert api.call("POST", f"{place}/retry", wrong)[0] == 400, wrong


def test_limits_stay_unless_they_are_given(api: Api) -> None:
    a_rule()
    told = api.call("POST", f"{RULES}/logs/links/1/limits", {"workers": 4, "bytes_per_second": 10**6})[1]["links"][0]
    assert (told["workers"], told["bytes_per_second"], told["objects_per_second"]) == (4, 10**6, None)
    told = api.call("POST", f"{RULES}/logs/links/1/limits", {"bytes_per_second": None})[1]["links"][0]
    assert (told["workers"], told["bytes_per_second"]) == (4, None)
    for wrong in ({"workers": None}, {"workers": 0}, {"workers": 1001}, {"objects_per_second": 0}, {"pace": 1}):
        assert api.call("POST", f"{RULES}/logs/links/1/limits", wrong)[0] == 400, wrong
    assert api.call("POST", f"{RULES}/logs/links/7/limits", {"workers": 1})[0] == 404


def test_open_objects_come_by_the_page_and_as_csv(api: Api) -> None:
    in_trouble()
    place = f"{RULES}/orders/links/2/open"
    page = api.call("GET", f"{place}?amount=2")[1]
    assert [one["key"] for one in page["results"]] == ["a b+c%2F#?.csv", "é/2"]
    rest = api.call("GET", f"{place}?after={page['pagination']['next_offset']}")[1]["results"]
    assert [one["key"] for one in rest] == ["deep", "waits"]
    assert rest[0]["message"] == "it is archived at the source, and not restored" and rest[1]["message"] == ""
    assert [one["key"] for one in api.call("GET", f"{place}?status=failed&prefix=%C3%A9")[1]["results"]] == ["é/2"]
    assert [one["key"] for one in api.call("GET", f"{place}?code=SourceArchived")[1]["results"]] == ["deep"]
    for wrong in ("status=done", "code=None", "amount=0", "after=x"):
        assert api.call("GET", f"{place}?{wrong}")[0] == 400, wrong
    answer = api.client.get(f"{place}?format=csv", headers=api.headers)
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))  # type: ignore[attr-defined]
    assert [row["key"] for row in rows] == ["a b+c%2F#?.csv", "é/2", "deep", "waits"]
    assert api.call("GET", f"{RULES}/orders/links/3/open")[0] == 404


def test_an_object_is_looked_at_on_both_sides(api: Api) -> None:
    rule = a_rule("logs", "s3://one/in", "s3://two/in", "s3://three/in", "s3://four/in")
    a_link(rule, 5, "s3://five/in")
    failed = rule.links.get(number=3)
    open_object(failed, "a b", OpenStatus.FAILED, code="TargetRefused", detail="too large")
    here = Seen(ObjectInfo("a b", 3, "e1"), NOW)
    there: dict[str, Any] = {
        rule.uri: here,
        "s3://one/in": here,
        "s3://two/in": None,
        "s3://three/in": Seen(ObjectInfo("a b", 4, "e0"), NOW),
        "s3://four/in": Denied("s3 answered 403"),
        "s3://five/in": here,
    }

    class Told(EmptyRulePlace):
        def head(self, key: str) -> Any:
            answer = there[self.at]
            if isinstance(answer, Exception):
                raise answer
            return answer

    with mock.patch("deployment.wiring.replication_jobs.quick_place_of", Told):
        told = api.call("GET", f"{RULES}/logs/objects?key=a%20b")[1]
        assert [one["status"] for one in told["targets"]] == ["VERIFIED", "PENDING", "FAILED", "UNKNOWN", "VERIFIED"]
        assert (told["status"], told["source"]["etag"], told["targets"][2]["message"]) == ("FAILED", "e1", "too large")
        there["s3://three/in"] = there["s3://two/in"] = there["s3://four/in"] = here
        assert api.call("GET", f"{RULES}/logs/objects?key=a%20b")[1]["status"] == "COMPLETED"
        there[rule.uri] = None
        gone = api.call("GET", f"{RULES}/logs/objects?key=a%20b")[1]
        assert (gone["status"], gone["source"]) == ("SOURCE_MISSING", None)
        there[rule.uri] = Unreachable("no answer")
        assert api.call("GET", f"{RULES}/logs/objects?key=a%20b")[0] == 503
    for wrong in ("", "?key=", "?key=%00", "?key=_lakemirror/x", f"?key={'x' * 1025}"):
        assert api.call("GET", f"{RULES}/logs/objects{wrong}")[0] == 400, wrong


# --- who may ----------------------------------------------------------------------------------------------------------


def test_who_creates_needs_the_right_on_each_place(lm: Deployment) -> None:
    rita = person("rita")
    create = allow(["fs:CreateReplicationRule"], "arn:lakefs:fs:::replication/copies")
    place = allow(["fs:AttachStorageNamespace"], "arn:lakefs:fs:::namespace/s3://*/in*")
    document = policy_document("Copies", create, place)
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=rita)
    status, told = Api(rita).call("POST", RULES, BODY)
    assert status == 403 and "fs:AttachStorageNamespace on arn:lakefs:fs:::namespace/s3://far" in told["message"]
    assert Api(rita).call("POST", RULES, BODY | target("s3://out/in"))[0] == 201
    assert Api(rita).call("POST", RULES, BODY | {"name": "other"} | target("s3://out/in2"))[0] == 403


def test_a_name_that_one_may_not_see_is_not_told(lm: Deployment, owner: User) -> None:
    a_rule("secret", "s3://out/in")
    rita = person("rita")
    rights = allow(["fs:CreateReplicationRule", "fs:AttachStorageNamespace"])
    document = policy_document("Creates", rights)
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=rita)
    status, told = Api(rita).call("POST", RULES, BODY)
    assert status == 409 and "secret" not in told["message"] and "a place that you may not see" in told["message"]
    assert "the rule 'secret'" in Api(owner).call("POST", RULES, BODY)[1]["message"]


def test_operators_run_rules_and_change_none(lm: Deployment) -> None:
    a_rule()
    otis = Api(person("otis", "Operators"))
    for call in ("pause", "resume", "scan", "links/1/pause", "links/1/resume"):
        assert otis.call("POST", f"{RULES}/logs/{call}")[0] in (200, 202), call
    assert otis.call("POST", f"{RULES}/logs/links/1/limits", {"workers": 2})[0] == 200
    assert otis.call("POST", f"{RULES}/logs/retry", {"all": True})[0] == 202
    assert otis.call("PATCH", f"{RULES}/logs", {"scan_every": 60})[0] == 403
    assert otis.call("DELETE", f"{RULES}/logs")[0] == 403 and otis.call("POST", RULES, BODY)[0] == 403


def test_who_may_operate_and_not_read_is_told_no_more_than_whether_it_is_paused(api: Api) -> None:
    in_trouble()
    rita = person("rita")
    document = policy_document("Runs", allow(["fs:OperateReplicationRule"], "arn:lakefs:fs:::replication/orders"))
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=rita)
    status, told = Api(rita).call("POST", f"{RULES}/orders/pause", {"reason": "new disks"})
    assert (status, told["name"], told["word"], told["pause_reason"]) == (200, "orders", "Paused", "new disks")
    assert (told["source"]["uri"], told["links"], told["labels"], told["failed_objects"]) == ("", [], {}, 0)
    for call, body in (("resume", None), ("links/2/limits", {"workers": 2}), ("links/2/pause", {})):
        status, told = Api(rita).call("POST", f"{RULES}/orders/{call}", body)
        assert (status, told["word"], told["links"]) == (200, "Unknown", []), told
    assert "fs:ReadReplicationRule" in told["reason"]
    assert set(told) == set(api.call("GET", f"{RULES}/orders")[1])


def test_nobody_else_is_told_whether_a_rule_is_there(outsider: User) -> None:
    a_rule()
    otto = Api(outsider)
    there, absent = otto.call("GET", f"{RULES}/logs"), otto.call("GET", f"{RULES}/absent")
    assert (there[0], absent[0]) == (403, 403)
    assert there[1]["message"].replace("logs", "absent") == absent[1]["message"]
    assert otto.call("GET", RULES)[0] == 403 and Client().get(RULES).status_code == 401
    assert Link.objects.count() == 1
