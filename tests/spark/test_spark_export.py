"""An export's jobs by Spark Connect: what they do in this process, streamed; an older attempt is ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from core.errors import Denied, LakeMirrorError, NotFound
from core.exporting.unit_values import Phase, UnitWork
from spark_jobs.export.copy import copy
from spark_jobs.export.diff import diff
from spark_jobs.export.verify import verify
from spark_jobs.runner import Job, Spark
from tests.s3_double import S3Double, running_moto
from tests.spark.export_lake import Lake, Row, next_slice, planned, total, work_for
from tests.spark.server import ConnectServer

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with running_moto() as endpoint:
        yield endpoint


@pytest.fixture
def lake(moto: str) -> Lake:
    return Lake(moto)


@pytest.fixture
def spark(spark_server: ConnectServer) -> Spark:
    return Spark(spark_server.url)


def run(spark: Spark, job: Job, work: list[UnitWork], tag: str = "one") -> list[Row]:
    rows: list[Row] = []
    spark.run_export(job, work, rows.extend, tag)
    return sorted(rows, key=lambda row: (row["unit"], row.get("part", 0)))


def six_ranges(lake: Lake, each: int = 4) -> list[UnitWork]:
    ranges = [[lake.entry(f"d{n}/k{m}", b"%d" % m) for m in range(each)] for n in range(6)]
    return work_for(lake.commit(*ranges), [*lake.commit(*ranges[:2]), *lake.commit([lake.entry("d2/gone", b"x")])])


def test_spark_plans_what_is_planned_here(spark: Spark, lake: Lake) -> None:
    work, settings = six_ranges(lake), lake.settings(patterns=("d",))
    rows = run(spark, partial(diff, settings=settings), work)
    here = planned(work, settings)
    assert [replace_requests(row) for row in rows] == [replace_requests(row) for row in here]
    assert total(rows, "to_copy") == 16 and total(rows, "to_delete") == 1 and rows[0]["directories"] == [b"d2/"]


def test_spark_verifies_what_is_verified_here(spark: Spark, lake: Lake) -> None:
    target = lake.commit([lake.entry("a", b"1"), lake.entry("b", b"2")], [lake.entry("m", b"3"), lake.entry("n", b"4")])
    for key, data in (("a", b"1"), ("c", b"foreign"), ("m", b"other"), ("n", b"4")):
        lake.put_out(key, data)
    rows: list[Row] = []
    work, settings = work_for(target), lake.settings()
    spark.run_export(partial(verify, settings=settings), work, rows.extend, "one")
    drift = [
        (one["kind"], bytes(one["key"])) for row in sorted(rows, key=lambda row: row["unit"]) for one in row["drift"]
    ]
    assert drift == [("missing", b"b"), ("foreign", b"c"), ("different", b"m")] and total(rows, "equal") == 2
    assert all(row["done"] for row in rows)


def replace_requests(row: Row) -> dict[str, object]:
    """Without what depends on which task read a range first, and with plain bytes."""
    return {**row, "requests": 0, "directories": [bytes(one) for one in row["directories"]]}


def test_spark_copies_in_slices_until_all_is_there(spark: Spark, lake: Lake) -> None:
    work, settings = six_ranges(lake), lake.settings(tasks=2)
    late = run(spark, partial(copy, settings=replace(settings, deadline=time.time() - 1), phase=Phase.COPY), work)
    assert next_slice(work, late) == work and lake.exported() == {}
    half = [replace(one, left=((1, 3),)) for one in work]
    assert total(run(spark, partial(copy, settings=settings, phase=Phase.COPY), half), "copied") == 8
    rows = run(spark, partial(copy, settings=settings, phase=Phase.COPY), work)
    assert (total(rows, "copied"), total(rows, "deleted"), total(rows, "failed")) == (16, 1, 0)
    assert len(lake.exported()) == 16 and all(row["done"] and row["left"] == [] for row in rows)


def test_a_failing_key_is_told_and_the_others_arrive(spark: Spark, lake: Lake) -> None:
    lost = replace(lake.entry("a/lost", b"x"), address="data/nowhere")
    work = work_for(lake.commit([lost, lake.entry("b", b"")]))
    (row,) = run(spark, partial(copy, settings=lake.settings(), phase=Phase.COPY), work)
    assert [(bytes(one["key"]), one["reason"]) for one in row["failures"]] == [(b"a/lost", "gone")]
    assert [bytes(one) for one in row["failed_directories"]] == [b"a/"] and list(lake.exported()) == ["b"]


def test_what_keeps_all_from_being_done_is_raised(spark: Spark, lake: Lake, store: S3Double) -> None:
    work = six_ranges(lake, each=1)
    lake.client.delete_object(Bucket=lake.bucket, Key=f"repo/_lakefs/{work[-1].unit.target}")
    with pytest.raises(NotFound):
        run(spark, partial(diff, settings=lake.settings()), work)
    store.fault = lambda method, key: 403
    refused = replace(lake.settings(), source=replace(lake.settings().source, endpoint=store.endpoint))
    with pytest.raises(Denied, match="LAKEMIRROR_STORE_EU_WEST_1_ACCESS_KEY_ID"):
        run(spark, partial(diff, settings=refused), work)


def test_an_older_attempt_is_ended(spark: Spark, lake: Lake) -> None:
    work = six_ranges(lake)
    slow = lake.settings(objects_per_second=0.5, tasks=1)
    ended: list[LakeMirrorError] = []

    def older() -> None:
        try:
            run(spark, partial(copy, settings=slow, phase=Phase.COPY), work, "export-7")
        except LakeMirrorError as error:
            ended.append(error)

    thread = threading.Thread(target=older)
    thread.start()
    while not lake.exported():
        time.sleep(0.2)
    rows = run(spark, partial(copy, settings=lake.settings(), phase=Phase.COPY), work, "export-7")
    thread.join(15)
    assert ended and total(rows, "copied") == 16
