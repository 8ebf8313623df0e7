"""Copies in other parts prove that they were compared: on moto, on a real pair of MinIO servers where
LAKEMIRROR_TEST_MINIO names the binary, and between these and another S3 server where LAKEMIRROR_TEST_S3 names one with
its keys. What is left out without them is told."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import boto3
import pytest

from adapters.s3 import mover
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.mover import Mover
from adapters.s3.multipart import Uploads
from core.errors import RemoteFailure
from core.exporting.deadline import Deadline, Late, Rate
from core.mirroring.content_proof import Proof, Prover
from core.mirroring.object_check import Note, Reason
from core.proof_of_parts import PROOF_HEADER, is_proven, signature
from core.types import ObjectInfo
from tests import minio_pair
from tests.s3_double import KEYS, running_moto

MIB = 1 << 20
KEY, OTHER = "a" * 64, "b" * 64
ODD = [5 * MIB, 6 * MIB + 7, 12_345]
"""Scenario 21's."""
REAL = os.environ.get("LAKEMIRROR_TEST_S3", "")


@dataclass
class Server:
    """Where an S3 server answers, and its keys."""

    endpoint: str
    keys: dict[str, str]

    def __post_init__(self) -> None:
        pair = {f"aws_{name}": value for name, value in self.keys.items()}
        self.client: Any = boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1", **pair)
        self.store = FastObjectStore(
            endpoint=self.endpoint, region="us-east-1", force_path_style=True, tries=2, **self.keys
        )


@pytest.fixture(scope="module")
def minios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    if not minio_pair.BINARY:
        yield []
        return
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    with minio_pair.minio_pair(tmp_path_factory.mktemp("minio")) as pair:
        yield [Server(each.endpoint, keys) for each in pair]


@pytest.fixture(scope="module")
def moto() -> Iterator[Server]:
    with running_moto() as endpoint:
        yield Server(endpoint, KEYS)


class Lake:
    """A namespace at a source, and one at a destination."""

    def __init__(self, source: Server, destination: Server) -> None:
        self.source, self.destination = source, destination
        name = uuid.uuid4().hex[:8]
        self.here, self.there = f"dst-{name}", f"src-{name}"
        source.client.create_bucket(Bucket=self.there)
        destination.client.create_bucket(Bucket=self.here)

    def upload(self, key: str, data: bytes, *sizes: int, **more: Any) -> str:
        where = {"Bucket": self.there, "Key": key}
        client = self.source.client
        upload_id = client.create_multipart_upload(**where, **more)["UploadId"]
        parts, at = [], 0
        for number, size in enumerate(sizes, 1):
            body = data[at : at + size]
            given = client.upload_part(**where, UploadId=upload_id, PartNumber=number, Body=body)
            parts.append({"PartNumber": number, "ETag": given["ETag"]})
            at += size
        client.complete_multipart_upload(**where, UploadId=upload_id, MultipartUpload={"Parts": parts})
        return str(client.head_object(**where)["ETag"]).strip('"')

    def bring(self, key: str, size: int, *, proof_key: str = KEY, seconds: float = 120.0) -> ObjectInfo:
        deadline = Deadline(time.time() + seconds)
        stores = self.source.store, self.destination.store
        one = Mover(*stores, deadline, within=False, rate=Rate(0), proof_key=proof_key)
        try:
            return one.bring(f"s3://{self.there}/{key}", f"s3://{self.here}/{key}", size)
        finally:
            one.close()

    def judged(self, key: str, etag: str, *, proof_key: str = KEY) -> tuple[Proof, int]:
        """What the check says of a copy whose ETag is not the entry's, and how many objects it read for that."""
        reads: list[str] = []
        md5 = FastObjectStore.md5

        def counted(store: FastObjectStore, uri: str) -> str:
            reads.append(uri)
            return md5(store, uri)

        stores = self.destination.store, f"s3://{self.here}", self.source.store, f"s3://{self.there}"
        prover, uri = Prover(*stores, proof_key=proof_key), f"s3://{self.here}/{key}"
        info = self.destination.store.head(uri)
        assert info is not None
        with mock.patch.object(FastObjectStore, "md5", counted):
            proof = prover.appeal((Reason.ETAG, "differs"), info, uri, size=info.size, etag=etag)
        return proof, len(reads)

    def uploads(self) -> int:
        return len(self.destination.client.list_multipart_uploads(Bucket=self.here).get("Uploads", []))

    def bytes_here(self, key: str) -> bytes:
        return bytes(self.destination.client.get_object(Bucket=self.here, Key=key)["Body"].read())


