"""Events as real stores send them: a key of all kinds is the same object each time; doubled, reversed and lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from unittest import mock
from uuid import uuid4

import boto3
import pytest
from django.test import Client

from adapters.s3.fast_store import FastObjectStore
from core.replicating.eligible import is_own
from deployment import config
from replication.models import Touched
from tests import ceph, minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.world import HOME, World

pytestmark = pytest.mark.django_db
real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
KEYS = ["a b+c%20/é", "%2B", "d/", "plain", "~!*'()&=;:@,$#?"]
SECONDS = 20.0
"""MinIO posts its queue each 3 s."""


class Heard:
    """What a store posts. `status`: what it is answered; what was refused is not kept."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.refused, self.status = 0, 200

    def take(self, body: bytes) -> int:
        if self.status == 200:
            self.bodies.append(json.loads(body))
        else:
            self.refused += 1
        return self.status

    def wait(self, number: int) -> None:
        """Until so many records have come."""
        until = time.monotonic() + SECONDS
        while sum(len(body.get("Records") or ()) for body in self.bodies) < number and time.monotonic() < until:
            time.sleep(0.05)


@contextmanager
def listening() -> Iterator[tuple[str, Heard]]:
    heard = Heard()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = heard.take(self.rfile.read(int(self.headers.get("content-length", 0))))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        do_HEAD = do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", heard
    finally:
        server.shutdown()
        server.server_close()


class Telling(NamedTuple):
    """A store that tells of what is put into the bucket."""

    store: FastObjectStore
    s3: Any
    bucket: str
    heard: Heard


@pytest.fixture(scope="module")
def ears() -> Iterator[tuple[str, Heard]]:
    with listening() as made:
        yield made


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory, ears: tuple[str, Heard]) -> Iterator[minio_pair.Minio]:
    of = "MINIO_NOTIFY_WEBHOOK_{}_T".format
    told = {of("ENABLE"): "on", of("ENDPOINT"): ears[0], of("QUEUE_DIR"): str(tmp_path_factory.mktemp("queue"))}
    server = minio_pair.Minio(tmp_path_factory.mktemp("minio"), more=told)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(params=[pytest.param("minio", marks=real_minio), pytest.param("ceph", marks=ceph.real_ceph)])
def telling(request: pytest.FixtureRequest, ears: tuple[str, Heard]) -> Telling:
    address, heard = ears
    heard.bodies, heard.refused, heard.status = [], 0, 200
    bucket, events = f"told-{uuid4().hex[:12]}", ["s3:ObjectCreated:*"]
    if request.param == "minio":
        server: minio_pair.Minio = request.getfixturevalue("minio")
        s3, endpoint = server.s3, server.endpoint
        keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
        s3.create_bucket(Bucket=bucket)
        told = {"QueueConfigurations": [{"QueueArn": "arn:minio:sqs::T:webhook", "Events": events}]}
    else:
        s3, endpoint, keys = ceph.client(), ceph.ENDPOINT, ceph.KEYS
        s3.create_bucket(Bucket=bucket)
        pair = {f"aws_{name}": value for name, value in keys.items()}
        sns = boto3.client("sns", endpoint_url=endpoint, region_name="default", **pair)
        arn = sns.create_topic(Name=bucket, Attributes={"push-endpoint": address})["TopicArn"]
        told = {"TopicConfigurations": [{"Id": "t", "TopicArn": arn, "Events": events}]}
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=told)
    store = FastObjectStore(endpoint=endpoint, region=HOME, force_path_style=True, **keys)
    return Telling(store, s3, bucket, heard)


@pytest.fixture
def t(lm: Deployment, telling: Telling) -> Iterator[World]:
    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: telling.store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: telling.store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: False),
    ):
        yield World(lm)


def hook(body: dict[str, Any]) -> None:
    """What a store posted comes to LakeMirror."""
    secret = str(config.current().hook_secret(HOME))
    headers = {"authorization": f"Bearer {secret}"}
    answer = Client().post(f"/hooks/s3/{HOME}", json.dumps(body), content_type="application/json", headers=headers)
    assert answer.status_code == 202, answer.content


