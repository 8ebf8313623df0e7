"""Rules that lead both ways between buckets of a real MinIO: the latest objects, and all versions; the former on Ceph,
too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest

from core.replicating.stamps import STAMP_HEADER
from db import clock
from replication.models import Link, OpenObject, Rule
from tests import ceph as gateway
from tests import minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.test_versions_over_http import Server, ceph, minio, real_minio  # noqa: F401
from tests.replication.world import AWAY, FAR, HOME, World

pytestmark = pytest.mark.django_db
SERVERS = [pytest.param("minio", marks=real_minio), pytest.param("ceph", marks=gateway.real_ceph)]


class Pair(World):
    """Two buckets, and rules between them both ways."""

    def __init__(self, lm: Deployment, server: Server) -> None:
        super().__init__(lm)
        self.s3: Any = server.s3
        self.one, self.two = server.bucket(), server.bucket()

    def begin(self, versions: str, **rules: Any) -> None:
        for source, name, other, to in ((HOME, self.one, AWAY, self.two), (AWAY, self.two, HOME, self.one)):
            more = {
                "conflict": "newest",
                "versions": versions,
                "metadata": "all" if versions == "latest" else "content",
                **rules,
            }
            self.rule((other, f"s3://{to}"), name=source, region=source, uri=f"s3://{name}", pinned=False, **more)
        if versions == "all":
            Link.objects.update(exact=True, exact_at=clock.now())

    def settle(self) -> None:
        for _ in range(3):
            Rule.objects.update(scan_wanted=True)
            self.work(1)

    def due(self) -> None:
        """More than a minute goes by."""
        OpenObject.objects.filter(status="deleting").update(next_try=Rule.objects.earliest("created_at").created_at)
        self.copy()

    def chains(self, bucket: str) -> list[tuple[str, str, bool]]:
        """All versions and markers of a bucket: key, id, whether it is the latest."""
        page = self.s3.list_object_versions(Bucket=bucket)
        every = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        own = [one for one in every if not one["Key"].startswith("_lakemirror")]
        return sorted((one["Key"], one["VersionId"], one["IsLatest"]) for one in own)

    def latest(self, bucket: str) -> dict[str, bytes]:
        listed = self.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        keys = [one["Key"] for one in listed if not one["Key"].startswith("_lakemirror")]
        return {key: self.s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


@pytest.fixture(params=SERVERS)
def pair(request: pytest.FixtureRequest, lm: Deployment) -> Iterator[Pair]:
    server: Server = request.getfixturevalue(request.param)

    def store(region: str, workers: int = 0) -> Any:
        return server.store

    with (
        mock.patch("deployment.wiring.replication_jobs._store", store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: False),
    ):
        yield Pair(lm, server)


@pytest.mark.parametrize("pair", SERVERS[:1], indirect=True)
def test_versions_of_both_sides_are_one_history(pair: Pair) -> None:
    pair.s3.put_object(Bucket=pair.one, Key="a", Body=b"1")
    pair.s3.put_object(Bucket=pair.two, Key="a", Body=b"2")
    pair.s3.put_object(Bucket=pair.two, Key="b", Body=b"b")
    pair.begin("all")
    pair.settle()
    assert pair.latest(pair.one) == pair.latest(pair.two) == {"a": b"2", "b": b"b"}
    pair.s3.delete_object(Bucket=pair.one, Key="b")
    pair.s3.delete_object(Bucket=pair.two, Key="b")
    pair.s3.put_object(Bucket=pair.one, Key="a", Body=b"3")
    pair.settle()
    assert pair.latest(pair.one) == pair.latest(pair.two) == {"a": b"3"}
    first = pair.chains(pair.one)
    assert pair.chains(pair.two) == first
    assert len([key for key, _, _ in first if key == "b"]) == 3
    pair.settle()
    assert pair.chains(pair.one) == pair.chains(pair.two) == first


@pytest.mark.parametrize("within", [False, True], ids=["through the worker", "by the store"])
def test_the_latest_objects_of_both_sides(pair: Pair, within: bool) -> None:
    with mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: within):
        pair.s3.put_object(Bucket=pair.one, Key="a", Body=b"1", ContentType="text/x", Tagging="t=1")
        pair.s3.put_object(Bucket=pair.two, Key="large", Body=b"x" * (9 << 20))
        pair.begin("latest")
        pair.settle()
        copied = pair.s3.head_object(Bucket=pair.two, Key="a")
        assert copied["ContentType"] == "text/x"
        assert STAMP_HEADER.removeprefix("x-amz-meta-") in copied["Metadata"]
        assert pair.s3.get_object_tagging(Bucket=pair.two, Key="a")["TagSet"] == [{"Key": "t", "Value": "1"}]
        pair.s3.put_object(Bucket=pair.two, Key="a", Body=b"2")
        pair.settle()
        assert pair.latest(pair.one) == pair.latest(pair.two) == {"a": b"2", "large": b"x" * (9 << 20)}
        first = pair.chains(pair.one), pair.chains(pair.two)
        pair.settle()
        assert (pair.chains(pair.one), pair.chains(pair.two)) == first


@pytest.mark.parametrize("versioned", [False, True], ids=["plain buckets", "with versions"])
@pytest.mark.parametrize("within", [False, True], ids=["through the worker", "by the store"])
def test_deletions_both_ways(pair: Pair, versioned: bool, within: bool) -> None:
    if not versioned:
        pair.one, pair.two = (f"plain-{name}" for name in (pair.one, pair.two))
        for name in (pair.one, pair.two):
            pair.s3.create_bucket(Bucket=name)
    with mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: within):
        for key in ("a", "b", "stays", "large"):
            body = b"x" * (9 << 20) if key == "large" else key.encode()
            pair.s3.put_object(Bucket=pair.one, Key=key, Body=body)
        pair.begin("latest", markers=True, delete_percent=100)
        pair.settle()
        assert pair.latest(pair.two) == pair.latest(pair.one)
        pair.s3.delete_object(Bucket=pair.one, Key="a")
        pair.s3.delete_object(Bucket=pair.two, Key="large")
        pair.s3.delete_object(Bucket=pair.two, Key="b")
        pair.s3.put_object(Bucket=pair.one, Key="b", Body=b"written since")
        for _ in range(3):
            pair.settle()
            pair.due()
        assert pair.latest(pair.one) == pair.latest(pair.two) == {"b": b"written since", "stays": b"stays"}
        first = pair.chains(pair.one), pair.chains(pair.two)
        pair.settle()
        pair.due()
        assert (pair.chains(pair.one), pair.chains(pair.two)) == first
        markers = [key for key, _, latest in first[0] + first[1] if key == "a" and latest]
        assert len(markers) == (2 if versioned else 0), "one marker of somebody's, one of ours"


def test_28_deleted_on_both_sides_at_once(pair: Pair) -> None:
    """Scenario 28: no third marker."""
    for key in ("a", "stays"):
        pair.s3.put_object(Bucket=pair.one, Key=key, Body=key.encode())
    pair.begin("latest", markers=True, delete_percent=100)
    pair.settle()
    for bucket in (pair.one, pair.two):
        pair.s3.delete_object(Bucket=bucket, Key="a")
    before = pair.chains(pair.one), pair.chains(pair.two)
    for _ in range(3):
        pair.settle()
        pair.due()
    assert (pair.chains(pair.one), pair.chains(pair.two)) == before


def test_27_many_writes_on_both_sides_at_once(pair: Pair) -> None:
    """Scenario 27: 200 puts at each side at once of the same 50 keys. Each is written at most once per side."""
    with ThreadPoolExecutor(8) as pool:
        puts = [
            (bucket, f"{number % 50:02}", f"{bucket}-{number}")
            for number in range(200)
            for bucket in (pair.one, pair.two)
        ]
        list(pool.map(lambda put: pair.s3.put_object(Bucket=put[0], Key=put[1], Body=put[2].encode()), puts))
    pair.begin("latest", markers=True, delete_percent=100)
    before = len(pair.chains(pair.one)), len(pair.chains(pair.two))
    pair.settle()
    assert pair.latest(pair.one) == pair.latest(pair.two) and len(pair.latest(pair.one)) == 50
    after = pair.chains(pair.one), pair.chains(pair.two)
    assert sum(map(len, after)) == sum(before) + 50, "each key has a winner, which is written at the other side"
    pair.settle()
    assert (pair.chains(pair.one), pair.chains(pair.two)) == after


# --- a ring of three servers ------------------------------------------------------------------------------------------


class Ring(World):
    """A bucket on each of three servers; each of them is copied to the next one."""

    def __init__(self, lm: Deployment, servers: dict[str, Server], **rules: Any) -> None:
        super().__init__(lm)
        self.servers = servers
        self.at = {region: server.bucket() for region, server in servers.items()}
        regions = list(servers)
        for region, other in zip(regions, [*regions[1:], regions[0]], strict=True):
            more = {"conflict": "newest", "metadata": "all", **rules}
            target = other, f"s3://{self.at[other]}"
            self.rule(target, name=region, region=region, uri=f"s3://{self.at[region]}", pinned=False, **more)

    def put(self, region: str, key: str, body: bytes) -> None:
        """In a second of its own."""
        time.sleep(1.1)
        self.servers[region].s3.put_object(Bucket=self.at[region], Key=key, Body=body)

    def settle(self) -> None:
        for _ in range(4):
            Rule.objects.update(scan_wanted=True)
            self.work(1)
            OpenObject.objects.filter(status="deleting").update(next_try=Rule.objects.earliest("pk").created_at)
            self.copy()

    def there(self, region: str) -> dict[str, bytes]:
        s3, bucket = self.servers[region].s3, self.at[region]
        keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
        own = [key for key in keys if not key.startswith("_lakemirror")]
        return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in own}

    def alike(self) -> dict[str, bytes]:
        """What all have, after which nothing more is written."""
        self.settle()
        first = self.there(HOME)
        assert self.there(AWAY) == self.there(FAR) == first
        sent = list(Link.objects.order_by("pk").values_list("sent_objects", "deleted_objects"))
        self.settle()
        assert list(Link.objects.order_by("pk").values_list("sent_objects", "deleted_objects")) == sent
        assert not OpenObject.objects.exists()
        return first


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    running = {region: minio_pair.Minio(tmp_path_factory.mktemp("minio")) for region in (HOME, AWAY, FAR)}
    try:
        yield {region: Server(server.endpoint, keys, keys) for region, server in running.items()}
    finally:
        for server in running.values():
            server.stop()


@real_minio
@pytest.mark.parametrize("markers", [False, True], ids=["", "with deletions"])
def test_a_ring_of_three_servers(lm: Deployment, three: dict[str, Server], markers: bool) -> None:
    """What a key has already is written anew at one place, after another one was written at a third."""

    def store(region: str, workers: int = 0) -> Any:
        return three[region].store

    with (
        mock.patch("deployment.wiring.replication_jobs._store", store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: False),
    ):
        ring = Ring(lm, three, markers=markers, delete_percent=100)
        every = {"a": b"x", "large": b"x" * (9 << 20), "stays": b"s"}
        for key, body in every.items():
            ring.put(HOME, key, body)
        assert ring.alike() == every
        for key in ("a", "large"):
            ring.put(FAR, key, b"y")
            ring.put(HOME, key, every[key])
        assert ring.alike() == every
        ring.put(AWAY, "a", b"z")
        assert ring.alike() == {**every, "a": b"z"}
        if markers:
            three[FAR].s3.delete_object(Bucket=ring.at[FAR], Key="large")
            assert ring.alike() == {"a": b"z", "stays": b"s"}
