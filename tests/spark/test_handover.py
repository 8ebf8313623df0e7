"""Results are handed over while a job runs; whoever takes them may end it at any time. Without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from core.errors import Stopped
from spark_jobs.runner import _Handover


def test_news_without_rows_is_a_moment_to_end_the_job() -> None:
    given: list[list[Mapping[str, Any]]] = []

    def stop_when_asked(rows: list[Mapping[str, Any]]) -> None:
        given.append(rows)
        if len(given) == 3:
            raise Stopped("somebody stopped it")

    handover = _Handover(stop_when_asked, 2)
    handover.tick()
    handover.take([{"kind": "range", "range_id": "r"}])
    handover.tick()
    assert [len(rows) for rows in given] == [0, 1]
    with pytest.raises(Stopped):
        handover.tick()
