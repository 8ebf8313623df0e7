"""What every ObjectStore keeps to, and what the two for S3 do when the store misbehaves."""

from __future__ import annotations

import hashlib
import socket
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock

import boto3
import pytest
import requests

from adapters.s3.bucket_rules import lifecycle_rule, replication_rule
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.presigning import presigned_get
from adapters.s3.refusals import answer_error
from adapters.s3.store import S3ObjectStore, split_uri
from adapters.s3.store_keys import StoreKeys, keys_from_environment
from core.errors import (
    Archived,
    Denied,
    Invalid,
    LakeMirrorError,
    NoBucket,
    NotFound,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
)
from core.ports import ObjectStore
from core.types import LifecycleRule, ObjectVersion, ReplicationRule
from tests.fakes import FakeStore
from tests.s3_double import KEYS, S3Double, Thing, running_moto

S3_STORES = [S3ObjectStore, FastObjectStore]


def client_of(endpoint: str) -> Any:
    """boto3 itself."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
    )


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with running_moto() as endpoint:
        client = client_of(endpoint)
        client.create_bucket(Bucket="lake")
        client.put_object(Bucket="lake", Key="cold/frozen", Body=b"ice", StorageClass="GLACIER")
        client.put_object(Bucket="lake", Key="cold/thawed", Body=b"water", StorageClass="GLACIER")
        client.restore_object(Bucket="lake", Key="cold/thawed", RestoreRequest={"Days": 1})
        yield endpoint


def connect(kind: type[S3ObjectStore], endpoint: str, **options: object) -> S3ObjectStore:
    return kind(endpoint=endpoint, force_path_style=True, **KEYS, **options)


@pytest.fixture(params=[FakeStore, *S3_STORES], ids=lambda kind: kind.__name__)
def store(request: pytest.FixtureRequest, moto: str) -> ObjectStore:
    return FakeStore() if request.param is FakeStore else connect(request.param, moto)


@pytest.fixture(params=S3_STORES, ids=lambda kind: kind.__name__)
def s3_store(request: pytest.FixtureRequest, moto: str) -> S3ObjectStore:
    return connect(request.param, moto)


@pytest.fixture
def double() -> Iterator[S3Double]:
    with S3Double() as running:
        yield running


@pytest.fixture(params=S3_STORES, ids=lambda kind: kind.__name__)
def shaky(request: pytest.FixtureRequest, double: S3Double) -> S3ObjectStore:
    return connect(request.param, double.endpoint, tries=2, read_seconds=1.0)


# --- the contract ----------------------------------------------------------------------------------------------------


def test_what_was_put_is_got(store: ObjectStore) -> None:
    store.put("s3://lake/contract/a", b"some bytes")
    assert store.get("s3://lake/contract/a") == b"some bytes"


def test_a_presigned_address_gives_the_bytes_until_it_expires(s3_store: S3ObjectStore) -> None:
    s3_store.put("s3://lake/signed/a b+c", b"some bytes")
    signed = s3_store.presigned("s3://lake/signed/a b+c", 60)
    lasts = (signed.expires_at - datetime.now(UTC)).total_seconds()
    assert 55 < lasts <= 60 and "X-Amz-Expires=60" in signed.url and "Minio" not in signed.url
    assert requests.get(signed.url, timeout=5).content == b"some bytes"
    assert signed.url not in repr(signed)


class Lent:
    """Credentials that end."""

    def __init__(self, seconds: float) -> None:
        self._expiry_time = datetime.now(UTC) + timedelta(seconds=seconds)

    def get_frozen_credentials(self) -> None:
        """Nothing is renewed."""


def test_an_address_ends_with_the_credentials_that_signed_it(moto: str) -> None:
    client = connect(S3ObjectStore, moto)._client
    signed = presigned_get(client, Lent(100), bucket="lake", key="a", seconds=900, where="there")
    assert 90 < (signed.expires_at - datetime.now(UTC)).total_seconds() <= 100
    assert "X-Amz-Expires=9" in signed.url and "X-Amz-Expires=900" not in signed.url
    with pytest.raises(Unauthenticated):
        presigned_get(client, None, bucket="lake", key="a", seconds=900, where="there")


def test_an_object_s_hash_is_read_from_its_bytes(store: ObjectStore) -> None:
    store.put("s3://lake/hashed", b"x" * 3_000_000)
    assert store.md5("s3://lake/hashed") == hashlib.md5(b"x" * 3_000_000).hexdigest()
    with pytest.raises(NotFound):
        store.md5("s3://lake/never-there")


def test_a_put_replaces_what_was_there(store: ObjectStore) -> None:
    store.put("s3://lake/contract/b", b"old")
    store.put("s3://lake/contract/b", b"new one")
    assert store.get("s3://lake/contract/b") == b"new one"


def test_getting_what_is_not_there_raises_not_found(store: ObjectStore) -> None:
    with pytest.raises(NotFound):
        store.get("s3://lake/contract/nowhere")


def test_head_tells_key_size_and_plain_etag(store: ObjectStore) -> None:
    store.put("s3://lake/contract/c", b"hello")
    found = store.head("s3://lake/contract/c")
    assert found is not None
    assert (found.key, found.size, found.etag) == ("contract/c", 5, "5d41402abc4b2a76b9719d911017c592")
    assert (found.storage_class, found.restored) == ("", False)


def test_head_of_what_is_not_there_is_none(store: ObjectStore) -> None:
    assert store.head("s3://lake/contract/nowhere") is None


def test_a_listing_is_in_order_of_key_and_only_below_the_prefix(store: ObjectStore) -> None:
    for name in ("z", "b", "a/1", "Z", "ä"):
        store.put(f"s3://lake/listed/{name}", name.encode())
    store.put("s3://lake/listedelsewhere", b"")
    listed = list(store.list("s3://lake/listed/"))
    assert [one.key for one in listed] == [f"listed/{name}" for name in ("Z", "a/1", "b", "z", "ä")]
    assert [one.size for one in listed] == [1, 3, 1, 1, 2]


def test_a_listing_of_nothing_is_empty(store: ObjectStore) -> None:
    assert list(store.list("s3://lake/nothing-here/")) == []


@pytest.mark.parametrize(
    "name", ["a b", "a+b", "a%20b", "käse/ü", "q?x=1&y", "hash#tag", "<xml>&amp;", "~t'(!)*", "a//b"]
)
def test_awkward_keys_are_put_got_seen_and_listed(store: ObjectStore, name: str) -> None:
    uri = f"s3://lake/awkward/{name}"
    store.put(uri, name.encode())
    assert store.get(uri) == name.encode()
    found = store.head(uri)
    assert found is not None and found.key == f"awkward/{name}"
    assert f"awkward/{name}" in [one.key for one in store.list("s3://lake/awkward/")]


def test_an_empty_object_has_a_size_of_zero(store: ObjectStore) -> None:
    store.put("s3://lake/contract/empty", b"")
    found = store.head("s3://lake/contract/empty")
    assert found is not None and found.size == 0 and store.get("s3://lake/contract/empty") == b""


def test_a_listing_of_versions_has_the_current_one_of_what_is_there(store: ObjectStore, bucket: str) -> None:
    for key, body in (("v/b", b"old"), ("v/b", b"newer"), ("v/a b+c,ü", b"1"), ("other", b"")):
        store.put(f"{bucket}/{key}", body)
    found = list(store.list_versions(f"{bucket}/v/"))
    assert [(one.key, one.size) for one in found] == [("v/a b+c,ü", 1), ("v/b", 5)]
    assert all(one.version_id not in ("", "null") for one in found)


def test_what_was_deleted_has_no_current_version(s3_store: S3ObjectStore, moto: str) -> None:
    name, client = f"deleted-{uuid.uuid4().hex[:8]}", client_of(moto)
    client.create_bucket(Bucket=name)
    client.put_object(Bucket=name, Key="before", Body=b"1")
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    client.put_object(Bucket=name, Key="gone", Body=b"1")
    client.delete_object(Bucket=name, Key="gone")
    assert list(s3_store.list_versions(f"s3://{name}/")) == [ObjectVersion("before", 1, "null")]


# --- what a bucket says of itself -----------------------------------------------------------------------------------

RULES = [
    ReplicationRule("all", True, "", "lake-eu", priority=2),
    ReplicationRule("off", False, "", "lake-ap", priority=1),
]
LIFECYCLE = [
    LifecycleRule("deleted", True, "lake/", expires_noncurrent=True, expires_markers=True),
    LifecycleRule("old", False, "", expires_current=True),
    LifecycleRule("cold", True, "logs/", tagged=True, archives_current="DEEP_ARCHIVE"),
]


@pytest.fixture
def bucket(store: ObjectStore, moto: str) -> str:
    """A bucket with versions and two rules."""
    name = f"ruled-{uuid.uuid4().hex[:8]}"
    if isinstance(store, FakeStore):
        store.bucket_versioning[name], store.rules[name], store.lifecycle[name] = "Enabled", RULES, LIFECYCLE
        return f"s3://{name}"
    client = connect(S3ObjectStore, moto)._client
    client.create_bucket(Bucket=name)
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    client.put_bucket_replication(Bucket=name, ReplicationConfiguration={"Role": "r", "Rules": list(map(rule, RULES))})
    client.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": AS_S3_TAKES_IT})
    return f"s3://{name}"


def rule(given: ReplicationRule) -> dict[str, object]:
    """As S3 takes it. moto forgets prefixes and delete markers: they have tests of their own."""
    status = "Enabled" if given.enabled else "Disabled"
    told = {"ID": given.id, "Status": status, "Priority": given.priority, "Filter": {"Prefix": given.prefix}}
    place = {"Bucket": f"arn:aws:s3:::{given.bucket}"}
    return told | {"DeleteMarkerReplication": {"Status": "Disabled"}, "Destination": place}


AS_S3_TAKES_IT: list[dict[str, Any]] = [
    {
        "ID": "deleted",
        "Status": "Enabled",
        "Filter": {"Prefix": "lake/"},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
        "Expiration": {"ExpiredObjectDeleteMarker": True},
    },
    {"ID": "old", "Status": "Disabled", "Prefix": "", "Expiration": {"Days": 90}},
    {
        "ID": "cold",
        "Status": "Enabled",
        "Filter": {"And": {"Prefix": "logs/", "Tags": [{"Key": "a", "Value": "b"}]}},
        "Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}, {"Days": 90, "StorageClass": "DEEP_ARCHIVE"}],
    },
]


def test_a_bucket_tells_its_versioning_and_its_replication(store: ObjectStore, bucket: str) -> None:
    assert store.versioning(bucket) == "Enabled"
    assert list(store.replication_rules(bucket)) == RULES
    assert list(store.lifecycle_rules(bucket)) == LIFECYCLE


@pytest.mark.parametrize(
    ("chosen", "prefix", "tagged"),
    [
        ({"Prefix": "lake/"}, "lake/", False),
        ({"Filter": {}}, "", False),
        ({"Filter": {"Prefix": "lake/"}}, "lake/", False),
        ({"Filter": {"Tag": {"Key": "a", "Value": "b"}}}, "", True),
        ({"Filter": {"And": {"Prefix": "lake/", "Tags": [{"Key": "a", "Value": "b"}]}}}, "lake/", True),
    ],
)
def test_a_rules_prefix_is_read_in_every_form(chosen: dict[str, Any], prefix: str, tagged: bool) -> None:
    told = {"ID": "r", "Status": "Enabled", "Destination": {"Bucket": "arn:minio:replication::1:eu"}, **chosen}
    store = connect(S3ObjectStore, "http://127.0.0.1:9")
    with mock.patch.object(store._client, "get_bucket_replication") as asked:
        asked.return_value = {"ReplicationConfiguration": {"Rules": [told]}}
        [found] = store.replication_rules("s3://lake")
    assert (found.id, found.enabled, found.prefix, found.bucket, found.tagged) == ("r", True, prefix, "eu", tagged)


@pytest.mark.parametrize(
    ("told", "markers"),
    [
        ({"Filter": {}, "DeleteMarkerReplication": {"Status": "Enabled"}}, True),
        ({"Filter": {}, "DeleteMarkerReplication": {"Status": "Disabled"}}, False),
        ({"Filter": {}}, False),
        ({"Prefix": ""}, True),
        ({"Prefix": "", "DeleteMarkerReplication": {"Status": "Disabled"}}, False),
    ],
)
def test_rules_of_the_older_form_bring_delete_markers_untold(told: dict[str, Any], markers: bool) -> None:
    rule = {"ID": "r", "Status": "Enabled", "Destination": {"Bucket": "arn:aws:s3:::eu"}, **told}
    assert replication_rule(rule).delete_markers is markers


@pytest.mark.parametrize(
    ("told", "field", "value"),
    [
        ({"Expiration": {"Date": "2030-01-01"}}, "expires_current", True),
        ({"Expiration": {"ExpiredObjectDeleteMarker": True}}, "expires_current", False),
        (
            {"NoncurrentVersionExpiration": {"NoncurrentDays": 1, "NewerNoncurrentVersions": 1}},
            "expires_noncurrent",
            False,
        ),
        ({"Transitions": [{"Days": 1, "StorageClass": "GLACIER_IR"}]}, "archives_current", ""),
        ({"Filter": {"ObjectSizeGreaterThan": 0}}, "sized", True),
        ({"Filter": {"And": {"Prefix": "lake/", "ObjectSizeLessThan": 9}}}, "sized", True),
        ({"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}, "expires_noncurrent", False),
    ],
)
def test_what_a_lifecycle_rule_does_is_read_from_what_it_names(told: dict[str, Any], field: str, value: object) -> None:
    assert getattr(lifecycle_rule({"ID": "r", "Status": "Enabled", **told}), field) == value


def test_a_bucket_without_any_says_so(store: ObjectStore) -> None:
    assert store.versioning("s3://lake/some/prefix") == ""
    assert list(store.replication_rules("s3://lake")) == []
    assert list(store.lifecycle_rules("s3://lake")) == []


def test_a_stores_clock_is_read_from_its_answers(store: ObjectStore) -> None:
    for address in ("s3://lake", "s3://no-such-bucket"):
        assert abs(store.clock_ahead(address)) < 1


# --- S3's own --------------------------------------------------------------------------------------------------------


def test_a_long_listing_comes_in_pages_without_gap_or_repetition(double: S3Double, shaky: S3ObjectStore) -> None:
    names = [f"many/{number:05d}" for number in range(2500)]
    for name in names:
        double.claim(name, Thing(1, "e"))
    assert [one.key for one in shaky.list("s3://lake/many/")] == names
    assert double.asked["LIST"] == 3


def test_archived_and_restored_objects_are_told_apart(s3_store: S3ObjectStore) -> None:
    frozen, thawed = s3_store.head("s3://lake/cold/frozen"), s3_store.head("s3://lake/cold/thawed")
    assert frozen is not None and (frozen.storage_class, frozen.restored) == ("GLACIER", False)
    assert thawed is not None and (thawed.storage_class, thawed.restored) == ("GLACIER", True)


def test_what_is_archived_is_given_to_nobody_and_says_so(s3_store: S3ObjectStore) -> None:
    for read in (s3_store.get, s3_store.md5):
        with pytest.raises(Archived, match="InvalidObjectState"):
            read("s3://lake/cold/frozen")
    assert s3_store.get("s3://lake/cold/thawed") == b"water"


def test_another_refusal_is_not_taken_for_an_archive(double: S3Double, shaky: S3ObjectStore) -> None:
    double.fault = lambda method, key: 403
    with pytest.raises(Denied) as caught:
        shaky.get("s3://lake/a")
    assert not isinstance(caught.value, Archived)
    assert "It needs s3:GetObject there" in caught.value.hint and caught.value.permanent == "permission_denied"


@pytest.mark.parametrize(
    ("code", "message"),
    [("KMS.DisabledException", "key"), ("AccessDenied", "not authorized to perform: kms:Decrypt on k")],
)
def test_an_encryption_key_that_is_refused_is_named(code: str, message: str) -> None:
    error = answer_error(400 if code.startswith("KMS") else 403, code, message, "get s3://b/k", "S3 in us-east-1")
    assert isinstance(error, Denied)
    assert "kms:Decrypt" in error.hint


def test_a_listing_tells_the_storage_class(s3_store: S3ObjectStore) -> None:
    assert {one.key: one.storage_class for one in s3_store.list("s3://lake/cold/")}["cold/frozen"] == "GLACIER"


def test_a_bucket_that_does_not_exist_is_not_found(s3_store: S3ObjectStore) -> None:
    with pytest.raises(NoBucket, match="NoSuchBucket") as caught:
        s3_store.get("s3://no-such-bucket/x")
    assert "Create the bucket" in caught.value.hint
    with pytest.raises(NotFound):
        list(s3_store.list("s3://no-such-bucket/"))


@pytest.mark.parametrize("uri", ["gs://lake/a", "lake/a", "s3://", "s3:///a", ""])
def test_an_address_that_is_not_s3_is_invalid(uri: str) -> None:
    with pytest.raises(Invalid):
        split_uri(uri)


def test_an_address_keeps_every_character_of_its_key() -> None:
    assert split_uri("s3://lake/a?b#c//d%20") == ("lake", "a?b#c//d%20")


def test_a_store_that_is_not_there_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for kind in S3_STORES:
        with pytest.raises(Unreachable):
            connect(kind, endpoint, tries=1).clock_ahead("s3://lake")
        with pytest.raises(Unreachable):
            connect(kind, endpoint, tries=1).head("s3://lake/a")
        with pytest.raises(Unreachable):
            connect(kind, endpoint, tries=1).get("s3://lake/a")
        with pytest.raises(Unreachable):
            list(connect(kind, endpoint, tries=1).list("s3://lake/a"))


@pytest.mark.parametrize(
    ("status", "raised"),
    [(403, Denied), (401, Unauthenticated), (503, Throttled), (500, RemoteFailure), (0, Unreachable)],
)
def test_a_refusal_is_an_error_and_never_an_absence(
    double: S3Double, shaky: S3ObjectStore, status: int, raised: type[Exception]
) -> None:
    double.fault = lambda method, key: status
    with pytest.raises(raised):
        shaky.head("s3://lake/a")
    with pytest.raises(raised):
        shaky.get("s3://lake/a")
    with pytest.raises(raised):
        list(shaky.list("s3://lake/a"))
    for ask in (shaky.versioning, shaky.replication_rules, shaky.lifecycle_rules):
        with pytest.raises(raised):
            ask("s3://lake")


@pytest.mark.parametrize("told", [{}, {"x-minio-error-code": "SlowDownRead"}])
def test_a_key_without_its_quorum_is_a_failure_and_no_store_in_haste(told: dict[str, str]) -> None:
    answer = SimpleNamespace(status=503, data=b"", headers=told)
    store = connect(FastObjectStore, "http://127.0.0.1:1", tries=1)
    with mock.patch.object(store, "_by_path", return_value=answer), pytest.raises(LakeMirrorError) as caught:
        store.head("s3://lake/a")
    assert type(caught.value) is (RemoteFailure if told else Throttled)


def test_a_refusal_tells_the_time_all_the_same(double: S3Double, shaky: S3ObjectStore) -> None:
    double.fault = lambda method, key: 403
    assert abs(shaky.clock_ahead("s3://lake")) < 1


@pytest.mark.parametrize("status", [500, 503, 0])
def test_a_passing_failure_is_tried_again(double: S3Double, shaky: S3ObjectStore, status: int) -> None:
    double.put("a", b"here")
    failures = {"HEAD": 1, "GET": 1, "LIST": 1}

    def once(method: str, key: str) -> int | None:
        failures[method] -= 1
        return status if failures[method] >= 0 else None

    double.fault = once
    assert shaky.head("s3://lake/a") is not None
    assert shaky.get("s3://lake/a") == b"here"
    assert [one.key for one in shaky.list("s3://lake/")] == ["a"]


def test_a_refusal_that_stays_is_not_tried_again(double: S3Double, shaky: S3ObjectStore) -> None:
    double.fault = lambda method, key: 403
    with pytest.raises(Denied):
        shaky.head("s3://lake/a")
    assert double.asked["HEAD"] == 1


def test_a_page_starts_after_a_key(double: S3Double) -> None:
    for name in ("a", "b", "c"):
        double.put(f"p/{name}", name.encode())
    store = connect(FastObjectStore, double.endpoint)
    assert isinstance(store, FastObjectStore)
    assert store.page("s3://lake/p/", "p/a").keys == ["p/b", "p/c"]


def test_requests_are_counted_with_their_repetitions(double: S3Double) -> None:
    store = connect(FastObjectStore, double.endpoint, tries=2)
    double.fault = lambda method, key: 500
    with pytest.raises(RemoteFailure):
        store.head("s3://lake/a")
    assert isinstance(store, FastObjectStore) and store.requests == 2


def test_the_region_s_own_credentials_come_before_the_general_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    general = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s"}
    own = {"LAKEMIRROR_STORE_EU_WEST_1_ACCESS_KEY_ID": "B", "LAKEMIRROR_STORE_EU_WEST_1_SECRET_ACCESS_KEY": "t"}
    monkeypatch.setattr("os.environ", general | own)
    assert keys_from_environment("eu-west-1") == StoreKeys("B", "t")
    assert keys_from_environment("us-east-1") == StoreKeys("A", "s")
    monkeypatch.setattr("os.environ", {})
    assert keys_from_environment("us-east-1") is None


def test_credentials_do_not_show() -> None:
    assert "hidden" not in repr(StoreKeys("A", "hidden", "hidden"))
