"""Bringing objects from namespace to namespace as they are: on moto, and on a real S3 server where LAKEMIRROR_TEST_S3
names one with its keys (`http://key:secret@127.0.0.1:7480`)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError

from adapters.s3 import mover
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.mover import Mover
from adapters.s3.multipart import Uploads
from adapters.s3.store import NO_HEADERS
from core.bringing import Side, Unbrought
from core.errors import Archived, Invalid, NoBucket, NotFound, RemoteFailure
from core.exporting.deadline import Deadline, Late, Rate
from core.mirroring.content_proof import UPLOAD_MARKS
from core.mirroring.object_check import Depth, Note, judge_object, note_object, plain_etag
from core.types import ObjectInfo
from tests.s3_double import KEYS, running_moto

REAL = os.environ.get("LAKEMIRROR_TEST_S3", "")
MIB = 1 << 20
ODD = ["a b", "a+b", "a%2Fb", "käse/ü/日本", "a//b", "../up/../and/./down", "<xml>&amp;'\"", "folder/", "x" * 1024]


class Place:
    """A server with a source's and a mirror's bucket, and boto3 to look into them."""

    def __init__(self, endpoint: str, keys: dict[str, str]) -> None:
        name = uuid.uuid4().hex[:8]
        self.source, self.mirror = f"src-{name}", f"dst-{name}"
        pair = {f"aws_{key}": value for key, value in keys.items()}
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **pair)
        for bucket in (self.source, self.mirror):
            self.client.create_bucket(Bucket=bucket)
        options = {"endpoint": endpoint, "region": "us-east-1", "force_path_style": True, "tries": 2, **keys}
        self.stores = FastObjectStore(**options), FastObjectStore(**options)

    def mover(self, *, within: bool = False, seconds: float = 60.0, rate: float = 0.0) -> Mover:
        until, marks = Deadline(time.time() + seconds), f"s3://{self.mirror}/{UPLOAD_MARKS}"
        return Mover(*self.stores, until, within=within, rate=Rate(rate), marks=marks)

    def bring(self, key: str, size: int, etag: str = "", **options: Any) -> Any:
        one = self.mover(**options)
        try:
            return one.bring(f"s3://{self.source}/{key}", f"s3://{self.mirror}/{key}", size, etag)
        finally:
            one.close()

    def put(self, key: str, data: bytes, **more: Any) -> str:
        return str(self.client.put_object(Bucket=self.source, Key=key, Body=data, **more)["ETag"]).strip('"')

    def upload(self, key: str, data: bytes, *sizes: int, **more: Any) -> str:
        """An object in parts of these sizes; gives its ETag."""
        where = {"Bucket": self.source, "Key": key}
        upload_id = self.client.create_multipart_upload(**where, **more)["UploadId"]
        parts, at = [], 0
        for number, size in enumerate(sizes, 1):
            body = data[at : at + size]
            given = self.client.upload_part(**where, UploadId=upload_id, PartNumber=number, Body=body)
            parts.append({"PartNumber": number, "ETag": given["ETag"]})
            at += size
        self.client.complete_multipart_upload(**where, UploadId=upload_id, MultipartUpload={"Parts": parts})
        return str(self.client.head_object(**where)["ETag"]).strip('"')

    def begin(self, key: str, *parts: bytes) -> str:
        """An upload of somebody else to the mirror's bucket, which is not finished; gives its id."""
        where = {"Bucket": self.mirror, "Key": key}
        upload_id = str(self.client.create_multipart_upload(**where)["UploadId"])
        for number, body in enumerate(parts, 1):
            self.client.upload_part(**where, UploadId=upload_id, PartNumber=number, Body=body)
        return upload_id

    def unfinished(self, key: str) -> dict[str, list[int]]:
        """The uploads to a key of the mirror's bucket, with the sizes of their parts."""
        where = {"Bucket": self.mirror}
        found = self.client.list_multipart_uploads(**where, Prefix=key).get("Uploads", ())
        ids = [str(one["UploadId"]) for one in found if one["Key"] == key]
        parts = {one: self.client.list_parts(**where, Key=key, UploadId=one).get("Parts", ()) for one in ids}
        return {one: [part["Size"] for part in listed] for one, listed in parts.items()}

    def marks(self) -> list[str]:
        """Of uploads that have not ended."""
        listed = self.client.list_objects_v2(Bucket=self.mirror, Prefix=UPLOAD_MARKS)
        return [str(one["Key"]) for one in listed.get("Contents", ())]

    def there(self, key: str) -> dict[str, Any]:
        return dict(self.client.head_object(Bucket=self.mirror, Key=key))

    def bytes_there(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=self.mirror, Key=key)["Body"].read())


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    if REAL:
        parts = urlsplit(REAL)
        keys = {"access_key_id": parts.username or "", "secret_access_key": parts.password or ""}
        yield Place(f"{parts.scheme}://{parts.hostname}:{parts.port}", keys)
        return
    with running_moto() as endpoint:
        yield Place(endpoint, KEYS)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("key", ODD)
