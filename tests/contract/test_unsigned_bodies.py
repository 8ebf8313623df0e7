"""Large bodies go without a hash where the bucket takes that, and none that was altered on the way counts: through a
gate before moto, and before a real MinIO where LAKEMIRROR_TEST_MINIO names the binary."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from unittest import mock

import boto3
import pytest

from adapters.s3 import mover
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.mover import Mover
from adapters.s3.unsigned import Compared, UnsignedBodies
from adapters.s3.writes import Writer
from core.bringing import Side, Unbrought
from core.errors import Denied, Invalid, RemoteFailure, Throttled, Unreachable
from core.exporting.deadline import Deadline, Late, Rate
from core.store_access import StoreAccess
from core.types import ObjectInfo
from tests import minio_pair
from tests.contract.gate import Gate, Refusal, gate_before, of_unsigned
from tests.s3_double import KEYS, running_moto

MIB = 1 << 20
DATA = bytes(range(256)) * 64
MINIO = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
DENIED = Refusal(403, "AccessDenied")
real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")


class Ways:
    """From a bucket to another one of the same server, whose writes pass a gate."""

    def __init__(self, gate: Gate, endpoint: str, keys: dict[str, str]) -> None:
        self.gate, name = gate, uuid.uuid4().hex[:8]
        self.source, self.mirror = f"src-{name}", f"dst-{name}"
        pair = {f"aws_{key}": value for key, value in keys.items()}
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **pair)
        for bucket in (self.source, self.mirror):
            self.client.create_bucket(Bucket=bucket)
        told = {"region": "us-east-1", "force_path_style": True, "tries": 2, **keys}
        self.stores = FastObjectStore(endpoint=endpoint, **told), FastObjectStore(endpoint=gate.endpoint, **told)

    def put(self, key: str = "large", data: bytes = DATA) -> None:
        self.client.put_object(Bucket=self.source, Key=key, Body=data)

    def mover(self) -> Mover:
        return Mover(*self.stores, Deadline(time.time() + 60), within=False, rate=Rate(0))

    def bring(self, key: str = "large", size: int = len(DATA)) -> ObjectInfo:
        one = self.mover()
        try:
            return one.bring(f"s3://{self.source}/{key}", f"s3://{self.mirror}/{key}", size)
        finally:
            one.close()

    def there(self, key: str = "large") -> bytes | None:
        listed = self.client.list_objects_v2(Bucket=self.mirror, Prefix=key)
        return bytes(self.client.get_object(Bucket=self.mirror, Key=key)["Body"].read()) if listed["KeyCount"] else None

    @property
    def known(self) -> bool | None:
        return self.stores[1].unsigned.takes(self.mirror)


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with running_moto() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[minio_pair.Minio]:
    server = minio_pair.Minio(tmp_path_factory.mktemp("minio"))
    yield server
    server.stop()


@pytest.fixture(params=["moto", pytest.param("minio", marks=real_minio)])
def ways(request: pytest.FixtureRequest) -> Iterator[Ways]:
    """With a large object of one piece, as objects of more than 1,000 bytes are called here."""
    server = request.getfixturevalue(request.param)
    endpoint, keys = (server, KEYS) if request.param == "moto" else (server.endpoint, MINIO)
    with gate_before(endpoint) as gate, mock.patch.object(mover, "PUT_WHOLE", 1000):
        made = Ways(gate, endpoint, keys)
        made.put()
        yield made


def test_a_large_body_goes_without_a_hash_beside_a_signed_md5(ways: Ways) -> None:
    for _ in range(2):
        ways.bring()
    assert (ways.gate.unsigned, ways.known, ways.there()) == ([True, True], True, DATA)
    assert "content-md5" in ways.gate.signed_headers


def test_parts_do_so_too(ways: Ways) -> None:
    data = os.urandom(11 * MIB)
    where = {"Bucket": ways.source, "Key": "parts"}
    upload_id = ways.client.create_multipart_upload(**where)["UploadId"]
    parts = []
    for number in (1, 2):
        body = data[(number - 1) * 6 * MIB : number * 6 * MIB]
        given = ways.client.upload_part(**where, UploadId=upload_id, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": given["ETag"]})
    ways.client.complete_multipart_upload(**where, UploadId=upload_id, MultipartUpload={"Parts": parts})
    ways.stores[1].unsigned.learn(ways.mirror, True)  # else the second part may go beside the first, which tries it
    assert ways.bring("parts", len(data)).etag == ways.client.head_object(**where)["ETag"].strip('"')
    assert (ways.gate.unsigned, ways.there("parts")) == ([True, True], data)


REFUSALS = [
    DENIED,
    Refusal(403, "AccessDenied", early=True),
    Refusal(403, "SignatureDoesNotMatch"),
    Refusal(400, "InvalidRequest"),
    Refusal(400, "XAmzContentSHA256Mismatch"),
    Refusal(501, "NotImplemented"),
    Refusal(500, "InternalError"),
    Refusal(0),
    Refusal(0, early=True),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_a_bucket_that_wants_a_hash_gets_it_and_that_is_known_from_then_on(ways: Ways, refusal: Refusal) -> None:
    ways.put("another")
    ways.gate.refuses = of_unsigned(refusal)
    ways.bring()
    assert (ways.gate.unsigned, ways.known, ways.there()) == ([True, False], False, DATA)
    ways.bring("another")
    assert ways.gate.unsigned == [True, False, False]
    assert ways.stores[1].unsigned.takes(ways.source) is None, "of another bucket of the store nothing is known"


def test_who_refuses_many_mib_without_reading_them_costs_one_body(ways: Ways) -> None:
    ways.put(data=os.urandom(40 * MIB))
    ways.gate.refuses = of_unsigned(Refusal(403, "AccessDenied", early=True))
    ways.bring(size=40 * MIB)
    assert (ways.gate.unsigned, ways.known) == ([True, False], False)


@pytest.mark.parametrize("refusal", [DENIED, Refusal(0)], ids=str)
def test_of_many_writes_at_once_one_tries_it(ways: Ways, refusal: Refusal) -> None:
    keys = [f"many-{number}" for number in range(8)]
    for key in keys:
        ways.put(key)
    ways.gate.refuses = of_unsigned(refusal)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ways.bring, keys))
    assert (sum(ways.gate.unsigned), ways.known) == (1, False)


def test_what_is_refused_with_a_hash_too_is_told_as_ever_and_teaches_nothing(ways: Ways) -> None:
    ways.gate.refuses = lambda hashed: DENIED
    for _ in range(2):
        with pytest.raises(Unbrought) as caught:
            ways.bring()
        assert (caught.value.side, type(caught.value.error)) == (Side.DESTINATION, Denied)
    assert (ways.gate.unsigned, ways.known) == ([True, False] * 2, None)
    ways.gate.refuses = lambda hashed: None
    ways.bring()
    assert ways.known is True


def test_the_error_is_that_of_the_body_with_a_hash(ways: Ways) -> None:
    ways.gate.refuses = lambda hashed: DENIED if hashed == "UNSIGNED-PAYLOAD" else Refusal(400, "EntityTooLarge")
    with pytest.raises(Unbrought, match="EntityTooLarge") as caught:
        ways.bring()
    assert (type(caught.value.error), ways.known) == (Invalid, None)


def test_a_store_that_is_busy_says_nothing_of_bodies(ways: Ways) -> None:
    ways.gate.refuses = of_unsigned(Refusal(503, "SlowDown"))
    ways.bring()
    assert (ways.gate.unsigned, ways.known, ways.there()) == ([True, False], None, DATA)


def test_a_lost_answer_does_not_count_against_a_bucket_that_took_such_bodies(ways: Ways) -> None:
    ways.bring()
    ways.gate.refuses = of_unsigned(Refusal(0))
    ways.bring()
    assert (ways.gate.unsigned, ways.known) == ([True, True, False], True)


def test_a_policy_that_comes_later_is_learnt(ways: Ways) -> None:
    ways.bring()
    ways.gate.refuses = of_unsigned(DENIED)
    ways.bring()
    assert (ways.gate.unsigned, ways.known) == ([True, True, False], False)


def test_a_body_that_is_altered_on_the_way_does_not_count(ways: Ways) -> None:
    """moto takes it, MinIO refuses it: in the end the right one is there."""
    ways.gate.alters = lambda hashed: hashed == "UNSIGNED-PAYLOAD"
    assert ways.bring().etag == ways.client.head_object(Bucket=ways.source, Key="large")["ETag"].strip('"')
    assert (ways.gate.unsigned, ways.there()) == ([True, False], DATA)


def test_a_body_that_is_altered_each_time_never_counts(ways: Ways, request: pytest.FixtureRequest) -> None:
    ways.gate.alters = lambda hashed: True
    with pytest.raises(Unbrought) as caught:
        ways.bring()
    assert caught.value.side is Side.DESTINATION
    assert isinstance(caught.value.error, (RemoteFailure, Invalid))
    if "minio" in request.node.callspec.id:
        assert ways.there() is None


def test_an_etag_that_is_no_md5_proves_nothing_of_such_a_body(ways: Ways) -> None:
    """As where a key of KMS encrypts: whether the store looked at Content-MD5 can't be told."""
    ways.gate.tells = {"etag": f'"{"0f" * 16}"', "x-amz-server-side-encryption": "aws:kms"}
    for _ in range(2):
        ways.bring()
    assert (ways.gate.unsigned, ways.known, ways.there()) == ([True, False, False], False, DATA)


