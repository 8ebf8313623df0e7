"""Rules from and to a real Ceph, and between it and a real MinIO: parts, keys, versions, policies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock
from uuid import uuid4

import pytest

from adapters.s3.fast_store import FastObjectStore
from core.replicating.eligible import is_own
from replication.models import Link, OpenObject, Rule
from tests import ceph, minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.world import AWAY, HOME, World

pytestmark = [pytest.mark.django_db, ceph.real_ceph]
MIB = 1 << 20
ODD = (5 * MIB, 6 * MIB + 7, 12_345)
"""Scenario 21's."""
real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
WAYS = [
    "ceph-ceph",
    pytest.param("minio-ceph", marks=real_minio),
    pytest.param("ceph-minio", marks=real_minio),
]


class Site(NamedTuple):
    """A server: what rules use of it, and a client for tests."""

    store: FastObjectStore
    s3: Any


def site(endpoint: str, keys: dict[str, str], client: Any) -> Site:
    return Site(FastObjectStore(endpoint=endpoint, region=HOME, force_path_style=True, **keys), client)


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server = minio_pair.Minio(tmp_path_factory.mktemp("minio"))
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    try:
        yield site(server.endpoint, keys, server.s3)
    finally:
        server.stop()


class Between(World):
    """A rule from a bucket of one server to a bucket of another."""

    def __init__(self, lm: Deployment, here: Site, there: Site, kinds: str) -> None:
        super().__init__(lm)
        self.here, self.there_, self.kinds = here, there, kinds
        self.src, self.out = f"src-{uuid4().hex[:12]}", f"out-{uuid4().hex[:12]}"
        here.s3.create_bucket(Bucket=self.src)
        there.s3.create_bucket(Bucket=self.out)

    def begin(self, **more: Any) -> Rule:
        """Such a rule, whose target has no pin yet."""
        rule = self.rule(
            (AWAY, f"s3://{self.out}"),
            uri=f"s3://{self.src}",
            pinned=False,
            **{"metadata": "all", "delete_percent": 100} | more,
        )
        if rule.all_versions:
            Link.objects.update(exact=False)
        return rule

    def versioned(self) -> None:
        for s3, bucket in ((self.here.s3, self.src), (self.there_.s3, self.out)):
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    def look(self) -> None:
        Rule.objects.update(scan_wanted=True)
        self.work(2)

    def put_(self, key: str, body: bytes = b"1", **more: Any) -> None:
        self.here.s3.put_object(Bucket=self.src, Key=key, Body=body, **more)

    def keys(self, s3: Any, bucket: str) -> dict[str, tuple[int, str]]:
        found = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        return {one["Key"]: (one["Size"], one["ETag"]) for one in found if not is_own(one["Key"])}

    def arrived(self) -> dict[str, tuple[int, str]]:
        return self.keys(self.there_.s3, self.out)

    def chains(self, s3: Any, bucket: str) -> dict[str, list[tuple[str, int]]]:
        """Of each key what the bucket has of it, the newest first: ETag and size; of a marker nothing."""
        page = s3.list_object_versions(Bucket=bucket)
        every = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        dated = sorted(every, key=lambda one: (one["IsLatest"], one["LastModified"]), reverse=True)
        found: dict[str, list[tuple[str, int]]] = {}
        for one in dated:
            if not is_own(one["Key"]):
                found.setdefault(one["Key"], []).append((one.get("ETag", ""), one.get("Size", 0)))
        return found

    def in_parts(self, key: str, *sizes: int, **more: Any) -> None:
        where = {"Bucket": self.src, "Key": key}
        upload = self.here.s3.create_multipart_upload(**where, **more)["UploadId"]
        parts = []
        for number, size in enumerate(sizes, 1):
            body = bytes([number]) * size
            part = self.here.s3.upload_part(**where, UploadId=upload, PartNumber=number, Body=body)
            parts.append({"ETag": part["ETag"], "PartNumber": number})
        self.here.s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})

    def told(self) -> list[tuple[str, str, str]]:
        return [(row.name, row.status, row.code) for row in OpenObject.objects.order_by("key")]


@pytest.fixture(params=WAYS)
def b(request: pytest.FixtureRequest, lm: Deployment) -> Iterator[Between]:
    own = site(ceph.ENDPOINT, ceph.KEYS, ceph.client())
    kinds = request.param.split("-")
    here, there = (own if kind == "ceph" else request.getfixturevalue("minio") for kind in kinds)

    def store(region: str, workers: int = 0) -> FastObjectStore:
        return here.store if region == HOME else there.store

    with (
        mock.patch("deployment.wiring.replication_jobs._store", store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: one == other),
    ):
        yield Between(lm, here, there, request.param)


