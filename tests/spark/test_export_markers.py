"""Markers at the destination: children first, none above one that failed, none after the deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from spark_jobs.export.markers import remove_markers, write_markers
from spark_jobs.export.settings import ExportSettings
from tests.s3_double import S3Double, running_moto
from tests.spark.export_lake import Lake

DIRECTORIES = [b"", b"a/", b"a/b/", b"a/b/c/", b"k\xc3\xa4se/"]


@pytest.fixture(scope="module")
def lake() -> Iterator[Lake]:
    with running_moto() as endpoint:
        yield Lake(endpoint)


def test_markers_are_written_empty_and_removed(lake: Lake) -> None:
    lake.put_out("a/_lakefs_success.txt", b"mine")
    written = write_markers(DIRECTORIES, lake.settings())
    assert (written.left, written.failures) == ([], {})
    assert lake.exported()["käse/_lakefs_success"] == b"" and len(lake.exported()) == 6
    removed = remove_markers(DIRECTORIES, lake.settings())
    assert (removed.left, removed.failures) == ([], {})
    assert list(lake.exported()) == ["a/_lakefs_success.txt"]


def test_a_child_s_marker_is_there_before_its_parent_s(store: S3Double, lake: Lake) -> None:
    settings, asked = at(store, lake), []
    store.fault = lambda method, key: asked.append(key) if method == "PUT" else None
    write_markers(DIRECTORIES, settings)
    order = [key.removeprefix("to/").removesuffix("_lakefs_success") for key in asked]
    assert order.index("a/b/c/") < order.index("a/b/") < order.index("a/") < order.index("")


def test_no_marker_is_written_above_one_that_failed(store: S3Double, lake: Lake) -> None:
    settings = at(store, lake)
    store.fault = lambda method, key: 403 if key.startswith("to/a/b/_") else None
    written = write_markers(DIRECTORIES, settings)
    assert list(written.failures) == [b"a/b/"]
    assert sorted(store.things) == ["to/a/b/c/_lakefs_success", "to/käse/_lakefs_success"]


def test_after_the_deadline_all_are_left(lake: Lake) -> None:
    late = lake.settings(deadline=time.time() - 1)
    assert sorted(write_markers(DIRECTORIES, late).left) == sorted(DIRECTORIES)
    assert sorted(remove_markers(DIRECTORIES, late).left) == sorted(DIRECTORIES)


def test_a_key_that_cannot_be_is_a_failure_when_written_and_none_when_removed(lake: Lake) -> None:
    assert list(write_markers([b"\xff/"], lake.settings()).failures) == [b"\xff/"]
    assert remove_markers([b"\xff/"], lake.settings()).failures == {}


def at(store: S3Double, lake: Lake) -> ExportSettings:
    """Settings for the double's bucket."""
    settings = lake.settings()
    there = replace(settings.destination, endpoint=store.endpoint, namespace=f"s3://{store.bucket}/to")
    return replace(settings, destination=there)
