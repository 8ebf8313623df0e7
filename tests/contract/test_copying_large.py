"""An object above 5 GB, which S3 copies only in parts: where LAKEMIRROR_TEST_LARGE gives its size in GB (6, say) and
LAKEMIRROR_TEST_S3 a real server that has room for it twice."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from adapters.s3.copier import STAMP, Item, Sizes
from core.exporting.deadline import Deadline, Late
from tests.contract.test_copying import Ended, Server, copier_of, endpoint, server

__all__ = ["endpoint", "server"]

MIB = 1 << 20
PART = 64 * MIB
BYTES = int(float(os.environ.get("LAKEMIRROR_TEST_LARGE") or 0) * 1000) * MIB // PART * PART

pytestmark = pytest.mark.skipif(not BYTES, reason="LAKEMIRROR_TEST_LARGE is not set")


def computed(start: int, stop: int) -> bytes:
    """The object's bytes, by mebibytes: each is its number again and again."""
    return b"".join(number.to_bytes(8) * (MIB // 8) for number in range(start // MIB, stop // MIB))


@pytest.fixture
def item(server: Server) -> Iterator[Item]:
    """The object in the lake, as an entry names it."""
    if not server.real:
        pytest.skip("moto would hold it in memory")
    where = {"Bucket": server.lake, "Key": "data/large"}
    upload = server.client.create_multipart_upload(**where)["UploadId"]
    parts = []
    for number, start in enumerate(range(0, BYTES, PART), 1):
        body = computed(start, start + PART)
        told = server.client.upload_part(**where, UploadId=upload, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": told["ETag"]})
    server.client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
    etag = server.client.head_object(**where)["ETag"].strip('"').partition("-")[0]
    yield Item(b"large", f"s3://{server.lake}/data/large", BYTES, etag)
    server.client.delete_object(**where)
    server.client.delete_object(Bucket=server.export, Key="to/large")


def test_it_is_broken_off_and_resumed_and_arrives_whole(server: Server, item: Item) -> None:
    half = BYTES // Sizes().copied_part
    began = time.monotonic()
    with pytest.raises(Late):
        copier_of(server, within=True, sizes=Sizes(), deadline=Ended(half)).copy(item)
    broken_off = time.monotonic()
    upload = server.uploads()[0]
    named = {"Bucket": server.export, "Key": upload["Key"], "UploadId": upload["UploadId"]}
    there = sum(one["Size"] for one in server.client.list_parts(**named)["Parts"])
    copier = copier_of(server, within=True, sizes=Sizes(), deadline=Deadline(time.time() + 3600))
    copier.copy(item)
    ended = time.monotonic()
    got = server.got("large")
    assert got["ContentLength"] == BYTES and got["Metadata"][STAMP] == item.etag
    for start in range(0, BYTES, PART):
        assert got["Body"].read(PART) == computed(start, start + PART)
    assert 0 < there < BYTES and server.uploads() == []
    speed = BYTES / (ended - began) / 1e6
    print(f"\n{BYTES / 1e9:.1f} GB: broken off at {there / 1e9:.1f} GB after {broken_off - began:.1f} s, ", end="")
    print(f"whole after {ended - began:.1f} s, {speed:.0f} MB/s, {copier.writer.store.requests} requests since")