def test_25_an_object_keeps_its_bytes_its_etag_and_its_headers(place: Place, key: str, within: bool) -> None:
    data = key.encode() * 3
    told = {"ContentType": "text/x-odd", "Metadata": {"owner": "olga"}, "CacheControl": "no-store"}
    etag = place.put(key, data, **told)
    info = place.bring(key, len(data), within=within)
    there = place.there(key)
    assert (info.size, info.etag) == (len(data), etag) == (there["ContentLength"], there["ETag"].strip('"'))
    assert {name: there[name] for name in told} == told
    assert place.bytes_there(key) == data


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("sizes", [[], [6 * MIB, 6 * MIB]], ids=["whole", "parts"])
def test_what_a_client_has_compressed_comes_as_it_lies_there(place: Place, sizes: list[int], within: bool) -> None:
    data, told = gzip.compress(os.urandom(sum(sizes) - 4096 if sizes else 1000)), {"ContentEncoding": "gzip"}
    key = f"page-{len(sizes)}-{within}.gz"
    parts = [*sizes[:-1], len(data) - sum(sizes[:-1])] if sizes else []
    etag = place.upload(key, data, *parts, **told) if sizes else place.put(key, data, **told)
    info = place.bring(key, len(data), within=within)
    assert (info.size, info.etag) == (len(data), etag)
    assert place.there(key)["ContentEncoding"] == "gzip"
    assert place.bytes_there(key) == data


@pytest.mark.parametrize("within", [False, True])
def test_an_upload_that_somebody_else_gave_up_says_nothing_of_the_bucket(place: Place, within: bool) -> None:
    """Two tasks that copy one object: the second one takes the first one's upload for a leftover."""
    data, key = os.urandom(10 * MIB), f"shared-{within}"
    etag = place.upload(key, data, 5 * MIB, 5 * MIB)

    def given_up(uploads: Uploads, uri: str, upload_id: str, *_: Any) -> None:
        uploads.abort(uri, upload_id)
        raise NotFound("404 NoSuchUpload")  # moto answers 500

    with mock.patch.object(Uploads, "complete", given_up), pytest.raises(Unbrought) as caught:
        place.bring(key, len(data), within=within)
    assert (caught.value.side, type(caught.value.error)) == (Side.DESTINATION, RemoteFailure)
    assert place.bring(key, len(data), within=within).etag == etag


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("claimed", [0, 5, 10])
def test_25_an_empty_object_whatever_its_entry_claims(place: Place, claimed: int, within: bool) -> None:
    place.put("empty", b"")
    info = place.bring("empty", claimed, within=within)
    assert (info.size, info.etag) == (0, hashlib.md5(b"").hexdigest())


def test_an_object_that_is_larger_than_its_entry_claims_comes_whole(place: Place) -> None:
    data = os.urandom(9 * MIB)
    etag = place.put("larger", data)
    assert place.bring("larger", 10).etag == etag
    assert place.bytes_there("larger") == data