def test_21_parts_of_any_sizes_arrive_and_are_known_the_next_time(b: Between) -> None:
    b.in_parts("usual", 8 * MIB, 8 * MIB, 12_345, Tagging="t=1", ContentType="video/x")
    b.in_parts("odd", *ODD, Metadata={"m": "1"})
    b.in_parts("small", 12_345)
    b.begin()
    b.work(2)
    ours, theirs = b.keys(b.here.s3, b.src), b.arrived()
    assert theirs.keys() == ours.keys() and b.told() == []
    assert [theirs[key] == ours[key] for key in ("usual", "small")] == [True, True]
    assert b.there_.s3.head_object(Bucket=b.out, Key="odd")["Metadata"]["m"] == "1"
    whole = [
        site.s3.get_object(Bucket=bucket, Key="odd")["Body"].read()
        for site, bucket in ((b.here, b.src), (b.there_, b.out))
    ]
    assert whole[0] == whole[1]
    sent = b.link().sent_objects
    b.look()
    assert b.link().sent_objects == sent and b.told() == []


def test_25_keys_of_all_kinds_arrive_or_are_told_one_by_one(b: Between) -> None:
    odd = ["a b+c%20/é", "%2F", "x//y", "d/", "~!*'()&=;:@,$#?", "\U0001f600", "k" * 200 + "/" + "l" * 200, "z\\z"]
    refused = ["a/../b", "//"] if b.kinds == "ceph-minio" else []
    for key in [*odd, *refused]:
        if b.kinds.startswith("minio") and key in ("x//y", "z\\z"):
            continue
        b.put_(key, key.encode())
    b.begin()
    b.work(2)
    ours, theirs = b.keys(b.here.s3, b.src), b.arrived()
    told = {name for name, _, _ in b.told()}
    assert {key: theirs[key] for key in ours.keys() - told} == {key: ours[key] for key in ours.keys() - told}
    assert told <= {*refused, "x//y", "z\\z"} and {status for _, status, _ in b.told()} <= {"failed"}


def test_15_versions_and_markers_lie_in_the_same_order(b: Between) -> None:
    b.versioned()
    for body in (b"1", b"22", None, b"1", b"1"):
        if body is None:
            b.here.s3.delete_object(Bucket=b.src, Key="a")
        else:
            b.put_("a", body)
    b.put_("gone")
    b.here.s3.delete_object(Bucket=b.src, Key="gone")
    b.in_parts("parts", *ODD)
    b.begin(versions="all", metadata="content")
    b.work(2)
    assert b.told() == []
    ours, theirs = b.chains(b.here.s3, b.src), b.chains(b.there_.s3, b.out)
    assert [theirs[key] for key in ("a", "gone")] == [ours[key] for key in ("a", "gone")]
    assert [size for _, size in theirs["parts"]] == [sum(ODD)]
    before = b.link().sent_objects
    b.look()
    assert b.chains(b.there_.s3, b.out) == theirs and b.link().sent_objects == before


@pytest.mark.parametrize("b", WAYS[2:], indirect=True)
def test_what_minio_has_and_does_not_list_is_not_written_again_and_again(b: Between) -> None:
    b.versioned()
    for key in ("b", "b/c", "b/gone"):
        b.put_(key)
    b.here.s3.delete_object(Bucket=b.src, Key="b/gone")
    b.begin(versions="all", metadata="content")
    for _ in range(3):
        b.look()
    assert b.told() == [("b/c", "failed", "NotListed"), ("b/gone", "failed", "NotListed")]
    assert b.there_.s3.get_object(Bucket=b.out, Key="b/c")["Body"].read() == b"1"
    sent = b.link().sent_objects
    b.look()
    assert b.link().sent_objects == sent


def test_16_one_marker_and_not_two_where_head_can_not_tell(b: Between) -> None:
    b.versioned()
    b.put_("a")
    b.put_("stays")  # a source that shows nothing freezes its links
    b.begin(versions="all", metadata="content")
    b.work(1)
    b.here.s3.delete_object(Bucket=b.src, Key="a")
    for _ in range(3):
        b.look()
    assert b.chains(b.there_.s3, b.out)["a"][0] == ("", 0) and len(b.chains(b.there_.s3, b.out)["a"]) == 2


