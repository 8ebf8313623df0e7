"""Two real MinIO servers on this machine, the first of which replicates buckets to the second.

LAKEMIRROR_TEST_MINIO names the binary; nothing of it is part of this project. A remote target is set by MinIO's admin
protocol, whose body is encrypted by the secret key (PBKDF2, then AES-GCM in pieces; madmin-go, `encrypt.go`).
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

BINARY = os.environ.get("LAKEMIRROR_TEST_MINIO", "")
KEY, SECRET = "lakemirror-test", "lakemirror-test-secret"
_PIECE = 1 << 14
_PBKDF2_AES_GCM = b"\x02"


KMS = {"MINIO_KMS_SECRET_KEY": f"lakemirror-test-key:{b64encode(b'k' * 32).decode()}"}
"""What has a server encrypt by a key of its own (SSE-S3, SSE-KMS)."""


class Minio:
    """One server, whose administrator has these keys. `stop` and `start` are an outage. `more`: of its environment."""

    def __init__(
        self, folder: Path, keys: tuple[str, str] = (KEY, SECRET), more: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.port, self.keys, self.more = folder, _free_port(), keys, dict(more or {})
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 2})
        told = {"aws_access_key_id": keys[0], "aws_secret_access_key": keys[1], "region_name": "us-east-1"}
        self.s3: Any = boto3.client("s3", endpoint_url=self.endpoint, config=config, **told)

    def start(self) -> None:
        """Returns once it answers."""
        told = {"MINIO_ROOT_USER": self.keys[0], "MINIO_ROOT_PASSWORD": self.keys[1]}
        told |= {"MINIO_BROWSER": "off", "MINIO_CI_CD": "1"}
        address = f"127.0.0.1:{self.port}"
        command = [BINARY, "server", "--quiet", "--address", address, *(f"{self.folder}/{n}" for n in range(1, 5))]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, env=os.environ | told | self.more, stdout=log, stderr=log)
        until = time.monotonic() + 90
        while time.monotonic() < until:
            try:
                if requests.get(f"{self.endpoint}/minio/health/ready", timeout=2).ok:
                    return
            except requests.ConnectionError:
                time.sleep(0.2)
        raise TimeoutError(f"MinIO does not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        """Kills it; what it has stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def bucket(self, name: str, *, versions: bool = True) -> None:
        """Make a bucket."""
        self.s3.create_bucket(Bucket=name)
        if versions:
            self.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})

    def ask(
        self, method: str, path: str, body: bytes = b"", content_type: str = "", more: Mapping[str, str] | None = None
    ) -> requests.Response:
        """A signed request, with more headers if need be."""
        headers = {"x-amz-content-sha256": hashlib.sha256(body).hexdigest(), **(more or {})}
        headers |= {"content-type": content_type} if content_type else {}
        signed = AWSRequest(method=method, url=f"{self.endpoint}{path}", data=body, headers=headers)
        SigV4Auth(Credentials(KEY, SECRET), "s3", "us-east-1").add_auth(signed)
        answer = requests.request(method, signed.url, data=body, headers=dict(signed.headers), timeout=30)
        if not answer.ok:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer

    def user(self, name: str, secret: str, policy: dict[str, Any]) -> None:
        """A user with this one policy."""
        admin = "/minio/admin/v3"
        told = {"secretKey": secret, "status": "enabled"}
        self.ask("PUT", f"{admin}/add-user?accessKey={name}", _encrypted(json.dumps(told).encode()))
        self.ask("PUT", f"{admin}/add-canned-policy?name={name}", json.dumps(policy).encode())
        of_user = f"policyName={name}&userOrGroup={name}&isGroup=false"
        self.ask("PUT", f"{admin}/set-user-or-group-policy?{of_user}")

    def replicate_to(self, other: Minio, bucket: str, target: str) -> str:
        """Tell it of a remote target; gives the ARN that rules name it by."""
        told = {
            "sourcebucket": bucket,
            "endpoint": f"127.0.0.1:{other.port}",
            "credentials": {"accessKey": KEY, "secretKey": SECRET},
            "targetbucket": target,
            "secure": False,
            "path": "auto",
            "api": "s3v4",
            "type": "replication",
        }
        body = _encrypted(json.dumps(told).encode())
        return str(self.ask("PUT", f"/minio/admin/v3/set-remote-target?bucket={bucket}", body).json())

    def rule(self, bucket: str, arn: str, *, prefix: str = "", enabled: bool = True, existing: bool = False) -> None:
        """Give a bucket this one rule."""
        on = {True: "Enabled", False: "Disabled"}
        xml = (
            "<ReplicationConfiguration><Role></Role><Rule><ID>rule</ID>"
            f"<Status>{on[enabled]}</Status><Priority>1</Priority>"
            "<DeleteMarkerReplication><Status>Enabled</Status></DeleteMarkerReplication>"
            "<DeleteReplication><Status>Disabled</Status></DeleteReplication>"
            f"<Filter><Prefix>{prefix}</Prefix></Filter>"
            f"<ExistingObjectReplication><Status>{on[existing]}</Status></ExistingObjectReplication>"
            f"<Destination><Bucket>{arn}</Bucket></Destination></Rule></ReplicationConfiguration>"
        )
        self.ask("PUT", f"/{bucket}?replication=", xml.encode(), "application/xml")


@contextmanager
def minio_pair(folder: Path) -> Iterator[tuple[Minio, Minio]]:
    """Two servers, stopped in the end."""
    pair: list[Minio] = []
    try:
        for name in ("a", "b"):
            (folder / name).mkdir(parents=True)
            pair.append(Minio(folder / name))
        yield pair[0], pair[1]
    finally:
        for server in pair:
            server.stop()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _encrypted(data: bytes) -> bytes:
    """As MinIO's admin protocol wants its bodies: salt, algorithm, nonce, then sealed pieces, each with its number and
    with whether it is the last one."""
    salt, nonce = os.urandom(32), os.urandom(8)
    cipher = AESGCM(hashlib.pbkdf2_hmac("sha256", SECRET.encode(), salt, 8192, 32))

    def numbered(number: int) -> bytes:
        return nonce + number.to_bytes(4, "little")

    bound = cipher.encrypt(numbered(0), b"", b"")
    pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)] or [b""]
    sealed = [
        cipher.encrypt(numbered(number), piece, (b"\x80" if number == len(pieces) else b"\x00") + bound)
        for number, piece in enumerate(pieces, start=1)
    ]
    return salt + _PBKDF2_AES_GCM + nonce + b"".join(sealed)
