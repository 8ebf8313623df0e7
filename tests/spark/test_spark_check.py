"""The check by Spark Connect: the same findings as in-process, streamed, and honest about every kind of failure."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from core.errors import Denied, Fenced, RemoteFailure, Throttled, Unreachable
from spark_jobs.check.job import WORK_COLUMNS, check, check_batch
from spark_jobs.check.settings import CheckSettings
from spark_jobs.runner import Spark
from spark_jobs.session import ROOT, code_archive
from spark_jobs.tasks import sql_type
from tests.s3_double import S3Double
from tests.spark.ranges import PREFIX, arrive, arrive_range, entries, entry, imported
from tests.spark.server import ConnectServer, spark_environment

pytestmark = pytest.mark.spark

Row = Mapping[str, Any]
Work = list[tuple[str, list[str]]]


class Collected:
    """A callback that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def on_rows(self, rows: list[Row]) -> None:
        self.rows += rows

    def ranges(self) -> list[str]:
        return [row["range_id"] for row in self.rows if row["kind"] == "range"]

    def problems(self) -> list[tuple[bytes, str]]:
        return [(bytes(row["path"]), row["reason"]) for row in self.rows if row["kind"] == "problem"]


@pytest.fixture
def spark(spark_server: ConnectServer) -> Spark:
    return Spark(spark_server.url)


@pytest.fixture
def got() -> Collected:
    return Collected()


def separate_ranges(store: S3Double, count: int, each: int = 3) -> Work:
    """Ranges of a few objects that are all there, each with a partition of its own."""
    work = []
    for number in range(count):
        members = [entry(f"r{number}/{n}", address=f"data/r{number:03d}/{n}") for n in range(each)]
        arrive(store, members)
        work.append((arrive_range(store, members), []))
    return work


def mixed_work(store: S3Double) -> Work:
    """A bit of everything that can be wrong."""
    members = [*entries(60, partitions=2), entry(b"\xff\xfe"), imported("zz", "s3://lake/elsewhere/x")]
    arrive(store, members[:50])
    store.things[PREFIX + members[3].address].size = 1
    store.things[PREFIX + members[4].address].etag = "x"
    store.things[PREFIX + members[5].address].storage_class = "GLACIER"
    base = arrive_range(store, entries(20, partitions=2))
    store.put(f"{PREFIX}_lakefs/{'d' * 64}", b"damaged")
    return [(arrive_range(store, members), [base]), ("0" * 64, []), ("d" * 64, []), (arrive_range(store, members), [])]


def comparable(row: Row) -> tuple[Any, ...]:
    """A row without its share of requests, which depends on how ranges were grouped."""
    return tuple(bytes(v) if isinstance(v, bytearray) else v for k, v in row.items() if k != "s3_requests")


def test_spark_finds_what_the_plain_function_finds(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected
) -> None:
    work = mixed_work(store)
    plain = [row for batch in check_batch(work, settings) for row in batch.to_pylist()]
    spark.run_check(work, settings, got.on_rows)
    assert len(got.problems()) > 10
    assert list(map(comparable, got.rows)) == list(map(comparable, plain))


def test_executors_tell_of_what_the_store_refuses_and_of_keys_and_marks(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected
) -> None:
    cold, shut, fine = separate_ranges(store, 3)
    store.things[f"{PREFIX}_lakefs/{cold[0]}"].storage_class = "GLACIER"
    odd = arrive_range(store, [entry("a", address="s3://lake/odd"), imported("b", "s3://lake/odd")])
    refused = f"{PREFIX}data/r001/1"
    store.fault = lambda method, key: 403 if method in ("GET", "HEAD") and key == refused else None
    work = [cold, shut, fine, (odd, [])]
    plain = [row for batch in check_batch(work, settings) for row in batch.to_pylist()]
    spark.run_check(work, settings, got.on_rows)
    found = [(row["range_id"], row["reason"], row["full"]) for row in got.rows if row["kind"] == "problem"]
    assert found == [
        (cold[0], "range-archived", False),
        (shut[0], "unreadable", False),
        (odd, "imported", True),
        (odd, "missing", False),
    ]
    ranges = {row["range_id"]: row for row in got.rows if row["kind"] == "range"}
    assert (bytes(ranges[fine[0]]["min_key"]), bytes(ranges[fine[0]]["max_key"])) == (b"r2/0", b"r2/2")
    assert bytes(ranges[odd]["looked"]) == crc32(b"s3://lake/odd").to_bytes(4, "little")
    assert list(map(comparable, got.rows)) == list(map(comparable, plain))


