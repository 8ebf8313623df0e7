"""Figures of replication rules for Prometheus."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.metrics.prometheus import gauges
from rbac.models import User
from replication.models import Rule
from tests.console.test_metrics import samples
from tests.replication.factories import a_rule, in_trouble

pytestmark = pytest.mark.django_db


def of(name: str, link: int, got: dict[tuple[str, ...], float], *code: str) -> float:
    return got[(f"lakemirror_link_{name}", *code, str(link), "eu-west-1", "orders")]


def test_links_are_told_as_the_pages_tell_them(teammate: User) -> None:
    in_trouble()
    got = samples(teammate)
    assert [of("up", link, got) for link in (1, 2)] == [0, 1]
    assert of("down_seconds", 1, got) == pytest.approx(720, abs=120) and of("down_seconds", 2, got) == 0
    assert (of("pending_objects", 1, got), of("pending_bytes", 1, got)) == (1, 100)
    assert of("oldest_pending_seconds", 2, got) == pytest.approx(720, abs=120)
    assert of("failed_objects", 2, got, "TargetRefused") == 2
    assert of("skipped_objects", 2, got, "SourceArchived") == 1
    assert (of("sent_objects_total", 1, got), of("workers", 1, got)) == (1100, 16)
    assert of("bytes_per_second", 2, got) == 10**8
    assert ("lakemirror_link_bytes_per_second", "1", "eu-west-1", "orders") not in got
    assert got["lakemirror_rule_full_pass_age_seconds", "orders"] == pytest.approx(60, abs=120)


def test_what_was_never_compared_has_no_age(teammate: User) -> None:
    a_rule(full_ended_at=None, paused=True)
    got = samples(teammate)
    assert ("lakemirror_rule_full_pass_age_seconds", "logs") not in got
    assert got["lakemirror_link_paused", "1", "eu-west-1", "logs"] == 1


def test_a_rule_that_is_being_deleted_has_no_figures_nor_for_who_may_not_list(teammate: User, outsider: User) -> None:
    rule = a_rule()
    names = {gauge.name for gauge in gauges(teammate)}
    assert "lakemirror_link_up" in names and "lakemirror_link_up" not in {gauge.name for gauge in gauges(outsider)}
    Rule.objects.filter(pk=rule.pk).update(deleting=True)
    assert "lakemirror_link_up" not in {gauge.name for gauge in gauges(teammate)}


def test_more_rules_cost_no_more_queries(teammate: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            for gauge in gauges(teammate):
                gauge.text()
        return len(asked)

    a_rule("first")
    queries()
    few = queries()
    for number in range(10):
        a_rule(f"r{number}", f"s3://x/{number}", f"s3://y/{number}")
    assert queries() == few
