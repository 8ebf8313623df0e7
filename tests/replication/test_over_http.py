"""Rules on a real S3 server: parts, headers, ETags, events; one store on both sides, and two."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from unittest import mock

import boto3
import pytest
from django.test import Client

from adapters.places.reader import PlaceReader, time_of
from adapters.s3.fast_store import FastObjectStore
from core.replicating.merging import Listed
from deployment import config
from replication.models import Rule, Touched
from tests import ceph, minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.world import AWAY, HOME, World
from tests.s3_double import KEYS, running_moto

pytestmark = pytest.mark.django_db
MIB = 1 << 20
real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")


class Server(NamedTuple):
    """A real S3 server, as far as moto is one."""

    endpoint: str
    keys: Mapping[str, str]
    odd_keys: Sequence[str]
    """Keys that not every server takes."""
    name: str


SERVERS = ["moto", pytest.param("minio", marks=real_minio), pytest.param("ceph", marks=ceph.real_ceph)]


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """moto, a MinIO whose binary LAKEMIRROR_TEST_MINIO names, or the gateway that LAKEMIRROR_TEST_CEPH names."""
    if request.param == "moto":
        with running_moto() as endpoint:
            yield Server(endpoint, KEYS, ("x/../y", "k" * 1024), "moto")
        return
    if request.param == "ceph":
        yield Server(ceph.ENDPOINT, ceph.KEYS, ("x/../y", "k" * 1024, "//", "a//b", "\u2028", "line\nfeed"), "ceph")
        return
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    minio = minio_pair.Minio(tmp_path_factory.mktemp("minio"))
    try:
        yield Server(minio.endpoint, keys, ("/".join(["k" * 200] * 5),), "minio")
    finally:
        minio.stop()


@pytest.fixture
def s3(server: Server) -> Any:
    """Its client, and the buckets `src` and `out`, empty."""
    pair = {f"aws_{name}": value for name, value in server.keys.items()}
    client = boto3.client("s3", endpoint_url=server.endpoint, region_name=HOME, **pair)
    for bucket in ("src", "out"):
        with suppress(client.exceptions.BucketAlreadyOwnedByYou):
            client.create_bucket(Bucket=bucket)
        for item in client.list_objects_v2(Bucket=bucket).get("Contents", ()):
            client.delete_object(Bucket=bucket, Key=item["Key"])
        if server.name != "moto":  # which fails to remove markers
            cleaned(client, bucket)
    return client


def cleaned(client: Any, bucket: str) -> None:
    """Nothing is left of what versioning keeps."""
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for item in [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]:
            client.delete_object(Bucket=bucket, Key=item["Key"], VersionId=item["VersionId"])


@pytest.fixture(params=["one store", "two stores"])
def r(request: pytest.FixtureRequest, lm: Deployment, server: Server, s3: Any) -> Iterator[World]:
    """Rules on that server: the store copies within itself, or the bytes come through here."""
    store = FastObjectStore(endpoint=server.endpoint, region=HOME, force_path_style=True, **server.keys)
    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda *_: request.param == "one store"),
    ):
        yield World(lm)


def heads(s3: Any, bucket: str) -> dict[str, dict[str, Any]]:
    """What HEAD tells of each object that is data."""
    names = ("ETag", "ContentLength", "ContentType", "Metadata", "CacheControl", "ContentEncoding")
    found = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", ()):
            if not item["Key"].startswith("_lakemirror/"):
                told = s3.head_object(Bucket=bucket, Key=item["Key"])
                found[item["Key"]] = {name: told.get(name) for name in names}
    return found


def in_parts(s3: Any, key: str, *sizes: int, bucket: str = "src") -> None:
    """An object of the source in parts of these sizes."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key, ContentType="video/x")["UploadId"]
    parts = []
    for number, size in enumerate(sizes, 1):
        body = bytes([number]) * size
        part = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=body)
        parts.append({"ETag": part["ETag"], "PartNumber": number})
    s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts})


