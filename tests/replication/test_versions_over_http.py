"""All versions on real servers: a MinIO that takes them as they are, one whose key may not, Ceph, and moto."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from unittest import mock
from uuid import uuid4

import boto3
import pytest

from adapters.places.exact_probe import probe_exact
from adapters.places.version_writes import VersionMover
from adapters.places.versions import VersionedPlace
from adapters.s3.fast_store import FastObjectStore
from core.replicating.version_merging import ChainCursor
from core.replicating.versions import Step, Version
from db import clock
from replication.models import Link, OpenObject, Rule
from tests import ceph as gateway
from tests import minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.world import AWAY, FAR, HOME, World
from tests.s3_double import KEYS, running_moto

pytestmark = pytest.mark.django_db
MIB = 1 << 20
real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
PLAIN_USER = ("plain-user", "plain-user-secret")
PLAIN_POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]},
        {"Effect": "Deny", "Action": ["s3:ReplicateObject"], "Resource": ["arn:aws:s3:::*"]},
    ],
}


class Server:
    """A real S3 server: what reads and writes there, and a client for tests."""

    def __init__(self, endpoint: str, keys: dict[str, str], plain_keys: dict[str, str]) -> None:
        self.store = FastObjectStore(endpoint=endpoint, region=HOME, force_path_style=True, **keys)
        self.plain = FastObjectStore(endpoint=endpoint, region=HOME, force_path_style=True, **plain_keys)
        told = {f"aws_{name}": value for name, value in keys.items()}
        self.s3: Any = boto3.client("s3", endpoint_url=endpoint, region_name=HOME, **told)

    def bucket(self) -> str:
        """A new one that keeps versions."""
        name = f"b{uuid4().hex[:12]}"
        self.s3.create_bucket(Bucket=name)
        self.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return name

    def locking_bucket(self) -> str:
        """One whose objects can be locked, too."""
        name = f"l{uuid4().hex[:12]}"
        self.s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
        return name


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MinIO whose binary LAKEMIRROR_TEST_MINIO names."""
    server = minio_pair.Minio(tmp_path_factory.mktemp("minio"))
    try:
        server.user(*PLAIN_USER, PLAIN_POLICY)
        keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
        yield Server(server.endpoint, keys, dict(zip(("access_key_id", "secret_access_key"), PLAIN_USER, strict=True)))
    finally:
        server.stop()


@pytest.fixture(scope="module")
def moto() -> Iterator[Server]:
    with running_moto() as endpoint:
        yield Server(endpoint, dict(KEYS), dict(KEYS))


@pytest.fixture(scope="module")
def ceph() -> Server:
    """The gateway that LAKEMIRROR_TEST_CEPH names."""
    return Server(gateway.ENDPOINT, gateway.KEYS, gateway.KEYS)


def slow_mark(mover: VersionMover, uri: str, step: Step, mark: Any = VersionMover.mark) -> Version:
    """A marker in a second of its own: moto tells whole seconds, and all versions of a page before all markers."""
    time.sleep(1.1)
    made: Version = mark(mover, uri, step)
    time.sleep(1.1)
    return made


class Buckets(World):
    """A rule from one bucket to two others: to `far` as its owner, to `away` as somebody who may not replicate."""

    def __init__(self, lm: Deployment, server: Server, kind: str) -> None:
        super().__init__(lm)
        self.kind = kind
        self.server, self.s3 = server, server.s3
        self.src, self.plain, self.exact = server.bucket(), server.bucket(), server.bucket()

    def begin(self, **more: Any) -> Rule:
        """A rule of all versions, with what was tried of its targets."""
        targets = ((AWAY, f"s3://{self.plain}"), (FAR, f"s3://{self.exact}"))
        rule = self.rule(*targets, uri=f"s3://{self.src}", versions="all", **{"delete_percent": 100} | more)
        for link in rule.links.all():
            store = self.server.plain if link.region == AWAY else self.server.store
            tried = probe_exact(store, link.uri, seconds=5)
            assert tried.left == ""
            Link.objects.filter(pk=link.pk).update(exact=tried.exact, exact_at=clock.now())
        return rule

    def look(self) -> None:
        Rule.objects.update(scan_wanted=True)
        self.work(2)

    def chains(self, bucket: str, *, ids: bool) -> dict[str, list[tuple[Any, ...]]]:
        """What a bucket has of each key, the oldest first; what LakeMirror keeps there left out."""
        place = VersionedPlace(self.server.store, f"s3://{bucket}")
        cursor, found = ChainCursor(place.versions, ""), {}
        while items := cursor.pages():
            for key, chain in items:
                if not key.startswith("_lakemirror"):
                    own = [(one.id, one.modified) if ids else () for one in chain]
                    shown = [(one.size, one.etag, one.marker) for one in chain]
                    found[key] = [(*one, *other) for one, other in zip(own, shown, strict=True)]
        return found

    def equal(self, *, exact: bool) -> None:
        assert self.chains(self.plain, ids=False) == self.chains(self.src, ids=False)
        assert self.chains(self.exact, ids=exact) == self.chains(self.src, ids=exact)
        assert [(row.name, row.code, row.detail) for row in OpenObject.objects.all()] == []


