"""Rules between two real MinIO servers: one of them stops, or answers for the other one."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from adapters.s3.fast_store import FastObjectStore
from core.replicating.eligible import is_own
from db import clock
from deployment.wiring.replication_jobs import quick_place_of
from replication.models import Link, Rule
from replication.status.objects import look_at
from replication.status.rules import rule_reading
from replication.transitions import touching
from tests import minio_pair
from tests.mirrors.harness import Deployment
from tests.replication.world import AWAY, FAR, HOME, World

real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
pytestmark = [pytest.mark.django_db, real_minio]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[minio_pair.Minio, minio_pair.Minio]]:
    with minio_pair.minio_pair(tmp_path_factory.mktemp("minio")) as pair:
        yield pair


class Two(World):
    """`one` is the server of HOME and FAR, `two` that of AWAY; a bucket for each region."""

    def __init__(self, lm: Deployment, one: minio_pair.Minio, two: minio_pair.Minio) -> None:
        super().__init__(lm)
        self.one, self.two = one, two
        self.at = {region: f"{region[:2]}-{uuid4().hex[:12]}" for region in (HOME, AWAY, FAR)}
        for region, bucket in self.at.items():
            self.of(region).bucket(bucket)

    def of(self, region: str) -> minio_pair.Minio:
        return self.two if region == AWAY else self.one

    def lead(self, *targets: str, **more: Any) -> Rule:
        of = [(region, f"s3://{self.at[region]}") for region in targets]
        return self.rule(*of, uri=f"s3://{self.at[HOME]}", pinned=False, **more)

    def fill(self, number: int) -> None:
        for at in range(number):
            self.one.s3.put_object(Bucket=self.at[HOME], Key=f"k{at:02}", Body=b"%d" % at)

    def keys(self, region: str) -> list[str]:
        found = self.of(region).s3.list_objects_v2(Bucket=self.at[region]).get("Contents", [])
        return [one["Key"] for one in found if not is_own(one["Key"])]

    def states(self) -> list[tuple[str, int]]:
        reading = rule_reading(Rule.objects.get(), clock.now())
        return [(link.link.health, link.pending) for link in reading.links]


@pytest.fixture
def t(lm: Deployment, servers: tuple[minio_pair.Minio, minio_pair.Minio]) -> Iterator[Two]:
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    one, two = (
        FastObjectStore(endpoint=server.endpoint, region=HOME, force_path_style=True, tries=1, **keys)
        for server in servers
    )

    def store(region: str, workers: int = 0) -> FastObjectStore:
        return two if region == AWAY else one

    with (
        mock.patch("deployment.wiring.replication_jobs._store", store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: False),
        mock.patch("deployment.wiring.replication_jobs.quick_place_of", quick_place_of),
    ):
        yield Two(lm, *servers)


def test_2_a_target_that_is_stopped_keeps_the_others_going_and_catches_up(t: Two) -> None:
    t.lead(AWAY, FAR)
    t.fill(10)
    t.work(1)
    assert t.keys(AWAY) == t.keys(FAR) == t.keys(HOME)
    t.two.stop()
    try:
        t.fill(30)
        touching.objects_changed(HOME, {(t.at[HOME], f"k{number:02}") for number in range(10, 30)})
        for _ in range(4):
            t.work(1)
        assert t.keys(FAR) == t.keys(HOME) and len(t.keys(FAR)) == 30
        (down, pending), (up, none) = t.states()
        assert (down, up, none) == ("down", "up", 0) and pending == 20
        of_one = look_at(Rule.objects.get(), "k15").targets
        assert [target.standing for target in of_one] == ["UNKNOWN", "VERIFIED"]
        assert of_one[0].open is not None and of_one[0].open.status == "pending"
        assert {row.attempts for row in t.rows(1)} == {0}, "an outage is no object's failure"
    finally:
        t.two.start()
    Link.objects.update(probe_at=t.link().rule.created_at)
    t.work(2)
    assert t.keys(AWAY) == t.keys(HOME) and t.states() == [("up", 0), ("up", 0)]


def copier(t: Two) -> subprocess.Popen[bytes]:
    """A worker in a process of its own, which can be killed; it has just begun."""
    told = [t.one.endpoint, t.at[HOME], t.two.endpoint, t.at[AWAY], minio_pair.KEY, minio_pair.SECRET]
    command = [sys.executable, "-m", "tests.replication.killed_copier", *told]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"begins\n"
    return process


def test_4_a_worker_that_is_killed_leaves_nothing_half_visible_and_no_parts_once_another_is_through(t: Two) -> None:
    bodies = {f"k{number}": bytes([number]) * ((12 << 20) * (number % 2) + 1000) for number in range(8)}
    for key, body in bodies.items():
        if len(body) < 5 << 20:
            t.one.s3.put_object(Bucket=t.at[HOME], Key=key, Body=body)
        else:
            t.one.s3.upload_fileobj(io.BytesIO(body), t.at[HOME], key, Config=TransferConfig(5 << 20, 2, 5 << 20))
    there = []
    for seconds in (0.05, 0.1, 0.15, 0.2, 0.3):
        process = copier(t)
        time.sleep(seconds)
        process.kill()
        process.wait()
        there.append(len(t.keys(AWAY)))
        for key in t.keys(AWAY):
            found = t.two.s3.head_object(Bucket=t.at[AWAY], Key=key)
            assert found["ContentLength"] == len(bodies[key]), "nothing half visible"
    assert there[0] < len(bodies), "it was killed in the middle"
    process = copier(t)
    assert process.wait(120) == 0
    heads = [
        {key: server.s3.head_object(Bucket=t.at[region], Key=key)["ETag"] for key in bodies}
        for server, region in ((t.one, HOME), (t.two, AWAY))
    ]
    assert heads[0] == heads[1]
    for key, body in bodies.items():
        assert t.two.s3.get_object(Bucket=t.at[AWAY], Key=key)["Body"].read() == body
        assert "Uploads" not in t.two.s3.list_multipart_uploads(Bucket=t.at[AWAY], Prefix=key)


def test_22_a_target_that_is_killed_in_the_middle_of_an_object_goes_on_where_it_was(t: Two) -> None:
    body, where = b"".join(bytes([number]) * (5 << 20) for number in range(8)), {"Bucket": t.at[HOME], "Key": "large"}
    upload = t.one.s3.create_multipart_upload(**where)["UploadId"]
    parts = []
    for number in range(8):
        data = body[number * (5 << 20) : (number + 1) * (5 << 20)]
        tag = t.one.s3.upload_part(**where, UploadId=upload, PartNumber=number + 1, Body=data)["ETag"]
        parts.append({"ETag": tag, "PartNumber": number + 1})
    t.one.s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
    t.lead(AWAY)
    sent: list[str] = []
    real = FastObjectStore.send

    def send(store: FastObjectStore, method: str, url: str, *more: Any, **named: Any) -> Any:
        if method == "PUT" and "partNumber=" in url:
            sent.append(url)
            if len(sent) == 5:
                t.two.stop()
        return real(store, method, url, *more, **named)

    with mock.patch.object(FastObjectStore, "send", send):
        t.work(1)
        assert t.rows()[0].status == "pending"
        t.two.start()
        assert t.keys(AWAY) == [], "nothing half visible"
        before = len(sent)
        Link.objects.update(probe_at=t.link().rule.created_at)
        t.link().open_objects.update(next_try=t.link().rule.created_at)
        t.work(2)
    assert t.rows() == [] and len(sent) - before < 8, "parts that were there are not sent again"
    found = t.two.s3.get_object(Bucket=t.at[AWAY], Key="large")
    assert found["Body"].read() == body and found["ETag"] == t.one.s3.head_object(**where)["ETag"]
    assert "Uploads" not in t.two.s3.list_multipart_uploads(Bucket=t.at[AWAY], Prefix="large")


def test_12_what_a_target_answers_for_the_other_site_is_not_taken_for_there(t: Two) -> None:
    home, away = t.at[HOME], t.at[AWAY]
    t.two.rule(away, t.two.replicate_to(t.one, away, home))
    t.fill(5)
    assert t.two.s3.get_object(Bucket=away, Key="k00")["Body"].read() == b"0", "it does answer for the other site"
    t.lead(AWAY)
    t.work(2)
    assert t.keys(AWAY) == t.keys(HOME)
    own = {"X-Minio-Source-Proxy-Request": "false"}
    for number in range(5):
        t.two.ask("GET", f"/{away}/k{number:02}", more=own)
    with pytest.raises((AssertionError, ClientError)):
        t.two.ask("GET", f"/{away}/k99", more=own)