SHAPES = {
    "usual": (8 * MIB, [8 * MIB, 5 * MIB]),
    "smallest": (5 * MIB, [5 * MIB, 5 * MIB, 1]),
    "one": (5 * MIB, [5 * MIB]),
    "odd": (6 * MIB, [6 * MIB + 0, 6 * MIB, 12_345]),
}


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("tells_parts", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_21_an_object_in_parts_gets_the_etag_of_the_source(
    place: Place, shape: str, tells_parts: bool, within: bool
) -> None:
    _, sizes = SHAPES[shape]
    data, key = os.urandom(sum(sizes)), f"parts/{shape}"
    etag = place.upload(key, data, *sizes, ContentType="text/x-parts")
    untold = mock.patch.object(Mover, "_first_part", lambda *_: 0)
    with mock.patch.object(Mover, "_first_part", Mover._first_part) if tells_parts else untold:
        info = place.bring(key, len(data), within=within)
    assert (info.etag, info.size) == (etag, len(data))
    assert place.there(key)["ContentType"] == "text/x-parts"
    assert place.bytes_there(key) == data


def test_parts_that_no_client_makes_come_in_others_with_the_same_bytes(place: Place) -> None:
    sizes = [7 * MIB + 1, 5 * MIB + 3, 77]
    data = os.urandom(sum(sizes))
    etag = place.upload("strange", data, *sizes)
    info = place.bring("strange", len(data))
    assert info.size == len(data)
    assert info.etag != etag
    assert place.bytes_there("strange") == data


def test_an_upload_that_was_broken_off_is_gone_on_with(place: Place) -> None:
    data = os.urandom(11 * MIB)
    etag = place.upload("broken", data, 5 * MIB, 5 * MIB, MIB)
    sent: list[int] = []
    put = mover.Uploads.put

    def count(uploads: Any, uri: str, upload_id: str, number: int, body: bytes, *more: Any) -> Any:
        if len(sent) == 1:
            sent.append(0)
            raise Late
        sent.append(number)
        return put(uploads, uri, upload_id, number, body, *more)

    with (
        mock.patch.object(Mover, "_first_part", lambda *_: 5 * MIB),
        mock.patch.object(mover, "IN_FLIGHT", 5 * MIB),
        mock.patch.object(mover.Uploads, "put", count),
    ):
        with pytest.raises(Late):
            place.bring("broken", len(data))
        assert place.bring("broken", len(data)).etag == etag
    assert (sent[1], sorted([sent[0], *sent[2:]])) == (0, [1, 2, 3]), "no part is sent twice"


@pytest.mark.parametrize("within", [False, True])
def test_uploads_of_others_to_the_same_key_are_left_alone(place: Place, within: bool) -> None:
    """A store that replicates by itself may be at it, with parts of any size: of the very same, too."""
    data, key = os.urandom(11 * MIB), f"others-{within}"
    etag = place.upload(key, data, 5 * MIB, 5 * MIB, MIB)
    theirs = {place.begin(key, b"x" * (5 * MIB)): [5 * MIB], place.begin(key, b"y" * 100): [100], place.begin(key): []}
    with mock.patch.object(Mover, "_first_part", lambda *_: 5 * MIB):
        assert place.bring(key, len(data), within=within).etag == etag
    assert place.unfinished(key) == theirs
    assert (place.bytes_there(key), place.marks()) == (data, [])


def test_an_upload_of_ours_in_other_parts_is_given_up(place: Place) -> None:
    """Whoever began it is gone: the source's object came in other parts since."""
    data = os.urandom(11 * MIB)
    place.upload("again", data, 6 * MIB, 5 * MIB)
    late = mock.patch.object(mover.Uploads, "complete", side_effect=Late)
    with mock.patch.object(Mover, "_first_part", lambda *_: 6 * MIB), late, pytest.raises(Late):
        place.bring("again", len(data))
    assert len(place.unfinished("again")) == len(place.marks()) == 1
    etag = place.upload("again", data, 5 * MIB, 5 * MIB, MIB)
    with mock.patch.object(Mover, "_first_part", lambda *_: 5 * MIB):
        assert place.bring("again", len(data)).etag == etag
    assert (place.unfinished("again"), place.marks()) == ({}, [])


class Killed(BaseException):
    """The process is gone: nothing of it goes on."""


def killed_after(place: Place, last: int) -> Any:
    """The destination answers so many requests, and nobody hears the last answer, or sends another request."""
    store, send, sent = place.stores[1], FastObjectStore.send, list[str]()

    def counted(own: FastObjectStore, method: str, *what: Any, **more: Any) -> Any:
        if len(sent) == last:
            raise Killed
        answer = send(own, method, *what, **more)
        if own is store:
            sent.append(method)
            if len(sent) == last:
                raise Killed
        return answer

    return mock.patch.object(FastObjectStore, "send", counted)


def test_4_killed_after_any_request_nothing_is_half_visible_and_the_next_pass_leaves_no_parts(place: Place) -> None:
    """Between the begin of an upload and its mark it can't be known for ours: it stays, and holds no bytes."""
    data = os.urandom(5 * MIB + 1)
    etag, source = place.upload("victim", data, 5 * MIB, 1), f"s3://{place.source}/victim"
    first_part = mock.patch.object(Mover, "_first_part", lambda *_: 5 * MIB)
    with first_part, mock.patch.object(mover, "PARTS_AT_ONCE", 1):
        for last in range(1, 20):
            key = f"killed-{last}"
            one = place.mover()
            try:
                with killed_after(place, last):
                    one.bring(source, f"s3://{place.mirror}/{key}", len(data))
                break
            except Killed:
                seen = place.client.list_objects_v2(Bucket=place.mirror, Prefix=key).get("Contents", ())
                assert [found["ETag"].strip('"') for found in seen if found["Key"] == key] in ([], [etag])
            another = place.mover()
            assert another.bring(source, f"s3://{place.mirror}/{key}", len(data)).etag == etag
            assert all(parts == [] for parts in place.unfinished(key).values()) and len(place.unfinished(key)) <= 1
            another.close()
    assert 5 < last < 19, "every request had its turn"
    assert len(place.marks()) <= 1, "of the one that was killed when it had taken the upload's end for done"


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("size", [4, 9 * MIB])
def test_23_what_was_overwritten_since_somebody_looked_is_not_brought(place: Place, size: int, within: bool) -> None:
    key = f"since-{size}-{within}"
    looked_at, etag = place.put(key, bytes(size)), place.put(key, b"\1" * size)
    with pytest.raises(Unbrought, match="was overwritten"):
        place.bring(key, size, looked_at, within=within)
    assert place.client.list_objects_v2(Bucket=place.mirror, Prefix=key)["KeyCount"] == 0
    assert place.bring(key, size, etag, within=within).etag == etag


@pytest.mark.parametrize("within", [False, True])
def test_23_a_source_that_is_overwritten_while_it_is_read_leaves_no_mixture(place: Place, within: bool) -> None:
    key, old, new = f"changed-{within}", os.urandom(11 * MIB), os.urandom(11 * MIB)
    sizes, marks = (5 * MIB, 5 * MIB, MIB), place.marks()
    place.upload(key, old, *sizes)
    verb, sent = ("copy" if within else "put"), list[int]()
    carry_out = getattr(mover.Uploads, verb)

    def overwritten(uploads: Any, uri: str, upload_id: str, number: int, *what: Any) -> Any:
        part = carry_out(uploads, uri, upload_id, number, *what)
        if not sent:
            place.upload(key, new, *sizes)
        sent.append(number)
        return part

    one_by_one = mock.patch.object(mover, "PARTS_AT_ONCE", 1)
    first_part = mock.patch.object(Mover, "_first_part", lambda *_: 5 * MIB)
    with one_by_one, first_part, mock.patch.object(mover.Uploads, verb, overwritten):
        with pytest.raises(Unbrought) as caught:
            place.bring(key, len(old), within=within)
        assert caught.value.error.retryable or within, "it is looked at again"
        assert place.client.list_objects_v2(Bucket=place.mirror, Prefix=key)["KeyCount"] == 0
        place.bring(key, len(new), within=within)
    assert place.bytes_there(key) == new
    assert (place.unfinished(key), place.marks()) == ({}, marks)


def test_24_where_a_key_of_kms_encrypts_what_is_written_the_size_decides_and_it_is_said(place: Place) -> None:
    """Its ETag is no hash of the content then: here it is made so, for moto keeps it."""
    data = os.urandom(11 * MIB)
    etag = place.upload("secret", data, 6 * MIB, 5 * MIB)
    place.put("secret-small", b"abc")
    found, put, sent = Mover._found, mover.Uploads.put, list[int]()

    def opaque(own: Mover, uri: str) -> ObjectInfo:
        return found(own, uri)._replace(etag=f"{'0f' * 16}-2")

    def count(uploads: Any, uri: str, upload_id: str, number: int, body: bytes, *more: Any) -> Any:
        sent.append(number)
        return put(uploads, uri, upload_id, number, body, *more)

    with encrypted(place), mock.patch.object(Mover, "_found", opaque), mock.patch.object(mover.Uploads, "put", count):
        small = place.bring("secret-small", 3)
        large = place.bring("secret", len(data))
    assert (small.encryption, large.encryption, large.size) == ("aws:kms", "aws:kms", len(data))
    assert sorted(sent) == [1, 2], "no other sizes of parts are tried for an ETag that none can give"
    assert place.bytes_there("secret") == data
    named = plain_etag(etag)
    assert judge_object(large, size=len(data), etag=named, depth=Depth.ETAG) is None
    assert note_object(large, etag=named, depth=Depth.ETAG) is Note.BY_SIZE
    assert judge_object(large, size=len(data) - 1, etag=named, depth=Depth.ETAG) is not None


@contextmanager
def encrypted(place: Place) -> Iterator[None]:
    """The mirror's bucket encrypts by a key of KMS what doesn't say otherwise."""
    if REAL:
        pytest.skip("a real server has no such key")
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "arn:aws:kms:key/1"}}
    given = {"Rules": [rule]}
    place.client.put_bucket_encryption(Bucket=place.mirror, ServerSideEncryptionConfiguration=given)
    try:
        yield
    finally:
        place.client.delete_bucket_encryption(Bucket=place.mirror)