def keys_of(s3: Any, bucket: str) -> set[str]:
    found = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {one["Key"] for one in found if not is_own(one["Key"])}


def test_11_a_key_is_the_same_object_whoever_tells_of_it_10_doubled_and_reversed(t: World, telling: Telling) -> None:
    out = f"{telling.bucket}-out"
    telling.s3.create_bucket(Bucket=out)
    t.rule((HOME, f"s3://{out}"), uri=f"s3://{telling.bucket}", pinned=False)
    t.work(1)
    for key in KEYS:
        telling.s3.put_object(Bucket=telling.bucket, Key=key, Body=key.encode())
    telling.heard.wait(len(KEYS))
    for body in [*reversed(telling.heard.bodies), *telling.heard.bodies]:
        hook(body)
    assert set(KEYS) <= {bytes(row.key).decode() for row in Touched.objects.all()}
    t.work(1)
    assert keys_of(telling.s3, out) == set(KEYS) and t.rows() == [] and not Touched.objects.exists()
    assert t.link().sent_objects == len(KEYS)


def test_10_events_that_we_answered_with_an_error_come_again_or_are_made_good(t: World, telling: Telling) -> None:
    out = f"{telling.bucket}-out"
    telling.s3.create_bucket(Bucket=out)
    t.rule((HOME, f"s3://{out}"), uri=f"s3://{telling.bucket}", pinned=False)
    t.work(1)
    telling.heard.status = 500
    telling.s3.put_object(Bucket=telling.bucket, Key="k", Body=b"1")
    until = time.monotonic() + SECONDS
    while not telling.heard.refused and time.monotonic() < until:
        time.sleep(0.05)
    assert telling.heard.refused
    telling.heard.status = 200
    telling.s3.put_object(Bucket=telling.bucket, Key="later", Body=b"1")
    telling.heard.wait(1)
    for body in telling.heard.bodies:
        hook(body)
    t.work(1)
    assert keys_of(telling.s3, out) >= {"later"}
    t.link().rule.__class__.objects.update(scan_wanted=True)
    t.work(1)
    assert keys_of(telling.s3, out) == {"k", "later"}


@pytest.mark.parametrize("telling", [pytest.param("minio", marks=real_minio)], indirect=True)
def test_tags_and_locks_of_an_older_version_are_told_and_arrive(t: World, telling: Telling) -> None:
    src, out = (f"{telling.bucket}-{name}" for name in ("locked", "out"))
    for bucket in (src, out):
        telling.s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    told = {"QueueArn": "arn:minio:sqs::T:webhook", "Events": ["s3:ObjectCreated:*"]}
    events = {"QueueConfigurations": [told]}
    telling.s3.put_bucket_notification_configuration(Bucket=src, NotificationConfiguration=events)
    old = {"Bucket": src, "Key": "k", "VersionId": telling.s3.put_object(Bucket=src, Key="k", Body=b"1")["VersionId"]}
    telling.s3.put_object(Bucket=src, Key="k", Body=b"2")
    rule = t.rule((HOME, f"s3://{out}"), uri=f"s3://{src}", pinned=False, versions="all", metadata="all")
    rule.links.update(exact=True)
    t.work(1)
    telling.heard.wait(2)
    telling.heard.bodies.clear()
    telling.s3.put_object_tagging(**old, Tagging={"TagSet": [{"Key": "t", "Value": "1"}]})
    telling.s3.put_object_legal_hold(**old, LegalHold={"Status": "ON"})
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    telling.s3.put_object_retention(**old, Retention={"Mode": "GOVERNANCE", "RetainUntilDate": until})
    telling.heard.wait(3)
    for body in telling.heard.bodies:
        hook(body)
    assert Touched.objects.filter(beside=True).exists()
    t.work(1)
    copy = old | {"Bucket": out}
    head = telling.s3.head_object(**copy)
    assert (head["ObjectLockLegalHoldStatus"], head["ObjectLockRetainUntilDate"]) == ("ON", until)
    assert telling.s3.get_object_tagging(**copy)["TagSet"] == [{"Key": "t", "Value": "1"}]
    assert len(telling.s3.list_object_versions(Bucket=out, Prefix="k")["Versions"]) == 2 and t.rows() == []
