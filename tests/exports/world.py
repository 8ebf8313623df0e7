"""A deployment with an S3 server to export to: real metadata and copies, fake installations, no queue, no Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import boto3
from django.db.models.functions import Now

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store import S3ObjectStore
from adapters.s3.store_keys import StoreKeys, remember_keys
from deployment import config
from deployment.config_sections import StoreCredentials
from exports.models import Export
from exports.services.exports import Wish, export_set
from jobs import duties
from jobs.models import Duty
from spark_jobs.check.settings import store_at
from tests.fakes import Lake
from tests.mirrors.harness import Deployment
from tests.s3_double import KEYS

REGION = "us-east-1"
PLACE = {"endpoint": "", "force_path_style": True}


class World:
    """A repository `lake` in us-east-1 whose bucket `src` is on a real server, and a bucket `out` to export to."""

    def __init__(self, lm: Deployment, endpoint: str) -> None:
        self.lm, self.endpoint = lm, endpoint
        self.client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id=KEYS["access_key_id"],
            aws_secret_access_key=KEYS["secret_access_key"],
        )
        for bucket in ("src", "out"):
            self.client.create_bucket(Bucket=bucket)
        options = {"endpoint": endpoint, "region": REGION, "force_path_style": True, **KEYS}
        self.store = S3ObjectStore(**options)
        self.fast = FastObjectStore(**options)
        lm.us.repositories.pop("lake", None)
        self.lake = Lake(lm.us, self.store)  # type: ignore[arg-type]

    def set(self, path: str = "s3://out/latest", *, branch: str = "main", name: str = "", **more: Any) -> Export:
        """Configure an export."""
        wish = Wish(path=path, **{"continuous": True, "status_path": "s3://out/states", **more})
        which = {"region": REGION, "repository": "lake", "branch": branch, "name": name}
        export, _ = export_set(actor=self.owner, **which, wish=wish)
        return export

    owner: Any = None

    def work(self, rounds: int = 6, holder: str = "worker-1") -> list[str]:
        """Let the duties of all exports run, due or not; what they said."""
        told = []
        for _ in range(rounds):
            for duty in Duty.objects.filter(kind="export"):
                Duty.objects.filter(pk=duty.pk).update(due_at=Now())
                told.append(duties.run(duty.pk, holder=holder))
        return told

    def there(self, prefix: str = "latest/") -> dict[str, bytes]:
        """What is at the destination, by key below the prefix."""
        found = {}
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket="out", Prefix=prefix):
            for item in page.get("Contents", ()):
                body = self.client.get_object(Bucket="out", Key=item["Key"])["Body"].read()
                found[item["Key"][len(prefix) :]] = body
        return found

    def put(self, key: str, data: bytes = b"theirs") -> None:
        """Somebody else's object at the destination."""
        self.client.put_object(Bucket="out", Key=key, Body=data)

    def tree(self, commit: str) -> dict[str, str]:
        """The files of a commit: path to the MD5 of its content."""
        return {path.decode(): entry.etag for path, entry in self.lake.trees[commit].items()}

    def problems(self, commit: str, *, foreign: tuple[str, ...] = (), prefix: str = "latest/") -> list[str]:
        """How the destination differs from a commit; markers and what is `foreign` left aside."""
        wanted = self.tree(commit)
        seen = {key: hashlib.md5(body).hexdigest() for key, body in self.there(prefix).items()}
        ours = {
            key: etag
            for key, etag in seen.items()
            if key not in foreign and (key in wanted or key.rpartition("/")[2] != "_lakefs_success")
        }
        return [
            f"{key}: {ours.get(key)} for {wanted.get(key)}"
            for key in sorted({*wanted, *ours})
            if ours.get(key) != wanted.get(key)
        ]


@contextmanager
def world(lm: Deployment, endpoint: str) -> Iterator[World]:
    """A world with the wiring pointed at it."""
    settings = config.current()
    store = config.Store(
        REGION, endpoint, True, StoreCredentials(KEYS["access_key_id"], config.Secret(KEYS["secret_access_key"]))
    )
    with (
        mock.patch.object(config.Config, "store", lambda self, region: store),
        mock.patch("deployment.wiring.clients.export_store", lambda region, uri: made.fast),
        mock.patch("deployment.wiring.clients.quick_export_store", lambda region, uri: made.fast),
        mock.patch("deployment.wiring.clients.objects", lambda region: made.store),
        mock.patch("deployment.wiring.clients.quick_objects", lambda region: made.store),
    ):
        made = World(lm, endpoint)
        remember_keys(REGION, StoreKeys(**KEYS))
        try:
            yield made
        finally:
            store_at.cache_clear()
    assert settings is config.current()
