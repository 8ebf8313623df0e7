"""Purges and delete markers of all versions on real servers: a MinIO that keeps ids, and targets that give others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.replicating.states import ApprovalState
from db import clock
from replication.models import Approval, OpenObject, Rule
from replication.transitions import deletions
from tests.mirrors.harness import Deployment
from tests.replication.test_versions_over_http import Buckets, Server, b, ceph, minio, moto, real_minio, write

pytestmark = pytest.mark.django_db
FIXTURES = (Server, b, ceph, minio, moto)
"""Of the other module; used by name."""


def follow(b: Buckets) -> None:
    """A look, and what it has found, as if a minute had gone by."""
    b.look()
    OpenObject.objects.filter(status="deleting").update(next_try=Rule.objects.get().created_at)
    b.copy()


def purge(b: Buckets, key: str, at: int) -> None:
    """A version, or a marker, of the source is deleted for good; the oldest is 0."""
    told = b.s3.list_object_versions(Bucket=b.src, Prefix=key)
    every = [*told.get("Versions", []), *told.get("DeleteMarkers", [])]
    dated = sorted((one for one in every if one["Key"] == key), key=lambda one: (one["LastModified"], one["IsLatest"]))
    b.s3.delete_object(Bucket=b.src, Key=key, VersionId=dated[at]["VersionId"])


def test_17_what_is_purged_goes_and_nothing_else(b: Buckets) -> None:
    write(b, "a", b"1", b"22", None, b"333")
    write(b, "b", b"1", None)
    write(b, "gone", b"1")
    write(b, "stays", b"1")
    b.begin(purges=True)
    b.work(1)
    b.look()
    exact = b.kind == "minio"
    b.equal(exact=exact)
    for bucket in (b.plain, b.exact):
        b.s3.put_object(Bucket=bucket, Key="theirs", Body=b"theirs")
    purge(b, "a", 0)
    purge(b, "b", 1)
    purge(b, "gone", 0)
    follow(b)
    for bucket in (b.plain, b.exact):
        assert b.s3.get_object(Bucket=bucket, Key="theirs")["Body"].read() == b"theirs"
        b.s3.delete_object(
            Bucket=bucket, Key="theirs", VersionId=b.s3.head_object(Bucket=bucket, Key="theirs")["VersionId"]
        )
    b.equal(exact=exact)
    assert "gone" not in b.chains(b.plain, ids=False)
    b.look()
    b.equal(exact=exact)


def test_markers_wait_for_somebody_and_hide_nothing_until_then(b: Buckets) -> None:
    for key in ("a", "b", "c", "d"):
        write(b, key, b"1")
    b.begin(delete_percent=30)
    b.work(1)
    b.look()
    write(b, "a", None)
    write(b, "b", b"2", None)
    b.look()
    for bucket in (b.plain, b.exact):
        assert b.s3.get_object(Bucket=bucket, Key="a")["Body"].read() == b"1"
        assert b.s3.get_object(Bucket=bucket, Key="b")["Body"].read() == b"2"
    for approval in Approval.objects.all():
        deletions.decide(approval, ApprovalState.APPROVED, "olga", clock.now())
    b.copy()
    b.equal(exact=b.kind == "minio")


@real_minio
def test_what_is_locked_at_the_target_is_not_purged(lm: Deployment, b: Buckets) -> None:
    if b.kind != "minio":
        pytest.skip("only MinIO heeds locks")
    b.exact = b.server.locking_bucket()
    write(b, "a", b"1", b"22")
    write(b, "stays", b"1")
    b.begin(purges=True)
    b.work(1)
    b.look()
    oldest = b.s3.list_object_versions(Bucket=b.exact, Prefix="a")["Versions"][-1]["VersionId"]
    until = {"Mode": "GOVERNANCE", "RetainUntilDate": datetime.now(UTC) + timedelta(hours=1)}
    b.s3.put_object_retention(Bucket=b.exact, Key="a", VersionId=oldest, Retention=until)
    purge(b, "a", 0)
    follow(b)
    assert len(b.chains(b.exact, ids=True)["a"]) == 2 and len(b.chains(b.plain, ids=True)["a"]) == 1
    assert [(row.kind, row.status, row.code) for row in OpenObject.objects.all()] == [("purge", "skipped", "Locked")]
