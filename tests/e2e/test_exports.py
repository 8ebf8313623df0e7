"""An export's whole life: lakeFS tells of commits by its webhook, and a store of another make may take the files.

The destination is the sandbox's own store, and where LAKEMIRROR_TEST_S3 names a server with its keys
(`http://key:secret@127.0.0.1:7480`; tried with Ceph's gateway, which checks signatures) that one as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
import yaml
from django.db.models.functions import Now

from core.installations.webhook_action import ACTION_FILE
from jobs import duties
from jobs.models import Duty
from mirrors.services.webhook_file import webhook_file
from rbac.models import User
from sandbox.client import Sandbox
from sandbox.lakefs_http import LakeFS
from tests.api import Api
from tests.e2e.conftest import HOOK_SECRET, forget

REAL = os.environ.get("LAKEMIRROR_TEST_S3", "")
MARKER = "_lakefs_success"
FIRST = {
    "plain.csv": b"one\n",
    "zero": b"",
    "logs/day=1/x y": b"\x00\xff bytes",
    "logs/day=1/a+b": b"plus",
    "logs/day=1/a%2Fb": b"percent",
    "logs/day=2/hash#tag": b"hash",
    "logs/day=2/q?x=1&y": b"question",
    "käse/日本": "käse".encode(),
    "folder/": b"a trailing slash",
    "big": bytes(range(256)) * 4096,
}
SECOND = {"plain.csv": b"two\n", "logs/day=3/new": b"new", "zero": None, "logs/day=2/q?x=1&y": None, "folder/": None}


@dataclass
class Destination:
    """A store with a bucket for status files, and one for the data that somebody has forgotten to make."""

    store: dict[str, Any]
    client: Any = field(init=False)
    data: str = field(default_factory=lambda: f"data-{uuid.uuid4().hex[:8]}")
    states: str = field(default_factory=lambda: f"states-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        keys = {f"aws_{name}": value for name, value in self.store["credentials"].items()}
        self.client = boto3.client("s3", endpoint_url=self.store["endpoint"], region_name=self.store["region"], **keys)
        self.client.create_bucket(Bucket=self.states)

    def read(self, bucket: str, prefix: str) -> dict[str, bytes]:
        """Everything below a prefix, by the rest of its key."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [one["Key"] for page in pages for one in page.get("Contents", ())]
        return {key[len(prefix) :]: self.client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


@pytest.fixture(params=["the region's own store", *(["another server"] if REAL else [])])
def destination(request: pytest.FixtureRequest, sandbox: Sandbox, configured: Path) -> Iterator[Destination]:
    source = sandbox.source
    here = {"region": source.name, "endpoint": source.s3_url, "force_path_style": True}
    made = Destination(here | {"credentials": _keys(sandbox.access_key_id, sandbox.secret_access_key)})
    if request.param == "another server":
        parts = urlsplit(REAL)
        there = {**here, "endpoint": f"{parts.scheme}://{parts.hostname}:{parts.port}"}
        made = Destination(there | {"credentials": _keys(parts.username or "", parts.password or "")})
        told = yaml.safe_load(configured.read_text()) | {
            "export_stores": dict.fromkeys((made.data, made.states), made.store)
        }
        configured.write_text(json.dumps(told))
        forget()
    yield made
    for bucket in (made.states, made.data):
        for key in made.read(bucket, ""):
            made.client.delete_object(Bucket=bucket, Key=key)
        made.client.delete_bucket(Bucket=bucket)


def _keys(key: str, secret: str) -> dict[str, str]:
    return {"access_key_id": key, "secret_access_key": secret}


class Exported:
    """A branch of the source, and its export as a program sees it."""

    def __init__(self, sandbox: Sandbox, api: Api, there: Destination) -> None:
        self.api, self.there, self.repo = api, there, f"lake-{uuid.uuid4().hex[:8]}"
        self.lakefs = LakeFS(sandbox.source.lakefs_url)
        self.lakefs.create_repository(self.repo, f"s3://{sandbox.source.bucket}/{self.repo}")
        self.files: dict[str, bytes] = {}

    def commit(self, files: dict[str, bytes | None]) -> str:
        """Upload or remove files, and commit that."""
        for path, body in files.items():
            if body is None:
                self.lakefs.delete(self.repo, "main", path)
            else:
                self.lakefs.upload(self.repo, "main", path, body)
        kept = {**self.files, **files}
        self.files = {path: body for path, body in kept.items() if body is not None}
        return self.lakefs.commit(self.repo, "main", f"{len(files)} files", {})

    def call(self, method: str, what: str, body: Any = None, *, status: int) -> Any:
        answered, told = self.api.call(method, f"/api/v1/repositories/{self.repo}/branches/main/{what}", body)
        assert answered == status, told
        return told

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = self.call("GET", "export-status", status=200)
        return told

    def work(self) -> Iterator[None]:
        """What is due, a piece at a time, until nothing is."""
        while due := Duty.objects.filter(kind="export", due_at__lte=Now()).first():
            duties.run(due.pk, holder="e2e")
            yield

    def status_file(self, commit: str) -> str:
        told = self.there.read(self.there.states, f"of/{self.repo}-main-{commit}")
        return told.get("", b"").decode()

    def manifest(self) -> dict[str, tuple[str, int]]:
        """The newest: path to ETag and size."""
        folder = f"of/{self.repo}/main/_MANIFEST_"
        _, newest = max(self.there.read(self.there.states, folder).items())
        lines = map(json.loads, newest.splitlines())
        return {line["path"]: (line["etag"], line["size"]) for line in lines}

    def check(self, markers: set[str]) -> None:
        """What is there is the branch, byte for byte, with these markers; and the manifest says so."""
        there = self.there.read(self.there.data, "latest/")
        assert {key for key in there if key.endswith(MARKER)} == {f"{one}{MARKER}" for one in markers}
        assert {key: body for key, body in there.items() if not key.endswith(MARKER)} == self.files
        listed = {path: (hashlib.md5(body).hexdigest(), len(body)) for path, body in self.files.items()}
        assert self.manifest() == listed


@pytest.fixture
def exported(sandbox: Sandbox, destination: Destination, transactional_db: None, owner: User) -> Exported:
    return Exported(sandbox, Api(owner), destination)


def test_a_branch_is_exported_repaired_and_followed(exported: Exported, live_server: Any, sandbox: Sandbox) -> None:
    there, file = exported.there, webhook_file(sandbox.source.name, live_server.url)
    assert HOOK_SECRET not in file, "lakeFS fills it in"
    first = exported.commit({**FIRST, ACTION_FILE: file.encode()})
    wish = {
        "exportPath": f"s3://{there.data}/latest",
        "exportStatusPath": f"s3://{there.states}/of",
        "lastKeysInPrefixRegexp": [r"^logs/day=\d+/$"],
        "isContinuous": True,
        "manifest": "always",
        "includeActions": True,
    }
    exported.call("PUT", "continuous-export", wish, status=201)

    list(exported.work())
    told = exported.status()
    assert told["status"] == "export-failed"
    assert f"the bucket '{there.data}' does not exist" in told["error_message"]
    assert exported.status_file(first) == "status: export-failed, signalled_errors: 1\n"

    there.client.create_bucket(Bucket=there.data)
    exported.call("POST", "repair-export", status=201)
    seen = list(dict.fromkeys(exported.status_file(first) for _ in exported.work()))
    states = [line.split()[1].rstrip(",") for line in seen]
    assert states == ["export-repaired", "exported-successfully"]
    exported.check({"logs/day=1/", "logs/day=2/"})
    exported.call("POST", "export-hook", status=409)

    assert list(exported.work()) == []
    second = exported.commit(SECOND)
    until = time.monotonic() + 20
    while not list(exported.work()):  # nothing but the webhook makes it due so soon
        assert time.monotonic() < until, "the webhook did not come"
        time.sleep(0.05)
    told = exported.status()
    assert (told["status"], told["last_success_ref"]) == ("exported-successfully", second)
    assert (told["run"]["base"], told["run"]["copied"], told["run"]["deleted"]) == (first, 2, 3)
    exported.check({"logs/day=1/", "logs/day=2/", "logs/day=3/"})
