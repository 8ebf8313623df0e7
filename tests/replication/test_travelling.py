"""What goes with the bytes on a real S3 server: tags, locks, headers, storage classes, and changes of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError

from adapters.places.describer import Describer
from adapters.places.reader import PlaceReader
from adapters.s3.fast_store import FastObjectStore
from core.replicating.eligible import is_own
from core.travelling.describing import Lock
from replication.models import Rule
from replication.transitions import touching
from tests.mirrors.harness import Deployment
from tests.replication.test_over_http import Server, in_parts, server
from tests.replication.world import HOME, World

pytestmark = pytest.mark.django_db
MIB = 1 << 20
__all__ = ["server"]


class Pair(World):
    """Rules from the bucket `src` to `out` of one server. `s3`: its client."""

    def __init__(self, lm: Deployment, s3: Any, source: str, target: str) -> None:
        super().__init__(lm)
        self.s3, self.src, self.out = s3, source, target

    def make(self, **more: Any) -> Rule:
        return self.rule((HOME, f"s3://{self.out}"), uri=f"s3://{self.src}", **{"metadata": "all"} | more)

    def told(self, *keys: str) -> None:
        """Events name these keys."""
        touching.objects_changed(HOME, {(self.src, key) for key in keys})

    def head(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = self.s3.head_object(Bucket=self.out, Key=key)
        return found

    def tags(self, key: str) -> dict[str, str]:
        return tags_of(self.s3, self.out, key)

    def lock(self, key: str) -> tuple[Any, ...]:
        told = self.head(key)
        names = ("ObjectLockMode", "ObjectLockRetainUntilDate", "ObjectLockLegalHoldStatus")
        return tuple(told.get(name) for name in names)

    def codes(self) -> list[tuple[str, str]]:
        return [(row.status, row.code) for row in self.rows()]


def tags_of(s3: Any, bucket: str, key: str) -> dict[str, str]:
    found = s3.get_object_tagging(Bucket=bucket, Key=key).get("TagSet", [])  # Ceph tells of no tags by nothing
    return {tag["Key"]: tag["Value"] for tag in found}


def tag_set(**tags: str) -> dict[str, Any]:
    return {"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}


@pytest.fixture
def s3(server: Server) -> Any:
    pair = {f"aws_{name}": value for name, value in server.keys.items()}
    return boto3.client("s3", endpoint_url=server.endpoint, region_name=HOME, **pair)


@pytest.fixture(params=["one store", "two stores"])
def way(request: pytest.FixtureRequest) -> str:
    """Whether the store copies within itself, or the bytes come through here."""
    return str(request.param)


@pytest.fixture
def wired(server: Server, way: str) -> Iterator[FastObjectStore]:
    store = FastObjectStore(endpoint=server.endpoint, region=HOME, force_path_style=True, **server.keys)
    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda *_: way == "one store"),
    ):
        yield store


def buckets(s3: Any, name: str, *, lock: bool) -> tuple[str, str]:
    """Two buckets of a test, which are there for nobody else."""
    made = (f"src-{name}", f"out-{name}")
    for bucket in made:
        s3.create_bucket(Bucket=bucket, **({"ObjectLockEnabledForBucket": True} if lock else {}))
    return made


@pytest.fixture
def p(lm: Deployment, s3: Any, wired: FastObjectStore) -> Pair:
    return Pair(lm, s3, *buckets(s3, f"plain-{uuid4().hex[:12]}", lock=False))


@pytest.fixture
def locked(lm: Deployment, s3: Any, wired: FastObjectStore) -> Pair:
    return Pair(lm, s3, *buckets(s3, f"locked-{uuid4().hex[:12]}", lock=True))


def test_tags_headers_and_metadata_arrive_with_the_bytes(p: Pair) -> None:
    p.s3.put_object(
        Bucket=p.src,
        Key="a b+c%20/é",
        Body=b"1",
        Tagging="team=sales%20%2B%20co&k=a%3D",
        ContentType="text/x",
        CacheControl="no-cache",
        ContentLanguage="de",
        Metadata={"m": "1"},
    )
    p.s3.put_object(Bucket=p.src, Key="plain", Body=b"2")
    in_parts_of(p, "parts")
    p.s3.put_object_tagging(Bucket=p.src, Key="parts", Tagging=tag_set(big="yes"))
    p.make()
    p.work(1)
    assert p.tags("a b+c%20/é") == {"team": "sales + co", "k": "a="}
    assert p.tags("parts") == {"big": "yes"} and p.tags("plain") == {}
    told = p.head("a b+c%20/é")
    assert (told["ContentType"], told["CacheControl"], told["Metadata"]) == ("text/x", "no-cache", {"m": "1"})
    assert p.rows() == []


def in_parts_of(p: Pair, key: str) -> None:
    in_parts(p.s3, key, 5 * MIB, 12_345, bucket=p.src)


def test_a_change_of_metadata_alone_travels_without_the_bytes(p: Pair) -> None:
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1", Tagging="t=1", Metadata={"m": "1"})
    in_parts_of(p, "parts")
    p.make()
    p.work(1)
    sent = p.link().sent_bytes
    p.s3.put_object_tagging(Bucket=p.src, Key="a", Tagging=tag_set(t="2", u="3"))
    p.told("a")
    p.work(1)
    assert p.tags("a") == {"t": "2", "u": "3"}
    source = {"Bucket": p.src, "Key": "a"}
    p.s3.copy_object(
        CopySource=source, **source, MetadataDirective="REPLACE", Metadata={"m": "2", "n": "3"}, ContentType="text/y"
    )
    p.s3.delete_object_tagging(**source)
    p.told("a", "parts")
    p.work(1)
    told = p.head("a")
    ours = p.s3.head_object(**source)
    assert (told["ContentType"], told["Metadata"]) == ("text/y", ours["Metadata"])
    assert p.tags("a") == {} and p.rows() == []
    assert p.link().sent_bytes == sent
    objects = p.link().sent_objects
    p.told("a", "parts")
    p.work(1)
    assert p.link().sent_objects == objects


def test_tags_stay_when_headers_change(p: Pair) -> None:
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1", Tagging="t=1")
    p.make()
    p.work(1)
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1", Tagging="t=1", ContentType="text/y")
    p.told("a")
    p.work(1)
    assert p.head("a")["ContentType"] == "text/y" and p.tags("a") == {"t": "1"} and p.rows() == []


def test_what_is_in_parts_keeps_them_when_its_headers_change(p: Pair) -> None:
    in_parts_of(p, "parts")
    p.make()
    p.work(1)
    before = p.head("parts")
    p.s3.copy_object(
        Bucket=p.out,
        Key="parts",
        CopySource={"Bucket": p.out, "Key": "parts"},
        MetadataDirective="REPLACE",
        ContentType="text/other",
    )
    p.told("parts")
    p.work(2)
    after = p.head("parts")
    assert (after["ETag"], after["ContentType"]) == (before["ETag"], before["ContentType"])
    assert p.rows() == []
    p.s3.put_object_tagging(Bucket=p.src, Key="parts", Tagging=tag_set(t="1"))
    p.told("parts")
    p.work(1)
    assert p.tags("parts") == {"t": "1"} and p.head("parts")["ETag"] == before["ETag"]


def test_with_content_only_bytes_and_their_headers_travel(p: Pair) -> None:
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1", Metadata={"m": "1"})
    p.make(metadata="content")
    p.work(1)
    p.s3.put_object_tagging(Bucket=p.src, Key="a", Tagging=tag_set(t="1"))
    p.told("a")
    p.work(1)
    assert p.tags("a") == {} and p.head("a")["Metadata"] == {"m": "1"} and p.rows() == []


def test_only_objects_with_all_tags_are_copied_and_stay(p: Pair) -> None:
    for key, tagging in (("both", "a=1&b=2&c=3"), ("one", "a=1"), ("other", "a=1&b=3"), ("none", "")):
        p.s3.put_object(Bucket=p.src, Key=key, Body=key.encode(), Tagging=tagging)
    p.make(tags={"a": "1", "b": "2"})
    p.scan()
    assert p.names() == ["both"]
    p.copy()
    assert keys_at(p) == ["both"]
    p.s3.put_object_tagging(Bucket=p.src, Key="none", Tagging=tag_set(a="1", b="2"))
    p.s3.delete_object_tagging(Bucket=p.src, Key="both")
    p.told("none", "both")
    p.work(1)
    assert keys_at(p) == ["both", "none"] and p.tags("both") != {}
    p.s3.put_object(Bucket=p.src, Key="both", Body=b"changed, and without tags")
    p.told("both")
    Rule.objects.update(scan_wanted=True)
    p.work(1)
    assert p.s3.get_object(Bucket=p.out, Key="both")["Body"].read() == b"both" and p.rows() == []


def keys_at(p: Pair) -> list[str]:
    keys = [item["Key"] for item in p.s3.list_objects_v2(Bucket=p.out).get("Contents", ())]
    return [key for key in keys if not is_own(key)]


def test_a_sweep_finds_changes_that_nobody_told_of(p: Pair) -> None:
    for number in range(5):
        p.s3.put_object(Bucket=p.src, Key=f"k{number}", Body=b"1", Tagging="t=1")
    p.make()
    p.work(1)
    p.s3.put_object_tagging(Bucket=p.src, Key="k3", Tagging=tag_set(t="2"))
    Rule.objects.update(scan_wanted=True)
    p.work(1)
    assert p.tags("k3") == {"t": "1"}
    Rule.objects.update(scan_wanted=True, sweep_heads_per_second=1000)
    p.work(2)
    assert p.tags("k3") == {"t": "2"}
    assert Rule.objects.get().swept_at is not None and Rule.objects.get().swept_to is None


def until(days: int) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)


def test_retention_and_holds_arrive_and_change(locked: Pair) -> None:
    p, first, later = locked, until(10), until(20)
    p.s3.put_object(
        Bucket=p.src, Key="a", Body=b"1", Tagging="t=1", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=first
    )
    p.s3.put_object(Bucket=p.src, Key="held", Body=b"2", ObjectLockLegalHoldStatus="ON")
    p.make()
    p.work(1)
    assert p.rows() == [], p.rows()[0].detail
    assert p.lock("a")[:2] == ("GOVERNANCE", first) and p.lock("held")[2] == "ON"
    assert p.tags("a") == {"t": "1"}
    retain(p, p.src, "a", "GOVERNANCE", later)
    p.s3.put_object_legal_hold(Bucket=p.src, Key="a", LegalHold={"Status": "ON"})
    p.s3.put_object_legal_hold(Bucket=p.src, Key="held", LegalHold={"Status": "OFF"})
    p.told("a", "held")
    p.work(1)
    assert p.lock("a") == ("GOVERNANCE", later, "ON") and p.lock("held")[2] in ("OFF", None)
    p.s3.put_object_tagging(Bucket=p.src, Key="a", Tagging=tag_set(t="2"))
    p.told("a")
    p.work(1)
    assert p.lock("a") == ("GOVERNANCE", later, "ON") and p.tags("a") == {"t": "2"}
    assert p.rows() == [] and len(versions(p, "a")) == 1


def retain(p: Pair, bucket: str, key: str, mode: str, at: datetime, *, bypass: bool = False) -> None:
    retention = {"Mode": mode, "RetainUntilDate": at}
    p.s3.put_object_retention(Bucket=bucket, Key=key, Retention=retention, BypassGovernanceRetention=bypass)


def versions(p: Pair, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = p.s3.list_object_versions(Bucket=p.out, Prefix=key)["Versions"]
    return found


def test_retention_that_the_target_keeps_longer_is_told(locked: Pair) -> None:
    p = locked
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until(10))
    p.make()
    p.work(1)
    retain(p, p.out, "a", "COMPLIANCE", longer := until(20), bypass=True)
    p.told("a")
    p.work(1)
    assert p.codes() == [("skipped", "Locked")] and p.lock("a")[:2] == ("COMPLIANCE", longer)
    assert "COMPLIANCE" in p.rows()[0].detail


def test_a_lock_that_got_lost_with_a_change_of_tags_is_put_right(locked: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    p, at = locked, until(10)
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=at)
    p.make()
    p.work(1)
    real, short = Describer.set_tags, until(1)

    def losing(self: Describer, key: str, tags: Any, version: str = "") -> None:
        real(self, key, tags, version)
        p.s3.put_object_retention(
            Bucket=p.out,
            Key=key,
            Retention={"Mode": "GOVERNANCE", "RetainUntilDate": short},
            BypassGovernanceRetention=True,
        )

    monkeypatch.setattr(Describer, "set_tags", losing)
    p.s3.put_object_tagging(Bucket=p.src, Key="a", Tagging=tag_set(t="1"))
    p.told("a")
    p.work(1)
    assert p.lock("a")[:2] == ("GOVERNANCE", at) and p.tags("a") == {"t": "1"} and p.rows() == []
    monkeypatch.setattr(Describer, "set_retention", lambda *_, **__: None)
    p.s3.put_object_tagging(Bucket=p.src, Key="a", Tagging=tag_set(t="2"))
    p.told("a")
    p.work(1)
    assert p.codes() == [("failed", "LockLost")]


def test_a_target_without_locks_is_told(
    lm: Deployment, s3: Any, server: Server, way: str, wired: FastObjectStore
) -> None:
    number = uuid4().hex[:12]
    source, _ = buckets(s3, f"locked-{number}", lock=True)
    _, target = buckets(s3, f"plain-{number}", lock=False)
    p = Pair(lm, s3, source, target)
    s3.put_object(Bucket=source, Key="held", Body=b"2", ObjectLockLegalHoldStatus="ON")
    s3.put_object(Bucket=source, Key="free", Body=b"2")
    p.make()
    p.work(1)
    drops = server.name == "ceph" and way == "one store"  # a copy within Ceph leaves locks out, without a word
    assert keys_at(p) == (["free", "held"] if drops else ["free"])
    assert p.codes() == [("pending", "DstBucketObjectLockConfigMissing")] or p.codes() == [
        ("failed", "DstBucketObjectLockConfigMissing")
    ]


def test_copies_lie_in_the_storage_class_that_the_rule_names(p: Pair, server: Server, way: str) -> None:
    if server.name == "ceph":
        pytest.skip("a Ceph as it is installed has one storage class")
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1", StorageClass="REDUCED_REDUNDANCY")
    p.make(storage_class="same")
    p.work(1)
    assert p.head("a").get("StorageClass") == "REDUCED_REDUNDANCY"
    Rule.objects.update(storage_class="")
    p.s3.put_object(Bucket=p.src, Key="b", Body=b"1", StorageClass="REDUCED_REDUNDANCY")
    Rule.objects.update(scan_wanted=True)
    p.work(1)
    keeps = way == "one store" and server.name == "minio"
    assert (p.head("b").get("StorageClass") == "REDUCED_REDUNDANCY") is keeps


def test_a_storage_class_that_the_target_does_not_know_is_named(p: Pair, server: Server) -> None:
    p.s3.put_object(Bucket=p.src, Key="a", Body=b"1")
    p.make(storage_class="NO_SUCH_CLASS")
    p.work(1)
    code = "MetadataRefused" if server.name == "ceph" else "StorageClassRefused"  # Ceph: InvalidArgument, nothing more
    assert p.codes() == [("failed", code)] and "NO_SUCH_CLASS" in p.rows()[0].detail


def test_a_place_has_locks_or_not(s3: Any, wired: FastObjectStore) -> None:
    number = uuid4().hex[:12]
    (locking, _), (plain, _) = buckets(s3, f"l-{number}", lock=True), buckets(s3, f"p-{number}", lock=False)
    assert Describer(PlaceReader(wired, f"s3://{locking}")).has_locks()
    assert not Describer(PlaceReader(wired, f"s3://{plain}/x")).has_locks()
    s3.put_object(Bucket=locking, Key="a", Body=b"1")
    describer = Describer(PlaceReader(wired, f"s3://{locking}"))
    describer.set_retention("a", Lock("GOVERNANCE", until(3)))
    with pytest.raises(ClientError):
        s3.delete_object(Bucket=locking, Key="a", VersionId=s3.head_object(Bucket=locking, Key="a")["VersionId"])
    describer.set_retention("a", Lock("GOVERNANCE", at := until(1)), shorten=True)
    assert s3.head_object(Bucket=locking, Key="a")["ObjectLockRetainUntilDate"] == at
