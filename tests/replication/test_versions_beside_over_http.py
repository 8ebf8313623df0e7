"""Tags, locks and storage classes of all versions on real servers: a MinIO that takes versions as they are, one whose
key may not, and Ceph."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from adapters.places.versions import OF
from adapters.s3.fast_store import FastObjectStore
from core.replicating.eligible import is_own
from replication.models import Link, OpenObject, Rule
from replication.transitions import touching
from tests import ceph as gateway
from tests import minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.test_versions_over_http import MIB, PLAIN_POLICY, PLAIN_USER, Buckets, Server, in_parts
from tests.replication.world import AWAY, HOME

pytestmark = pytest.mark.django_db
real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
NOTHING: dict[str, Any] = {"tags": {}, "mode": None, "until": None, "hold": False}


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = minio_pair.Minio(tmp_path_factory.mktemp("minio"))
    try:
        server.user(*PLAIN_USER, PLAIN_POLICY)
        keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
        yield Server(server.endpoint, keys, dict(zip(("access_key_id", "secret_access_key"), PLAIN_USER, strict=True)))
    finally:
        server.stop()


@pytest.fixture(scope="module")
def ceph() -> Server:
    return Server(gateway.ENDPOINT, gateway.KEYS, gateway.KEYS)


class Locking(Buckets):
    """A rule between buckets whose objects can be locked."""

    def __init__(self, lm: Deployment, server: Server, kind: str) -> None:
        super().__init__(lm, server, kind)
        self.src, self.plain, self.exact = (server.locking_bucket() for _ in range(3))

    @property
    def targets(self) -> tuple[str, str]:
        return self.plain, self.exact

    def put(self, key: str, body: bytes = b"1", **more: Any) -> str:  # type: ignore[override]
        return str(self.s3.put_object(Bucket=self.src, Key=key, Body=body, **more)["VersionId"])

    def retag(self, key: str, version: str, **tags: str) -> None:
        told = {"TagSet": [{"Key": name, "Value": value} for name, value in tags.items()]}
        self.s3.put_object_tagging(Bucket=self.src, Key=key, VersionId=version, Tagging=told)

    def retain(self, key: str, version: str, until: datetime, mode: str = "GOVERNANCE", bucket: str = "") -> None:
        told = {"Mode": mode, "RetainUntilDate": until}
        where = {"Bucket": bucket or self.src, "Key": key, "VersionId": version}
        self.s3.put_object_retention(**where, Retention=told, BypassGovernanceRetention=True)

    def hold(self, key: str, version: str, status: str) -> None:
        self.s3.put_object_legal_hold(Bucket=self.src, Key=key, VersionId=version, LegalHold={"Status": status})

    def tell(self, *keys: str) -> None:
        changed = {(self.src, key) for key in keys}
        touching.objects_changed(HOME, changed, changed)

    def told(self) -> list[tuple[str, str, str]]:
        return [(row.name, row.status, row.code) for row in OpenObject.objects.order_by("key", "link")]

    def beside(self, bucket: str) -> dict[str, list[dict[str, Any]]]:
        """Of each key the tags and locks of its versions, the oldest first."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self.s3.list_object_versions(Bucket=bucket).get("Versions", [])[::-1]:
            if not is_own(one["Key"]):
                found.setdefault(one["Key"], []).append(self.of(bucket, one["Key"], one["VersionId"]))
        return found

    def of(self, bucket: str, key: str, version: str) -> dict[str, Any]:
        where = {"Bucket": bucket, "Key": key, "VersionId": version}
        head, tags = self.s3.head_object(**where), self.s3.get_object_tagging(**where).get("TagSet", [])
        until = head.get("ObjectLockRetainUntilDate")
        return {
            "tags": {tag["Key"]: tag["Value"] for tag in tags},
            "mode": head.get("ObjectLockMode"),
            "until": until.replace(microsecond=0) if until else None,
            "hold": head.get("ObjectLockLegalHoldStatus") == "ON",
        }

    def versions(self, bucket: str) -> list[tuple[str, str]]:
        every = self.s3.list_object_versions(Bucket=bucket).get("Versions", [])
        return [(one["Key"], one["VersionId"]) for one in every if not is_own(one["Key"])]


