"""Exports in this process: what arrives, what goes, what is left alone, and how a slice goes on where one ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest

from core.errors import Corrupt, NotFound
from core.exporting.unit_planning import holders
from core.exporting.unit_values import Phase, UnitWork
from spark_jobs.export import copy
from spark_jobs.export.diff import held_keys
from spark_jobs.export.settings import copier_of
from spark_jobs.export.unit_tasks import UNIT_COLUMNS, _row
from tests.s3_double import running_moto
from tests.spark.export_lake import Lake, export, imported, next_slice, planned, total, work_for, worked_on


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with running_moto() as endpoint:
        yield endpoint


@pytest.fixture
def lake(moto: str) -> Lake:
    return Lake(moto)


SUCCESS = (r".*/_SUCCESS",)


def test_a_first_export_brings_everything_and_leaves_foreign_objects(lake: Lake) -> None:
    lake.put_out("foreign", b"mine")
    lake.client.put_object(Bucket=lake.bucket, Key="elsewhere/x y", Body=b"imported")
    target = lake.commit(
        [lake.entry("a/1", b"one"), lake.entry("a/2", b"")],
        [lake.entry("b c/+", b"three"), imported("z", f"s3://{lake.bucket}/elsewhere/x y", b"imported")],
    )
    rows = export(work_for(target), lake.settings())
    assert lake.exported() == {"a/1": b"one", "a/2": b"", "b c/+": b"three", "foreign": b"mine", "z": b"imported"}
    assert (total(rows, "copied"), total(rows, "bytes"), total(rows, "failed")) == (4, 16, 0)
    assert all(row["done"] for row in rows)


def test_later_exports_bring_what_changed_and_delete_what_is_gone(lake: Lake) -> None:
    kept, gone = lake.entry("a/kept", b"kept"), lake.entry("a/gone", b"gone")
    tried = lake.entry("a/tried", b"of an attempt that failed")
    base = lake.commit([kept, gone, lake.entry("a/changed", b"old")], [lake.entry("z", b"z")])
    attempted = lake.commit([kept, tried, lake.entry("a/changed", b"between")], [lake.entry("z", b"z2")])
    export(work_for(base), lake.settings())
    export(work_for(attempted, base), lake.settings())
    lake.put_out("a/foreign", b"mine")
    target = lake.commit([kept, lake.entry("a/changed", b"new"), lake.entry("a/new", b"n")], [lake.entry("z", b"z")])
    work = work_for(target, base, attempted)
    (first, second) = planned(work, lake.settings())
    assert (first["to_copy"], first["to_delete"], first["copy_bytes"]) == (2, 2, 4)
    assert (second["to_copy"], second["to_delete"]) == (1, 0)
    rows = export(work, lake.settings())
    assert (total(rows, "copied"), total(rows, "deleted")) == (3, 2)
    assert lake.exported() == {"a/changed": b"new", "a/foreign": b"mine", "a/kept": b"kept", "a/new": b"n", "z": b"z"}


def test_an_emptied_branch_takes_everything_of_its_own_away(lake: Lake) -> None:
    base = lake.commit([lake.entry("a", b"1")], [lake.entry("b", b"2")])
    export(work_for(base), lake.settings())
    lake.put_out("foreign", b"mine")
    export(work_for([], base), lake.settings())
    assert lake.exported() == {"foreign": b"mine"}


# --- patterns --------------------------------------------------------------------------------------------------------


def test_the_plan_tells_matching_directories_children_first_and_counts_last_keys(lake: Lake) -> None:
    kept = lake.entry("logs/2021-01-03/kept", b"k")
    base = lake.commit([kept, lake.entry("logs/2021-01-02/gone", b"x"), lake.entry("other/x", b"x")])
    target = lake.commit([lake.entry("logs/2021-01-01/deep/1", b"1"), kept, lake.entry("logs/_SUCCESS", b"")])
    settings = lake.settings(patterns=(r".*/2021-\d\d-\d\d/", r".*/_SUCCESS", "^$"))
    (row,) = planned(work_for(target, base), settings)
    assert row["directories"] == [b"logs/2021-01-01/deep/", b"logs/2021-01-01/", b"logs/2021-01-02/", b""]
    assert row["last_keys"] == 1
    (without,) = planned(work_for(target, base), lake.settings())
    assert without["directories"] == [] and without["last_keys"] == 0


def test_last_keys_go_first_and_come_last(lake: Lake) -> None:
    base = lake.commit([lake.entry("a/_SUCCESS", b"1"), lake.entry("b/_SUCCESS", b"1"), lake.entry("c/_SUCCESS", b"")])
    settings = lake.settings(patterns=SUCCESS)
    export(work_for(base), settings)
    target = lake.commit([lake.entry("a/1", b"1"), lake.entry("a/_SUCCESS", b"2"), lake.entry("c/_SUCCESS", b"")])
    work = work_for(target, base)
    worked_on(work, settings, Phase.CLEAR)
    assert list(lake.exported()) == ["c/_SUCCESS"]
    worked_on(work, settings, Phase.COPY)
    assert list(lake.exported()) == ["a/1", "c/_SUCCESS"]
    worked_on(work, settings, Phase.LAST)
    assert lake.exported() == {"a/1": b"1", "a/_SUCCESS": b"2", "c/_SUCCESS": b""}


def test_a_failure_keeps_back_the_last_keys_above_it_and_no_others(lake: Lake) -> None:
    lost = replace(lake.entry("a/deep/lost", b"x"), address="data/nowhere")
    target = lake.commit(
        [lake.entry("_SUCCESS", b""), lost, lake.entry("a/_SUCCESS", b""), lake.entry("b/_SUCCESS", b"")]
    )
    rows = export(work_for(target), lake.settings(patterns=("_SUCCESS",)))
    assert list(lake.exported()) == ["b/_SUCCESS"]
    assert total(rows, "held_back") == 2
    (failure,) = [one for row in rows for one in row["failures"]]
    assert (failure["key"], failure["reason"]) == (b"a/deep/lost", "gone")
    assert [row["failed_directories"] for row in rows if row["failed"]] == [[b"a/deep/"]]


def test_a_users_own_success_file_is_found_also_where_no_unit_reads(lake: Lake) -> None:
    target = lake.commit([lake.entry("a/_lakefs_success", b"mine")], [lake.entry("b/x", b"")])
    asked = holders(target, [b"a/_lakefs_success", b"b/_lakefs_success", b"a/", b"_lakefs_success"])
    assert held_keys(asked, lake.settings()) == {b"a/_lakefs_success"}


# --- slices, parts, attempts -----------------------------------------------------------------------------------------


def many(lake: Lake, count: int) -> list[UnitWork]:
    members = [lake.entry(f"k/{number:03d}", b"%d" % number) for number in range(count)]
    return work_for(lake.commit(members[: count // 2], members[count // 2 :]))


def test_parts_are_the_whole_and_nothing_twice(lake: Lake) -> None:
    work = many(lake, 21)
    cut = [replace(one, part=part, parts=4) for one in work for part in range(4)]
    rows = export(cut, lake.settings())
    assert total(rows, "copied") == 21 == len(lake.exported())
    assert {(row["unit"], row["part"]) for row in rows} == {(unit, part) for unit in range(2) for part in range(4)}


class Ending:
    """A deadline that passes after so many copies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lake: Lake, copies: int) -> None:
        self._began, self._now = len(lake.exported()), time.time

        class Stopping(copy.Deadline):
            begun = 0

            def pause(self, seconds: float) -> None:
                Stopping.begun += 1
                if Stopping.begun > copies:
                    raise copy.Late
                super().pause(seconds)

        monkeypatch.setattr(copy, "Deadline", Stopping)