def test_a_dataframe_of_work_is_taken_as_it_is(spark: Spark, store: S3Double, settings: CheckSettings) -> None:
    work = separate_ranges(store, 3)
    frame = spark.session().createDataFrame(work, sql_type(WORK_COLUMNS))
    rows = check(spark.session(), frame, settings).collect()
    assert sorted(row.range_id for row in rows) == sorted(range_id for range_id, _ in work)


def test_no_work_is_no_job(spark: Spark, settings: CheckSettings, got: Collected) -> None:
    Spark("sc://127.0.0.1:1").run_check([], settings, got.on_rows)
    assert got.rows == []
    assert check(spark.session(), [], settings).collect() == []


@pytest.mark.parametrize("count", [1, 2, 9, 40])
def test_every_range_gets_its_row_once(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected, count: int
) -> None:
    work = separate_ranges(store, count)
    spark.run_check(work, settings, got.on_rows)
    assert sorted(got.ranges()) == sorted(range_id for range_id, _ in work)


def test_a_hundred_thousand_entries_in_ranges_with_three_faults(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected
) -> None:
    members = entries(100_000, partitions=5)
    arrive(store, members)
    store.drop(PREFIX + members[0].address)
    store.things[PREFIX + members[50_000].address].size = 0
    store.things[PREFIX + members[-1].address].etag = "x"
    work = [(arrive_range(store, members[at : at + 25_000]), []) for at in range(0, 100_000, 25_000)]
    spark.run_check(work, settings, got.on_rows)
    assert sorted(got.problems()) == [
        (members[0].path, "missing"),
        (members[50_000].path, "size-differs"),
        (members[-1].path, "etag-differs"),
    ]
    assert sum(row["entries"] for row in got.rows if row["kind"] == "range") == 100_000


def test_rows_are_handed_over_while_the_job_runs(spark: Spark, store: S3Double, settings: CheckSettings) -> None:
    work = separate_ranges(store, 8)
    first_came, waited = threading.Event(), []

    def hold_the_last(method: str, key: str) -> None:
        if "data/r007/" in key:
            waited.append(first_came.wait(30))

    store.fault = hold_the_last

    def on_rows(rows: list[Row]) -> None:
        if work[0][0] in [row["range_id"] for row in rows]:
            first_came.set()

    spark.run_check(work, settings, on_rows)
    assert waited and all(waited)


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "raised"), [(0, Unreachable), (503, Throttled), (500, RemoteFailure)])
def test_a_store_that_stops_in_the_middle_is_raised_as_retryable(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected, status: int, raised: type[Exception]
) -> None:
    work = separate_ranges(store, 12)
    stopped_from = PREFIX + "data/r006/"
    store.fault = lambda method, key: (
        status if "_lakemirror/" in key or ("data/" in key and key >= stopped_from) else None
    )
    with pytest.raises(raised) as caught:
        spark.run_check(work, settings, got.on_rows)
    assert caught.value.retryable
    assert got.problems() == []
    assert set(got.ranges()) <= {range_id for range_id, _ in work[:6]}


def test_a_store_that_denies_is_raised_as_such(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected
) -> None:
    work = separate_ranges(store, 2)
    store.fault = lambda method, key: 403
    with pytest.raises(Denied, match=store.endpoint):
        spark.run_check(work, settings, got.on_rows)
    assert got.rows == []


def test_the_next_run_works_after_the_store_came_back(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected
) -> None:
    work = separate_ranges(store, 2)
    store.fault = lambda method, key: 0
    with pytest.raises(Unreachable):
        spark.run_check(work, settings, got.on_rows)
    store.fault = None
    spark.run_check(work, settings, got.on_rows)
    assert len(got.ranges()) == 2


def test_a_callback_that_raises_ends_the_job(spark: Spark, store: S3Double, settings: CheckSettings) -> None:
    work = separate_ranges(store, 40, each=1)
    store.fault = lambda method, key: time.sleep(0.05)

    def on_rows(rows: list[Row]) -> None:
        raise Fenced("the lease is lost")

    with pytest.raises(Fenced):
        spark.run_check(work, replace(settings, ranges_per_task=1), on_rows)
    assert _calls_at_rest(store) < 80