PAIRS = ["moto", "minio-minio", "minio-other", "other-minio"]


@pytest.fixture(params=PAIRS)
def lake(request: pytest.FixtureRequest, moto: Server, minios: list[Server]) -> Lake:
    if request.param == "moto":
        return Lake(moto, moto)
    if not minios:
        pytest.skip("LAKEMIRROR_TEST_MINIO names no MinIO")
    if request.param == "minio-minio":
        return Lake(*minios)
    if not REAL:
        pytest.skip("LAKEMIRROR_TEST_S3 names no server")
    parts = urlsplit(REAL)
    keys = {"access_key_id": parts.username or "", "secret_access_key": parts.password or ""}
    other = Server(f"{parts.scheme}://{parts.hostname}:{parts.port}", keys)
    return Lake(minios[0], other) if request.param == "minio-other" else Lake(other, minios[0])


def test_21_odd_parts_give_a_proof_that_the_check_passes_without_reading(lake: Lake) -> None:
    """Scenario 21: parts of 5 MiB, 6 MiB + 7 and 12,345 bytes."""
    data = os.urandom(sum(ODD))
    etag = lake.upload("data/odd", data, *ODD, ContentType="text/odd", Metadata={"owner": "olga"})
    info = lake.bring("data/odd", len(data))
    assert lake.bytes_here("data/odd") == data
    assert lake.uploads() == 0
    assert info.etag != etag and info.proof
    assert lake.judged("data/odd", etag) == (Proof(note=Note.BY_PARTS), 0)
    head = lake.destination.client.head_object(Bucket=lake.here, Key="data/odd")
    assert (head["ContentType"], head["Metadata"]["owner"]) == ("text/odd", "olga")


@pytest.mark.parametrize("key", ["", OTHER])
def test_21_unsigned_or_signed_by_others_content_decides(lake: Lake, key: str) -> None:
    """Scenario 21, the other way."""
    data = os.urandom(sum(ODD))
    etag = lake.upload("data/odd", data, *ODD)
    lake.bring("data/odd", len(data), proof_key=key)
    proof, read = lake.judged("data/odd", etag)
    assert (proof, read > 0) == (Proof(note=Note.BY_CONTENT), True)


def test_a_proof_says_nothing_once_the_source_or_the_copy_is_another(lake: Lake) -> None:
    data = os.urandom(sum(ODD))
    etag = lake.upload("data/odd", data, *ODD)
    info = lake.bring("data/odd", len(data))
    changed = lake.upload("data/odd", data[::-1], *ODD)
    assert lake.judged("data/odd", changed)[0].verdict is not None
    lake.upload("data/odd", data, *ODD)
    forged = {"Bucket": lake.here, "Key": "data/odd", "Metadata": {"lakemirror-proof": info.proof}}
    lake.destination.client.put_object(**forged, Body=data[::-1])
    assert lake.judged("data/odd", etag)[0].verdict is not None


def test_a_proof_that_the_source_bears_is_not_taken_along(moto: Server) -> None:
    lake = Lake(moto, moto)
    told = {"Metadata": {"lakemirror-proof": "f" * 64, "owner": "olga"}}
    lake.source.client.put_object(Bucket=lake.there, Key="data/a", Body=b"some", **told)
    lake.bring("data/a", 4)
    assert lake.destination.client.head_object(Bucket=lake.here, Key="data/a")["Metadata"] == {"owner": "olga"}


