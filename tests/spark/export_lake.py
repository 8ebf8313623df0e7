"""A small lake behind S3, and exports of it: ranges are as lakeFS writes them, phases follow each other as in a run."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import boto3

from core.exporting.unit_planning import plan_units
from core.exporting.unit_values import Phase, UnitWork
from graveler.entries import AddressType, Entry
from graveler.metarange import RangeRef
from graveler.ranges import write_range
from spark_jobs.check.settings import StoreLocation
from spark_jobs.export.copy import copy_units
from spark_jobs.export.diff import diff_units
from spark_jobs.export.settings import ExportSettings
from spark_jobs.export.unit_tasks import left_of
from tests.s3_double import KEYS

Row = Mapping[str, Any]


def rows_of(batches: Iterator[Any]) -> list[Row]:
    return [row for batch in batches for row in batch.to_pylist()]


@dataclass
class Lake:
    """A repository's namespace and an empty export path."""

    endpoint: str
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    def __post_init__(self) -> None:
        secrets = {f"aws_{name}": value for name, value in KEYS.items()}
        self.client: Any = boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1", **secrets)
        for bucket in (self.bucket, self.out):
            self.client.create_bucket(Bucket=bucket)

    @property
    def bucket(self) -> str:
        return f"lake-{self.name}"

    @property
    def out(self) -> str:
        return f"out-{self.name}"

    def settings(self, **options: Any) -> ExportSettings:
        source = StoreLocation(f"s3://{self.bucket}/repo/", "eu-west-1", self.endpoint)
        there = StoreLocation(f"s3://{self.out}/to/", "eu-west-1", self.endpoint)
        return replace(ExportSettings(source, there, deadline=time.time() + 300, threads=4), **options)

    def entry(self, path: str | bytes, content: bytes, **fields: Any) -> Entry:
        """An entry whose object is in the lake."""
        address = f"data/{uuid.uuid4().hex}"
        self.client.put_object(Bucket=self.bucket, Key=f"repo/{address}", Body=content)
        key = path.encode() if isinstance(path, str) else path
        return Entry(key, address, len(content), hashlib.md5(content).hexdigest(), **fields)

    def commit(self, *ranges: Sequence[Entry]) -> list[RangeRef]:
        """Writes ranges of these entries."""
        refs = []
        for members in ranges:
            written = write_range(sorted(members, key=lambda one: one.path))
            self.client.put_object(Bucket=self.bucket, Key=f"repo/_lakefs/{written.id}", Body=written.data)
            refs.append(written.ref)
        return refs

    def put_out(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.out, Key=f"to/{key}", Body=content)

    def exported(self) -> dict[str, bytes]:
        """What is at the destination."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.out)
        keys = [one["Key"] for page in pages for one in page.get("Contents", ())]
        return {key[3:]: self.client.get_object(Bucket=self.out, Key=key)["Body"].read() for key in keys}


def imported(path: str, uri: str, content: bytes) -> Entry:
    return Entry(path.encode(), uri, len(content), hashlib.md5(content).hexdigest(), address_type=AddressType.FULL)


def work_for(target: Sequence[RangeRef], *others: Sequence[RangeRef], parts: int = 1) -> list[UnitWork]:
    """All units; without others, of a first export."""
    units = plan_units(target, others or [[]])
    return [UnitWork(number, unit, part, parts) for number, unit in enumerate(units) for part in range(parts)]


def planned(work: Sequence[UnitWork], settings: ExportSettings) -> list[Row]:
    return rows_of(diff_units(work, settings))


def worked_on(work: Sequence[UnitWork], settings: ExportSettings, phase: Phase) -> list[Row]:
    return rows_of(copy_units(work, settings, phase))


def export(work: Sequence[UnitWork], settings: ExportSettings) -> list[Row]:
    """All phases, one after the other."""
    rows = [*worked_on(work, settings, Phase.CLEAR), *worked_on(work, settings, Phase.COPY)]
    failed = tuple(directory for row in rows for directory in row["failed_directories"])
    return [*rows, *worked_on(work, replace(settings, failed=failed), Phase.LAST)]


def total(rows: Sequence[Row], name: str) -> int:
    return sum(row[name] for row in rows)


def next_slice(work: Sequence[UnitWork], rows: Sequence[Row]) -> list[UnitWork]:
    """What a slice left over."""
    return [replace(one, left=left_of(row)) for one, row in zip(work, rows, strict=True) if not row["done"]]