def _calls_at_rest(store: S3Double) -> int:
    """How many requests there were once no more come: a busy machine takes a while to stop."""
    before, deadline = -1, time.monotonic() + 30
    while (asked := sum(store.asked.values())) != before and time.monotonic() < deadline:
        before = asked
        time.sleep(1.0)
    assert asked == before
    return asked


def test_an_error_of_the_job_itself_says_so(spark: Spark, store: S3Double, settings: CheckSettings) -> None:
    with pytest.raises(RemoteFailure, match="gave up the job"):
        spark.run_check(separate_ranges(store, 1), replace(settings, depth="nonsense"), lambda rows: None)


def test_no_spark_is_unreachable_within_seconds(store: S3Double, settings: CheckSettings) -> None:
    began = time.monotonic()
    with pytest.raises(Unreachable, match="Spark at"):
        Spark("sc://127.0.0.1:1").run_check(separate_ranges(store, 1), settings, lambda rows: None)
    assert time.monotonic() - began < 20


def test_a_server_that_dies_is_unreachable_and_one_started_anew_is_used(
    tmp_path: Path, store: S3Double, settings: CheckSettings, got: Collected
) -> None:
    server = ConnectServer(tmp_path)
    server.start()
    try:
        spark = Spark(server.url)
        work = separate_ranges(store, 6)
        spark.run_check(work[:1], settings, got.on_rows)
        killed = threading.Event()

        def kill_it(method: str, key: str) -> None:
            if "data/r003/" in key and not killed.is_set():
                killed.set()
                server.stop(signal.SIGKILL)

        store.fault = kill_it
        began = time.monotonic()
        with pytest.raises(Unreachable, match="Spark at"):
            spark.run_check(work, replace(settings, ranges_per_task=1), got.on_rows)
        assert time.monotonic() - began < 45
        assert got.problems() == [] and len(got.ranges()) < 6
        store.fault = None
        server.start()
        again = Collected()
        spark.run_check(work, settings, again.on_rows)
        assert len(again.ranges()) == 6
    finally:
        server.stop()


# --- sessions --------------------------------------------------------------------------------------------------------


def test_all_clients_share_one_session_of_the_server(spark_server: ConnectServer) -> None:
    ids = {Spark(spark_server.url).session().session_id for _ in range(2)}  # type: ignore[attr-defined]
    assert len(ids) == 1


def test_a_session_that_was_closed_is_replaced(
    spark: Spark, store: S3Double, settings: CheckSettings, got: Collected
) -> None:
    session: Any = spark.session()
    session.client.release_session()
    spark.run_check(separate_ranges(store, 1), settings, got.on_rows)
    assert len(got.ranges()) == 1


def test_a_session_that_another_client_has_closed_is_replaced(spark_server: ConnectServer) -> None:
    ours, theirs = Spark(spark_server.url), Spark(spark_server.url)
    ours.warm_up()
    session: Any = theirs.session()
    session.client.release_session()
    ours.warm_up()


def test_warming_up_needs_no_store(spark_server: ConnectServer) -> None:
    Spark(spark_server.url).warm_up()


def test_the_same_code_is_the_same_archive() -> None:
    assert code_archive() == code_archive()


def test_a_driver_in_this_process_finds_the_same(store: S3Double, settings: CheckSettings, tmp_path: Path) -> None:
    work = mixed_work(store)
    plain = [row for batch in check_batch(work, settings) for row in batch.to_pylist()]
    program = (
        "import json, sys; from spark_jobs.runner import spark; from spark_jobs.check.settings import CheckSettings\n"
        "from core.store_access import StoreAccess\n"
        "told = json.load(sys.stdin); rows = []; settings = told['settings']\n"
        "settings['access'] = StoreAccess(**settings['access'])\n"
        "spark('local[2]').run_check(told['work'], CheckSettings(**settings), rows.extend)\n"
        "print(json.dumps([[row['kind'], row['range_id'], row['reason'], row['problems']] for row in rows]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"work": work, "settings": asdict(settings)}),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=spark_environment() | {"PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told == [[row["kind"], row["range_id"], row["reason"], row["problems"]] for row in plain]
