"""The check of what is small, in the worker itself: the same rows, or none at all."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from adapters.s3.fast_store import FastObjectStore
from core.errors import LakeMirrorError, Throttled
from spark_jobs.check import job
from spark_jobs.check.job import check_batch, check_small
from spark_jobs.check.ranges import KeptRanges
from spark_jobs.check.settings import CheckSettings, StoreLocation, store_of
from tests.s3_double import S3Double
from tests.spark.ranges import PREFIX, arrive, arrive_range, entries, entry, imported


@pytest.fixture
def near(settings: CheckSettings) -> FastObjectStore:
    """The destination, with the keys that this process has."""
    return store_of(settings)


def plain(work: list[tuple[str, list[str]]], settings: CheckSettings) -> list[dict[str, Any]]:
    return [row for batch in check_batch(work, settings) for row in batch.to_pylist()]


def test_it_finds_what_the_job_finds(store: S3Double, settings: CheckSettings, near: FastObjectStore) -> None:
    members = [*entries(60, partitions=2), entry(b"\xff\xfe"), imported("zz", "s3://lake/elsewhere/x")]
    arrive(store, members[:50])
    store.things[PREFIX + members[5].address].storage_class = "GLACIER"
    base = arrive_range(store, entries(20, partitions=2))
    store.put(f"{PREFIX}_lakefs/{'d' * 64}", b"damaged")
    work = [(arrive_range(store, members), [base]), ("0" * 64, [base]), ("d" * 64, [base])]
    rows = check_small(work, settings, near)
    assert rows == plain(work, settings)
    assert rows is not None
    assert {row["reason"] for row in rows} == {
        None,
        "missing",
        "imported",
        "range-missing",
        "range-damaged",
    }
    assert sum(row["s3_requests"] or 0 for row in rows) > 0


def test_an_archived_object_is_told(store: S3Double, settings: CheckSettings, near: FastObjectStore) -> None:
    arrive(store, [entry("a")])
    store.things[PREFIX + entry("a").address].storage_class = "GLACIER"
    rows = check_small([(arrive_range(store, [entry("a")]), [])], settings, near)
    assert rows is not None
    assert [row["reason"] for row in rows] == ["archived", None]


def test_what_only_another_site_has_is_missing(store: S3Double, settings: CheckSettings, near: FastObjectStore) -> None:
    """The store would give it to whoever doesn't say that it must not."""
    with S3Double() as there:
        store.peer = there
        member, other = entry("a"), entry("b")
        arrive(there, [member])
        work = [(arrive_range(store, [member]), []), (arrive_range(there, [other]), [])]
        rows = check_small(work, settings, near)
        assert rows == plain(work, settings)
    assert rows is not None
    assert {row["reason"] for row in rows} - {None} == {"missing", "range-missing"}


@pytest.mark.parametrize("change", [{"size": 11}, {"etag": "0" * 32}])
def test_an_object_that_differs_is_no_small_matter(
    store: S3Double, settings: CheckSettings, near: FastObjectStore, change: dict[str, Any]
) -> None:
    members = entries(3)
    arrive(store, members)
    for name, value in change.items():
        setattr(store.things[PREFIX + members[1].address], name, value)
    work = [(arrive_range(store, members), [])]
    assert check_small(work, settings, near) is None
    assert len(plain(work, settings)) == 2, "the job has the say"


def test_what_the_source_explains_is_no_small_matter_either(
    store: S3Double, settings: CheckSettings, near: FastObjectStore
) -> None:
    written = hashlib.md5(b"parts").hexdigest()
    arrive(store, [entry("a", etag=f"{written}-2")])
    other = entry("a", etag=f"{hashlib.md5(b'others').hexdigest()}-3")
    source = StoreLocation("s3://lake/source", "eu-west-1", settings.endpoint)
    work = [(arrive_range(store, [other]), [])]
    assert check_small(work, replace(settings, source=source), near) is None


def test_much_to_look_for_is_not_looked_for(
    store: S3Double, settings: CheckSettings, near: FastObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "SMALL_LOOKS", 30)
    members = entries(40)
    arrive(store, members)
    base = arrive_range(store, entries(10))
    range_id = arrive_range(store, members)
    assert check_small([(range_id, [base])], settings, near) is not None
    before = near.requests
    assert check_small([(range_id, [])], settings, near) is None
    assert near.requests == before + 1, "the range's file"


def test_content_is_not_read(store: S3Double, settings: CheckSettings, near: FastObjectStore) -> None:
    before = near.requests
    deep = replace(settings, depth="content", source=StoreLocation("s3://lake/source", "eu-west-1", settings.endpoint))
    assert check_small([("0" * 64, [])], deep, near) is None
    assert near.requests == before


def test_a_store_that_fails_raises(store: S3Double, settings: CheckSettings, near: FastObjectStore) -> None:
    work = [(arrive_range(store, [entry("a")]), [])]
    store.fault = lambda method, key: 503 if method == "HEAD" else None
    with pytest.raises(Throttled) as raised:
        check_small(work, settings, near)
    assert isinstance(raised.value, LakeMirrorError)


def test_what_was_checked_is_not_read_again_as_a_base(
    store: S3Double, settings: CheckSettings, near: FastObjectStore
) -> None:
    first, then = entries(10, start=500), entries(11, start=500)
    arrive(store, then)
    base, following = arrive_range(store, first), arrive_range(store, then)
    check_small([(base, [])], settings, near)
    before = near.requests
    rows = check_small([(following, [base])], settings, near)
    assert rows is not None
    assert [(row["entries"], row["looked_up"]) for row in rows] == [(11, 1)]
    assert near.requests == before + 2, "the new range, the new object"


def test_the_ranges_that_were_used_last_are_kept() -> None:
    kept = KeptRanges(10)
    named = {"address": ["a"] * 4, "full": [False] * 4, "size": [1] * 4, "etag": [""] * 4}
    columns = pa.RecordBatch.from_pydict({**named, "path": [b""] * 4})
    kept.put("one", columns)
    kept.put("two", columns)
    assert kept.get("one") is not None
    kept.put("three", columns)
    assert [kept.get(name) is not None for name in ("one", "two", "three")] == [True, False, True]
    assert kept.get("one").schema.names == ["address", "full", "size", "etag"]  # type: ignore[union-attr]