@pytest.fixture(params=[pytest.param("minio", marks=real_minio), pytest.param("ceph", marks=gateway.real_ceph), "moto"])
def b(request: pytest.FixtureRequest, lm: Deployment) -> Iterator[Buckets]:
    """Buckets of a server; of moto and Ceph both targets are plain."""
    server = request.getfixturevalue(request.param)

    def store(region: str, workers: int = 0) -> FastObjectStore:
        return server.plain if region == AWAY else server.store

    with (
        mock.patch("deployment.wiring.replication_jobs._store", store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", store),
        mock.patch.object(VersionMover, "mark", slow_mark if request.param == "moto" else VersionMover.mark),
    ):
        yield Buckets(lm, server, request.param)


def write(b: Buckets, key: str, *contents: bytes | None) -> None:
    """Versions of a key; None: a marker."""
    for content in contents:
        if content is None:
            if b.kind == "moto":
                time.sleep(1.1)
            b.s3.delete_object(Bucket=b.src, Key=key)
            if b.kind == "moto":
                time.sleep(1.1)
        else:
            b.s3.put_object(Bucket=b.src, Key=key, Body=content, ContentType="text/x", Metadata={"m": "1"})


def in_parts(b: Buckets, key: str, *sizes: int) -> None:
    upload = b.s3.create_multipart_upload(Bucket=b.src, Key=key, ContentType="video/x")["UploadId"]
    parts = []
    for number, size in enumerate(sizes, 1):
        body = bytes([number]) * size
        part = b.s3.upload_part(Bucket=b.src, Key=key, UploadId=upload, PartNumber=number, Body=body)
        parts.append({"ETag": part["ETag"], "PartNumber": number})
    b.s3.complete_multipart_upload(Bucket=b.src, Key=key, UploadId=upload, MultipartUpload={"Parts": parts})


def test_listings_of_all_versions_are_equal(b: Buckets) -> None:
    write(b, "a", b"1", b"22", None, b"1", b"1")
    write(b, "gone", b"1", None)
    write(b, "a b+c%20/é", b"x")
    write(b, "empty", b"")
    in_parts(b, "parts", 5 * MIB, 6 * MIB + 7 if b.kind == "minio" else 5 * MIB, 12_345)
    write(b, "parts", b"small")
    b.begin()
    b.work(1)
    exact = b.kind == "minio"
    assert [link.exact for link in Link.objects.order_by("number")] == [False, exact]
    b.equal(exact=exact)
    before = b.chains(b.plain, ids=True)
    b.look()
    assert b.chains(b.plain, ids=True) == before
    write(b, "a", b"1", None)
    write(b, "gone", b"2")
    b.look()
    b.equal(exact=exact)
    assert "Uploads" not in b.s3.list_multipart_uploads(Bucket=b.plain)
    assert "Uploads" not in b.s3.list_multipart_uploads(Bucket=b.exact)


def test_many_versions_of_one_key_cross_the_pages(b: Buckets) -> None:
    write(b, "k", *(b"%d" % number for number in range(30)))
    write(b, "kk", b"other")
    with mock.patch("adapters.places.versions.FIRST_PAGE", 7), paged(b.server, 4):
        b.begin()
        b.work(1)
    b.equal(exact=b.kind == "minio")


def paged(server: Server, number: int) -> Any:
    """Pages of so many versions."""
    real = VersionedPlace._page

    def page(self: VersionedPlace, prefix: str, query: dict[str, str]) -> Any:
        return real(self, prefix, {"max-keys": str(number)} | query)

    return mock.patch.object(VersionedPlace, "_page", page)


def test_the_probe_leaves_nothing(b: Buckets) -> None:
    b.begin()
    assert b.chains(b.plain, ids=True) == b.chains(b.exact, ids=True) == {}
    for bucket in (b.plain, b.exact):
        assert not {"Versions", "DeleteMarkers"} & b.s3.list_object_versions(Bucket=bucket).keys()


@real_minio
def test_headers_and_times_of_an_exact_target(lm: Deployment, minio: Server) -> None:
    made = Buckets(lm, minio, "minio")
    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: minio.store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: minio.store),
    ):
        write(made, "a", b"1")
        made.s3.put_object(Bucket=made.src, Key="d/", Body=b"")
        for number in range(5):
            write(made, "fast", b"%d" % number, None)
        made.begin()
        Link.objects.update(exact=True)
        made.work(1)
    assert made.chains(made.exact, ids=True) == made.chains(made.src, ids=True)
    heads = [made.s3.head_object(Bucket=bucket, Key="a") for bucket in (made.src, made.exact)]
    for name in ("ETag", "ContentType", "Metadata", "VersionId", "LastModified"):
        assert heads[0][name] == heads[1][name]
    assert heads[1]["ReplicationStatus"] == "REPLICA"
