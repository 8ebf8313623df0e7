"""What the page and the API say of a destination and of its status file is what stands there."""

from __future__ import annotations

from typing import Any

import pytest

from db import clock
from exports.api.status import whole_status_json
from exports.models import Export
from exports.status.export import export_statuses
from tests.exports.soak import Soak

pytestmark = pytest.mark.django_db


def told() -> dict[str, Any]:
    """As `export-status` answers."""
    (reading,) = export_statuses([Export.objects.get()], clock.now())
    return whole_status_json(reading)


def test_a_new_place_to_which_nothing_was_brought_is_not_up_to_date(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    assert told()["behind_commits"] == 0
    life.denied = "other/"
    life.set("s3://out/other")
    life.rounds()
    life.lake.commit(files={"a": b"2"})
    life.rounds()
    status = told()
    assert (status["status"], status["up_to_date"]) == ("export-failed", False)
    assert (status["behind_commits"], status["behind_seconds"]) == (None, None)


def test_a_branch_that_comes_back_while_another_commit_is_half_written_is_not_up_to_date(life: Soak) -> None:
    first = life.lake.commit(files={"a": b"1", "ü": b"1"})
    life.set()
    life.rounds()
    life.lake.commit(files={"a": b"2", "ü": b"2"})
    life.denied = "ü"
    life.rounds()
    assert told()["behind_commits"] == 1
    life.lake.repository.branches["main"] = first
    life.rounds()
    status = told()
    assert (status["up_to_date"], status["behind_commits"], status["behind_seconds"]) == (False, None, None)