def test_22_parts_that_lay_there_already_are_read_once_more_before_they_are_signed(moto: Server) -> None:
    """Scenario 22, with 23 in it: an upload that is gone on with may hold parts of what the source was before."""
    lake = Lake(moto, moto)
    sizes = [20 * MIB, 7 * MIB + 1, 5]
    old, new = os.urandom(sum(sizes)), os.urandom(sum(sizes))
    lake.upload("data/odd", old, *sizes)
    with mock.patch.object(mover, "part_sizes", lambda *_: []):
        _broken_off(lake, len(old))
        etag = lake.upload("data/odd", new, *sizes)
        info = lake.bring("data/odd", len(new))
        proof, _ = lake.judged("data/odd", etag)
        assert (info.proof, proof.verdict is None) == ("", False), "a mixture is never signed, nor passed"
        assert lake.bring("data/odd", len(new)).proof
        assert lake.judged("data/odd", etag) == (Proof(note=Note.BY_PARTS), 0)
        _broken_off(lake, len(new))
        assert lake.bring("data/odd", len(new)).proof, "the same parts may be signed"
    assert lake.bytes_here("data/odd") == new


def _broken_off(lake: Lake, size: int) -> None:
    sent: list[int] = []
    put = Uploads.put

    def once(uploads: Any, uri: str, upload_id: str, number: int, body: bytes, *more: Any) -> Any:
        if sent:
            raise Late
        sent.append(number)
        return put(uploads, uri, upload_id, number, body, *more)

    with mock.patch.object(mover, "PARTS_AT_ONCE", 1), mock.patch.object(Uploads, "put", once), pytest.raises(Late):
        lake.bring("data/odd", size)


def test_a_store_that_rewrites_nothing_keeps_the_copy_without_a_proof(moto: Server) -> None:
    lake = Lake(moto, moto)
    data = os.urandom(sum(ODD))
    etag = lake.upload("data/odd", data, *ODD)
    with mock.patch.object(Uploads, "copy", side_effect=RemoteFailure("501 NotImplemented")):
        assert lake.bring("data/odd", len(data)).proof == ""
    assert lake.uploads() == 0
    assert lake.judged("data/odd", etag)[0] == Proof(note=Note.BY_CONTENT)


def test_part_sizes_are_looked_for_to_the_end_whatever_the_time(moto: Server) -> None:
    lake = Lake(moto, moto)
    sizes = [6 * MIB, 6 * MIB, 1000]
    data = os.urandom(sum(sizes))
    etag = lake.upload("data/six", data, *sizes)
    put, seconds = Uploads.put, 1.0

    def slow(*given: Any) -> Any:
        time.sleep(seconds)
        return put(*given)

    with mock.patch.object(Mover, "_first_part", lambda *_: 0), mock.patch.object(Uploads, "put", slow):
        assert lake.bring("data/six", len(data), seconds=1.5).etag == etag


@pytest.mark.parametrize(
    "change",
    [{"size": 11}, {"etag": "c" * 32 + "-3"}, {"proof": ""}, {"encryption": "aws:kms"}],
    ids=["size", "etag", "unsigned", "kms"],
)
def test_what_was_signed_is_that_object_with_that_source_at_that_place(change: dict[str, Any]) -> None:
    uri, original = "s3://dst/data/a", ObjectInfo("a", 10, "a" * 32 + "-2")
    signed = signature(KEY, uri, size=10, source_etag=original.etag, own_etag="b" * 32 + "-3")
    info = ObjectInfo("a", 10, "b" * 32 + "-3", proof=signed)
    assert is_proven(KEY, uri, info, original)
    assert not is_proven(KEY, uri + "b", info, original)
    assert not is_proven(OTHER, uri, info, original)
    assert not is_proven("", uri, info, original)
    assert not is_proven(KEY, uri, info, original._replace(etag="d" * 32 + "-2"))
    assert not is_proven(KEY, uri, info._replace(**change), original)
    assert PROOF_HEADER.endswith("lakemirror-proof")