@pytest.mark.skipif(bool(REAL), reason="a real server that is at hand has no archive")
def test_24_an_archived_object_is_brought_once_it_is_restored(place: Place) -> None:
    etag = place.put("archived", b"cold", StorageClass="GLACIER")
    with pytest.raises(Unbrought) as caught:
        place.bring("archived", 4)
    assert (caught.value.side, type(caught.value.error)) == (Side.SOURCE, Archived)
    place.client.restore_object(Bucket=place.source, Key="archived", RestoreRequest={"Days": 1})
    assert place.bring("archived", 4).etag == etag
    assert "StorageClass" not in place.there("archived"), "the copy can be read"


def test_what_the_source_lacks_is_gone(place: Place) -> None:
    for within in (False, True):
        for size in (0, 10, 20 * MIB):
            with pytest.raises(Unbrought) as caught:
                place.bring("nowhere", size, within=within)
            assert caught.value.gone


def test_a_bucket_that_is_not_there_is_the_destinations(place: Place) -> None:
    place.put("fine", b"fine")
    for within in (False, True):
        one = place.mover(within=within)
        with pytest.raises(Unbrought) as caught:
            one.bring(f"s3://{place.source}/fine", "s3://no-such-bucket-here/fine", 4)
        assert (caught.value.side, type(caught.value.error), caught.value.gone) == (Side.DESTINATION, NoBucket, False)


