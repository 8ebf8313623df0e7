"""How much memory an export takes, by the rows of its plan: of the worker, and of Spark's Python workers.

`python bench/export_memory.py [--rows N ...]`. A first export of so many files that the store turns out to have
already (it computes its objects): every row is planned, looked up in listings, dealt out and judged, none is copied.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import md5
from pathlib import Path
from typing import Any

from export_increment import NAMESPACE
from local_deployment import RunningSpark
from two_buckets import COMPUTED, MIRROR, PREFIX, Server, address_of, body_of, running_server
from validate import KEYS, REGION, expect, spark_at

from adapters.s3.store import S3ObjectStore
from core.exporting.unit_planning import parts_of, plan_units
from core.exporting.unit_values import Phase, UnitWork
from graveler.entries import Entry
from graveler.metarange import read_metarange, write_metarange
from graveler.ranges import write_ranges
from graveler.splitting import SplitRule
from spark_jobs.check.settings import StoreLocation
from spark_jobs.export.settings import ExportSettings

RULE = SplitRule(min_size=4 << 20, max_size=4 << 20)
"""Ranges of one size, whatever the number of rows: it is by the largest range that memory grows. lakeFS's are at most
20 MB, and the more there are the larger is the largest."""
TO = f"s3://{MIRROR}/{PREFIX.rstrip('/')}"


def main() -> None:
    """Each figure comes from processes of its own, so that peaks are theirs."""
    asked = parsed()
    os.environ.update(KEYS)
    if asked.part:
        return {"worker": by_itself, "spark": by_spark}[asked.part](asked.endpoint, asked.metarange, asked.rows[0])
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; peaks of resident memory in MB", flush=True)
    for rows in asked.rows:
        with running_server(COMPUTED, rows) as server:
            metarange = written(server, rows)
            told = {**part("worker", server, metarange, rows), **part("spark", server, metarange, rows)}
        print(f"{rows:9,} rows: " + ", ".join(f"{name} {value:.0f}" for name, value in told.items()), flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Peaks of memory of an export, by the rows of its plan.")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    for hidden in ("--part", "--endpoint", "--metarange"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def written(server: Server, rows: int) -> str:
    """A commit whose paths are its addresses, so that its files are at the destination; gives the metarange's id."""
    store = S3ObjectStore(endpoint=server.endpoint, region=REGION, force_path_style=True)
    refs = []
    for one in write_ranges((_entry(number) for number in range(rows)), RULE):
        store.put(f"{NAMESPACE}/_lakefs/{one.id}", one.data)
        refs.append(one.ref)
    metarange = write_metarange(refs)
    store.put(f"{NAMESPACE}/_lakefs/{metarange.id}", metarange.data)
    return metarange.id


def _entry(number: int) -> Entry:
    address, body = address_of(number), body_of(number)
    return Entry(address.encode(), address, etag=md5(body).hexdigest(), size=len(body))


def part(name: str, server: Server, metarange: str, rows: int) -> dict[str, float]:
    """What a process of its own tells."""
    told = ["--part", name, "--endpoint", server.endpoint, "--metarange", metarange, "--rows", str(rows)]
    done = subprocess.run([sys.executable, __file__, *told], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def peak() -> float:
    """Of this process so far, in MB. What the system counts as a process's usage begins with the memory of whoever
    started it."""
    return _peak_of(Path("/proc/self"))


# --- in a process of its own ------------------------------------------------------------------------------------------


def by_itself(endpoint: str, metarange: str, rows: int) -> None:
    """All units are planned and worked on in this process."""
    from spark_jobs.export.copy import copy_units
    from spark_jobs.export.diff import diff_units

    settings, work = planned(endpoint, metarange)
    loaded = peak()
    told = [row for batch in diff_units(work, settings) for row in batch.to_pylist()]
    expect("rows planned", sum(row["to_copy"] for row in told), rows)
    planning = peak()
    done = (row for batch in copy_units(cut(work, told), settings, Phase.COPY) for row in batch.to_pylist())
    expect("rows that were there", sum(row["skipped"] for row in done), rows)
    print(json.dumps({"in one process: loaded": loaded, "planned": planning, "worked on": peak()}))


def by_spark(endpoint: str, metarange: str, rows: int) -> None:
    """The same by Spark."""
    from spark_jobs import runner
    from spark_jobs.export.copy import copy
    from spark_jobs.export.diff import diff

    settings, work = planned(endpoint, metarange)
    with spark_at("") as spark, peaks_of(spark) as peaks:
        os.environ["SPARK_REMOTE"] = spark.url
        adapter = runner.spark()
        adapter.warm_up()
        told: list[dict[str, Any]] = []
        adapter.run_export(functools.partial(diff, settings=settings), work, told.extend, "plan")
        expect("rows planned", sum(row["to_copy"] for row in told), rows)
        parts = cut(work, told)
        told.clear()
        adapter.run_export(functools.partial(copy, settings=settings, phase=Phase.COPY), parts, told.extend, "copy")
        expect("rows that were there", sum(row["skipped"] for row in told), rows)
    print(json.dumps({"by Spark: the worker": peak(), "largest Python worker": peaks["python"]}))


def cut(work: Sequence[UnitWork], told: Sequence[Mapping[str, Any]]) -> list[UnitWork]:
    """The units in parts, as a run cuts them by what was planned."""
    parts = {row["unit"]: parts_of(row["to_copy"], row["copy_bytes"]) for row in told}
    return [
        UnitWork(number, one.unit, part, parts[one.number])
        for number, (one, part) in enumerate((one, part) for one in work for part in range(parts[one.number]))
    ]


def planned(endpoint: str, metarange: str) -> tuple[ExportSettings, list[UnitWork]]:
    """A first export's settings and all its units, of a destination that has to be looked at."""
    places = (StoreLocation(uri, REGION, endpoint) for uri in (NAMESPACE, TO))
    settings = ExportSettings(*places, patterns=("/g[0-9]*0/$",), deadline=time.time() + 3600, compare=True)
    data = S3ObjectStore(endpoint=endpoint, region=REGION, force_path_style=True)
    refs = read_metarange(data.get(f"{NAMESPACE}/_lakefs/{metarange}"), expected_id=metarange)
    return settings, [UnitWork(number, unit) for number, unit in enumerate(plan_units(refs, [[]]))]


@contextlib.contextmanager
def peaks_of(spark: RunningSpark) -> Iterator[dict[str, float]]:
    """The largest peak of Spark's Python processes, looked at several times a second."""
    peaks, over = {"python": 0.0}, threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            found = [_peak_of(one) for one in Path("/proc").glob("[0-9]*") if _is_worker(one, spark.session)]
            peaks["python"] = max([peaks["python"], *found])

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def _is_worker(process: Path, session: int) -> bool:
    with contextlib.suppress(OSError):
        ours = int((process / "stat").read_text().rpartition(")")[2].split()[3]) == session
        return ours and b"daemon" in (process / "cmdline").read_bytes()
    return False


def _peak_of(process: Path) -> float:
    with contextlib.suppress(OSError):
        for line in (process / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


if __name__ == "__main__":
    main()
