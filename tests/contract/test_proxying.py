"""A store that answers for what it lacks with what another site has, as MinIO does where rules lead both ways.

What never arrived is missing, whoever looks: else a commit would count as whole that is lost with the other site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store import S3ObjectStore
from core.errors import NotFound
from spark_jobs.check.presence import Expected, Looker
from tests.contract.test_objects import S3_STORES, connect
from tests.s3_double import OWN_ONLY, S3Double

ONLY_THERE = "lake/data/only-there"
URI = f"s3://lake/{ONLY_THERE}"


@pytest.fixture
def here() -> Iterator[S3Double]:
    """A store with one object of its own, and one that only its peer has."""
    with S3Double() as there, S3Double() as running:
        there.put(ONLY_THERE, b"there")
        running.put("lake/data/own", b"here")
        running.peer = there
        yield running


@pytest.fixture(params=S3_STORES, ids=lambda kind: kind.__name__)
def store(request: pytest.FixtureRequest, here: S3Double) -> S3ObjectStore:
    return connect(request.param, here.endpoint, tries=1)


@pytest.fixture
def fast(here: S3Double) -> FastObjectStore:
    found = connect(FastObjectStore, here.endpoint, tries=1)
    assert isinstance(found, FastObjectStore)
    return found


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_the_double_does_as_minio_does(here: S3Double, method: str) -> None:
    def ask(key: str, **headers: str) -> int:
        return requests.request(method, f"{here.endpoint}/lake/{key}", headers=headers, timeout=5).status_code

    assert (ask(ONLY_THERE), ask("lake/data/own"), ask("lake/data/nobody's")) == (200, 200, 404)
    assert [ask(ONLY_THERE, **{OWN_ONLY: value}) for value in ("false", "true")] == [404, 404]
    assert ask(ONLY_THERE, **{OWN_ONLY: "false", "Authorization": "SignedHeaders=host"}) == 200, "it has to be signed"
    here.peer = None
    assert ask(ONLY_THERE) == 404


def test_what_never_arrived_is_missing(store: S3ObjectStore) -> None:
    assert store.head(URI) is None
    with pytest.raises(NotFound):
        store.get(URI)
    with pytest.raises(NotFound):
        store.md5(URI)
    assert [one.key for one in store.list("s3://lake/lake/")] == ["lake/data/own"]


@pytest.mark.parametrize("match", ["", "e"])
@pytest.mark.parametrize("span", [None, (0, 2)])
def test_so_are_its_bytes(fast: FastObjectStore, span: tuple[int, int] | None, match: str) -> None:
    with pytest.raises(NotFound):
        fast.read(URI, span, match)


def test_so_it_is_among_many(fast: FastObjectStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(fast.heads(["s3://lake/lake/data/own", URI], pool))
    assert [info is None for info in found] == [False, True]


READS: list[Callable[[S3ObjectStore], object]] = [
    lambda store: store.head("s3://lake/lake/data/own"),
    lambda store: store.get("s3://lake/lake/data/own"),
    lambda store: store.md5("s3://lake/lake/data/own"),
    lambda store: list(store.list("s3://lake/lake/")),
    lambda store: store.clock_ahead("s3://lake"),
]


def test_every_read_asks_for_the_store_s_own_and_is_signed_so(here: S3Double, store: S3ObjectStore) -> None:
    for read in READS:
        read(store)
    store.put("s3://lake/lake/data/new", b"a write asks for nothing")
    assert sum(here.asked.values()) == len(READS) + 1
    assert +here.plain == {}


@pytest.mark.parametrize("many", [1, 40], ids=["one by one", "by listings"])
def test_a_look_at_objects_finds_those_missing_that_never_arrived(
    here: S3Double, fast: FastObjectStore, many: int
) -> None:
    assert here.peer is not None
    things = {f"lake/data/o{n:02}": here.peer.put(f"lake/data/o{n:02}", b"x") for n in range(many)}
    arrived = dict(list(things.items())[1:])
    for key, thing in arrived.items():
        here.claim(key, thing)
    with ThreadPoolExecutor(4) as pool:
        looker = Looker(fast, pool, page_worth=20)
        proofs = looker.proofs([Expected(f"s3://lake/{key}", one.size, one.etag) for key, one in things.items()])
    assert [proof.verdict[0] if proof.verdict else "" for proof in proofs] == ["missing", *[""] * len(arrived)]
    assert (here.asked["LIST"] > 0) is (many > 20)


def test_a_store_is_known_to_answer_for_another(here: S3Double, store: S3ObjectStore) -> None:
    assert store.proxies(URI) is True
    assert store.proxies("s3://lake/lake/data/own") is None
    assert store.proxies("s3://lake/lake/data/nobody's") is False
    here.peer = None
    assert store.proxies(URI) is False


def test_what_arrives_between_two_questions_shows_nothing(here: S3Double, store: S3ObjectStore) -> None:
    def arrive(kind: str, key: str) -> None:
        if here.asked["HEAD"] == 2:
            here.put(key, b"there")

    here.fault = arrive
    assert store.proxies(URI) is None
