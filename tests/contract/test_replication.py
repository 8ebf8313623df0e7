"""What stores tell of their own replication, and the cause that follows: on moto, and on real MinIO where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.replication import StoreReplication, attempts_of
from core.errors import Denied, LakeMirrorError, NotFound
from core.replication.causes import Cause, find_cause
from core.replication.facts import Attempts, Found, Setup, Status, StoreKind
from tests.minio_pair import BINARY, KEY, SECRET, Minio, minio_pair
from tests.s3_double import S3Double, running_moto

SRC, DST = "s3://src/lake", "s3://dst/lake"
minio = pytest.mark.skipif(not BINARY, reason="LAKEMIRROR_TEST_MINIO names no MinIO")


def replication_at(endpoint: str) -> StoreReplication:
    keys = {"access_key_id": KEY, "secret_access_key": SECRET}
    return StoreReplication(FastObjectStore(endpoint=endpoint, force_path_style=True, tries=1, **keys))


def setup_of(told: StoreReplication) -> Setup:
    """As mirroring/native_replication.py asks."""
    return Setup(SRC, DST, told.kind(SRC), told.rules(SRC), attempts=told.attempts(SRC))


def cause(told: StoreReplication, address: str, *, later: timedelta = timedelta(minutes=2), **setup: Any) -> Cause:
    """Of something that is not at the destination, as of some time after it was written."""
    found: Found
    try:
        found = told.stands(f"{SRC}/{address}")
    except LakeMirrorError as error:
        found = error
    return find_cause(replace(setup_of(told), **setup), address, found, None, datetime.now(UTC) + later).cause


def until(told: StoreReplication, address: str, status: Status) -> None:
    """Waits for a status."""
    end = time.monotonic() + 60
    while (now := told.stands(f"{SRC}/{address}")) is None or now.status is not status:
        assert time.monotonic() < end, f"{address} is {now}"
        time.sleep(0.2)


# --- moto, which copies nothing ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with running_moto() as endpoint:
        yield endpoint


def test_a_store_without_statuses_tells_of_rules_alone(moto: str) -> None:
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    s3: Any = boto3.client("s3", endpoint_url=moto, **keys)
    for bucket in ("src", "dst"):
        s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="src", Key="lake/data/a", Body=b"1")
    told = replication_at(moto)
    assert (told.kind(SRC), told.attempts(SRC)) == (StoreKind.OTHER, {})
    assert cause(told, "data/a") is Cause.NO_RULE
    rule = {"ID": "to-eu", "Priority": 1, "Status": "Enabled", "Filter": {"Prefix": "lake/data/"}}
    chosen = {"SourceSelectionCriteria": {"SseKmsEncryptedObjects": {"Status": "Enabled"}}}
    ends = {"Destination": {"Bucket": "arn:aws:s3:::dst"}, "DeleteMarkerReplication": {"Status": "Disabled"}}
    rules = {"Role": "arn:aws:iam::1:role/r", "Rules": [rule | chosen | ends]}
    s3.put_bucket_replication(Bucket="src", ReplicationConfiguration=rules)
    assert [(found.id, found.bucket) for found in told.rules(SRC)] == [("to-eu", "dst")]
    assert cause(told, "data/a") is Cause.NOT_TOLD
    assert cause(told, "data/none") is Cause.SOURCE_MISSING
    with pytest.raises(NotFound):
        told.rules("s3://nowhere")


def test_what_the_store_refuses_to_tell_is_no_answer() -> None:
    with S3Double() as double:
        double.fault = lambda method, key: 403
        told = replication_at(double.endpoint)
        with pytest.raises(Denied):
            told.rules(SRC)
        with pytest.raises(Denied):
            told.stands(f"{SRC}/data/a")


@pytest.mark.parametrize("metrics", [{}, {"currStats": {}}, {"currStats": {"Stats": None}}])
def test_a_server_that_has_counted_nothing_yet(metrics: dict[str, Any]) -> None:
    assert attempts_of(metrics) == {}


def test_attempts_are_told_by_bucket() -> None:
    failed = {"lastMinute": {"count": 2}, "lastHour": {"count": 21}}
    stats = {"arn:minio:replication::3abe7620:down1": {"failed": failed, "pendingReplicationCount": 4}}
    assert attempts_of({"currStats": {"Stats": stats}}) == {"down1": Attempts(2, 21, 4)}


# --- MinIO ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Minio, Minio]]:
    folder: Path = tmp_path_factory.mktemp("minio")
    with minio_pair(folder) as (here, there):
        here.bucket("src")
        there.bucket("dst")
        yield here, there


@minio
def test_each_cause_that_minio_can_show(pair: tuple[Minio, Minio]) -> None:
    here, there = pair
    told = replication_at(here.endpoint)
    here.s3.put_object(Bucket="src", Key="lake/data/older", Body=b"1")
    assert cause(told, "data/older") is Cause.NO_RULE, "none at all"
    arn = here.replicate_to(there, "src", "dst")
    here.rule("src", arn, enabled=False)
    assert cause(told, "data/older") is Cause.NO_RULE, "disabled"
    here.rule("src", arn, prefix="lake/data/")
    assert cause(told, "_lakefs/range") is Cause.NO_RULE, "another prefix"
    assert cause(told, "data/older") is Cause.BEFORE_RULE
    assert cause(told, "data/older", later=timedelta()) is Cause.PENDING, "written just now"
    assert cause(told, "data/none") is Cause.SOURCE_MISSING
    assert cause(told, "data/older", destination="s3://dst/other") is Cause.NO_RULE, "keys are kept"

    here.s3.put_object(Bucket="src", Key="lake/data/new", Body=b"1")
    until(told, "data/new", Status.COMPLETED)
    there.s3.delete_object(Bucket="dst", Key="lake/data/new")
    assert cause(told, "data/new") is Cause.COMPLETED_BUT_MISSING

    other = replication_at(there.endpoint)
    here.s3.put_object(Bucket="src", Key="lake/data/copied", Body=b"1")
    until(told, "data/copied", Status.COMPLETED)
    replica = other.stands("s3://dst/lake/data/copied")
    assert replica is not None and replica.status is Status.REPLICA
    rules = setup_of(told)
    assert find_cause(rules, "data/copied", replica, None, datetime.now(UTC)).cause is Cause.NOT_ELIGIBLE

    there.stop()
    here.s3.put_object(Bucket="src", Key="lake/data/down", Body=b"1")
    until(told, "data/down", Status.FAILED)
    end = time.monotonic() + 10
    while not told.attempts(SRC).get("dst", Attempts()).failed_last_minute and time.monotonic() < end:
        time.sleep(0.2)
    assert cause(told, "data/down") is Cause.LINK_DOWN
    assert cause(told, "data/down", attempts={}) is Cause.FAILED_RETRIED, "an hour later"
    there.start()
