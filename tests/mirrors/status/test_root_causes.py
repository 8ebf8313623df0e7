"""Several mirrors that wait for one reason are told of once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from db import clock
from mirrors.models import Mirror, Promotion
from mirrors.status.mirror import brief_statuses
from mirrors.status.root_causes import needing_by_themselves, root_causes
from notifications.conditions import observe
from tests.api import Api
from tests.mirrors.factories import Line, block, make_mirror, make_repository

pytestmark = pytest.mark.django_db
NAMES = ["models-eu", "orders-eu"]


@pytest.fixture
def stalled() -> list[Mirror]:
    """Two mirrors from one region in another that have missed what was written for ten minutes."""
    now, mirrors = clock.now(), []
    for name in NAMES:
        line = Line(make_repository(name, now=now), "main", now)
        mirror = make_mirror(name, line.repository, now=now)
        line.reached(mirror, line.commit("before", ago=900), ago=850)
        block(mirror, line.commit("after", ago=600), f"{name}/a.csv", now=now, ago=590)
        mirrors.append(mirror)
    return mirrors


def test_replication_that_stopped_is_one_row_and_one_alert(stalled: list[Mirror], olga: Client, api: Api) -> None:
    now = clock.now()
    readings = brief_statuses(Mirror.objects.select_related("source").order_by("name"), now)
    [cause] = root_causes(readings, now)
    assert (cause.service, cause.name, cause.mirrors) == ("replication", "us-east-1 → eu-west-1", NAMES)
    assert needing_by_themselves(readings, [cause]) == []
    kinds = {(one.condition.kind.value, bool(one.condition.cause)) for one in observe(now).troubles}
    assert {("replication-stopped", False), ("mirror-blocked", True)} <= kinds
    assert ("mirror-blocked", False) not in kinds
    page = olga.get("/").content.decode()
    assert "Replication stopped" in page and "2 mirrors wait" in page and f"n-{stalled[0].pk}" not in page
    assert "Replication stopped" in olga.get("/map/").content.decode()
    _, told = api.call("GET", "/service/replication/v1/overview")
    [outage] = told["outages"]
    assert (outage["service"], outage["source_region"], outage["status"]) == ("replication", "us-east-1", "stopped")
    assert outage["mirrors"] == NAMES and told["needs_attention_total"] == 0


def test_where_something_newer_arrived_each_is_told_of(stalled: list[Mirror]) -> None:
    now = clock.now()
    Promotion.objects.create(
        mirror=stalled[0], branch="dev", to_commit="4be0" * 16, why="advanced", at=now - timedelta(minutes=2)
    )
    readings = brief_statuses(Mirror.objects.select_related("source").order_by("name"), now)
    assert root_causes(readings, now) == []
    assert len(needing_by_themselves(readings, [])) == 2