def test_small_objects_and_what_has_no_md5_are_hashed(ways: Ways) -> None:
    ways.put("small", b"small")
    with mock.patch.object(FastObjectStore, "signed_headers", autospec=True, side_effect=hashes_seen(seen := [])):
        ways.bring("small", 5)
    assert seen and "UNSIGNED-PAYLOAD" not in seen


def hashes_seen(seen: list[str]) -> object:
    signed_headers = FastObjectStore.signed_headers

    def noted(*args: object, **more: object) -> dict[str, str]:
        given = signed_headers(*args, **more)  # type: ignore[arg-type]
        seen.append(given["X-Amz-Content-SHA256"])
        return given

    return noted


def test_a_lost_answer_is_told_of_also_where_the_next_one_is_good(ways: Ways) -> None:
    ways.gate.refuses = of_unsigned(Refusal(0))
    writer = Writer(ways.stores[1], Deadline(time.time() + 60))
    digest = ways.client.head_object(Bucket=ways.source, Key="large")["ETag"].strip('"')
    writer.write_compared(f"s3://{ways.mirror}/large", digest, DATA)
    assert writer.unanswered
    ways.gate.refuses = of_unsigned(DENIED)
    ways.stores[1].unsigned.learn(ways.mirror, True)
    writer = Writer(ways.stores[1], Deadline(time.time() + 60))
    writer.write_compared(f"s3://{ways.mirror}/large", digest, DATA)
    assert not writer.unanswered, "a refusal is an answer"


