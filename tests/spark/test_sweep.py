"""The sweep's job: what nobody names and the source has no more, the same in this process and by Spark."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.s3.remover import Remover
from core.errors import Denied, LakeMirrorError, RemoteFailure
from core.sweeping import Standing
from graveler.entries import AddressType
from spark_jobs.check.settings import StoreLocation, store_at
from spark_jobs.runner import Spark
from spark_jobs.sweep.job import SweepSettings, sweep, sweep_here
from tests.s3_double import S3Double
from tests.spark.ranges import arrive_range, entry
from tests.spark.server import ConnectServer

WHOLE = [("", "")]
STRETCHES = [("", "data/o0000500"), ("data/o0000500", "data/o0001200"), ("data/o0001200", "")]


@pytest.fixture
def places(store: S3Double) -> SweepSettings:
    here = StoreLocation("s3://lake/mirror", "eu-west-1", store.endpoint)
    return SweepSettings(here, StoreLocation("s3://lake/source", "eu-west-1", store.endpoint), tries=1)


@pytest.fixture
def range_ids(store: S3Double) -> list[str]:
    """2,000 objects: every second one is named by one of two ranges, every third one is still at the source."""
    for number in range(2000):
        store.put(f"mirror/data/o{number:07}", b"some bytes")
        if number % 3 == 0:
            store.put(f"source/data/o{number:07}", b"some bytes")
    for key in ("_lakefs/settings", "_lakemirror/mirror.json", "dummy"):
        store.put(f"mirror/{key}", b"x")
    named = [entry(f"f{number}", address=f"data/o{number:07}") for number in range(0, 2000, 2)]
    ids = [arrive_range(store, named[:600]), arrive_range(store, named[600:])]
    store.claim(f"source/_lakefs/{ids[1]}", store.things.pop(f"mirror/_lakefs/{ids[1]}"))  # known to the source alone
    return ids


UNNAMED = [f"data/o{number:07}" for number in range(2000) if number % 2 and number % 3]


def in_process(work: Any, ids: list[str], places: SweepSettings) -> list[dict[str, Any]]:
    stores = store_at(places.here, 1, 20), store_at(places.source, 1, 20)
    return [row for batch in sweep_here(work, ids, places, *stores) for row in batch.to_pylist()]


def told(rows: list[dict[str, Any]]) -> tuple[list[str], int, int]:
    """Addresses of what may go; how many objects were listed in all, of how many bytes."""
    parts = [row for row in rows if row["kind"] == "part"]
    found = [row["address"] for row in rows if row["kind"] == "object"]
    return sorted(found), sum(row["objects"] for row in parts), sum(row["bytes"] for row in parts)


@pytest.mark.parametrize("work", [WHOLE, STRETCHES])
def test_what_nobody_names_and_the_source_has_no_more_is_found(
    work: Any, range_ids: list[str], places: SweepSettings
) -> None:
    assert told(in_process(work, range_ids, places)) == (UNNAMED, 2000, 20_000)


@pytest.mark.spark
def test_spark_finds_the_same_and_a_range_that_nobody_can_read_fails_all_of_it(
    range_ids: list[str], places: SweepSettings, spark_server: ConnectServer, store: S3Double
) -> None:
    rows: list[dict[str, Any]] = []
    job = functools.partial(sweep, range_ids=range_ids, settings=places)
    Spark(spark_server.url).run_sweep(job, STRETCHES, rows.extend)  # type: ignore[arg-type]
    assert told(rows) == (UNNAMED, 2000, 20_000)
    store.drop(f"source/_lakefs/{range_ids[1]}")
    with pytest.raises(RemoteFailure):
        Spark(spark_server.url).run_sweep(job, STRETCHES, rows.extend)  # type: ignore[arg-type]


def test_without_a_range_all_is_unnamed(range_ids: list[str], places: SweepSettings) -> None:
    found, listed, _ = told(in_process(WHOLE, [], places))
    assert (len(found), listed) == (1333, 2000)


def test_an_imported_address_may_lie_below_the_namespace(store: S3Double, places: SweepSettings) -> None:
    store.put("mirror/data/a", b"x")
    store.put("mirror/data/b", b"x")
    full = [
        entry("p", address="s3://lake/mirror/data/a", address_type=AddressType.FULL),
        entry("q", address="s3://elsewhere/data/b", address_type=AddressType.FULL),
    ]
    assert told(in_process(WHOLE, [arrive_range(store, full)], places))[0] == ["data/b"]


def test_a_range_that_is_damaged_here_is_read_at_the_source(
    store: S3Double, range_ids: list[str], places: SweepSettings
) -> None:
    store.put(f"source/_lakefs/{range_ids[0]}", store.things[f"mirror/_lakefs/{range_ids[0]}"].data)
    store.put(f"mirror/_lakefs/{range_ids[0]}", b"damaged")
    assert told(in_process(WHOLE, range_ids, places))[0] == UNNAMED


@pytest.mark.parametrize(
    ("kind", "prefix", "status", "error"),
    [
        ("HEAD", "source/", 403, Denied),
        ("HEAD", "source/", 500, RemoteFailure),
        ("GET", "mirror/_lakefs/", 403, Denied),
        ("LIST", "", 403, Denied),
    ],
)
def test_what_is_refused_is_no_404(
    store: S3Double,
    range_ids: list[str],
    places: SweepSettings,
    kind: str,
    prefix: str,
    status: int,
    error: type[LakeMirrorError],
) -> None:
    store.fault = lambda asked, key: status if asked == kind and key.startswith(prefix) else None
    with pytest.raises(error):
        in_process(WHOLE, range_ids, places)


# --- removal --------------------------------------------------------------------------------------------------------


@pytest.fixture
def remover(places: SweepSettings) -> Iterator[Remover]:
    return Remover(store_at(places.here, 1, 20))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("headers", "locked"),
    [
        ({}, False),
        ({"x-amz-object-lock-legal-hold": "ON"}, True),
        ({"x-amz-object-lock-legal-hold": "OFF"}, False),
        ({"x-amz-object-lock-retain-until-date": "2100-01-01T00:00:00Z"}, True),
        ({"x-amz-object-lock-retain-until-date": "2020-01-01T00:00:00Z"}, False),
        ({"x-amz-object-lock-retain-until-date": "one day"}, True),
    ],
)
def test_how_an_object_stands(store: S3Double, remover: Remover, headers: dict[str, str], locked: bool) -> None:
    thing = store.put("mirror/data/a", b"abc", headers=headers)
    standing = remover.standing("s3://lake/mirror/data/a")
    assert isinstance(standing, Standing)
    assert (standing.size, standing.etag, standing.locked) == (3, thing.etag, locked)
    assert standing.modified is not None and standing.modified.isoformat() == "2025-10-21T07:28:00+00:00"
    assert remover.standing("s3://lake/mirror/data/b") is None


def test_when_it_was_written_may_not_be_told(store: S3Double, remover: Remover) -> None:
    store.put("mirror/data/a", b"abc", headers={"Last-Modified": "some time"})
    standing = remover.standing("s3://lake/mirror/data/a")
    assert standing is not None and standing.modified is None
