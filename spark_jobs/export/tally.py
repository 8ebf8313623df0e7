"""A unit's rows in a phase of an export, and what becomes of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from core.errors import LakeMirrorError
from core.exporting.failure_reasons import reason_of, words_of
from core.exporting.markers import directory_of
from core.exporting.unit_planning import Interval
from core.exporting.unit_values import UnitWork
from core.types import ObjectInfo
from spark_jobs.export.unit_tasks import INTERVALS

COUNTS = ("copied", "deleted", "skipped", "held_back", "kept", "bytes")
MOST_KEPT_NAMED = 20
FAILURE = pa.struct([("key", pa.binary()), ("reason", pa.string()), ("message", pa.string())])
COPY_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("unit", pa.int64()),
        ("part", pa.int64()),
        *((name, pa.int64()) for name in COUNTS),
        ("kept_keys", pa.list_(pa.binary())),
        ("requests", pa.int64()),
        ("unanswered", pa.bool_()),
        ("done", pa.bool_()),
        ("left", INTERVALS),
        ("failed", pa.int64()),
        ("failures", pa.list_(FAILURE)),
        ("failed_directories", pa.list_(pa.binary())),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""kind 'unit': what was done of it in this slice. Unless it is `done`, `left` says which rows are left (null: all of
them), and goes into the next slice's `UnitWork.left`. `skipped`: was there already; `held_back`: a last key with a
failure below its directory; `kept`: was to be removed, but is none of ours, `kept_keys` names the first; `bytes` of
what was copied; `unanswered`: a write of the task so far got no answer, and may still be carried out; `failed` counts,
`failures` tells the first of a task (reasons: `core.exporting.failure_reasons`), `failed_directories` is complete;
`reason`, `detail`: what some of the left rows met that may pass by itself. 'failed' (in DataFrames only): a task had to
give up, `reason` is the class of core.errors."""


Version = tuple[int, str]
"""Size and tag of an object that a commit has."""


@dataclass(slots=True)
class Rows:
    """Keys to delete and entries to bring, numbered in this order.

    `existing`: what the destination shows of these; `versions`: what commits that were brought or tried there have at
    the keys to delete, and the target; `returning`: keys to delete that are written again later.
    """

    deletes: pa.Array
    copies: pa.RecordBatch
    existing: Mapping[bytes, ObjectInfo] = field(default_factory=dict)
    versions: Mapping[bytes, Sequence[Version]] = field(default_factory=dict)
    returning: Collection[bytes] = ()

    def __len__(self) -> int:
        return len(self.deletes) + int(self.copies.num_rows)

    def copies_at(self, start: int, stop: int) -> Sequence[dict[str, Any]]:
        """Entries by their numbers."""
        rows: list[dict[str, Any]] = self.copies.slice(start - len(self.deletes), stop - start).to_pylist()
        return rows


class Tally:
    """Counts what becomes of a unit's rows, for several threads. `jobs`: what is under way."""

    def __init__(self, work: UnitWork, is_told: Callable[[], bool]) -> None:
        self.jobs: list[Future[None]] = []
        self.untouched = False
        self._work, self._is_told = work, is_told
        self._counts = dict.fromkeys(COUNTS, 0)
        self._remaining: list[Interval] = []
        self._failures: list[dict[str, Any]] = []
        self._failed, self._directories = 0, set[bytes]()
        self._kept_keys: list[bytes] = []
        self._postponed: LakeMirrorError | None = None
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Is nothing under way any more?"""
        return all(job.done() for job in reversed(self.jobs))

    def add(self, **counts: int) -> None:
        """Counts."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def leave(self, span: Interval) -> None:
        """Rows that were not begun."""
        with self._lock:
            self._remaining.append(span)

    def postpone(self, span: Interval, error: LakeMirrorError) -> None:
        """Rows that met something which may pass by itself."""
        with self._lock:
            self._remaining.append(span)
            self._postponed = error

    def keep(self, keys: Sequence[bytes]) -> None:
        """Keys at which somebody else's objects stay."""
        with self._lock:
            self._counts["kept"] += len(keys)
            self._kept_keys += keys[: MOST_KEPT_NAMED - len(self._kept_keys)]

    def fail(self, key: bytes, error: LakeMirrorError) -> None:
        """A key that could not be brought or deleted."""
        with self._lock:
            self._failed += 1
            self._directories.add(directory_of(key))
            if self._is_told():
                self._failures.append({"key": key, "reason": str(reason_of(error)), "message": words_of(error)})

    def settle(self) -> None:
        """To be called once nothing is under way. Raises what a thread did not expect."""
        for job in self.jobs:
            job.result()

    def row(self, requests: int, unanswered: bool) -> pa.RecordBatch:
        """A row of COPY_COLUMNS, once it is settled."""
        row = {
            "kind": "unit",
            "unit": self._work.number,
            "part": self._work.part,
            **self._counts,
            "kept_keys": self._kept_keys,
            "requests": requests,
            "unanswered": unanswered,
            "done": not self.untouched and not self._remaining,
            "left": self._what_is_left(),
            "failed": self._failed,
            "failures": self._failures,
            "failed_directories": sorted(self._directories),
            "reason": type(self._postponed).__name__ if self._postponed else None,
            "detail": str(self._postponed) if self._postponed else None,
        }
        return pa.RecordBatch.from_pylist([row], schema=COPY_COLUMNS)

    def _what_is_left(self) -> Sequence[Interval] | None:
        if self.untouched:
            return self._work.left
        joined: list[Interval] = []
        for start, stop in sorted(self._remaining):
            if joined and joined[-1][1] == start:
                start = joined.pop()[0]
            joined.append((start, stop))
        return joined
