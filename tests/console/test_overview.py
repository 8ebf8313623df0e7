"""The first page: what needs somebody, figures, the worst lag between regions, what happened last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.exports_summary import Summary
from console.jobs.listing import duty_retry
from console.overview import summary
from core.text.phrases import sentence
from db import clock
from jobs.models import Duty, Worker
from mirrors.models import Mirror, Promotion
from mirrors.services import mirrors, settings
from mirrors.services.validations import validation_ask
from mirrors.transitions import duties
from rbac.models import User
from replication.models import Link
from tests.exports.test_pages import an_export, failed
from tests.mirroring.test_found_by_breaking import mirrored, uri_of
from tests.mirrors.factories import Line, at_mirror, make_company, make_mirror, make_repository
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.status.test_told_no_better import damage, page
from tests.mirrors.views.test_pages import HTMX, text
from tests.replication.factories import a_rule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


NO_EXPORTS = Summary(0, 0, (), sentence("none"))


def tiles(client: Client) -> dict[str, tuple[str, str]]:
    return {tile.name: (tile.figure, tile.below) for tile in client.get("/").context["tiles"]}


def test_without_mirrors_it_teaches(olga: Client) -> None:
    said = text(olga.get("/"))
    assert "No mirror yet" in said and "Create the first mirror" in said
    assert "/service/replication/v1/repositories/lake/mirrors" in said


def test_one_sentence_says_how_many_are_within_their_target(olga: Client, company: Any) -> None:
    assert "3 of 8 mirrors are within their target; 3 need you, 2 are unknown, 1 is paused." in text(olga.get("/"))


def test_where_all_is_well_it_says_so(olga: Client, company: Any) -> None:
    Mirror.objects.exclude(name="models-eu").delete()
    said = text(olga.get("/"))
    assert "1 of 1 mirror is within its target; nothing needs you." in said
    assert "Needs you" not in said
    assert tiles(olga)["Missing or wrong"] == ("nothing", "nothing is missing")
    assert tiles(olga)["Oldest commit awaiting validation"][0] == "none"
    failed()
    said = text(olga.get("/"))
    assert "1 of 1 mirror is within its target; no mirror needs you. 1 of 1 export needs attention." in said
    assert "nothing needs you" not in said and "Needs you" in said


def test_a_first_copy_is_neither_late_nor_well(olga: Client) -> None:
    now = clock.now()
    source = make_repository("big", now=now)
    mirror = make_mirror("big-eu", source, now=now)
    commit = Line(source, "main", now).commit("1", ago=3600)
    at_mirror(mirror, commit, "checking", now=now)
    page = olga.get("/")
    told = {tile.name: (tile.figure, tile.below, tile.bad) for tile in page.context["tiles"]}
    assert told["Within target"] == ("0 / 1", "1 is being copied for the first time", False)
    assert told["Missing or wrong"][:2] == ("not known yet", "1 mirror not checked yet")
    assert "0 of 1 mirror is within its target; 1 is being copied for the first time." in text(page)
    assert "nothing is missing" not in text(page)
    shown = text(olga.get("/mirrors/big-eu/"))
    assert "nothing is checked yet" in shown and "nothing is missing" not in shown
    at_mirror(mirror, commit, "complete", now=now)
    assert tiles(olga)["Missing or wrong"] == ("nothing", "some are still being checked")


def test_tiles_are_of_facts(olga: Client, company: Any) -> None:
    told = tiles(olga)
    assert told["Within target"] == ("3 / 8", "worst: billing-us, 3 h")
    assert told["Missing or wrong"] == ("4 objects", "oldest for 13 min")
    assert told["Oldest commit awaiting validation"] == ("14 min", "since it was seen")


def test_exports_and_workers_have_their_tiles(olga: Client, company: Any) -> None:
    an_export()
    failed()
    now = clock.now()
    heard = {"started_at": now, "heard_at": now, "slots": 4, "load": 0.5, "cores": 2, "pid": 1}
    Worker.objects.create(name="a:1:x", queue="eu-west-1", host="a", **heard)
    Worker.objects.create(name="b:1:y", queue="eu-west-1-spark", host="b", spark="sc://spark:15002", **heard)
    told = tiles(olga)
    assert told["Exports in order"] == ("0 / 2", "1 needs attention, 1 is not exported yet")
    assert told["Workers"][0] == "3 alive" and "Spark reachable" in told["Workers"][1]
    assert "oldest unvalidated commit 14 min" in told["Missing or wrong"][1]
    Worker.objects.filter(host="b").update(spark_trouble="connection refused")
    assert "Spark is starting" in tiles(olga)["Workers"][1], "as its worker did a moment ago"
    Worker.objects.filter(host="b").update(started_at=now - timedelta(minutes=3))
    Worker.objects.filter(host="a").update(heard_at=now - timedelta(minutes=5))
    tile = next(tile for tile in olga.get("/").context["tiles"] if tile.name == "Workers")
    assert (tile.figure, tile.bad) == ("2 alive", True)
    assert "1 lost" in tile.below and "Spark unreachable" in tile.below


def test_where_something_is_lost_at_both_sides_no_tile_says_that_nothing_is_missed(lm: Deployment) -> None:
    head = mirrored(lm, a=b"1")
    del lm.us_store.objects[uri_of(lm, head, "a").replace(NAMESPACE, "s3://src/lake")]
    damage(lm, head)
    told = {tile.name: tile.below for tile in summary.tiles([page()], [], [], None, NO_EXPORTS, clock.now())}
    assert told["Missing or wrong"] == "see what is damaged below"


def test_what_needs_somebody_stands_first_with_one_action_each(olga: Client, company: Any) -> None:
    page = olga.get("/")
    assert [one.mirror.name for one in page.context["needing"]] == ["archive-eu", "lab-eu", "analytics-eu"]
    html = page.content.decode()
    assert 'aria-label="Repair… analytics-eu"' in html and "/repair/" in html
    assert 'aria-label="Open archive-eu"' in html


def test_of_many_mirrors_the_worst_lag_between_regions_is_told(
    olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.overview.views.FEW", 3)
    page = olga.get("/")
    rows = dict(page.context["matrix"].rows)
    assert dict(rows["us-east-1"])["us-east-1"] is None
    pair = dict(rows["us-east-1"])["eu-west-1"]
    assert pair and (pair.number, pair.bad, 830 < (pair.lag or 0) < 900) == (7, True, True)
    assert "?from=us-east-1&amp;region=eu-west-1&amp;sort=lag" in page.content.decode()


def test_a_queue_without_a_worker_is_told_and_leads_to_the_jobs(olga: Client, company: Any) -> None:
    past = datetime.now(UTC) - timedelta(minutes=3)
    Duty.objects.create(kind="manage", subject=company["lab-eu"].pk, queue="eu-west-1", due_at=past)
    assert "1 worker is starting" in tiles(olga)["Workers"][1] and "No worker" not in text(olga.get("/"))
    Duty.objects.filter(kind="manage").update(due_at=past - timedelta(minutes=3))
    said = text(olga.get("/"))
    assert "No worker has served the queue eu-west-1 yet." in said
    assert "1 queue is late" in said


def test_the_latest_are_moves_failures_and_what_somebody_did(
    owner: User, olga: Client, company: Any, lm: Deployment
) -> None:
    now, models = datetime.now(UTC), company["models-eu"]
    duties.ensure_mirror_duties(models)
    Promotion.objects.create(mirror=models, branch="main", to_commit="4be0" * 16, why="advanced", at=now)
    Promotion.objects.create(mirror=models, branch="main", to_commit="4be0" * 16, why="moved-by-somebody", at=now)
    failed = Duty.objects.filter(kind="copy", subject=models.pk)
    failed.update(failures=2, outcome="no answer.", ended_at=now)
    who = {"actor": owner, "mirror": models}
    settings.mirror_update(changes={"paused": True}, **who)
    settings.mirror_update(changes={"paused": False}, **who)
    mirrors.mirror_sync(**who)
    validation_ask(**who)
    duty_retry(actor=owner, duty=failed.get())
    mirrors.mirror_delete(actor=owner, mirror=company["lab-eu"])
    told = [str(one.phrase) for one in olga.get("/").context["latest"]]
    assert told[:6] == [
        "olga deleted lab-eu",
        "olga retried what is missing at models-eu",
        "olga started a validation of models-eu",
        "olga synced models-eu",
        "olga resumed models-eu",
        "olga paused models-eu",
    ]
    assert sorted(told[6:]) == [
        "models-eu · main promoted to 4be04be0",
        "models-eu · main was moved by somebody",
        "models-eu: copying commit records failed, no answer",
    ]


@pytest.mark.parametrize(
    ("why", "to_commit", "told", "bad"),
    [
        (
            "back-where-it-was",
            "4be0" * 16,
            "is back at 4be04be0: moved back by somebody, a restore or a late call",
            True,
        ),
        ("gone-at-the-mirror", "", "is gone at the mirror: deleted by somebody, or lost in a restore", True),
        ("found-there", "4be0" * 16, "was found at 4be04be0", False),
    ],
)
def test_the_latest_tell_what_a_restored_destination_may_have_done(
    olga: Client, company: Any, why: str, to_commit: str, told: str, bad: bool
) -> None:
    Promotion.objects.create(
        mirror=company["models-eu"], branch="main", to_commit=to_commit, why=why, at=datetime.now(UTC)
    )
    first = olga.get("/").context["latest"][0]
    assert (str(first.phrase), first.bad) == (f"models-eu · main {told}", bad)


def test_the_number_of_queries_stays(olga: Client, company: Any) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            olga.get("/", headers=HTMX)
        return len(captured)

    few, now = asked(), datetime.now(UTC)
    for number in range(5):
        source = make_repository(f"more-{number}", now=now)
        mirror = make_mirror(f"more-{number}", source, now=now)
        line = Line(source, "main", now)
        line.reached(mirror, line.commit("1", ago=100))
        line.commit("2", ago=10)
    assert asked() <= few


def test_a_poll_gets_the_part_that_changes(olga: Client, company: Any) -> None:
    part = olga.get("/", headers=HTMX).content.decode()
    assert part.count('id="live"') == 1 and "<html" not in part and "None" not in part


def test_a_rule_that_needs_somebody_is_told_of(olga: Client, company: Any) -> None:
    Mirror.objects.exclude(name="models-eu").delete()
    link = a_rule("logs").links.get()
    denied = {"health_code": "DstPutObjectNotPermitted", "health_message": "access denied"}
    Link.objects.filter(pk=link.pk).update(health="blocked", **denied)
    said = text(olga.get("/"))
    assert "no mirror needs you. 1 of 1 replication rule needs attention." in said
    assert "Needs you" in said and "access denied" in said
    found = olga.get("/service/replication/v1/overview").json()["rules"]
    assert (found["needs_attention_total"], found["needs_attention"][0]["name"]) == (1, "logs")
    Link.objects.filter(pk=link.pk).update(health="down")
    assert "no mirror needs you. 1 replication rule; 1 is down or unknown." in text(olga.get("/"))


def test_without_mirrors_rules_are_told_of_too(olga: Client) -> None:
    Link.objects.filter(rule=a_rule("logs")).update(health="blocked", health_code="DstPutObjectNotPermitted")
    said = text(olga.get("/"))
    assert "1 of 1 replication rule needs attention. See the rules" in said and "No mirror yet" in said