def test_bytes_that_are_not_the_sources_are_not_written(place: Place) -> None:
    place.put("torn", b"right bytes")
    asked = FastObjectStore.asked

    def torn(store: Any, method: str, *args: Any) -> Any:
        answer = asked(store, method, *args)
        wrong = mock.Mock(headers=answer.headers, data=b"wrong bytes", status=answer.status)
        return wrong if method == "GET" else answer

    with mock.patch.object(FastObjectStore, "asked", torn), pytest.raises(Unbrought) as caught:
        place.bring("torn", 11)
    assert isinstance(caught.value.error, RemoteFailure)
    assert "Contents" not in place.client.list_objects_v2(Bucket=place.mirror, Prefix="torn")


@pytest.fixture
def large(place: Place) -> Iterator[bytes]:
    """A large object of the source in one piece, under the key `large`."""
    data = bytes(range(256)) * 64
    place.put("large", data)
    with mock.patch.object(mover, "PUT_WHOLE", 1000):
        yield data
    for bucket in (place.source, place.mirror):
        place.client.delete_object(Bucket=bucket, Key="large")


def headers_sent(place: Place, **patches: Any) -> list[dict[str, str]]:
    """What the writes of `large` said, in bringing it; `answer` is put in the place of the first one's."""
    said: list[dict[str, str]] = []
    send = FastObjectStore.send

    def noted(store: Any, method: str, url: str, doing: str, headers: Any = NO_HEADERS, *args: Any, **more: Any) -> Any:
        if method == "PUT":
            said.append({name.lower(): value for name, value in headers.items()})
            if "answer" in patches:
                raise patches["answer"]
        return send(store, method, url, doing, headers, *args, **more)

    with mock.patch.object(FastObjectStore, "send", noted):
        place.bring("large", 16384)
    return said