ON_THE_WAY = [
    ("https://s3.example.com", "", True),
    ("https://s3.example.com", "http://proxy.example.com:3128", True),
    ("http://localhost:9000", "", True),
    ("http://127.0.0.1:9000", "", True),
    ("http://[::1]:9000", "", True),
    ("http://127.0.0.1:9000", "http://proxy.example.com:3128", False),
    ("http://10.0.0.7:9000", "", False),
    ("http://minio.example.com", "", False),
]


@pytest.mark.parametrize(("endpoint", "proxy", "goes"), ON_THE_WAY)
def test_bodies_that_somebody_on_the_way_can_alter_are_hashed(endpoint: str, proxy: str, goes: bool) -> None:
    """A store that ignores Content-MD5 may carry out an altered write, whose answer got lost, after the right one."""
    store = FastObjectStore(endpoint=endpoint, region="us-east-1", access=StoreAccess(proxy=proxy), **KEYS)
    assert store.unsigned.may("bucket") is goes


# --- tries and deadlines ----------------------------------------------------------------------------------------------


def test_a_refusal_is_no_try_of_its_own_and_a_lost_answer_is_one() -> None:
    for error, tries in ((Denied("no"), 3), (Unreachable("no answer"), 2), (Throttled("slow"), 2)):
        sent: list[bool] = []
        store = mock.Mock(unsigned=UnsignedBodies(), where="store", url=lambda *_: "http://store/b/k")

        def refuse(*_: object, unsigned: bool, sent: list[bool] = sent, error: Exception = error) -> None:
            sent.append(unsigned)
            raise error if unsigned else Unreachable("no answer")

        store.send = refuse
        with pytest.raises(Unreachable):
            Writer(store, Deadline(1e12, sleep=lambda _: None), tries=2).write_compared("s3://b/k", "0f" * 16, b"x")
        assert sent == [True] + [False] * (tries - 1), error
        assert store.unsigned.takes("b") is None


def test_the_hashed_body_is_not_begun_after_the_deadline() -> None:
    now, sent = [0.0], list[bool]()

    def refuse(unsigned: bool) -> None:
        sent.append(unsigned)
        now[0] = 2.0
        raise Denied("no")

    bodies = UnsignedBodies()
    deadline = Deadline(1.0, clock=lambda: now[0])
    with pytest.raises(Late), closing(Compared(refuse, "0f" * 16, bodies, "b", deadline)) as tried:  # type: ignore[arg-type]
        tried()
    assert sent == [True]
    assert bodies.may("b"), "nothing was learnt: the next one tries"


# --- a real policy ----------------------------------------------------------------------------------------------------


@real_minio
def test_a_policy_of_minio_that_refuses_unsigned_bodies(minio: minio_pair.Minio) -> None:
    with gate_before(minio.endpoint) as gate:
        ways = Ways(gate, minio.endpoint, MINIO)
        unsigned = {"StringEquals": {"s3:x-amz-content-sha256": "UNSIGNED-PAYLOAD"}}
        everything = {"Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]}
        policy = [{"Effect": "Allow", **everything}, {"Effect": "Deny", **everything, "Condition": unsigned}]
        minio.user("careful", "careful-secret", {"Version": "2012-10-17", "Statement": policy})
        keys = {"access_key_id": "careful", "secret_access_key": "careful-secret"}
        store = FastObjectStore(endpoint=gate.endpoint, region="us-east-1", force_path_style=True, tries=2, **keys)
        ways.stores = ways.stores[0], store
        data = os.urandom(40 * MIB)
        ways.put(data=data)
        for _ in range(2):
            ways.bring(size=len(data))
    assert (gate.unsigned, ways.known, ways.there()) == ([True, False, False], False, data)
