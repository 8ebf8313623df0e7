"""The API of passes: what each call answers, refuses and writes down."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.test import Client
from pyarrow import parquet

from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from db import clock
from jobs.models import Duty
from rbac import services as rbac
from rbac.models import User
from replication.models import Pass, Rule
from replication.transitions.duties import PASS
from tests.api import Api
from tests.cast import person
from tests.replication.test_passes import keys_of, through
from tests.replication.world import AWAY, FAR, World

pytestmark = pytest.mark.django_db
API = "/service/replication/v1"
RULES = f"{API}/rules"
WISH = {
    "name": "new-one",
    "source": {"region": "us-east-1", "uri": "s3://src"},
    "targets": [{"region": AWAY, "uri": "s3://out"}, {"region": FAR, "uri": "s3://two"}],
}
OTHER = WISH | {"targets": [{"region": FAR, "uri": "s3://two"}]}


def with_policy(name: str, actions: list[str], resource: str) -> Api:
    user = person(name)
    document = policy_document(name.title(), allow(actions, resource))
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=user)
    return Api(user)


def test_a_resync_is_begun_seen_and_ended(w: World, api: Api) -> None:
    keys_of(w, 5)
    w.rule()
    status, made = api.call("POST", f"{RULES}/r/links/1/resync", {"what": "all", "prefix": "k"})
    assert status == 202, made
    status, refused = api.call("POST", f"{RULES}/r/links/1/resync")
    assert status == 409 and f"pass {made['id']}" in refused["message"]
    told = api.call("GET", f"{API}/passes/{made['id']}")[1]
    assert (told["state"], told["rule"], told["what"], told["prefix"], told["who"]) == (
        "running",
        "r",
        "all",
        "k",
        "olga",
    )
    assert told["targets"] == [{"link": 1, "region": AWAY, "uri": "s3://out"}]
    assert (told["total_objects"], told["total_is_estimate"], told["eta_seconds"]) == (None, True, None)
    through(w, Pass.objects.get())
    told = api.call("GET", f"{API}/passes/{made['id']}")[1]
    assert (told["state"], told["word"], told["message"]) == ("completed", "Completed", None)
    assert (told["total_objects"], told["total_is_estimate"], told["done_objects"]) == (5, False, 5)
    assert (told["copied_objects"], told["failed_objects"], told["waiting_objects"]) == (5, 0, 0)
    assert told["actions"] == [{"link": 1, "action": "copy", "code": None, "words": "copy", "objects": 5, "bytes": 25}]
    assert api.call("POST", f"{RULES}/r/links/1/resync")[0] == 202
    page = api.call("GET", f"{RULES}/r/passes?amount=1")[1]
    assert [one["state"] for one in page["results"]] == ["running"] and page["pagination"]["has_more"]
    event = AuditEvent.objects.filter(verb="resync").first()
    assert (
        event is not None and event.subject == "replication/r/links/1" and event.action == "fs:OperateReplicationRule"
    )


def test_a_running_pass_tells_how_far_it_is_and_when_it_ends(w: World, api: Api) -> None:
    keys_of(w, 10)
    w.rule()
    w.work()
    w.away.buckets["out"].clear()
    number = api.call("POST", f"{RULES}/r/links/1/resync")[1]["id"]
    assert api.call("GET", f"{API}/passes/{number}")[1]["total_objects"] == 10
    w.link().rule.links.update(pace_objects=2.0)
    w.look()
    w.later(10)
    told = api.call("GET", f"{API}/passes/{number}")[1]
    assert (told["total_objects"], told["total_is_estimate"], told["done_objects"]) == (10, False, 0)
    assert (told["waiting_objects"], told["eta_seconds"]) == (10, 5.0)


def test_one_is_canceled_once(w: World, api: Api) -> None:
    keys_of(w, 5)
    w.rule()
    number = api.call("POST", f"{RULES}/r/links/1/resync")[1]["id"]
    assert api.call("DELETE", f"{API}/passes/{number}")[0] == 204
    told = api.call("GET", f"{API}/passes/{number}")[1]
    assert (told["state"], told["message"]) == ("canceled", "canceled by olga") and told["ended_at"]
    assert api.call("DELETE", f"{API}/passes/{number}")[0] == 409
    assert api.call("DELETE", f"{API}/passes/999")[0] == 404
    assert not Duty.objects.filter(kind=PASS).exists()
    assert api.call("POST", f"{RULES}/r/links/1/resync")[0] == 202


def test_wrong_fields_are_named(w: World, api: Api) -> None:
    w.rule()
    for body, field in (
        ({"what": "some"}, "what"),
        ({"older_than": "yesterday"}, "older_than"),
        ({"prefix": "a\0"}, "prefix"),
        ({"prefix": 7}, "prefix"),
        ({"prefix": "é" * 600}, "prefix"),
        ({"link": 1}, "link"),
    ):
        status, told = api.call("POST", f"{RULES}/r/links/1/resync", body)
        assert (status, told["field"]) == (400, field), told
    assert api.call("POST", f"{RULES}/r/links/7/resync")[0] == 404
    assert api.call("POST", f"{RULES}/none/dry-run")[0] == 404
    assert api.call("POST", f"{RULES}/r/dry-run", {"link": 7})[0] == 404
    status, told = api.call("POST", f"{RULES}/r/dry-run", {"link": "one"})
    assert (status, told["field"]) == (400, "link")
    assert not Pass.objects.exists()


def test_a_dry_run_is_told_as_csv_and_as_parquet(w: World, api: Api, olga: Client) -> None:
    keys_of(w, 5)
    w.put("=cmd|' /C calc'!A0")
    w.rule()
    number = api.call("POST", f"{RULES}/r/dry-run", {"older_than": (clock.now() + timedelta(1)).isoformat()})[1]["id"]
    status, refused = api.call("POST", f"{RULES}/r/dry-run")
    assert status == 409 and "goes on" in refused["message"]
    through(w, Pass.objects.get())
    told = api.call("GET", f"{API}/passes/{number}/report")[1]
    assert (len(told["results"]), told["rows"], told["is_whole"]) == (6, 6, True)
    assert told["results"][1]["key"] == "k0000"
    lines = b"".join(olga.get(f"{API}/passes/{number}/report?format=csv").streaming_content).decode()
    rows = list(csv.reader(io.StringIO(lines)))
    assert rows[0] == ["link", "key", "action", "size", "code", "message"]
    assert rows[1] == ["1", "'=cmd|' /C calc'!A0", "copy", "4", "", ""] and len(rows) == 7
    answer = olga.get(f"{API}/passes/{number}/report?format=parquet")
    assert answer["Content-Type"] == "application/vnd.apache.parquet"
    table = parquet.read_table(io.BytesIO(b"".join(answer.streaming_content)))
    assert table.column_names == rows[0] and table.num_rows == 6
    assert table.to_pylist()[0] == {
        "link": 1,
        "key": "=cmd|' /C calc'!A0",
        "action": "copy",
        "size": 4,
        "code": "",
        "message": "",
    }
    assert olga.get(f"{API}/passes/{number}/report?format=xml").status_code in (400, 404)


def test_a_dry_run_of_a_rule_that_is_thought_of(w: World, api: Api) -> None:
    keys_of(w, 5)
    status, made = api.call("POST", f"{RULES}/dry-run", WISH)
    assert status == 202, made
    through(w, Pass.objects.get())
    told = api.call("GET", f"{API}/passes/{made['id']}")[1]
    assert (told["state"], told["rule"], told["kind"]) == ("completed", "new-one", "dry-run")
    assert [(one["link"], one["action"], one["objects"]) for one in told["actions"]] == [(1, "copy", 5), (2, "copy", 5)]
    assert [one["uri"] for one in told["targets"]] == ["s3://out", "s3://two"] and not Rule.objects.exists()
    status, refused = api.call("POST", f"{RULES}/dry-run", WISH | {"targets": []})
    assert (status, refused["field"]) == (400, "targets")
    for _ in range(8):
        api.call("POST", f"{RULES}/dry-run", WISH)
    assert api.call("POST", f"{RULES}/dry-run", WISH)[0] == 409


def test_who_may_not_read_a_rule_knows_no_pass_of_it(w: World, owner: User, api: Api) -> None:
    w.rule()
    number = api.call("POST", f"{RULES}/r/links/1/resync")[1]["id"]
    of_wish = api.call("POST", f"{RULES}/dry-run", OTHER)[1]["id"]
    reader = with_policy("rita", ["fs:ReadReplicationRule"], "arn:lakefs:fs:::replication/r")
    assert reader.call("GET", f"{API}/passes/{number}")[0] == 200
    assert reader.call("DELETE", f"{API}/passes/{number}")[0] == 403
    assert reader.call("POST", f"{RULES}/r/links/1/resync")[0] == 403
    assert reader.call("POST", f"{RULES}/r/dry-run")[0] == 403
    assert reader.call("GET", f"{API}/passes/{of_wish}")[0] == 404
    other = with_policy("otto", ["fs:*ReplicationRule"], "arn:lakefs:fs:::replication/other")
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/report")):
        assert other.call(method, f"{API}/passes/{number}{path}")[0] == 404
    assert other.call("POST", f"{RULES}/dry-run", WISH)[0] == 403
