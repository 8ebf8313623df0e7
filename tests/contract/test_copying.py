"""Bringing objects to a destination: on moto, and on a real S3 server where LAKEMIRROR_TEST_S3 names one with its keys
(`http://key:secret@127.0.0.1:7480`; tried with Ceph's gateway, which checks signatures)."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from adapters.s3.copier import STAMP, Copier, Destination, Item, Sizes, is_of
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.multipart import Layout, Uploads, part_bytes
from core.errors import LakeMirrorError
from core.exporting.deadline import Deadline, Late
from core.exporting.failure_reasons import KeyFailed, Reason, reason_of
from tests.s3_double import KEYS, running_moto

REAL = os.environ.get("LAKEMIRROR_TEST_S3", "")
MIB = 1 << 20
SMALL = Sizes(copied_whole=5 * MIB, copied_part=5 * MIB, put_whole=5 * MIB, put_part=5 * MIB, parts_at_once=2)
ODD = [
    "a b",
    "a+b",
    "a%2Fb",
    "a%b",
    "hash#tag",
    "q?x=1&y",
    "käse/ü/日本",
    "folder/",
    "a//b",
    "/leading",
    "../up/../and/./down",
    "<xml>&amp;'\"",
    "~t'(!)*@:;,$=[]{}|\\^`",
    "new\nline\ttab",
    "\x01control",
    "x" * 1000,
]


@dataclass
class Server:
    """A server with two buckets, and boto3 to look into them."""

    endpoint: str
    keys: dict[str, str]
    client: Any
    lake: str
    export: str

    @property
    def real(self) -> bool:
        return self.keys != KEYS

    def store(self) -> FastObjectStore:
        return FastObjectStore(endpoint=self.endpoint, force_path_style=True, **self.keys)

    def put(self, data: bytes, **options: Any) -> Item:
        """An object of the lake, and what an entry says of it."""
        address = f"data/{uuid.uuid4().hex}"
        self.client.put_object(Bucket=self.lake, Key=address, Body=data, **options)
        return Item(b"key", f"s3://{self.lake}/{address}", len(data), hashlib.md5(data).hexdigest())

    def got(self, key: str) -> Any:
        return self.client.get_object(Bucket=self.export, Key=f"to/{key}")

    def keys_there(self) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.export, Prefix="to/")
        return [one["Key"][3:] for page in pages for one in page.get("Contents", ())]

    def uploads(self) -> list[Any]:
        return list(self.client.list_multipart_uploads(Bucket=self.export).get("Uploads", ()))


def client_of(endpoint: str, keys: dict[str, str]) -> Any:
    secrets = {f"aws_{name}": value for name, value in keys.items()}
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **secrets)


@pytest.fixture(scope="module", params=["moto", *(["real"] if REAL else [])])
def endpoint(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, str]]]:
    if request.param == "moto":
        with running_moto() as started:
            yield started, KEYS
        return
    parts = urlsplit(REAL)
    keys = {"access_key_id": parts.username or "", "secret_access_key": parts.password or ""}
    yield f"{parts.scheme}://{parts.hostname}:{parts.port}", keys


@pytest.fixture
def server(endpoint: tuple[str, dict[str, str]]) -> Server:
    client, name = client_of(*endpoint), uuid.uuid4().hex[:10]
    for bucket in (f"lake-{name}", f"export-{name}"):
        client.create_bucket(Bucket=bucket)
    return Server(*endpoint, client, f"lake-{name}", f"export-{name}")


def copier_of(server: Server, *, within: bool, sizes: Sizes = SMALL, deadline: Deadline | None = None) -> Copier:
    place, until = Destination(f"s3://{server.export}/to/"), deadline or Deadline(time.time() + 100)
    return Copier(server.store(), server.store(), place, until, within=within, sizes=sizes)


@pytest.fixture(params=[True, False], ids=["within", "streamed"])
def within(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def copier(server: Server, within: bool) -> Copier:
    return copier_of(server, within=within)


def failure(copier: Copier, item: Item) -> Reason:
    with pytest.raises(LakeMirrorError) as caught:
        copier.copy(item)
    return reason_of(caught.value)


# --- keys and content ------------------------------------------------------------------------------------------------


def test_odd_keys_arrive_exactly_and_are_deleted_again(server: Server, copier: Copier) -> None:
    item = server.put(b"here")
    odd = [key for key in ODD if server.real or "\n" not in key]  # moto has no way to a key of two lines
    for key in odd:
        copier.copy(replace(item, key=key.encode()))
    listed = [one.key[3:] for one in server.store().list(f"s3://{server.export}/to/")]
    assert listed == sorted(odd)
    assert server.got("../up/../and/./down")["Body"].read() == b"here"
    assert copier.delete([key.encode() for key in odd]) == {}
    assert server.client.list_objects_v2(Bucket=server.export)["KeyCount"] == 0


def test_an_odd_address_at_the_source_is_found(server: Server, copier: Copier) -> None:
    for number, address in enumerate(["im port/a+b%2F#?é", "x//y/../z", "folder/"]):
        server.client.put_object(Bucket=server.lake, Key=address, Body=b"odd")
        item = Item(b"%d" % number, f"s3://{server.lake}/{address}", 3, hashlib.md5(b"odd").hexdigest())
        copier.copy(item)
        assert server.got(str(number))["Body"].read() == b"odd"


def test_an_empty_object_arrives(server: Server, copier: Copier) -> None:
    copier.copy(server.put(b""))
    assert server.got("key")["ContentLength"] == 0


def test_keys_that_s3_cannot_have_fail_and_say_why(server: Server, copier: Copier) -> None:
    item = server.put(b"x")
    assert failure(copier, replace(item, key=b"caf\xe9")) is Reason.KEY
    copier.copy(replace(item, key=b"k" * 1021))
    with pytest.raises(KeyFailed, match="1025 bytes"):
        copier.copy(replace(item, key=b"k" * 1022))
    assert copier.delete([b"caf\xe9", b"k" * 1022]) == {}


def test_type_and_metadata_are_those_of_the_entry(server: Server, copier: Copier) -> None:
    item = server.put(b"x", ContentType="of/object", Metadata={"only": "object"})
    kept = {"plain": "a  b", "X-Amz-Meta-Written-By": "spark"}
    copier.copy(replace(item, content_type="text/csv; charset=utf-8", metadata=kept))
    got = server.got("key")
    assert got["ContentType"] == "text/csv; charset=utf-8"
    assert {name.lower(): " ".join(value.split()) for name, value in got["Metadata"].items()} == {
        "plain": "a b",
        "written-by": "spark",
    }


def test_metadata_that_no_header_can_have_is_a_failure(copier: Copier, server: Server) -> None:
    item = server.put(b"x")
    assert failure(copier, replace(item, metadata={"two words": "x"})) is Reason.METADATA
    assert failure(copier, replace(item, metadata={"name": "two\nlines"})) is Reason.METADATA


def test_the_etag_is_the_entrys_and_nothing_is_stamped(server: Server, copier: Copier) -> None:
    item = server.put(b"some bytes")
    copier.copy(item)
    got = server.got("key")
    assert got["ETag"].strip('"') == item.etag and STAMP not in got["Metadata"]


# --- what has changed ------------------------------------------------------------------------------------------------


def test_a_source_that_is_gone_is_a_failure(server: Server, copier: Copier) -> None:
    item = server.put(b"x")
    server.client.delete_object(Bucket=server.lake, Key=item.source.partition(f"{server.lake}/")[2])
    assert failure(copier, item) is Reason.GONE
    assert server.keys_there() == []


def test_a_source_that_was_changed_is_a_failure(server: Server, copier: Copier) -> None:
    item = server.put(b"x")
    assert failure(copier, replace(item, etag="0" * 32)) is Reason.CHANGED
    assert failure(copier, replace(item, etag="", size=7)) is Reason.CHANGED
    assert server.keys_there() == []


def test_what_no_header_can_have_is_no_crash(server: Server, copier: Copier) -> None:
    item = server.put(b"x")
    for etag in ("two\nlines", "käse", '"quoted"'):
        assert failure(copier, replace(item, etag=etag)) is Reason.CHANGED
    assert failure(copier, replace(item, content_type="text\n/csv")) is Reason.METADATA
    assert failure(copier, replace(item, source="gs://elsewhere/x")) is Reason.REFUSED
    assert server.keys_there() == []


def test_a_streamed_object_is_not_cut_to_the_entrys_size(server: Server) -> None:
    item = server.put(b"longer than that")
    assert failure(copier_of(server, within=False), replace(item, size=3)) is Reason.CHANGED
    assert failure(copier_of(server, within=False), replace(item, size=0)) is Reason.CHANGED
    assert server.keys_there() == []


def test_a_bucket_that_is_not_there_is_not_a_source_that_is_gone(server: Server, within: bool) -> None:
    nowhere = Destination(f"s3://nowhere-{uuid.uuid4().hex[:8]}/to")
    store = server.store()
    copier = Copier(store, store, nowhere, Deadline(time.time() + 100), within=within)
    assert failure(copier, server.put(b"x")) is Reason.NOT_FOUND


# --- in parts --------------------------------------------------------------------------------------------------------


def uploaded_in_parts(server: Server, data: bytes) -> Item:
    """An object of two parts, whose ETag lakeFS keeps without their number."""
    where = {"Bucket": server.lake, "Key": f"data/{uuid.uuid4().hex}"}
    upload = server.client.create_multipart_upload(**where)["UploadId"]
    parts = []
    for number, piece in enumerate((data[: 5 * MIB], data[5 * MIB :]), 1):
        told = server.client.upload_part(**where, UploadId=upload, PartNumber=number, Body=piece)
        parts.append({"PartNumber": number, "ETag": told["ETag"]})
    server.client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
    etag = server.client.head_object(**where)["ETag"].strip('"')
    return Item(b"key", f"s3://{where['Bucket']}/{where['Key']}", len(data), etag.partition("-")[0])


def test_a_copy_of_an_object_of_parts_bears_the_entrys_etag(server: Server, within: bool) -> None:
    data = os.urandom(5 * MIB) + b"tail"
    item = uploaded_in_parts(server, data)
    copier = copier_of(server, within=within, sizes=Sizes())
    copier.copy(item)
    assert server.got("key")["Body"].read() == data
    assert is_of(server.got("key")["ETag"].strip('"'), item.etag) or copier.has_stamp(item)


def test_a_large_object_goes_in_parts_and_bears_the_entrys_etag(server: Server, copier: Copier) -> None:
    data = os.urandom(11 * MIB)
    item = replace(server.put(data), content_type="text/x", metadata={"a": "b"})
    copier.copy(item)
    got = server.got("key")
    assert got["Body"].read() == data
    assert got["ContentType"] == "text/x" and got["Metadata"] == {"a": "b", STAMP: item.etag}
    assert server.uploads() == []


class Ended(Deadline):
    """A deadline that passes after so many looks at it."""

    def __init__(self, looks: int) -> None:
        super().__init__(0.0, clock=self._look)
        self._left = looks

    def _look(self) -> float:
        self._left -= 1
        return -1.0 if self._left >= 0 else 1.0


def test_what_one_slice_began_the_next_one_finishes(server: Server, within: bool) -> None:
    data = os.urandom(17 * MIB)
    item = server.put(data)
    with pytest.raises(Late):
        copier_of(server, within=within, sizes=replace(SMALL, parts_at_once=1), deadline=Ended(7)).copy(item)
    assert server.keys_there() == [] and len(server.uploads()) == 1
    begun = server.uploads()[0]
    there = server.client.list_parts(Bucket=server.export, Key=begun["Key"], UploadId=begun["UploadId"])["Parts"]
    assert there
    copier = copier_of(server, within=within)
    copier.copy(item)
    assert server.got("key")["Body"].read() == data
    # uploads, parts, complete, stamp; and each of the others
    lacking = Layout(item.size, there[0]["Size"]).count - len(there)
    assert copier.writer.store.requests == 4 + lacking
    assert server.uploads() == []


def test_an_upload_that_began_with_another_description_is_not_gone_on_with(server: Server, within: bool) -> None:
    item = replace(server.put(os.urandom(17 * MIB)), content_type="text/old", metadata={"k": "old"})
    with pytest.raises(Late):
        copier_of(server, within=within, sizes=replace(SMALL, parts_at_once=1), deadline=Ended(7)).copy(item)
    copier, now = copier_of(server, within=within), replace(item, content_type="text/new", metadata={"k": "new"})
    copier.copy(now)
    assert (server.got("key")["ContentType"], server.got("key")["Metadata"]["k"]) == ("text/new", "new")
    assert [copier.is_described(one) for one in (now, item)] == [True, False]
    assert server.uploads() == []


def test_an_upload_of_another_source_is_aborted(server: Server, copier: Copier) -> None:
    uploads = Uploads(copier.writer)
    uri = f"s3://{server.export}/to/key"
    for body in (b"x" * (5 * MIB), b""):
        upload_id = uploads.start(uri, {})
        if body:
            uploads.put(uri, upload_id, 1, body)
    beside = uploads.start(f"{uri}-beside", {})
    data = os.urandom(6 * MIB)
    copier.copy(server.put(data))
    assert server.got("key")["Body"].read() == data
    assert [one["UploadId"] for one in server.uploads()] == [beside]


def test_a_source_that_changes_leaves_no_upload_behind(server: Server, copier: Copier) -> None:
    item = server.put(b"x" * (6 * MIB))
    assert failure(copier, replace(item, etag="0" * 32)) is Reason.CHANGED
    assert server.uploads() == []


def test_parts_are_of_one_size_that_tells_sources_apart() -> None:
    sizes = {part_bytes(1 << 40, 16 * MIB, f"s3://lake/{number}") for number in range(200)}
    assert len(sizes) == 200
    for size in (0, 1, 5 * MIB, 1 << 40, 5 << 40):
        layout = Layout(size, part_bytes(size, 5 * MIB, "s"))
        assert layout.count <= 10_000 and 5 * MIB <= layout.part <= 5 << 30
        assert layout.span(layout.count)[1] == size
        assert layout.span(1)[0] == 0


# --- a deadline, and deletes -----------------------------------------------------------------------------------------


def test_nothing_is_written_after_the_deadline(server: Server, within: bool) -> None:
    late = copier_of(server, within=within, deadline=Deadline(time.time() - 1))
    with pytest.raises(Late):
        late.copy(server.put(b"x"))
    with pytest.raises(Late):
        late.delete([b"x"])
    assert server.keys_there() == []


def test_more_than_a_batch_is_deleted_and_nothing_else(server: Server) -> None:
    copier = copier_of(server, within=True)
    there = [b"a/%02d" % number for number in range(20)]
    for key in [*there, b"foreign"]:
        server.client.put_object(Bucket=server.export, Key=f"to/{key.decode()}", Body=b"")
    assert copier.delete([*there, *(b"never/%d" % number for number in range(1990))]) == {}
    assert server.keys_there() == ["foreign"]
    assert copier.writer.store.requests == 3
