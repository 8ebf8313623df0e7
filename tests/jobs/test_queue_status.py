"""Whether a queue is served, or its worker is still being started."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deployment import config
from jobs.queue_status import QueueReading, is_starting

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)


def spark_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, **ago: float) -> None:
    """What `scripts/run` says of Spark."""
    since = (NOW - timedelta(**ago)).timestamp()
    stage = {"name": "spark", "title": "Spark", "state": state, "since": since}
    path = tmp_path / "status.json"
    path.write_text(json.dumps({"pid": os.getpid(), "stages": [stage]}))
    monkeypatch.setenv("LAKEMIRROR_STATUS", str(path))


def starts(queue: str, *, beat: datetime | None = None, **waited: float) -> bool:
    return is_starting(queue, beat, NOW - timedelta(**waited), NOW)


def test_a_queue_that_had_no_worker_yet_has_five_minutes() -> None:
    assert starts("mars-1-spark", minutes=4)
    assert not starts("mars-1-spark", minutes=6)
    assert not starts("mars-1-spark", minutes=4, beat=NOW - timedelta(hours=1))


def test_installing_spark_takes_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, before = config.current().spark_queue, NOW - timedelta(hours=8)
    spark_is(tmp_path, monkeypatch, "running", minutes=20)
    assert starts(queue, hours=8, beat=before)
    assert not starts("mars-1-spark", minutes=20), "which is not started here"
    spark_is(tmp_path, monkeypatch, "ready", seconds=30)
    assert starts(queue, hours=8, beat=before)
    spark_is(tmp_path, monkeypatch, "ready", minutes=3)
    assert not starts(queue, hours=8, beat=before)
    spark_is(tmp_path, monkeypatch, "failed", seconds=3)
    assert not starts(queue, minutes=1)


def test_a_worker_that_is_starting_is_no_trouble_yet() -> None:
    reading = QueueReading(
        name="q",
        beat=None,
        holders=0,
        messages=1,
        due=1,
        oldest_due=NOW - timedelta(minutes=9),
        woken_at=NOW,
        as_of=NOW,
        starting=True,
    )
    assert not reading.silent and reading.trouble == ""
    assert reading.unserved, "a heartbeat is not sent for it all the same"