def test_a_large_object_goes_with_the_md5_of_the_source_and_is_not_hashed_here(place: Place, large: bytes) -> None:
    with mock.patch("adapters.s3.originals.md5_of", side_effect=AssertionError("hashed")):
        [said] = headers_sent(place)
    assert base64.b64decode(said["content-md5"]).hex() == hashlib.md5(large).hexdigest()
    assert place.bytes_there("large") == large


def test_of_a_large_object_whose_bytes_are_refused_it_is_said_whose_fault_that_is(place: Place, large: bytes) -> None:
    refused = Invalid("the Content-MD5 you specified did not match")
    with pytest.raises(Unbrought) as caught:
        headers_sent(place, answer=refused)
    assert (caught.value.side, caught.value.error) == (Side.DESTINATION, refused)
    wrong = mock.patch.object(FastObjectStore, "read", return_value=large[::-1])
    with wrong, pytest.raises(Unbrought) as caught:
        headers_sent(place, answer=refused)
    assert caught.value.side is Side.SOURCE
    assert "returned bytes with the MD5" in str(caught.value)


def test_where_no_check_looks_at_etags_a_large_object_is_hashed_before_it_is_written(
    place: Place, large: bytes
) -> None:
    one = Mover(*place.stores, Deadline(time.time() + 60), within=False, rate=Rate(0), hashes=True)
    uris = f"s3://{place.source}/large", f"s3://{place.mirror}/large"
    with mock.patch.object(FastObjectStore, "read", return_value=large[::-1]), pytest.raises(Unbrought) as caught:
        one.bring(*uris, len(large))
    assert caught.value.side is Side.SOURCE
    with pytest.raises(ClientError):
        place.there("large")
    assert one.bring(*uris, len(large)).etag == hashlib.md5(large).hexdigest()


def test_a_store_that_takes_other_bytes_of_a_large_object_all_the_same_is_found_out(place: Place, large: bytes) -> None:
    if REAL:
        pytest.skip("real stores refuse them")
    with mock.patch.object(FastObjectStore, "read", return_value=large[::-1]), pytest.raises(Unbrought) as caught:
        place.bring("large", 16384)
    assert caught.value.side is Side.SOURCE


def test_nothing_begins_after_the_deadline(place: Place) -> None:
    place.put("late", b"late")
    with pytest.raises(Late):
        place.bring("late", 4, seconds=-1.0)


def test_a_rate_lets_later_objects_wait(place: Place) -> None:
    place.put("paced", b"x" * 1000)
    one = place.mover(rate=10_000.0)
    began = time.monotonic()
    for _ in range(4):
        one.bring(f"s3://{place.source}/paced", f"s3://{place.mirror}/paced", 1000)
    assert time.monotonic() - began > 0.29


def test_a_small_file_is_read_and_written_back(place: Place) -> None:
    place.put("_lakefs/abc", b"metadata")
    one = place.mover()
    one.write(f"s3://{place.mirror}/_lakefs/abc", one.read(f"s3://{place.source}/_lakefs/abc"))
    assert place.bytes_there("_lakefs/abc") == b"metadata"
    assert one.shows(f"s3://{place.source}/_lakefs/")
    assert not one.shows(f"s3://{place.mirror}/nothing/")


def test_a_write_that_reads_back_otherwise_is_none(place: Place) -> None:
    one = place.mover()
    with mock.patch.object(FastObjectStore, "read", return_value=b"other"), pytest.raises(Unbrought) as caught:
        one.write(f"s3://{place.mirror}/_lakefs/torn", b"mine")
    assert caught.value.side is Side.DESTINATION
