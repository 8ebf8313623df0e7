"""The regions' stores, each behind a gate of its own: MinIO servers where LAKEMIRROR_TEST_MINIO names the program, else
the sandbox's, which live in memory and can't be killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from tests import minio_pair
from tests.fleet.fleet import ROOT, Member
from tests.minio_pair import Minio
from tests.rule_fleet import AWAY, FAR, HOME, REGIONS
from tests.rule_fleet.judge import Heeds, Version
from tests.rule_fleet.layout import Group
from tests.spark.server import free_port

START_SECONDS = 60.0
MINIO_OF = {HOME: "one", AWAY: "two", FAR: "one"}
"""Two servers for three regions: under two names one counts as two stores."""


@dataclass
class Gate:
    """A region's gate."""

    region: str
    store_port: int
    log: Path
    seed: int
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        told = [str(self.port), str(self.store_port), str(self.log), str(self.seed)]
        command = [sys.executable, "-m", "tests.rule_fleet.gate", *told]
        with self.log.with_suffix(".log").open("ab") as errors:
            self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=errors, stderr=errors)

    def turn(self, mode: str) -> None:
        """As tests/rule_fleet/gate.py names it."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(f"{mode}\n".encode())
        self._process.stdin.flush()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Stores:
    """All of them; `s3` leads to a region's store past its gate."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.real = bool(minio_pair.BINARY)
        self.minios: dict[str, Minio] = {}
        self.ports: dict[str, int] = {}
        self.gates: dict[str, Gate] = {}
        self._members: list[Member] = []
        self.lakefs_port = free_port()
        try:
            self._start(seed)
        except BaseException:
            self.stop()
            raise
        self._clients = {region: self.client(region) for region in REGIONS}
        self.heeds = {region: self._heeds(region) for region in REGIONS}

    def _start(self, seed: int) -> None:
        if self.real:
            for name in sorted(set(MINIO_OF.values())):
                (self.folder / name).mkdir()
                self.minios[name] = Minio(self.folder / name, keys=(ACCESS_KEY_ID, SECRET_ACCESS_KEY))
            self._sandbox(HOME, self.lakefs_port, free_port())
        for at, region in enumerate(REGIONS):
            port = self.minios[MINIO_OF[region]].port if self.real else free_port()
            self.ports[region] = port
            if not self.real:
                self._sandbox(region, self.lakefs_port if region == HOME else free_port(), port)
            self.gates[region] = Gate(region, port, self.folder / f"gate-{region}.jsonl", seed + at)
            self.gates[region].start()
        for region in REGIONS:
            self._await(region)

    def _sandbox(self, region: str, lakefs_port: int, s3_port: int) -> None:
        told = [region, str(lakefs_port), str(s3_port)]
        command = [sys.executable, "-m", "tests.rule_fleet.region", *told]
        made = Member(f"region {region}", command, {}, self.folder / f"region-{region}.log")
        made.start()
        self._members.append(made)

    def _await(self, region: str) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            with suppress(BotoCoreError, ClientError):
                self.client(region, port=self.gates[region].port).list_buckets()
                return
            time.sleep(0.2)
        raise TimeoutError(f"the store of {region} does not answer")

    def client(self, region: str, *, port: int = 0) -> Any:
        """A client that asks once."""
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            connect_timeout=3,
            read_timeout=30,
            max_pool_connections=32,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        keys = {"aws_access_key_id": ACCESS_KEY_ID, "aws_secret_access_key": SECRET_ACCESS_KEY}
        url = f"http://127.0.0.1:{port or self.ports[region]}"
        return boto3.client("s3", endpoint_url=url, config=config, region_name="us-east-1", **keys)

    def s3(self, region: str) -> Any:
        return self._clients[region]

    @property
    def logs(self) -> list[Path]:
        """Of all gates."""
        return [gate.log for gate in self.gates.values()]

    def make_buckets(self, groups: list[Group]) -> None:
        """Those of the groups."""
        for group in groups:
            for place in group.places:
                s3, lock = self.s3(place.region), {"ObjectLockEnabledForBucket": True} if group.locks else {}
                s3.create_bucket(Bucket=place.bucket, **lock)
                if group.versions:
                    told = {"Status": "Enabled"}
                    s3.put_bucket_versioning(Bucket=place.bucket, VersioningConfiguration=told)

    def _heeds(self, region: str) -> Heeds:
        """Tried with a bucket that is nobody's."""
        s3, bucket = self.s3(region), f"probe-{region}"
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="k", Body=b"1")
        puts = _refused(lambda: s3.put_object(Bucket=bucket, Key="k", Body=b"2", IfMatch='"0"'))
        deletes = _refused(lambda: s3.delete_object(Bucket=bucket, Key="k", IfMatch='"0"'))
        return Heeds(puts, deletes)

    # --- what lies there ----------------------------------------------------------------------------------------------

    def versions(self, region: str, bucket: str) -> list[Version]:
        """All versions and delete markers, those of LakeMirror's own files, too."""
        found = []
        for page in self.s3(region).get_paginator("list_object_versions").paginate(Bucket=bucket):
            found += [_version(one, one["ETag"].strip('"'), one["Size"]) for one in page.get("Versions", ())]
            found += [_version(one, "", 0) for one in page.get("DeleteMarkers", ())]
        return sorted(found)

    def listed(self, region: str, bucket: str) -> dict[str, str]:
        """Key to ETag of what readers see, without LakeMirror's own."""
        pages = self.s3(region).get_paginator("list_objects_v2").paginate(Bucket=bucket)
        items = (one for page in pages for one in page.get("Contents", ()))
        return {one["Key"]: one["ETag"].strip('"') for one in items if not one["Key"].startswith("_lakemirror/")}

    def uploads(self, region: str, bucket: str, keys: Iterable[str]) -> list[tuple[str, float]]:
        """Uploads in parts that were begun and not ended: of which key, and when. MinIO lists those of one object
        alone."""
        found = []
        for key in keys:
            told = self.s3(region).list_multipart_uploads(Bucket=bucket, Prefix=key).get("Uploads", ())
            found += [(one["Key"], one["Initiated"].timestamp()) for one in told if one["Key"] == key]
        return found

    def stop(self) -> None:
        """Nothing stays behind."""
        for gate in self.gates.values():
            gate.stop()
        for member in self._members:
            member.kill()
        for minio in self.minios.values():
            minio.stop()


def _version(one: dict[str, Any], etag: str, size: int) -> Version:
    return Version(one["Key"], one["VersionId"], etag, size, one["LastModified"].timestamp(), one["IsLatest"])


def _refused(call: Any) -> bool:
    try:
        call()
    except ClientError as error:
        return bool(error.response["ResponseMetadata"]["HTTPStatusCode"] == 412)
    return False
