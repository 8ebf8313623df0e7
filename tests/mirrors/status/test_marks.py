"""What is marked on a mirror's charts: pauses, lateness, moves by force and by others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from audit.models import AuditEvent
from mirrors.models import LagBreach, Measure, Mirror, Promotion
from mirrors.status.marks import happenings
from tests.mirrors.factories import make_mirror, make_repository
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 13, 16, 34, tzinfo=UTC)
SINCE = NOW - timedelta(hours=24)


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)


def audited(verb: str, hours: float, **more: Any) -> None:
    with mock.patch("django.utils.timezone.now", return_value=ago(hours)):
        AuditEvent.objects.create(
            verb=verb, actor="olga", action="fs:OperateMirror", arn="arn", subject="mirror/lake-eu", **more
        )


def told(mirror: Mirror) -> list[tuple[str, str, float, float | None]]:
    """Kind, words, begin and end in hours ago."""
    return [
        (
            one.kind.value,
            one.words,
            (NOW - one.at) / timedelta(hours=1),
            one.until and (NOW - one.until) / timedelta(hours=1),
        )
        for one in happenings(mirror, SINCE)
    ]


def test_pauses_are_told_from_who_paused_to_who_resumed(mirror: Mirror) -> None:
    for verb, hours in (("pause", 60), ("resume", 50), ("pause", 30), ("resume", 20), ("resume", 19), ("sync", 5)):
        audited(verb, hours)
    audited("pause", 4, reason="bucket move")
    audited("resume", 3, refused=True)
    assert told(mirror) == [("pause", "by olga: “bucket move”", 4, None), ("pause", "by olga", 30, 20)]
    assert happenings(mirror, SINCE)[0].goes_on


def test_lateness_that_reaches_into_the_time_is_told(mirror: Mirror) -> None:
    LagBreach.objects.create(mirror=mirror, branch="old", began_at=ago(40), ended_at=ago(25))
    LagBreach.objects.create(mirror=mirror, branch="main", began_at=ago(30), ended_at=ago(23))
    LagBreach.objects.create(mirror=mirror, branch="dev", began_at=ago(1))
    assert told(mirror) == [("late", "dev", 1, None), ("late", "main", 30, 23)]


def test_moves_by_force_and_by_others_are_told_and_plain_ones_are_not(mirror: Mirror) -> None:
    for why, hours in (("advanced", 5), ("moved-by-somebody", 4), ("put-back", 3), ("source-moved", 2)):
        Promotion.objects.create(mirror=mirror, branch="main", to_commit="a" * 64, why=why, at=ago(hours))
    assert [(kind, words) for kind, words, _, _ in told(mirror)] == [
        ("force", "main: reset, as at the source"),
        ("force", "main: put back"),
        ("others", "main: moved by somebody"),
    ]


def test_the_charts_have_marks_and_a_list_says_the_same(olga: Client, mirror: Mirror) -> None:
    at = NOW.replace(minute=15, second=0)
    Measure.objects.create(
        mirror=mirror, minutes=5, began_at=at, ends_at=at + timedelta(minutes=5), lag_seconds=1, read_at=NOW
    )
    LagBreach.objects.create(mirror=mirror, branch="<main>", began_at=ago(30), ended_at=ago(12))
    Promotion.objects.create(mirror=mirror, branch="main", to_commit="a" * 64, why="put-back", at=ago(6))
    with mock.patch("db.clock.now", return_value=NOW):
        answer = olga.get("/mirrors/lake-eu/metrics/")
    page, said = answer.content.decode(), text(answer)
    span, moment = '<rect class="happened late" x="0.00%"', '<line class="happened force" x1="74'
    assert page.count(span) == page.count(moment) == 2  # on both charts of lag
    assert "! Later than target 2026-11-20 07:16 01:16:34 <main>" in said
    assert "▼ Moved by force 07:16:34 — main: put back" in said
