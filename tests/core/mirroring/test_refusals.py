"""What one refused key says: of that key, as long as the store answers for anything at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import (
    Archived,
    Conflict,
    Denied,
    Full,
    Invalid,
    LakeMirrorError,
    NotFound,
    NotSent,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
)
from core.mirroring.content_proof import Prover, Refusals
from core.mirroring.object_check import OF_RANGE, Reason, What, judge_refused
from core.types import ObjectInfo

NAMESPACE = "s3://dst/lake"
DESCRIPTOR = f"{NAMESPACE}/_lakemirror/mirror.json"
OBJECT, FAR = f"{NAMESPACE}/data/a", "s3://far/a"
OF_THE_STORE = [NotSent("x"), Throttled("x"), Full("x"), Unauthenticated("x")]
FAILURES = [Unreachable("no answer in 60 s"), RemoteFailure("500")]


class Store:
    """Answers everything with the same: an error, or that there is no such object. Notes what it was asked for."""

    def __init__(self, error: LakeMirrorError | None = None) -> None:
        self.error = error
        self.asked: list[str] = []

    def head(self, uri: str) -> ObjectInfo | None:
        self.asked.append(uri)
        if self.error is not None:
            raise self.error
        return None

    def get(self, uri: str) -> bytes:
        self.head(uri)
        raise NotFound(uri)


@pytest.mark.parametrize(
    ("what", "archived", "unreadable"),
    [
        (What.OBJECT, Reason.ARCHIVED, Reason.UNREADABLE),
        (What.RANGE, Reason.RANGE_ARCHIVED, Reason.RANGE_UNREADABLE),
        (What.METARANGE, Reason.METARANGE_ARCHIVED, Reason.METARANGE_UNREADABLE),
    ],
)
def test_each_kind_of_thing_has_its_reasons_with_the_store_s_words(
    what: What, archived: Reason, unreadable: Reason
) -> None:
    for error, reason in ((Archived("in ice"), archived), (Denied("no"), unreadable), (Invalid("odd"), unreadable)):
        verdict = judge_refused(error, what)
        assert verdict and verdict[0] is reason and error.message in verdict[1]
        assert (reason in OF_RANGE) is (what is What.RANGE)
    assert judge_refused(Conflict("x"), what) is not None


@pytest.mark.parametrize("error", [*OF_THE_STORE, NotFound("x")], ids=lambda one: type(one).__name__)
def test_what_is_no_refusal_of_a_key_is_no_verdict_and_raised_unasked(error: LakeMirrorError) -> None:
    store = Store()
    assert judge_refused(error, What.OBJECT) is None
    with pytest.raises(type(error)):
        Refusals(store, NAMESPACE).of_key(error, What.RANGE)
    assert store.asked == []


def test_a_store_that_answers_for_the_descriptor_means_the_key_alone() -> None:
    store = Store()
    refusals = Refusals(store, NAMESPACE + "/")
    assert refusals.of_key(Denied("no"), What.RANGE)[0] is Reason.RANGE_UNREADABLE
    assert refusals.of_object(OBJECT, Invalid("odd"))[0] is Reason.UNREADABLE
    assert store.asked == [DESCRIPTOR]


def test_a_store_that_refuses_the_descriptor_too_is_raised_as_it_refused_the_key() -> None:
    store = Store(Denied("everything"))
    refusals = Refusals(store, NAMESPACE)
    for message in ("first", "second"):
        with pytest.raises(Denied, match=message):
            refusals.of_object(OBJECT, Denied(message))
    assert store.asked == [DESCRIPTOR]


@pytest.mark.parametrize("error", FAILURES)
def test_what_fails_for_one_key_alone_is_that_key_s_own(error: LakeMirrorError) -> None:
    store = Store()
    refusals = Refusals(store, NAMESPACE)
    assert judge_refused(error, What.OBJECT) is None
    for _ in range(2):
        reason, detail = refusals.of_key(error, What.OBJECT)
        assert reason is Reason.UNREADABLE and detail == f"the store reads other objects but fails on this one: {error}"
    assert refusals.are_about(OBJECT, error)
    assert store.asked == [DESCRIPTOR] * 6, "stores come and go, and may answer one method only"


@pytest.mark.parametrize("error", FAILURES)
def test_what_fails_for_the_descriptor_too_is_the_store_s(error: LakeMirrorError) -> None:
    store = Store(Unreachable("silent"))
    refusals = Refusals(store, NAMESPACE)
    with pytest.raises(type(error), match=error.message):
        refusals.of_key(error, What.RANGE)
    assert not refusals.are_about(OBJECT, error)
    store.error = None
    assert refusals.of_key(error, What.RANGE)[0] is Reason.RANGE_UNREADABLE


@pytest.mark.parametrize("failure", [*OF_THE_STORE, *FAILURES], ids=lambda one: type(one).__name__)
def test_a_store_that_fails_when_it_is_asked_is_raised_as_it_fails(failure: LakeMirrorError) -> None:
    with pytest.raises(type(failure)):
        Refusals(Store(failure), NAMESPACE).of_object(OBJECT, Denied("no"))


def test_an_archive_is_the_key_s_own_without_asking() -> None:
    store = Store(Denied("everything"))
    assert Refusals(store, NAMESPACE).of_key(Archived("in ice"), What.METARANGE)[0] is Reason.METARANGE_ARCHIVED
    assert store.asked == []


@pytest.mark.parametrize("error", [Denied("no"), Unauthenticated("who?"), Invalid("elsewhere"), Archived("in ice")])
def test_an_imported_object_s_place_speaks_for_itself(error: LakeMirrorError) -> None:
    store = Store(Denied("everything"))
    refusals = Refusals(store, NAMESPACE)
    assert refusals.of_object(FAR, error)[0] is Reason.UNREACHABLE
    assert refusals.are_about(FAR, error) and store.asked == []
    with pytest.raises(Throttled):
        refusals.of_object(FAR, Throttled("later"))
    assert not refusals.are_about(FAR, Throttled("later"))


def test_a_namespace_whose_name_only_begins_alike_is_elsewhere() -> None:
    assert Refusals(Store(), NAMESPACE).of_object(f"{NAMESPACE}2/a", Denied("no"))[0] is Reason.UNREACHABLE


def test_many_threads_ask_once() -> None:
    store = Store()
    refusals = Refusals(store, NAMESPACE)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: refusals.of_key(Denied("no"), What.OBJECT)[0], range(200)))
    assert set(found) == {Reason.UNREADABLE} and store.asked == [DESCRIPTOR]


# --- objects that show themselves and are not given out ---------------------------------------------------------------


class Closed(Store):
    """Shows every object and gives none out, for whatever reason."""

    def __init__(self, refusal: LakeMirrorError, etag: str) -> None:
        super().__init__()
        self.refusal, self.etag = refusal, etag

    def head(self, uri: str) -> ObjectInfo | None:
        self.asked.append(uri)
        return ObjectInfo("a", 10, self.etag)

    def md5(self, uri: str) -> str:
        raise self.refusal


class Open(Closed):
    def md5(self, uri: str) -> str:
        return "0" * 32


def prover(refusal: LakeMirrorError, etag: str, refusals: Refusals | None = None) -> Prover:
    return Prover(Closed(refusal, etag), NAMESPACE, Open(Denied(""), "f" * 32 + "-2"), "s3://src/lake", refusals)


REFUSALS = [
    (Denied("no"), Reason.UNREADABLE),
    (Archived("in ice"), Reason.ARCHIVED),
    (Invalid("odd"), Reason.UNREADABLE),
    (NotFound("gone"), Reason.MISSING),
    (RemoteFailure("500"), Reason.UNREADABLE),
]


@pytest.mark.parametrize(("refusal", "reason"), REFUSALS)
def test_an_object_that_is_not_given_out_is_a_problem_when_it_is_read(refusal: LakeMirrorError, reason: Reason) -> None:
    verdict = prover(refusal, "e" * 32).read(OBJECT, size=10, etag="e" * 32).verdict
    assert verdict and verdict[0] is reason


@pytest.mark.parametrize(("refusal", "reason"), REFUSALS)
def test_a_mismatch_that_only_its_bytes_would_settle_is_told_as_what_keeps_them(
    refusal: LakeMirrorError, reason: Reason
) -> None:
    found = ObjectInfo("a", 10, "e" * 32 + "-3")
    appealed = prover(refusal, found.etag).appeal((Reason.ETAG, "differs"), found, OBJECT, size=10, etag="f" * 32)
    assert appealed.verdict and appealed.verdict[0] is reason


def test_an_imported_object_that_is_not_given_out_can_not_be_reached() -> None:
    verdict = prover(Denied("no"), "e" * 32).read(FAR, size=10, etag="e" * 32).verdict
    assert verdict and verdict[0] is Reason.UNREACHABLE


def test_proofs_share_what_was_asked() -> None:
    store = Store()
    refusals = Refusals(store, NAMESPACE)
    for _ in range(3):
        prover(Denied("no"), "e" * 32, refusals).read(OBJECT, size=10, etag="e" * 32)
    assert store.asked == [DESCRIPTOR]


@pytest.mark.parametrize("failure", [NotSent("x"), Unauthenticated("x")])
def test_a_store_that_fails_proves_nothing(failure: LakeMirrorError) -> None:
    with pytest.raises(type(failure)):
        prover(failure, "e" * 32).read(OBJECT, size=10, etag="e" * 32)
