"""Targets that a rule is given later, and those that are taken from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from core.errors import NoBucket, Unreachable
from core.replicating.states import OpenStatus
from db import clock
from jobs.models import Duty
from rbac import services as rbac
from replication.engine import cycles, looking
from replication.models import Link, OpenObject, Rule
from replication.status.rules import rule_reading
from replication.transitions import duties
from tests.api import Api
from tests.cast import person
from tests.fakes import EmptyRulePlace
from tests.replication.factories import a_link, a_rule, open_object
from tests.replication.world import AWAY, FAR, World

pytestmark = pytest.mark.django_db
RULES = "/service/replication/v1/rules"
THERE = {"region": FAR, "uri": "s3://two/in/"}


def word(w: World, number: int) -> str:
    reading = rule_reading(Rule.objects.get(name="r"), clock.now())
    return next(one.told.word for one in reading.links if one.link.number == number)


# --- added ------------------------------------------------------------------------------------------------------------


def test_a_target_that_comes_later_gets_everything_and_is_compared_wholly_first(w: World, api: Api) -> None:
    for key in ("a", "b"):
        w.put(key)
    w.rule()
    w.work()
    assert word(w, 1) == "Up to date"
    w.later(30)
    status, told = api.call("POST", f"{RULES}/r/links", THERE | {"workers": 4})
    assert status == 201, told
    added = told["links"][1]
    assert (added["number"], added["uri"], added["workers"], added["word"]) == (2, "s3://two/in", 4, "Comparing")
    assert added["compared_at"] is None and told["word"] == "Comparing"
    w.scan()
    assert word(w, 2) == "Copying" and w.names(2) == ["a", "b"] and w.names(1) == []
    w.work()
    assert w.there(FAR, "two") == {"in/a": b"data", "in/b": b"data"} and word(w, 2) == "Up to date"
    event = AuditEvent.objects.get(subject="replication/r/links/2")
    assert (event.verb, event.action, event.arn) == (
        "create",
        "fs:UpdateReplicationRule",
        "arn:lakefs:fs:::replication/r",
    )
    w.check_counts()


def test_a_comparison_that_began_before_says_nothing_of_it(w: World, api: Api) -> None:
    """Not when it ends after the target was added, and not when it begins with those who were links before."""
    w.put("a")
    rule = w.rule(scan_every=3600)
    began = cycles.begin

    def added_meanwhile(*args: Any) -> None:
        if not Link.objects.filter(number=2).exists():
            assert api.call("POST", f"{RULES}/r/links", THERE)[0] == 201
        began(*args)

    with mock.patch.object(cycles, "begin", added_meanwhile):
        w.scan()
    assert w.link(2).compared_at is None and word(w, 2) == "Comparing"
    w.work()
    rule.refresh_from_db()
    assert w.link(2).compared_at is not None and w.there(FAR, "two") == {"in/a": b"data"}


def test_one_that_is_added_while_a_comparison_goes_on_waits_for_the_next(w: World, api: Api) -> None:
    w.put("a")
    w.rule(scan_every=3600)
    noted = looking.note

    def added_meanwhile(*args: Any) -> Any:
        found = noted(*args)
        if not Link.objects.filter(number=2).exists():
            made = Link.objects.create(
                rule=w.link().rule, number=2, region=FAR, uri="s3://two", added_at=clock.now(), uncompared=True
            )
            Rule.objects.update(scan_wanted=True)
            duties.ensure(made.rule)
            assert made.compared_at is None
        return found

    with mock.patch.object(looking, "note", added_meanwhile):
        w.scan()
    assert w.link(1).compared_at is not None and w.link(2).compared_at is None
    w.work()
    assert w.link(2).compared_at is not None and w.there(FAR, "two") == {"a": b"data"}


@pytest.mark.parametrize(
    ("body", "status", "field", "told"),
    [
        ({"region": AWAY, "uri": "s3://dst-logs/in/below"}, 400, "uri", "lies in another target of this rule"),
        ({"region": "us-east-1", "uri": "s3://src-logs"}, 400, "uri", "holds the source"),
        ({"region": AWAY, "uri": "s3://dst-other"}, 409, "uri", "where the rule 'other' copies to"),
        ({"region": "us-east-1", "uri": "s3://src-back/in/x"}, 409, "uri", "comes back to s3://src-logs/in by"),
        ({"region": "mars", "uri": "s3://out"}, 400, "region", "unknown region 'mars'"),
        ({"region": AWAY, "uri": "gs://out"}, 400, "uri", "is not an s3:// address"),
        ({"region": AWAY, "uri": "s3://out", "workers": 0}, 400, "workers", "1"),
        ({"region": AWAY, "uri": "s3://out", "prefix": "x"}, 400, "prefix", "is not a field here"),
        ({"region": AWAY}, 400, "uri", "required"),
    ],
)
def test_a_target_is_refused_as_at_creation(
    lm: Any, api: Api, body: dict[str, Any], status: int, field: str, told: str
) -> None:
    a_rule("logs")
    a_rule("other")
    a_rule("back", "s3://src-logs/in/deeper")
    Link.objects.filter(rule__name="back").update(region="us-east-1")
    answered, answer = api.call("POST", f"{RULES}/logs/links", body)
    assert (answered, answer["field"]) == (status, field), answer
    assert told in answer["message"] and Link.objects.filter(rule__name="logs").count() == 1


def test_a_target_that_holds_something_is_taken_by_who_says_so(w: World, api: Api) -> None:
    w.rule()
    w.far.buckets["two"] = {"in/a": b"theirs"}
    status, answer = api.call("POST", f"{RULES}/r/links", THERE)
    assert (status, answer["field"]) == (409, "uri") and "is not empty" in answer["message"], answer
    assert api.call("POST", f"{RULES}/r/links/preflight", THERE)[1]["ok"] is False
    checks = api.call("POST", f"{RULES}/r/links/preflight", THERE | {"overwrite": True})[1]["checks"]
    assert next(one["state"] for one in checks if one["id"] == "target-1-content") == "warning"
    assert api.call("POST", f"{RULES}/r/links", THERE | {"overwrite": True})[0] == 201
    assert AuditEvent.objects.get(subject="replication/r/links/2").after["overwrite"] is True


def test_nothing_is_added_while_a_store_is_away_or_its_bucket_is_not_there(lm: Any, api: Api) -> None:
    a_rule("logs")
    with mock.patch.object(EmptyRulePlace, "answers", side_effect=Unreachable("nobody answers")):
        assert api.call("POST", f"{RULES}/logs/links", {"region": AWAY, "uri": "s3://out"})[0] == 503
    with mock.patch.object(EmptyRulePlace, "listing", side_effect=NoBucket("no bucket 'out'")):
        status, answer = api.call("POST", f"{RULES}/logs/links", {"region": AWAY, "uri": "s3://out"})
    assert (status, answer["field"]) == (409, "uri") and "Create the bucket" in answer["message"], answer
    assert Link.objects.count() == 1


def test_a_rule_has_eight_targets_at_most(lm: Any, api: Api) -> None:
    rule = a_rule("logs", *(f"s3://dst/{n}" for n in range(8)))
    status, answer = api.call("POST", f"{RULES}/logs/links", {"region": AWAY, "uri": "s3://out"})
    assert status == 400 and "8 targets" in answer["message"]
    Link.objects.filter(rule=rule, number=3).update(removing=True)
    assert api.call("POST", f"{RULES}/logs/links", {"region": AWAY, "uri": "s3://out"})[0] == 201


def test_adding_needs_the_rule_and_the_place(lm: Any) -> None:
    a_rule("logs", "s3://dst/1", "s3://dst/2")
    update = allow(["fs:UpdateReplicationRule"], "arn:lakefs:fs:::replication/logs")
    attach = allow(["fs:AttachStorageNamespace"], "arn:lakefs:fs:::namespace/s3://out")
    carol = person("carol")
    mine = Api(carol)
    body = {"region": AWAY, "uri": "s3://out"}
    assert mine.call("POST", f"{RULES}/logs/links", body)[0] == 403
    grant(carol, "Change", update)
    assert mine.call("POST", f"{RULES}/logs/links", body)[0] == 403
    assert mine.call("POST", f"{RULES}/logs/links/preflight", body)[0] == 403
    grant(carol, "Attach", attach)
    status, told = mine.call("POST", f"{RULES}/logs/links", body)
    assert (status, told["name"], told["source"]["uri"], told["links"]) == (201, "logs", "", []), told
    assert mine.call("DELETE", f"{RULES}/logs/links/1")[0] == 204


def grant(user: Any, name: str, statement: Any) -> None:
    policy = rbac.policy_put(actor="system:tests", document=policy_document(name, statement))
    rbac.policy_attach(actor="system:tests", policy=policy, user=user)


# --- removed ----------------------------------------------------------------------------------------------------------


def test_a_removed_target_keeps_its_objects_and_gets_no_more(w: World, api: Api) -> None:
    w.put("a")
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    w.work()
    assert api.call("DELETE", f"{RULES}/r/links/2")[0] == 204
    told = api.call("GET", f"{RULES}/r")[1]
    assert [one["number"] for one in told["links"]] == [1]
    assert told["removing"] == [{"number": 2, "region": FAR, "uri": "s3://two"}]
    w.put("b")
    w.later(400)
    w.work()
    assert w.there() == {"a": b"data", "b": b"data"} and w.there(FAR, "two") == {"a": b"data"}
    assert api.call("GET", f"{RULES}/r")[1]["removing"] == []
    assert not Duty.objects.filter(kind="replication-link").exclude(subject=-w.link(1).pk).exists()
    assert api.call("DELETE", f"{RULES}/r/links/2")[0] == 404
    event = AuditEvent.objects.get(subject="replication/r/links/2")
    assert (event.verb, event.before["uri"]) == ("delete", "s3://two")


def test_a_number_is_never_given_twice(w: World, api: Api) -> None:
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    assert api.call("DELETE", f"{RULES}/r/links/2")[0] == 204
    w.copy()
    assert not Link.objects.filter(number=2).exists()
    assert api.call("POST", f"{RULES}/r/links", THERE)[1]["links"][1]["number"] == 3
    assert api.call("DELETE", f"{RULES}/r/links/3")[0] == 204
    assert api.call("POST", f"{RULES}/r/links", {"region": FAR, "uri": "s3://two/x"})[1]["links"][1]["number"] == 4


def test_its_place_is_free_when_nothing_of_it_can_write_any_more(w: World, api: Api) -> None:
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    until = clock.now() + timedelta(seconds=60)
    Link.objects.filter(number=2).update(writes_until=until)  # a worker was lost
    assert api.call("DELETE", f"{RULES}/r/links/2")[0] == 204
    w.copy()
    status, answer = api.call("POST", f"{RULES}/r/links", {"region": FAR, "uri": "s3://two"})
    assert status == 409 and "is being removed" in answer["message"], answer
    other = {"name": "other", "source": {"region": AWAY, "uri": "s3://src"}}
    other |= {"targets": [{"region": FAR, "uri": "s3://two"}]}
    assert api.call("POST", RULES, other)[0] == 409
    w.later(61)
    w.copy()
    assert api.call("POST", RULES, other)[0] == 201


def test_many_rows_go_in_pieces_also_of_a_rule_that_is_paused(w: World, api: Api) -> None:
    rule = w.rule((AWAY, "s3://out"), (FAR, "s3://two"), paused=True)
    for number in range(12):
        open_object(w.link(2), f"k{number}", OpenStatus.FAILED)
    open_object(w.link(1), "kept", OpenStatus.FAILED)
    assert api.call("DELETE", f"{RULES}/r/links/2")[0] == 204
    with mock.patch("replication.engine.removal.BATCH", 5):
        w.copy()
    assert [row.name for row in OpenObject.objects.all()] == ["kept"]
    assert list(Link.objects.values_list("number", flat=True)) == [1] and rule.links.count() == 1


def test_the_last_one_stays(w: World, api: Api) -> None:
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    assert api.call("DELETE", f"{RULES}/r/links/1")[0] == 204
    status, answer = api.call("DELETE", f"{RULES}/r/links/2")
    assert status == 409 and "Delete the rule" in answer["message"]
    w.copy()
    assert api.call("DELETE", f"{RULES}/r/links/2")[0] == 409


def test_nothing_can_be_done_with_one_that_goes(api: Api) -> None:
    rule = a_rule("logs", "s3://dst/1", "s3://dst/2")
    Link.objects.filter(rule=rule, number=2).update(removing=True, paused=True)
    for call in ("pause", "resume", "retry"):
        body = {"all": True} if call == "retry" else {}
        assert api.call("POST", f"{RULES}/logs/links/2/{call}", body)[0] == 404
    assert api.call("GET", f"{RULES}/logs/links/2/open")[0] == 404
    told = api.call("GET", f"{RULES}/logs")[1]
    assert (told["word"], len(told["links"])) == ("Up to date", 1)


def test_a_rule_goes_with_links_that_go(w: World, api: Api) -> None:
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    assert api.call("DELETE", f"{RULES}/r/links/2")[0] == 204
    assert api.call("DELETE", f"{RULES}/r")[0] == 204
    w.work(1)
    assert not Rule.objects.exists() and not Link.objects.exists()
    assert not Duty.objects.filter(kind__startswith="replication").exists()


# --- pages ------------------------------------------------------------------------------------------------------------


def test_a_target_is_added_on_its_page(lm: Any, olga: Client) -> None:
    a_rule("logs")
    page = olga.get("/replication/logs/links/new/").content.decode()
    assert "Add a target to logs" in page and "add-target" in page
    wrong = olga.post("/replication/logs/links/new/", {"region": AWAY, "uri": "s3://src-logs"})
    assert wrong.status_code == 400 and b"holds the source" in wrong.content
    asked = olga.post(
        "/replication/logs/links/new/",
        {"region": AWAY, "uri": "s3://out"},
        headers={"HX-Request": "true", "HX-Target": "preflight"},
    )
    assert b"s3://out is empty" in asked.content and Link.objects.count() == 1
    made = olga.post("/replication/logs/links/new/", {"region": AWAY, "uri": "s3://out"})
    assert (made.status_code, made["Location"]) == (302, "/replication/logs/"), made.content
    assert Link.objects.get(number=2).uri == "s3://out"


def test_a_check_that_fails_is_shown_before_anything_is_stored(w: World, olga: Client) -> None:
    w.rule()
    w.far.buckets["two"] = {"in/a": b"theirs"}
    answer = olga.post("/replication/r/links/new/", THERE)
    assert answer.status_code == 409 and b"Add anyway" in answer.content and Link.objects.count() == 1
    assert olga.post("/replication/r/links/new/", THERE | {"anyway": "1"}).status_code == 302
    assert AuditEvent.objects.get(subject="replication/r/links/2").after["failed_checks"] == ["target-1-content"]


def test_a_target_is_removed_on_its_page(olga: Client) -> None:
    rule = a_rule("logs", "s3://dst/1", "s3://dst/2")
    page = olga.get("/replication/logs/").content.decode()
    assert 'href="/replication/logs/links/2/remove/"' in page and 'href="/replication/logs/links/new/"' in page
    assert "Every object at" in olga.get("/replication/logs/links/2/remove/").content.decode()
    assert olga.post("/replication/logs/links/2/remove/", {"reason": "moved"}).status_code == 302
    assert Link.objects.get(number=2).removing
    page = olga.get("/replication/logs/").content.decode()
    assert 'id="removing"' in page and "s3://dst/2" in page and "/remove/" not in page
    assert "is the only target of the rule" in olga.get("/replication/logs/links/1/remove/").content.decode()
    assert olga.post("/replication/logs/links/1/remove/").status_code == 409
    a_link(rule, 3, "s3://dst/3")


# --- writes of a lost worker ------------------------------------------------------------------------------------------


def test_a_link_that_waits_for_a_lost_workers_writes_says_so(w: World, api: Api, olga: Client) -> None:
    w.put("a")
    w.rule()
    w.scan()
    until = clock.now() + timedelta(seconds=80)
    Link.objects.update(writes_until=until)
    told = api.call("GET", f"{RULES}/r")[1]["links"][0]
    assert (told["state"], told["word"]) == ("syncing", "Waiting")
    assert "Nothing is begun for" in told["reason"] and "a worker was lost" in told["reason"]
    assert told["waits_until"] is not None
    assert "a worker was lost" in olga.get("/replication/r/").content.decode()
    Duty.objects.filter(kind="replication-link").update(holder="w", until=clock.now() + timedelta(seconds=30))
    told = api.call("GET", f"{RULES}/r")[1]["links"][0]
    assert (told["word"], told["waits_until"]) == ("Copying", None)  # somebody works on it
