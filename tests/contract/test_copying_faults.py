"""Writes to a store that misbehaves: errors in good answers, throttling, batches that it does not know."""

from __future__ import annotations

import time
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pytest
import urllib3

from adapters.s3.copier import Copier, Destination, Item, described, is_of
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.refusals import answer_error
from adapters.s3.writes import Writer
from core.errors import Denied, LakeMirrorError, RemoteFailure, Throttled, Unreachable
from core.exporting.deadline import Deadline, Late, Rate
from core.exporting.failure_reasons import KeyFailed, Reason, reason_of
from core.types import ObjectInfo

COPIED = b"<CopyObjectResult><ETag>&quot;e&quot;</ETag></CopyObjectResult>"
FAILED = (
    b'   <?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>try again</Message></Error>'
)
SLOW = b"<Error><Code>SlowDown</Code><Message>slow</Message></Error>"
ITEM = Item(b"key", "s3://lake/object", 1, "e")


class Scripted(FastObjectStore):
    """Answers in turn; an exception is raised. The last answer is given for ever."""

    def __init__(self, *answers: bytes | LakeMirrorError) -> None:
        super().__init__(endpoint="http://store.test", access_key_id="k", secret_access_key="s")
        self.answers = list(answers)
        self.asked: list[tuple[str, str, bytes]] = []
        self.there: ObjectInfo | None = ObjectInfo("object", 1, "e")

    def send(
        self,
        method: str,
        url: str,
        doing: str,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        read_seconds: float = 0.0,
        *,
        unsigned: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        self.asked.append((method, url.removeprefix("http://store.test"), body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, LakeMirrorError):
            raise answer
        return urllib3.HTTPResponse(BytesIO(answer), {"etag": '"e"'}, 200)

    def head(self, uri: str) -> ObjectInfo | None:
        return self.there


class Clock:
    """A deadline's time, which passes by pauses alone."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, []

    def deadline(self, at: float = 1000.0) -> Deadline:
        return Deadline(at, clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def copier(store: FastObjectStore, clock: Clock, at: float = 1000.0, **options: Any) -> Copier:
    return Copier(store, store, Destination("s3://out/to"), clock.deadline(at), within=True, **options)


@pytest.mark.parametrize("first", [FAILED, SLOW, RemoteFailure("500"), Unreachable("gone"), Throttled("slow")])
def test_what_may_pass_is_tried_again_also_when_it_comes_with_a_200(clock: Clock, first: bytes) -> None:
    store = Scripted(first, COPIED)
    copier(store, clock).copy(ITEM)
    assert len(store.asked) == 2 and len(clock.pauses) == 1


def test_an_error_in_a_200_that_stays_is_a_failure(clock: Clock) -> None:
    with pytest.raises(RemoteFailure, match="InternalError"):
        copier(Scripted(FAILED), clock).copy(ITEM)


def test_a_200_that_is_no_answer_is_a_failure(clock: Clock) -> None:
    for nonsense in (b"", b"<html>", b"<CopyObjectResult/>"):
        with pytest.raises(RemoteFailure):
            copier(Scripted(nonsense), clock).copy(ITEM)


def test_pauses_grow_and_are_as_long_as_the_store_asks_for(clock: Clock) -> None:
    store = Scripted(Throttled("slow"), RemoteFailure("500"), Throttled("slow", retry_after=4), COPIED)
    copier(store, clock).copy(ITEM)
    first, second, third = clock.pauses
    assert 0.1 <= first <= 0.2 < 0.4 <= second <= 0.8 and third >= 4


def test_a_refusal_is_not_tried_again(clock: Clock) -> None:
    store = Scripted(Denied("no"))
    with pytest.raises(Denied):
        copier(store, clock).copy(ITEM)
    assert len(store.asked) == 1


def test_no_pause_goes_beyond_the_deadline(clock: Clock) -> None:
    store = Scripted(Throttled("slow", retry_after=4))
    with pytest.raises(Late):
        copier(store, clock, at=6.0).copy(ITEM)
    assert len(store.asked) == 2 and clock.now < 6


def test_a_store_that_does_not_look_at_conditions_is_found_out(clock: Clock) -> None:
    store = Scripted(COPIED.replace(b"quot;e&", b"quot;other&"), b"<DeleteResult/>")
    store.there = ObjectInfo("object", 1, "other")
    with pytest.raises(KeyFailed, match="source object changed"):
        copier(store, clock).copy(ITEM)
    assert [method for method, _, _ in store.asked] == ["PUT", "POST"]


def test_where_etags_differ_all_later_copies_are_stamped_at_once(clock: Clock) -> None:
    store = Scripted(COPIED.replace(b"quot;e&", b"quot;kms&"))
    one = copier(store, clock)
    one.copy(ITEM)
    assert len(store.asked) == 2
    one.copy(ITEM)
    assert len(store.asked) == 3


def test_bytes_wait_for_their_turn(clock: Clock) -> None:
    one = copier(Scripted(COPIED), clock, bytes_rate=Rate(0.5, clock=lambda: clock.now))
    for _ in range(3):
        one.copy(ITEM)
    assert clock.pauses == [2.0, 2.0]


# --- deletes ---------------------------------------------------------------------------------------------------------


def writer(store: FastObjectStore, clock: Clock) -> Writer:
    return Writer(store, clock.deadline())


def test_what_a_batch_could_not_delete_is_tried_alone(clock: Clock) -> None:
    told = b"<DeleteResult><Error><Key>b&amp;</Key><Code>AccessDenied</Code></Error></DeleteResult>"
    store = Scripted(told, Denied("not this one"))
    failed = writer(store, clock).delete(["s3://out/a", "s3://out/b&", "s3://out/c"])
    assert list(failed) == ["s3://out/b&"] and "not this one" in str(failed["s3://out/b&"])
    assert [asked[:2] for asked in store.asked] == [("POST", "/out/?delete="), ("DELETE", "/out/b%26")]


@pytest.mark.parametrize("answer", [b"", b"<Other/>", b"<DeleteResult><Error><Key>x</Key></Error></DeleteResult>"])
def test_a_batch_that_is_not_understood_is_done_again_one_by_one(clock: Clock, answer: bytes) -> None:
    store = Scripted(answer, b"")
    assert writer(store, clock).delete(["s3://out/a", "s3://out/b"]) == {}
    assert [method for method, _, _ in store.asked] == ["POST", "DELETE", "DELETE"]


def test_a_store_without_batches_is_asked_once_for_one(clock: Clock) -> None:
    store = Scripted(answer_error(501, "NotImplemented", "", "post", "the store"), b"")
    one = writer(store, clock)
    assert one.delete(["s3://out/a"]) == {} and one.delete(["s3://out/b"]) == {}
    assert [method for method, _, _ in store.asked] == ["POST", "DELETE", "DELETE"]


def test_keys_that_xml_cannot_hold_are_deleted_alone(clock: Clock) -> None:
    store = Scripted(b"<DeleteResult/>")
    writer(store, clock).delete(["s3://out/\x00", "s3://out/a\r\n&<"])
    assert [asked[:2] for asked in store.asked] == [("POST", "/out/?delete="), ("DELETE", "/out/%00")]
    assert b"<Key>a&#13;&#10;&amp;&lt;</Key>" in store.asked[0][2]


# --- pure parts ------------------------------------------------------------------------------------------------------


def test_an_etag_is_compared_without_the_number_of_parts() -> None:
    assert is_of("e", "e") and is_of("e-3", "e") and is_of("anything", "") and is_of("e-3", "e-3")
    assert not is_of("f", "e") and not is_of("e", "e-3")


def test_metadata_is_told_once_whatever_its_prefix_and_stamped_if_asked() -> None:
    item = Item(b"k", "s3://lake/o", 1, "e", "text/x", {"X-Amz-Meta-A": "1", "b": "2"})
    assert described(item, stamped=False) == {"content-type": "text/x", "x-amz-meta-a": "1", "x-amz-meta-b": "2"}
    assert described(item, stamped=True)["x-amz-meta-lakemirror-etag"] == "e"


def test_reasons_are_told_by_class() -> None:
    assert reason_of(KeyFailed(Reason.GONE, "x")) is Reason.GONE
    assert reason_of(Denied("x")) is Reason.DENIED and reason_of(RemoteFailure("x")) is Reason.STORE
    assert reason_of(Throttled("x")) is Reason.THROTTLED and reason_of(Unreachable("x")) is Reason.UNREACHABLE


def test_a_deadline_is_a_time_of_this_machine() -> None:
    Deadline(time.time() + 60).check()
    with pytest.raises(Late):
        Deadline(time.time() - 1).check()


def test_a_rate_is_shared_and_nothing_is_saved_up(clock: Clock) -> None:
    rate = Rate(2.0, clock=lambda: clock.now)
    assert [rate.turn() for _ in range(3)] == [0.0, 0.5, 1.0]
    clock.now = 100.0
    assert [rate.turn(4), rate.turn()] == [0.0, 2.0]
    assert Rate(0.0).turn(1e9) == 0.0
