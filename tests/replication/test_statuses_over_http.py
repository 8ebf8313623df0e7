"""What pages and API say to be open while somebody writes to a real MinIO, held against both sides at many moments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock
from uuid import uuid4

import pytest

from adapters.s3.fast_store import FastObjectStore
from core.replicating.eligible import is_own
from tests import minio_pair
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.replication.load import Load
from tests.replication.world import AWAY, HOME, World

real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
pytestmark = [pytest.mark.django_db, real_minio]


class InMinio:
    """Two buckets of a server."""

    def __init__(self, s3: Any) -> None:
        self.s3, self.bucket, self.out = s3, f"src-{uuid4().hex[:12]}", f"out-{uuid4().hex[:12]}"
        for name in (self.bucket, self.out):
            s3.create_bucket(Bucket=name)

    def put(self, key: str, data: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)

    def drop(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=key)

    def source(self) -> dict[str, str]:
        return self._listed(self.bucket)

    def target(self) -> dict[str, str]:
        return self._listed(self.out)

    def _listed(self, bucket: str) -> dict[str, str]:
        found = self.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        return {one["Key"]: one["ETag"].strip('"') for one in found if not is_own(one["Key"])}


@pytest.fixture
def minio(tmp_path: Any) -> Iterator[minio_pair.Minio]:
    server = minio_pair.Minio(tmp_path)
    try:
        yield server
    finally:
        server.stop()


def test_what_is_said_to_be_open_is_what_lacks(lm: Deployment, api: Api, minio: minio_pair.Minio) -> None:
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    store, w = FastObjectStore(endpoint=minio.endpoint, region=HOME, force_path_style=True, **keys), World(lm)
    sides = InMinio(minio.s3)
    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: store),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: store),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: False),
    ):
        w.rule((AWAY, f"s3://{sides.out}"), uri=f"s3://{sides.bucket}", pinned=False)
        load = Load(w, sides, api, 1, lost=0.3, moves=200)
        assert load.live(0.02) == []
    assert load.moments > 10 and load.busy > 2, (load.moments, load.busy)
