"""What Prometheus scrapes: the same facts as the pages', in a number of queries that doesn't grow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from audit import chain
from console.metrics.prometheus import gauges
from db import clock
from jobs.models import Duty
from mirrors.models import Mirror, Repository
from mirrors.status.mirror import mirror_statuses
from rbac.models import User
from tests.api import Api
from tests.cast import person
from tests.mirrors.factories import Line, block, fail, make_company, make_mirror, make_repository

pytestmark = pytest.mark.django_db


def scrape(user: User) -> HttpResponse:
    return Client().get("/metrics", headers=Api(user).headers)


def samples(user: User) -> dict[tuple[str, ...], float]:
    """By the metric's name and the values of its labels: the mirror's, then by the label."""
    families = text_string_to_metric_families(scrape(user).content.decode())
    return {
        (
            one.name,
            *(one.labels[name] for name in sorted(one.labels, key=lambda name: (name != "mirror", name))),
        ): one.value
        for family in families
        for one in family.samples
    }


def test_the_figures_of_branches_are_those_of_the_pages(teammate: User) -> None:
    make_company()
    got, compared = samples(teammate), 0
    for reading in mirror_statuses(Mirror.objects.select_related("source")):
        for branch in reading.branches:
            key = (reading.mirror.name, branch.name)
            if ("lakemirror_branch_pending_commits", *key) in got and not branch.inferred:
                compared += 1
                assert got["lakemirror_branch_pending_commits", *key] == branch.pending, key
                if branch.lag:
                    assert got["lakemirror_branch_lag_seconds", *key] == pytest.approx(branch.lag, abs=60)
    assert compared > 10


def test_a_mirror_that_waits_is_told_with_its_state_and_what_it_lacks(teammate: User) -> None:
    now = clock.now()
    line = Line(make_repository(now=now), "main", now)
    mirror = make_mirror("lake-eu", line.repository, now=now, paused=True)
    line.reached(mirror, line.commit("first", ago=500), ago=400)
    block(mirror, line.commit("second", ago=90), "a.csv", now=now, ago=80)
    Duty.objects.create(
        kind="promote", subject=mirror.pk, queue="q", due_at=now, succeeded_at=datetime(2026, 1, 2, tzinfo=UTC)
    )
    got, labels = samples(teammate), ("lake-eu", "eu-west-1", "lake", "us-east-1")
    assert got["lakemirror_mirror_paused", *labels] == 1
    assert got["lakemirror_mirror_blocked_things", *labels] == 1
    assert got["lakemirror_mirror_last_success_timestamp_seconds", *labels] == 1767312000
    states = {one: got["lakemirror_mirror_state", *labels, one] for one in ("creating", "active", "stopped", "frozen")}
    assert states == {"creating": 0, "active": 1, "stopped": 0, "frozen": 0}
    assert got["lakemirror_branch_pending_commits", "lake-eu", "main"] == 1
    assert 90 <= got["lakemirror_branch_lag_seconds", "lake-eu", "main"] < 150
    assert got["lakemirror_branch_last_success_timestamp_seconds", "lake-eu", "main"] > 0


def test_a_branch_whose_source_was_not_looked_at_lately_has_no_lag(teammate: User) -> None:
    now = clock.now()
    line = Line(make_repository(now=now), "main", now)
    mirror = make_mirror("lake-eu", line.repository, now=now)
    line.reached(mirror, line.commit("first", ago=500))
    assert samples(teammate)["lakemirror_branch_lag_seconds", "lake-eu", "main"] == 0
    Repository.objects.update(looked_at=now - timedelta(days=1))
    assert ("lakemirror_branch_lag_seconds", "lake-eu", "main") not in samples(teammate)


def test_the_worst_duty_of_a_kind_is_told(teammate: User) -> None:
    now = clock.now()
    fail("copy", 1, "no answer", now=now, failures=3)
    fail("copy", 2, "no answer", now=now, failures=7)
    Duty.objects.filter(subject=1).update(due_at=now - timedelta(seconds=300), succeeded_at=now - timedelta(hours=1))
    got = samples(teammate)
    assert got["lakemirror_duty_failures_in_a_row", "copy"] == 7
    assert 300 <= got["lakemirror_duty_overdue_seconds", "copy"] < 400
    assert 3600 <= got["lakemirror_duty_last_success_age_seconds", "copy"] < 3700


def test_names_are_escaped(teammate: User) -> None:
    now = clock.now()
    line = Line(make_repository(now=now), 'odd"\\\nname', now)
    line.reached(make_mirror("lake-eu", line.repository, now=now), line.commit("first", ago=5))
    assert samples(teammate)["lakemirror_branch_pending_commits", "lake-eu", 'odd"\\\nname'] == 0


def test_more_mirrors_cost_no_more_queries() -> None:
    make_company()
    scraper, now, queries = person("scraper", "Viewers"), clock.now(), []
    Mirror.objects.visible_to(scraper)  # asks for policies, which are kept
    for number in range(6):
        line = Line(make_repository(f"r{number}", now=now), "main", now)
        line.reached(make_mirror(f"m{number}", line.repository, now=now), line.commit("first", ago=50))
        line.commit("second", ago=5)
        with CaptureQueriesContext(connection) as asked:
            list(gauges(scraper))
        queries.append(len(asked))
    assert set(queries) == {queries[0]}
    assert queries[0] <= 20


def test_it_is_for_who_may_list_repositories(outsider: User, teammate: User) -> None:
    assert scrape(teammate)["Content-Type"].startswith("text/plain")
    refused = scrape(outsider)
    assert (refused.status_code, "fs:ListRepositories" in refused.json()["message"]) == (403, True)
    unknown = Client().get("/metrics")
    assert (unknown.status_code, unknown["WWW-Authenticate"][:5]) == (401, "Basic")


def test_the_audits_chain_is_told_by_its_head(teammate: User) -> None:
    chain.append_waiting()
    got = samples(teammate)
    assert got["lakemirror_audit_chain_events",] == chain.head().number > 0
    assert f"{int(got['lakemirror_audit_chain_head',]):013x}" == chain.head().digest[:13]
    assert got["lakemirror_audit_chain_broken",] == 0