def test_what_a_slice_leaves_the_next_one_does_and_no_more(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    work, done, slices = many(lake, 24), 0, 0
    while work:
        with monkeypatch.context() as patched:
            Ending(patched, lake, 7)
            rows = worked_on(work, lake.settings(), Phase.COPY)
        done, slices, work = done + total(rows, "copied"), slices + 1, next_slice(work, rows)
    assert (done, slices) == (24, 4)
    assert len(lake.exported()) == 24


def test_after_the_deadline_a_slice_gives_all_of_it_back(lake: Lake) -> None:
    work = many(lake, 4)
    rows = worked_on(work, lake.settings(deadline=time.time() - 1), Phase.COPY)
    assert [(row["done"], row["left"], row["requests"]) for row in rows] == [(False, None, 0), (False, None, 0)]
    assert next_slice(work, rows) == work and lake.exported() == {}


def test_another_attempt_copies_nothing_that_is_there(lake: Lake) -> None:
    big = lake.entry("big", b"x" * (6 << 20))
    target = lake.commit([lake.entry("a b/+%2F", b"1"), big, lake.entry("other", b"2")])
    sizes = replace(lake.settings().sizes, copied_whole=5 << 20, copied_part=5 << 20)
    settings = lake.settings(sizes=sizes, compare=True)
    first = worked_on(work_for(target), settings, Phase.COPY)
    lake.put_out("other", b"3")
    for number in range(3):
        lake.put_out(f"b{number}", b"foreign")
    second = worked_on(work_for(target), settings, Phase.COPY)
    assert (total(first, "copied"), total(first, "skipped")) == (3, 0)
    assert (total(second, "copied"), total(second, "skipped")) == (1, 2)
    assert lake.exported()["other"] == b"2"


def test_what_was_left_unfinished_is_given_up(lake: Lake) -> None:
    for key in ("to/big", "to/big", "to/foreign"):
        lake.client.create_multipart_upload(Bucket=lake.out, Key=key)
    with closing(copier_of(lake.settings())) as copier:
        found = copier.unfinished()
        assert {key: len(ids) for key, ids in found.items()} == {b"big": 2, b"foreign": 1}
        copier.abort({b"big": found[b"big"]})
    left = lake.client.list_multipart_uploads(Bucket=lake.out)["Uploads"]
    assert [one["Key"] for one in left] == ["to/foreign"]


def test_an_entry_described_anew_is_brought_again_though_its_bytes_are_there(lake: Lake) -> None:
    entry = lake.entry("a", b"1")
    base, target = lake.commit([entry]), lake.commit([replace(entry, content_type="text/csv")])
    export(work_for(base), lake.settings())
    rows = worked_on(work_for(target, base), lake.settings(compare=True), Phase.COPY)
    assert total(rows, "copied") == 1
    assert lake.client.head_object(Bucket=lake.out, Key="to/a")["ContentType"] == "text/csv"


def test_between_endpoints_objects_are_streamed(lake: Lake) -> None:
    work, settings = many(lake, 6), lake.settings()
    with running_moto() as other:
        rows = export(work, replace(settings, destination=replace(settings.destination, endpoint=other)))
    assert total(rows, "copied") == 6 == len(lake.exported())


# --- failures --------------------------------------------------------------------------------------------------------


def test_each_failure_is_told_with_its_reason_up_to_a_number(lake: Lake) -> None:
    members = [replace(lake.entry(f"k{number}", b"x"), etag="0" * 32) for number in range(3)]
    target = lake.commit([*members, lake.entry(b"caf\xe9", b"x"), lake.entry("fine", b"x")])
    rows = worked_on(work_for(target), lake.settings(most_failures=2, threads=1), Phase.COPY)
    failures = [one for row in rows for one in row["failures"]]
    assert [(one["key"], one["reason"]) for one in failures] == [(b"caf\xe9", "key"), (b"k0", "changed")]
    assert total(rows, "failed") >= 3 and list(lake.exported()) == ["fine"]


def test_too_many_failures_end_the_slice_early(lake: Lake) -> None:
    members = [replace(lake.entry(f"k{number:02d}", b"x"), address="data/nowhere") for number in range(40)]
    rows = worked_on(work_for(lake.commit(members)), lake.settings(most_failures=3, threads=1), Phase.COPY)
    assert 3 < total(rows, "failed") < 40 and not rows[0]["done"]


def test_a_range_that_is_damaged_or_missing_ends_the_work_after_what_came_before(lake: Lake) -> None:
    target = lake.commit([lake.entry("a", b"1")], [lake.entry("b", b"2")])
    where = {"Bucket": lake.bucket, "Key": f"repo/_lakefs/{target[1].id}"}
    rows = []
    for raised in (NotFound, Corrupt):
        lake.client.delete_object(**where) if raised is NotFound else lake.client.put_object(**where, Body=b"damaged")
        with pytest.raises(raised):
            for batch in copy.copy_units(work_for(target), lake.settings(), Phase.COPY):
                rows += batch.to_pylist()
    assert [row["unit"] for row in rows] == [0, 0] and list(lake.exported()) == ["a"]


class Attempt:
    """A task of Spark's, as it tells of itself."""

    def __init__(self, number: int) -> None:
        self.number = number

    def attemptNumber(self) -> int:
        return self.number


@pytest.mark.parametrize("attempt", [None, 0, 1])
def test_what_became_of_a_task_that_is_given_to_another_one_nobody_knows(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, attempt: int | None
) -> None:
    work = work_for(lake.commit([lake.entry("a", b"1")]))
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(UNIT_COLUMNS.names, _row(one), strict=True)) for one in work], schema=UNIT_COLUMNS
    )
    context = None if attempt is None else Attempt(attempt)
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: context)
    (told,) = copy._copy_task([batch], lake.settings(), Phase.COPY)
    (row,) = told.to_pylist()
    assert (row["copied"], row["unanswered"]) == (1, attempt == 1)