def test_what_is_deleted_is_followed(b: Between) -> None:
    for key in ("a", "b/ü +", "c"):
        b.put_(key, key.encode())
    b.begin(markers=True, delete_percent=100)
    b.work(2)
    b.look()
    b.there_.s3.put_object(Bucket=b.out, Key="theirs", Body=b"theirs")
    b.here.s3.delete_object(Bucket=b.src, Key="b/ü +")
    b.look()
    b.link().open_objects.filter(status="deleting").update(next_try=b.link().rule.created_at)
    b.work(1)
    assert set(b.arrived()) == {"a", "c", "theirs"} and b.told() == []


def test_31_a_source_that_was_created_anew_freezes_its_links_and_a_target_is_stale(b: Between) -> None:
    for key in "abc":
        b.put_(key, key.encode())
    b.begin(markers=True, delete_percent=100)
    b.work(2)
    b.look()
    for key in "abc":
        b.here.s3.delete_object(Bucket=b.src, Key=key)
    b.here.s3.delete_bucket(Bucket=b.src)
    time.sleep(1.1)
    b.here.s3.create_bucket(Bucket=b.src)
    b.put_("a", b"a")
    for _ in range(2):
        b.look()
        b.link().open_objects.filter(status="deleting").update(next_try=b.link().rule.created_at)
        b.work(1)
    link = b.link()
    assert set(b.arrived()) == {"a", "b", "c"} and link.frozen_code == "SourceRecreated", link.frozen_code
    for one in b.there_.s3.list_objects_v2(Bucket=b.out)["Contents"]:
        b.there_.s3.delete_object(Bucket=b.out, Key=one["Key"])
    b.there_.s3.delete_bucket(Bucket=b.out)
    b.there_.s3.create_bucket(Bucket=b.out)
    b.look()
    assert b.link().stale_since is not None and b.arrived() == {}


# --- what a target refuses --------------------------------------------------------------------------------------------


@pytest.fixture
def refusing(b: Between) -> Between:
    if not b.kinds.endswith("ceph"):
        pytest.skip("the policy is one of Ceph's target")
    return b


def deny(b: Between, *actions: str) -> None:
    """Nobody may do that in the target's bucket, but for what LakeMirror keeps there."""
    told = [f"arn:aws:s3:::{b.out}/{name}*" for name in "0123456789abcdefk"]
    one = {"Effect": "Deny", "Principal": "*", "Action": list(actions), "Resource": told}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [one]})
    b.there_.s3.put_bucket_policy(Bucket=b.out, Policy=policy)


def test_3_a_policy_that_refuses_every_write_blocks_the_link_until_it_goes(refusing: Between) -> None:
    b = refusing
    for number in range(60):
        b.put_(f"k{number:02}")
    b.begin()
    deny(b, "s3:PutObject")
    b.work(2)
    link = b.link()
    assert (link.health, link.health_code) == ("blocked", "DstPutObjectNotPermitted"), link.health_message
    assert b.arrived() == {} and {row.attempts for row in OpenObject.objects.all()} == {0}
    assert OpenObject.objects.filter(status="pending").count() == 60
    b.there_.s3.delete_bucket_policy(Bucket=b.out)
    Link.objects.update(probe_at=link.rule.created_at)
    b.work(2)
    assert len(b.arrived()) == 60 and b.told() == [] and b.link().health == "up"


@pytest.mark.parametrize("b", WAYS[2:], indirect=True)
def test_3_one_object_with_metadata_that_the_target_can_not_hold_fails_alone(b: Between) -> None:
    b.put_("many", Metadata={f"n{number:02}": "v" * 60 for number in range(60)})
    b.in_parts("parts", 5 * MIB, 1, Metadata={f"n{number:02}": "v" * 60 for number in range(60)})
    b.put_("fine")
    b.begin()
    b.work(2)
    assert list(b.arrived()) == ["fine"]
    assert b.told() == [("many", "failed", "MetadataRefused"), ("parts", "failed", "MetadataRefused")]
    assert all(row.next_try is not None for row in OpenObject.objects.all())


def test_what_came_to_the_target_since_it_was_looked_at_is_looked_at_first(refusing: Between) -> None:
    b = refusing
    b.put_("a", b"ours")
    b.begin()
    b.scan()
    assert b.rows()[0].absent
    b.there_.s3.put_object(Bucket=b.out, Key="a", Body=b"ours")
    at = b.there_.s3.head_object(Bucket=b.out, Key="a")["LastModified"]
    time.sleep(1.1)
    b.copy()
    assert b.told() == [] and b.there_.s3.head_object(Bucket=b.out, Key="a")["LastModified"] == at