def test_objects_arrive_with_their_parts_and_headers(r: World, s3: Any, server: Server) -> None:
    keys = ["a b+c%20/é", "x/", "empty", *server.odd_keys]
    for key in keys:
        body = b"" if key == "empty" else key.encode()
        s3.put_object(Bucket="src", Key=key, Body=body, ContentType="text/x", Metadata={"m": "1"})
    in_parts(s3, "parts", 5 * MIB, 5 * MIB, 12_345)
    r.rule(pinned=False)
    r.work(1)
    assert heads(s3, "out") == heads(s3, "src")
    assert r.rows() == [] and r.link().sent_objects == len(keys) + 1
    sent = r.link().sent_objects
    r.later(0)
    Rule.objects.update(scan_wanted=True)
    r.work(1)
    assert Rule.objects.get().cycle == 2
    assert r.link().sent_objects == sent
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="out")


def test_keys_that_stores_may_put_in_another_order(r: World, s3: Any, server: Server) -> None:
    keys = ["a/x", "a-b", "a.b", "a0", "a/-", "b", "b!", "\uffee", "\U0001f600", "z\u0301", "\u00e9", "é/"]
    keys += [] if server.name == "minio" else ["b/c", "b/c/d"]  # MinIO lists nothing below the name of an object
    for number, key in enumerate(keys):
        s3.put_object(Bucket="src", Key=key, Body=b"%d" % number)
    r.rule(pinned=False)
    r.work(1)
    assert heads(s3, "out") == heads(s3, "src") and r.link().sent_objects == len(keys)
    Rule.objects.update(scan_wanted=True)
    r.work(1)
    assert r.link().sent_objects == len(keys) and r.rows() == [] and Rule.objects.get().cycle == 2


def test_what_is_there_already_is_not_sent(r: World, s3: Any) -> None:
    for number in range(20):
        s3.put_object(Bucket="src", Key=f"k{number:02}", Body=b"%d" % number)
    for number in range(0, 20, 2):
        s3.put_object(Bucket="out", Key=f"k{number:02}", Body=b"%d" % number)
    r.rule(pinned=False)
    r.work(1)
    assert r.link().sent_objects == 10
    assert {key: told["ETag"] for key, told in heads(s3, "out").items()} == {
        key: told["ETag"] for key, told in heads(s3, "src").items()
    }


def test_a_place_is_read_by_the_names_below_it(s3: Any, server: Server) -> None:
    for key in ("p/a", "p/", "p/b/c", "pp"):
        s3.put_object(Bucket="src", Key=key, Body=b"1")
    store = FastObjectStore(endpoint=server.endpoint, region=HOME, force_path_style=True, **server.keys)
    place = PlaceReader(store, "s3://src/p/")
    etag = "c4ca4238a0b923820dcc509a6f75849b"
    assert place.listing("").items == [Listed("a", 1, etag), Listed("b/c", 1, etag)]
    assert [item.key for item in place.listing("a").items] == ["b/c"]
    dated = place.listing("a", dated=True).items[0]
    seen = place.head("b/c")
    assert seen is not None and seen.modified is not None and seen.info.etag == etag
    listed = time_of(dated.modified)
    assert listed is not None and abs((listed - seen.modified).total_seconds()) <= 1
    assert place.head("none") is None
    place.answers()
    assert time_of("") is None


def test_an_event_of_the_store_has_the_key_looked_at(r: World, s3: Any) -> None:
    rule = r.rule(uri="s3://src/p", pinned=False)
    r.work(1)
    s3.put_object(Bucket="src", Key="p/a b+c", Body=b"1")
    s3.put_object(Bucket="src", Key="q", Body=b"1")
    records = [_record("src", "p/a+b%2Bc"), _record("src", "p/a+b%2Bc"), _record("src", "q"), _record("no", "p/x")]
    told = _told(HOME, records)
    assert "of replication rules noted" in told["message"]
    assert ("replication-scan", -rule.pk) in r.lm.woken
    assert "a b+c" in {bytes(row.key).decode() for row in Touched.objects.all()}
    r.work(1)
    assert list(heads(s3, "out")) == ["a b+c"]
    assert not Touched.objects.exists() and Rule.objects.get().cycle == 1


def test_events_of_other_regions_are_nobodys(r: World) -> None:
    r.rule(pinned=False)
    assert _told(AWAY, [_record("src", "a")])["message"] == "checking 0 missing objects now"
    assert not Touched.objects.exists()


def _record(bucket: str, key: str) -> dict[str, Any]:
    return {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}


def _told(region: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    secret = str(config.current().hook_secret(region))
    answer = Client().post(
        f"/hooks/s3/{region}",
        json.dumps({"Records": records}),
        content_type="application/json",
        headers={"authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 202, answer.content
    told: dict[str, Any] = answer.json()
    return told
