"""Sweeps as figures for Prometheus."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.metrics.sweeps import gauges
from db import clock
from mirrors.models import Mirror, Sweep
from rbac.models import User
from tests.console.test_metrics import samples
from tests.mirrors.factories import make_company

pytestmark = pytest.mark.django_db
State = Sweep.State
SWEPT = ("lakemirror_mirror_sweep_", "lakemirror_mirror_swept_")


def told(user: User) -> dict[str, float]:
    """Of analytics-eu, by metric."""
    found = samples(user)
    return {name[0]: value for name, value in found.items() if name[0].startswith(SWEPT) and "analytics-eu" in name}


def a_sweep(**fields: Any) -> Sweep:
    now = clock.now()
    given = {"began_at": now, "pins": "p", **fields}
    return Sweep.objects.create(mirror=Mirror.objects.get(name="analytics-eu"), **given)


def test_only_mirrors_that_follow_the_garbage_collection_have_them(teammate: User) -> None:
    make_company()
    assert told(teammate) == {}
    Mirror.objects.filter(name="analytics-eu").update(follow_gc=True)
    assert told(teammate) == {
        "lakemirror_mirror_sweep_waiting_objects": 0,
        "lakemirror_mirror_sweep_waiting_bytes": 0,
        "lakemirror_mirror_sweep_frozen": 0,
        "lakemirror_mirror_swept_objects_total": 0,
        "lakemirror_mirror_swept_bytes_total": 0,
    }, "when it was last looked through nobody knows"


def test_what_was_found_and_deleted_what_waits_and_since_when_it_was_looked_through(teammate: User) -> None:
    make_company()
    Mirror.objects.filter(name="analytics-eu").update(follow_gc=True, swept=7, swept_bytes=70)
    before = clock.now() - timedelta(days=8)
    a_sweep(state=State.DONE, looked_at=before, found=9, found_bytes=90, due=7)
    a_sweep(
        state=State.WAITING, looked_at=clock.now() - timedelta(hours=1), found=5, found_bytes=50, due=4, due_bytes=40
    )
    found = told(teammate)
    assert 3600 <= found.pop("lakemirror_mirror_sweep_age_seconds") < 3700
    assert found == {
        "lakemirror_mirror_sweep_found_objects": 5,
        "lakemirror_mirror_sweep_found_bytes": 50,
        "lakemirror_mirror_sweep_waiting_objects": 4,
        "lakemirror_mirror_sweep_waiting_bytes": 40,
        "lakemirror_mirror_sweep_frozen": 0,
        "lakemirror_mirror_swept_objects_total": 7,
        "lakemirror_mirror_swept_bytes_total": 70,
    }


def test_a_look_that_could_not_be_made_is_no_look(teammate: User) -> None:
    make_company()
    Mirror.objects.filter(name="analytics-eu").update(follow_gc=True)
    a_sweep(state=State.DONE, looked_at=clock.now() - timedelta(days=8), found=5)
    a_sweep(state=State.FROZEN, reason="the source is gone")
    found = told(teammate)
    assert found["lakemirror_mirror_sweep_age_seconds"] > 7 * 86400
    assert (found["lakemirror_mirror_sweep_frozen"], found["lakemirror_mirror_sweep_found_objects"]) == (1, 5)


def test_what_was_deleted_is_told_after_it_is_followed_no_more(teammate: User) -> None:
    make_company()
    Mirror.objects.filter(name="analytics-eu").update(swept=7, swept_bytes=70)
    assert told(teammate) == {
        "lakemirror_mirror_swept_objects_total": 7,
        "lakemirror_mirror_swept_bytes_total": 70,
    }


def test_more_mirrors_cost_no_more_queries() -> None:
    make_company()
    Mirror.objects.update(follow_gc=True)
    mirrors = list(Mirror.objects.select_related("source"))
    with CaptureQueriesContext(connection) as asked:
        list(gauges(mirrors, clock.now()))
    assert len(mirrors) > 2 and len(asked) == 2
