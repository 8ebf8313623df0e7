"""What MinIO's own tests of replication play, played by rules of ours on a real MinIO that has a key of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from adapters.s3.fast_store import FastObjectStore
from core.replicating.eligible import is_own
from db import clock
from replication.models import Link, OpenObject, Pass, Rule
from replication.transitions import passes
from tests import minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.test_passes import resync, through
from tests.replication.world import AWAY, FAR, HOME, World

real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
pytestmark = [pytest.mark.django_db, real_minio]
MIB = 1 << 20
ODD = (5 * MIB, 5 * MIB + 458_162, 12_345)


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[minio_pair.Minio]:
    server = minio_pair.Minio(tmp_path_factory.mktemp("minio"), more=minio_pair.KMS)
    try:
        yield server
    finally:
        server.stop()


class Sites(World):
    """A bucket in each of three regions, all in one server."""

    def __init__(self, lm: Deployment, minio: minio_pair.Minio, *, lock: bool = False) -> None:
        super().__init__(lm)
        self.s3: Any = minio.s3
        self.at = {region: f"{region[:2]}-{uuid4().hex[:12]}" for region in (HOME, AWAY, FAR)}
        for bucket in self.at.values():
            self.s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=lock)
            self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    def lead(self, source: str, target: str, name: str = "r", **more: Any) -> Rule:
        """A rule from the bucket of one region to that of another."""
        given = {"name": name, "region": source, "pinned": False, "metadata": "content", "delete_percent": 100} | more
        rule = self.rule((target, f"s3://{self.at[target]}"), uri=f"s3://{self.at[source]}", **given)
        if rule.all_versions:
            rule.links.update(exact=True, exact_at=clock.now())
        return rule

    def put(self, key: str, body: bytes = b"1", at: str = HOME, **more: Any) -> str:  # type: ignore[override]
        return str(self.s3.put_object(Bucket=self.at[at], Key=key, Body=body, **more).get("VersionId", ""))

    def delete(self, key: str, at: str = HOME, **more: Any) -> None:
        self.s3.delete_object(Bucket=self.at[at], Key=key, **more)

    def settle(self, rounds: int = 3) -> None:
        for _ in range(rounds):
            Rule.objects.update(scan_wanted=True)
            self.work(1)

    def listed(self, region: str) -> list[tuple[Any, ...]]:
        """All versions and markers: key, id, time, ETag, size, whether it is the latest."""
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=self.at[region])
        every = [one for page in pages for kind in ("Versions", "DeleteMarkers") for one in page.get(kind, [])]
        names = ("Key", "VersionId", "LastModified", "ETag", "Size", "IsLatest")
        return sorted(
            (tuple(one.get(name) for name in names) for one in every if not is_own(one["Key"])), key=lambda row: row[:3]
        )

    def keys(self, region: str) -> list[str]:
        found = self.s3.list_objects_v2(Bucket=self.at[region]).get("Contents", [])
        return [one["Key"] for one in found if not is_own(one["Key"])]

    def head(self, key: str, region: str, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.s3.head_object(Bucket=self.at[region], Key=key, **more)
        return found

    def has(self, key: str, region: str) -> bool:
        try:
            return bool(self.head(key, region))
        except ClientError:
            return False

    def in_parts(self, key: str, *sizes: int, at: str = HOME, **more: Any) -> None:
        where = {"Bucket": self.at[at], "Key": key}
        upload = self.s3.create_multipart_upload(**where, **more)["UploadId"]
        parts = []
        for number, size in enumerate(sizes, 1):
            body = bytes([number]) * size
            part = self.s3.upload_part(**where, UploadId=upload, PartNumber=number, Body=body)
            parts.append({"ETag": part["ETag"], "PartNumber": number})
        self.s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})

    def encrypts(self, **by: Any) -> None:
        """All buckets encrypt what comes."""
        rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": by}]}
        for bucket in self.at.values():
            self.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=rules)

    def told(self) -> list[tuple[str, str, str]]:
        return [(row.name, row.status, row.code) for row in OpenObject.objects.order_by("key")]


@pytest.fixture
def wired(minio: minio_pair.Minio) -> Iterator[minio_pair.Minio]:
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    store = FastObjectStore(endpoint=minio.endpoint, region=HOME, force_path_style=True, **keys)
    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: False),
    ):
        yield minio


@pytest.fixture
def m(lm: Deployment, wired: minio_pair.Minio) -> Sites:
    return Sites(lm, wired)


@pytest.fixture
def locked(lm: Deployment, wired: minio_pair.Minio) -> Sites:
    return Sites(lm, wired, lock=True)


def test_put_delete_and_stat_at_once(m: Sites) -> None:
    m.lead(HOME, AWAY, "all", versions="all")
    m.lead(HOME, FAR, "latest", markers=True, delete_percent=100)
    m.put("stays")  # a source that is empty freezes its links
    for number in range(40):
        m.put(f"k{number:02}")
        if number % 4 == 0:
            m.settle(1)
        m.delete(f"k{number:02}")
    m.settle()
    OpenObject.objects.filter(status="deleting").update(next_try=Rule.objects.get(name="all").created_at)
    m.work(1)
    assert [m.has(f"k{number:02}", region) for number in range(40) for region in (AWAY, FAR)] == [False] * 80
    assert m.listed(AWAY) == m.listed(HOME) and len(m.listed(HOME)) == 81
    assert m.keys(FAR) == ["stays"] and m.told() == []


def test_existing_objects_and_markers_come_with_the_rule_and_by_a_resync(m: Sites) -> None:
    for body in (b"1", b"22", b"333"):
        m.put("a", body)
    m.put("gone")
    m.delete("gone")
    m.lead(HOME, AWAY, versions="all")
    m.settle(1)
    assert m.listed(AWAY) == m.listed(HOME) and len(m.listed(HOME)) == 5
    for key, version, *_ in m.listed(AWAY):
        m.delete(key, AWAY, VersionId=version)
    assert m.listed(AWAY) == []
    made = through(m, resync(m))
    assert made.state == "completed" and m.listed(AWAY) == m.listed(HOME)


def test_existing_objects_that_a_rule_leaves_out_come_by_no_resync(m: Sites) -> None:
    m.put("old")
    time.sleep(1.1)
    m.lead(HOME, AWAY, existing=False)
    m.put("new")
    m.settle(1)
    assert m.keys(AWAY) == ["new"]
    through(m, resync(m))
    assert m.keys(AWAY) == ["new"]


def test_directory_objects_leave_no_markers(m: Sites) -> None:
    m.put("directory/", b"")
    m.put("directory/a", b"1")
    m.lead(HOME, AWAY, "all", versions="all")
    m.lead(HOME, FAR, "latest", markers=True, delete_percent=100)
    m.settle()
    assert m.listed(AWAY) == m.listed(HOME) and m.keys(FAR) == ["directory/", "directory/a"]
    m.delete("directory/")
    m.settle()
    OpenObject.objects.filter(status="deleting").update(next_try=Rule.objects.get(name="all").created_at)
    m.work(1)
    kinds = [[(key, etag) for key, _, _, etag, _, _ in m.listed(region)] for region in (HOME, FAR)]
    assert [key for key, _ in kinds[0]] == [key for key, _ in kinds[1]] == ["directory/a"]
    assert m.keys(AWAY) == ["directory/", "directory/a"], "a version that was removed at the source stays"
    assert m.told() == []


def test_default_encryption_both_ways(m: Sites) -> None:
    m.encrypts(SSEAlgorithm="AES256")
    m.put("dir/1.tar", b"a" * 70_000)
    m.put("dir/2.tar", b"a" * 70_000, AWAY)
    m.lead(HOME, AWAY, "there", versions="all", conflict="newest")
    m.lead(AWAY, HOME, "back", versions="all", conflict="newest")
    m.settle()
    assert m.listed(HOME) == m.listed(AWAY) and len(m.listed(HOME)) == 2
    told = [m.head(key, region) for key in ("dir/1.tar", "dir/2.tar") for region in (HOME, AWAY)]
    assert {one["ServerSideEncryption"] for one in told} == {"AES256"}
    first = m.listed(HOME)
    m.settle()
    assert m.listed(HOME) == m.listed(AWAY) == first and m.told() == []


def test_locks_both_ways(locked: Sites) -> None:
    m, until = locked, datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    kept = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": until}
    m.put("ours", b"1", **kept)
    m.put("theirs", b"2", AWAY, ObjectLockLegalHoldStatus="ON", **kept)
    m.lead(HOME, AWAY, "there", conflict="newest", metadata="all")
    m.lead(AWAY, HOME, "back", conflict="newest", metadata="all")
    m.settle()
    for key in ("ours", "theirs"):
        found = [
            tuple(m.head(key, region).get(name) for name in (*kept, "ObjectLockLegalHoldStatus"))
            for region in (HOME, AWAY)
        ]
        assert found[0] == found[1] and found[0][:2] == ("GOVERNANCE", until)
    first = m.listed(HOME), m.listed(AWAY)
    m.settle()
    assert (m.listed(HOME), m.listed(AWAY)) == first and m.told() == []


def test_three_sites_in_a_mesh(m: Sites) -> None:
    m.encrypts(SSEAlgorithm="AES256")
    for source, target in permutations((HOME, AWAY, FAR), 2):
        m.lead(source, target, f"{source[:2]}-{target[:2]}", versions="all", conflict="newest")
    m.in_parts("enc-mp", *ODD, at=AWAY)
    m.put("plain", b"1")
    m.settle()
    lists = [m.listed(region) for region in (HOME, AWAY, FAR)]
    assert lists[0] == lists[1] == lists[2] and len(lists[0]) == 2
    bodies = {
        m.s3.get_object(Bucket=bucket, Key="enc-mp")["Body"].read() for bucket in m.at.values()
    }  # fmt: skip
    assert len(bodies) == 1 and {m.head("enc-mp", region)["ServerSideEncryption"] for region in m.at} == {"AES256"}
    assert {m.head("enc-mp", region, PartNumber=2)["ContentLength"] for region in m.at} == {ODD[1]}
    m.delete("plain", FAR)
    m.settle()
    lists = [m.listed(region) for region in (HOME, AWAY, FAR)]
    assert lists[0] == lists[1] == lists[2]
    assert [row[3] for row in lists[0] if row[0] == "plain"].count(None) == 1
    m.settle()
    assert [m.listed(region) for region in (HOME, AWAY, FAR)] == lists and m.told() == []


@pytest.mark.parametrize("sides", ["both", "source", "target"])
def test_encrypted_objects_in_odd_parts_are_known_the_next_time(m: Sites, sides: str) -> None:
    by = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    for region, side in ((HOME, "source"), (AWAY, "target")):
        if sides in ("both", side):
            m.s3.put_bucket_encryption(Bucket=m.at[region], ServerSideEncryptionConfiguration=by)
    m.in_parts("odd", *ODD)
    m.in_parts("usual", 8 * MIB, 8 * MIB, 12_345)
    m.put("small", b"1")
    m.lead(HOME, AWAY, metadata="all")
    m.settle()
    bodies = [m.s3.get_object(Bucket=m.at[region], Key="odd")["Body"].read() for region in (HOME, AWAY)]
    assert bodies[0] == bodies[1] and m.told() == []
    assert len({row[1] for row in m.listed(AWAY) if row[0] in ("usual", "small")}) == 2, "written once each"
    before = m.listed(AWAY)
    m.settle(1)
    assert m.listed(AWAY) == before


def test_24_a_target_that_encrypts_by_a_key_of_kms_is_equal_and_not_written_again(m: Sites) -> None:
    m.encrypts(SSEAlgorithm="aws:kms", KMSMasterKeyID="lakemirror-test-key")
    m.put("a", b"1")
    m.in_parts("parts", *ODD)
    time.sleep(1.1)  # a copy is known by its size where it was written in a later second
    m.lead(HOME, AWAY)
    m.settle()
    assert m.keys(AWAY) == ["a", "parts"] and m.told() == []
    assert m.head("a", AWAY)["ServerSideEncryption"] == "aws:kms"
    assert len(m.listed(AWAY)) == 2


@pytest.mark.parametrize("versions", ["latest", "all"])
def test_objects_with_checksums_arrive(m: Sites, versions: str) -> None:
    for kind in ("SHA256", "CRC32", "SHA1"):
        m.put(kind, b"hello", ChecksumAlgorithm=kind)
    m.lead(HOME, AWAY, versions=versions)
    m.settle()
    assert m.keys(AWAY) == m.keys(HOME) and m.told() == []
    assert [m.head(key, AWAY)["ETag"] for key in m.keys(AWAY)] == [m.head(key, HOME)["ETag"] for key in m.keys(HOME)]


def test_a_rule_removed_something_written_the_rule_again_and_a_resync(m: Sites) -> None:
    m.put("a")
    first = m.lead(HOME, AWAY, versions="all")
    m.settle(1)
    first.delete()
    m.put("b")
    m.put("a", b"2")
    m.delete("a")
    m.lead(HOME, AWAY, "again", versions="all")
    link = Link.objects.get()
    told = {"kind": "resync", "who": "olga", "region": HOME, "began_at": clock.now()}
    made = passes.begin(Pass(rule=link.rule, link=link, **told))
    for _ in range(12):
        m.look()
        m.work(1)
    made.refresh_from_db()
    assert made.state in ("completed", "nothing-eligible"), made.message
    assert m.listed(AWAY) == m.listed(HOME) and len(m.listed(HOME)) == 4 and m.told() == []
