"""A large commit's manifest: parts by tasks, put together to what one writer would have written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.multipart import Part, Uploads
from adapters.s3.writes import Writer
from core.errors import NotFound
from core.exporting.deadline import Deadline
from graveler.metarange import RangeRef
from spark_jobs.export import manifest as job
from spark_jobs.export.manifest import PartWork, Upload, cut_parts, part_rows
from tests.s3_double import KEYS, running_moto
from tests.spark.export_lake import Lake, rows_of


@pytest.fixture(scope="module")
def lake() -> Iterator[Lake]:
    with running_moto() as endpoint:
        yield Lake(endpoint)


def ref(number: int, count: int, low: bytes = b"", high: bytes = b"") -> RangeRef:
    return RangeRef(f"r{number}", low or b"k%03d" % number, high or b"k%03d~" % number, count, 1)


def test_each_part_but_the_last_has_lines_enough() -> None:
    refs = [ref(number, 90_000) for number in range(8)]
    parts = cut_parts(refs)
    assert [part.number for part in parts] == [1, 2]
    assert [len(part.ranges) for part in parts] == [3, 5]
    assert [one for part in parts for one in part.ranges] == [one.id for one in refs]
    assert 37 * job.LEAST_LINES > 5 << 20
    assert len('{"path": "", "etag": "", "size": 0}\n') + 1 == 37


def test_lines_that_may_be_left_out_are_not_counted_on() -> None:
    hooks = ref(0, 500_000, b"_lakefs_actions/a", b"_lakefs_actions/z")
    refs = [hooks, *(ref(number, 200_000) for number in (1, 2))]
    assert [part.ranges for part in cut_parts(refs)] == [("r0",), ("r1",), ("r2",)]
    assert [part.ranges for part in cut_parts(refs, actions=False)] == [("r0", "r1"), ("r2",)]


def test_no_more_parts_than_s3_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "LEAST_LINES", 1)
    monkeypatch.setattr(job, "MOST_PARTS", 4)
    assert len(cut_parts([ref(number, 10) for number in range(40)])) <= 4
    assert cut_parts([]) == [PartWork(1, ())]


@pytest.mark.parametrize("actions", [True, False])
def test_put_together_they_are_all_lines_in_order(lake: Lake, actions: bool) -> None:
    entries = [
        [lake.entry("_lakefs_actions/h.yaml", b"1"), lake.entry("a b", b"22")],
        [lake.entry(b"k\xc3\xa4se", b"333")],
    ]
    refs = lake.commit(*entries)
    uri = f"s3://{lake.out}/to/manifest-{actions}"
    options: Any = {"endpoint": lake.endpoint, "region": "us-east-1", "force_path_style": True, **KEYS}
    uploads = Uploads(Writer(FastObjectStore(**options), Deadline(time.time() + 60)))
    upload = Upload(uri, uploads.start(uri, {"content-type": "application/x-ndjson"}), actions)
    # One part: moto wants 5 MiB of each but the last.
    rows = rows_of(part_rows([PartWork(1, tuple(one.id for one in refs))], lake.settings(), upload))
    uploads.complete(uri, upload.id, {row["number"]: Part(row["size"], row["etag"]) for row in rows})
    lines = [json.loads(line) for line in lake.exported()[f"manifest-{actions}"].splitlines()]
    wanted = [entry for members in entries for entry in members][0 if actions else 1 :]
    assert lines == [{"path": one.path.decode(), "etag": one.etag, "size": one.size} for one in wanted]


@pytest.mark.parametrize("actions", [True, False])
def test_several_parts_put_together_are_all_lines_in_order(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, actions: bool
) -> None:
    """Whoever uploads which part, and when; one part is uploaded twice, as by a task that was given to another one."""
    monkeypatch.setattr("moto.s3.models.S3_UPLOAD_PART_MIN_SIZE", 1)
    monkeypatch.setattr(job, "LEAST_LINES", 2)
    names = [["_lakefs_actions/a", "_lakefs_actions/b"], ["a", "b", "c"], ["d"], ["e", "f"], ["g"]]
    entries = [[lake.entry(name, name.encode()) for name in some] for some in names]
    refs = lake.commit(*entries)
    parts = cut_parts(refs, actions=actions)
    assert len(parts) == (3 if actions else 2)
    uri = f"s3://{lake.out}/to/manifest-in-parts-{actions}"
    options: Any = {"endpoint": lake.endpoint, "region": "us-east-1", "force_path_style": True, **KEYS}
    uploads = Uploads(Writer(FastObjectStore(**options), Deadline(time.time() + 60)))
    upload = Upload(uri, uploads.start(uri, {"content-type": "application/x-ndjson"}), actions)
    rows = rows_of(part_rows([*reversed(parts), parts[0]], lake.settings(), upload))
    uploads.complete(uri, upload.id, {row["number"]: Part(row["size"], row["etag"]) for row in rows})
    lines = [json.loads(line)["path"] for line in lake.exported()[f"manifest-in-parts-{actions}"].splitlines()]
    assert lines == [name for some in names[0 if actions else 1 :] for name in some]


def test_a_range_that_is_gone_fails_it(lake: Lake) -> None:
    with pytest.raises(NotFound):
        list(part_rows([PartWork(1, ("absent",))], lake.settings(), Upload(f"s3://{lake.out}/x", "u")))
