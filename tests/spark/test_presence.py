"""Looking for objects, held against the plain way: one HEAD for each."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.s3.fast_store import ListedPage
from core.mirroring.content_proof import Prover
from core.mirroring.object_check import Depth, Reason, judge_object
from core.types import ObjectInfo
from spark_jobs.check.presence import Expected, Looker

PAGE = 7


class MemoryStore:
    """Objects of one bucket; pages of seven."""

    def __init__(self, objects: list[ObjectInfo]) -> None:
        self.objects = {one.key: one for one in objects}
        self.keys = sorted(self.objects)
        self.requests = 0

    def get(self, uri: str) -> bytes:
        raise NotImplementedError

    def md5(self, uri: str) -> str:
        raise NotImplementedError

    def head(self, uri: str) -> ObjectInfo | None:
        return self.objects.get(uri.removeprefix("s3://b/"))

    def page(self, prefix_uri: str, after: str = "") -> ListedPage:
        prefix = prefix_uri.removeprefix("s3://b/")
        keys = [key for key in self.keys[bisect_right(self.keys, after) :] if key.startswith(prefix)]
        shown = [self.objects[key] for key in keys[:PAGE]]
        return ListedPage(
            [one.key for one in shown],
            [one.size for one in shown],
            [one.etag for one in shown],
            [one.storage_class for one in shown],
            len(keys) > PAGE,
        )


KEYS = st.text("aAz0-_.~é/", min_size=0, max_size=3).map(lambda text: f"data/{text}")
INFOS = st.builds(
    ObjectInfo,
    KEYS,
    st.integers(0, 2),
    st.sampled_from(["e", "e-2", "f"]),
    st.sampled_from(["", "", "GLACIER", "INTELLIGENT_TIERING"]),
)
EXPECTED = st.builds(
    Expected, KEYS.map(lambda key: f"s3://b/{key}"), st.integers(0, 2), st.sampled_from(["e", "e-9", "f", ""])
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(INFOS, max_size=80, unique_by=lambda one: one.key),
    st.lists(EXPECTED, max_size=60),
    st.sampled_from(Depth),
    st.integers(1, 8),
)
def test_any_mixture_is_judged_as_by_one_head_each(
    objects: list[ObjectInfo], expected: list[Expected], depth: Depth, page_worth: int
) -> None:
    store = MemoryStore(objects)
    with ThreadPoolExecutor(2) as pool:
        found = [proof.verdict for proof in Looker(store, pool, depth, page_worth).proofs(expected)]
    plain = [judge_object(store.head(one.uri), size=one.size, etag=one.etag, depth=depth) for one in expected]
    assert found == plain


class Read(MemoryStore):
    """Notes of what it was asked the content."""

    def __init__(self, objects: list[ObjectInfo]) -> None:
        super().__init__(objects)
        self.read: list[str] = []

    def md5(self, uri: str) -> str:
        self.read.append(uri)
        return hashlib.md5(uri.encode()).hexdigest()


def test_what_many_ranges_name_alike_is_read_once() -> None:
    right, wrong = "s3://b/data/right", "s3://b/data/wrong"
    etag = hashlib.md5(right.encode()).hexdigest()
    store = Read([ObjectInfo("data/right", 1, etag), ObjectInfo("data/wrong", 1, etag)])
    prover = Prover(store, "s3://b", store, "s3://a")
    with ThreadPoolExecutor(2) as pool:
        looker = Looker(store, pool, Depth.CONTENT, prover=prover)
        proofs = looker.proofs([Expected(uri, 1, etag) for uri in (right, wrong)] * 3)
    assert sorted(store.read) == [right, wrong]
    assert [proof.verdict and proof.verdict[0] for proof in proofs] == [None, Reason.CONTENT] * 3