@pytest.fixture(params=[pytest.param("minio", marks=real_minio), pytest.param("ceph", marks=gateway.real_ceph)])
def b(request: pytest.FixtureRequest, lm: Deployment) -> Iterator[Locking]:
    """To `away` as somebody who may not replicate, so that it is plain; of Ceph both targets are."""
    server = request.getfixturevalue(request.param)

    def store(region: str, workers: int = 0) -> FastObjectStore:
        return server.plain if region == AWAY else server.store

    with (
        mock.patch("deployment.wiring.replication_jobs._store", store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", store),
    ):
        yield Locking(lm, server, request.param)


def soon(days: float) -> datetime:
    return (datetime.now(UTC) + timedelta(days=days)).replace(microsecond=0)


def some(b: Locking) -> list[str]:
    """Three versions, the last two with the same bytes, and an object in parts."""
    locked = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": soon(10)}
    made = [b.put("a", b"1", Tagging="t=1&u=x%20y", **locked), b.put("a", b"22", Tagging="t=2")]
    b.s3.delete_object(Bucket=b.src, Key="a")
    made.append(b.put("a", b"22", ObjectLockLegalHoldStatus="ON"))
    in_parts(b, "parts", 5 * MIB, 12_345)
    version = b.s3.head_object(Bucket=b.src, Key="parts")["VersionId"]
    b.retag("parts", version, p="1")
    return made


def equal(b: Locking) -> None:
    for bucket in b.targets:
        assert b.beside(bucket) == b.beside(b.src)
    assert b.told() == []


def test_each_version_travels_with_its_tags_retention_and_hold(b: Locking) -> None:
    some(b)
    b.begin(metadata="all")
    b.work(1)
    assert [link.exact for link in Link.objects.order_by("number")] == [False, b.kind == "minio"]
    equal(b)
    assert b.beside(b.src)["a"][1] == NOTHING | {"tags": {"t": "2"}}
    if b.kind == "minio":
        b.equal(exact=True)


def test_19_and_20_changes_of_a_version_arrive_on_it_and_make_no_other(b: Locking) -> None:
    first, second, third = some(b)
    b.begin(metadata="all")
    b.work(1)
    before = [b.versions(bucket) for bucket in b.targets]
    b.retag("a", first, t="new")
    b.retain("a", first, soon(90))
    b.hold("a", second, "ON")
    b.hold("a", third, "OFF")
    b.s3.delete_object_tagging(Bucket=b.src, Key="a", VersionId=second)
    b.tell("a")
    b.work(1)
    equal(b)
    assert [b.versions(bucket) for bucket in b.targets] == before
    b.retain("a", first, soon(20))  # shorter, and GOVERNANCE
    b.tell("a")
    b.work(1)
    equal(b)


def test_20_a_stricter_retention_of_a_target_stays_and_is_told(b: Locking) -> None:
    version = b.put("a", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=soon(1))
    b.begin(metadata="all")
    b.work(1)
    there = [(bucket, b.versions(bucket)[0][1]) for bucket in b.targets]
    for bucket, id_ in there:
        b.retain("a", id_, soon(0.01), "COMPLIANCE", bucket)
    b.retag("a", version, t="new")
    b.tell("a")
    b.work(1)
    assert b.told() == [("a", "skipped", "Locked")] * 2
    for bucket, id_ in there:
        assert b.of(bucket, "a", id_)["mode"] == "COMPLIANCE" and b.of(bucket, "a", id_)["tags"] == {"t": "new"}


def test_a_sweep_finds_what_no_event_told(b: Locking) -> None:
    first, *_ = some(b)
    b.s3.delete_object(Bucket=b.src, Key="a")
    b.put("stays")
    b.begin(metadata="all", sweep_heads_per_second=1000)
    b.work(2)
    b.retag("a", first, t="swept")
    b.retain("a", first, soon(40))
    b.work(1)
    assert b.beside(b.plain) != b.beside(b.src)
    before = Rule.objects.get().swept_at
    b.look()
    assert Rule.objects.get().swept_at != before
    equal(b)


def test_26_only_versions_with_the_tags_are_copied(b: Locking) -> None:
    for body, tags in ((b"1", "team=sales"), (b"2", "team=other"), (b"3", "team=sales&x=y"), (b"4", "")):
        b.put("a", body, **({"Tagging": tags} if tags else {}))
    b.s3.delete_object(Bucket=b.src, Key="a")
    b.begin(metadata="all", tags={"team": "sales"})
    for _ in range(2):
        b.look()
        for bucket in b.targets:
            assert [one["tags"] for one in b.beside(bucket)["a"]] == [{"team": "sales"}, {"team": "sales", "x": "y"}]
            assert "DeleteMarkers" not in b.s3.list_object_versions(Bucket=bucket)
    assert b.told() == []


@real_minio
def test_a_copy_at_a_plain_target_names_its_version_and_lies_in_the_class_of_the_rule(
    lm: Deployment, minio: Server
) -> None:
    made = Locking(lm, minio, "minio")

    def store(region: str, workers: int = 0) -> FastObjectStore:
        return minio.plain if region == AWAY else minio.store

    with (
        mock.patch("deployment.wiring.replication_jobs._store", store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", store),
    ):
        version = made.put("a", Tagging="t=1")
        made.begin(metadata="all", storage_class="REDUCED_REDUNDANCY")
        made.work(1)
    heads = [made.s3.head_object(Bucket=bucket, Key="a") for bucket in made.targets]
    assert heads[0]["Metadata"] == {OF: version} and heads[1]["VersionId"] == version
    assert [head.get("StorageClass") for head in heads] == ["REDUCED_REDUNDANCY"] * 2
