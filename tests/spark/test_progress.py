"""How far the bringing is, is told while it goes on. Without Spark."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

from core.mirroring.content_proof import Proof
from core.mirroring.object_check import Reason
from core.types import ObjectInfo
from spark_jobs.check import bring as module
from spark_jobs.check.bring import Bringer
from spark_jobs.check.presence import Expected
from spark_jobs.check.progress import Progress, told_by
from spark_jobs.check.settings import Bring, CheckSettings, StoreLocation

MIB = 1 << 20


def test_differences_of_each_lane_are_told_once() -> None:
    passed = [0]
    progress = Progress(lambda: passed[0])
    progress.expect([1, 2, 9 * MIB])
    progress.begin(9 * MIB)
    passed[0] = 5
    small, large = progress.take()
    assert (small["lane"], small["lacking"], small["begun"], small["passed_bytes"]) == ("small", 2, 0, 5)
    assert (large["lane"], large["lacking"], large["begun"], large["ended"]) == ("large", 1, 1, 0)
    assert progress.take() == []
    progress.end(9 * MIB, copied=1, copied_bytes=9 * MIB)
    [large] = progress.take()
    assert (large["lacking"], large["begun"], large["ended"], large["copied"]) == (0, 0, 1, 1)


def test_the_file_of_a_task_tells_its_totals_and_none_of_an_earlier_job_is_taken_for_it() -> None:
    progress = Progress(lambda: 7)
    progress.expect([1, 9 * MIB])
    progress.take()
    progress.begin(1)
    told = told_by(progress.file(100.5), since=100.0)
    assert told is not None
    assert (told["small"]["lacking"], told["small"]["begun"], told["small"]["passed_bytes"]) == (1, 1, 7)
    assert told["large"]["lacking"] == 1
    assert told_by(progress.file(99.0), since=100.0) is None
    for broken in (b"", b"[]", b'{"made_at": 200}', b"null", b'{"made_at": "x", "lanes": {}}'):
        assert told_by(broken, since=100.0) is None


def test_an_object_is_told_as_in_flight_while_nothing_ends() -> None:
    go = threading.Event()

    def bring(source: str, uri: str, size: int) -> ObjectInfo:
        go.wait(10)
        return ObjectInfo("k", size, "e")

    mover: Any = SimpleNamespace(bring=bring, passed=lambda: 0, stop=go.set, close=lambda: None, allow=lambda _: None)
    settings = CheckSettings("s3://dst/lake", source=StoreLocation("s3://src/lake"), bring=Bring(time.time() + 60))
    bringer = Bringer(mover, settings, mock.Mock())
    looker: Any = SimpleNamespace(judge=lambda info, entry: Proof(None))
    entry = Expected("s3://dst/lake/data/large", 9 * MIB, "e")
    with mock.patch.object(module, "TOLD_SECONDS", 0.05):
        rows = bringer.bring([(entry, Proof((Reason.MISSING, "")))], looker)
        assert [row["lacking"] for row in next(rows)] == [1]
        [told] = next(told for told in rows if told)
        assert (told["lane"], told["begun"], told["ended"]) == ("large", 1, 0)
        go.set()
        assert sum(row["ended"] for told in rows for row in told) == 1
    bringer.close()
