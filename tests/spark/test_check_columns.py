"""What rows tell beside findings: keys, what was looked for, whose addresses. Held against the plain one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from core.errors import Archived, Denied, Invalid, LakeMirrorError
from graveler.entries import AddressType, Entry
from graveler.ranges import write_range
from spark_jobs.check.job import CHECK_COLUMNS, Work, check_batch
from spark_jobs.check.settings import ALLOW, BLOCK, CheckSettings
from tests.fakes import BulkStandIn, FakeStore, check_plainly
from tests.s3_double import S3Double
from tests.spark.ranges import NAMESPACE, arrive, arrive_range, entries, entry, imported

FAR = "s3://lake/elsewhere/x"


def rows(work: list[Work], settings: CheckSettings) -> list[dict[str, Any]]:
    return [row for batch in check_batch(work, settings) for row in batch.to_pylist()]


def of_range(work: list[Work], settings: CheckSettings) -> dict[str, Any]:
    return next(row for row in rows(work, settings) if row["kind"] == "range")


def looked(row: dict[str, Any]) -> list[int]:
    return np.frombuffer(row["looked"], "<u4").tolist()


def marks(addresses: Sequence[str]) -> list[int]:
    return sorted({crc32(address.encode()) for address in addresses})


def test_a_range_s_row_tells_its_first_and_last_path(store: S3Double, settings: CheckSettings) -> None:
    members = [entry(b"\xff\xfe"), entry("b"), entry("a")]
    row = of_range([(arrive_range(store, members), [])], settings)
    assert (row["min_key"], row["max_key"]) == (b"a", b"\xff\xfe")


@pytest.mark.parametrize("data", [None, b"damaged"])
def test_a_range_whose_file_cannot_be_used_has_no_keys_and_looked_for_nothing(
    store: S3Double, settings: CheckSettings, data: bytes | None
) -> None:
    if data is not None:
        store.put(f"mirror/_lakefs/{'0' * 64}", data)
    problem, row = rows([("0" * 64, [])], settings)
    assert (row["min_key"], row["max_key"], row["looked"]) == (b"", b"", b"")
    assert (problem["full"], problem["min_key"], problem["looked"]) == (False, None, None)


def test_what_was_looked_for_is_told_by_its_address_not_by_its_uri(store: S3Double, settings: CheckSettings) -> None:
    members = [*entries(50), entry("é", address="data/é"), entry("again", address="data/é")]
    arrive(store, members)
    row = of_range([(arrive_range(store, members), [])], settings)
    assert looked(row) == marks([one.address for one in members])
    assert len(looked(row)) == 51


def test_what_is_missing_was_looked_for(store: S3Double, settings: CheckSettings) -> None:
    row = of_range([(arrive_range(store, [entry("a")]), [])], settings)
    assert looked(row) == marks([entry("a").address])


def test_what_a_base_made_us_leave_out_was_not_looked_for(store: S3Double, settings: CheckSettings) -> None:
    old, new = entries(40), entries(3, start=40)
    base = arrive_range(store, old)
    assert looked(of_range([(arrive_range(store, old + new), [base])], settings)) == marks([e.address for e in new])
    assert of_range([(arrive_range(store, old[:9]), [base])], settings)["looked"] == b""


@pytest.mark.parametrize("change", [{"size": 11}, {"etag": "0" * 32}])
def test_what_a_base_describes_otherwise_was_looked_for(
    store: S3Double, settings: CheckSettings, change: dict[str, Any]
) -> None:
    members = entries(3)
    base = arrive_range(store, members)
    changed = [replace(members[0], **change), *members[1:]]
    assert looked(of_range([(arrive_range(store, changed), [base])], settings)) == marks([members[0].address])


@pytest.mark.parametrize("allowed", [BLOCK, ALLOW])
def test_what_was_barred_as_imported_counts_as_looked_for(
    store: S3Double, settings: CheckSettings, allowed: str
) -> None:
    range_id = arrive_range(store, [entry("a"), imported("b", FAR), imported("c", "gs://lake/x")])
    row = of_range([(range_id, [])], replace(settings, imported=allowed))
    assert looked(row) == marks([entry("a").address, FAR, "gs://lake/x"])


def test_a_problem_tells_whether_its_address_is_a_uri_of_its_own(store: S3Double, settings: CheckSettings) -> None:
    old = {"address_type": AddressType.BY_PREFIX}
    members = [
        imported("a", FAR),
        entry("b", address=FAR),
        entry("c", address=FAR, **old),
        entry("d", address="data/http://x/1"),
        entry("e", address="data/x", **old),
    ]
    work: list[Work] = [(arrive_range(store, members), [])]
    found = [row for row in rows(work, replace(settings, imported=ALLOW)) if row["kind"] == "problem"]
    assert [(row["path"], row["full"]) for row in sorted(found, key=lambda row: bytes(row["path"]))] == [
        (b"a", True),
        (b"b", False),
        (b"c", True),
        (b"d", False),
        (b"e", False),
    ]
    assert {row["reason"] for row in found} == {"missing"}


def test_an_address_below_the_namespace_that_looks_like_a_uri_is_looked_for_below_it(
    store: S3Double, settings: CheckSettings
) -> None:
    one = entry("a", address=FAR)
    store.put("elsewhere/x", b"some bytes")
    work: list[Work] = [(arrive_range(store, [one]), [])]
    assert [row["reason"] for row in rows(work, replace(settings, imported=ALLOW))] == ["missing", None]
    arrive(store, [one])
    assert [row["reason"] for row in rows(work, replace(settings, imported=ALLOW))] == [None]


@pytest.mark.parametrize("near_is_the_base", [True, False])
def test_a_base_s_address_stands_only_for_one_of_the_same_kind(
    store: S3Double, settings: CheckSettings, near_is_the_base: bool
) -> None:
    near, far = entry("a", address=FAR), imported("a", FAR)
    base, new = (near, far) if near_is_the_base else (far, near)
    work: list[Work] = [(arrive_range(store, [new]), [arrive_range(store, [base])])]
    row = of_range(work, replace(settings, imported=ALLOW))
    assert (row["looked_up"], row["problems"], looked(row)) == (1, 1, marks([FAR]))


# --- held against the plain one --------------------------------------------------------------------------------------

ADDRESSES = ["data/a", "data/é", "data/http://x/1", "s3://lake/elsewhere/x", "gs://lake/x", "s3://lake/mirror/data/a"]
MADE = st.builds(
    lambda path, address, content, etag, kind: Entry(
        path, address, len(content), etag or hashlib.md5(content).hexdigest(), address_type=kind
    ),
    st.binary(min_size=1, max_size=3),
    st.sampled_from(ADDRESSES),
    st.sampled_from([b"", b"x", b"yy"]),
    st.sampled_from(["", "", "0" * 32]),
    st.sampled_from(AddressType),
)
MEMBERS = st.lists(MADE, min_size=1, max_size=12, unique_by=lambda one: one.path)
# Of an address that a base names twice only the first one stands: never more is left out than by the plain one.
BASES = st.lists(MADE, min_size=1, max_size=4, unique_by=(lambda one: one.path, lambda one: one.address))
THERE = st.dictionaries(st.sampled_from([f"{NAMESPACE}/{one}" for one in ADDRESSES] + ADDRESSES), st.just(b"x"))
ODD = st.sampled_from(["missing", "damaged", "refused", "archived"])
REFUSED = st.dictionaries(
    st.sampled_from([f"{NAMESPACE}/{one}" for one in ADDRESSES] + ADDRESSES),
    st.sampled_from([Denied("no"), Archived("cold"), Invalid("odd")]),
    max_size=3,
)


ERRORS = {"refused": Denied("no"), "archived": Archived("cold")}


def kept(store: FakeStore, members: list[Entry] | str) -> str:
    """The id of a range that is at the destination, or of one that can't be used."""
    if isinstance(members, str):
        range_id = members.encode().hex().ljust(64, "0")
        uri = f"{NAMESPACE}/_lakefs/{range_id}"
        store.objects |= {uri: b"damaged"} if members == "damaged" else {}
        store.unreadable |= {uri: ERRORS[members]} if members in ERRORS else {}
        return range_id
    written = write_range(sorted(members, key=lambda one: one.path))
    store.put(f"{NAMESPACE}/_lakefs/{written.id}", written.data)
    return written.id


def findings(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows in an order of their own: a range's problems come in any. Words and requests are each one's own."""
    names = [name for name in CHECK_COLUMNS.names if name not in ("s3_requests", "detail")]
    return sorted((tuple(row.get(name) for name in names) for row in found), key=repr)


@examples(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(MEMBERS | ODD, st.lists(BASES | ODD, max_size=2)), max_size=3),
    THERE,
    REFUSED,
    st.sampled_from([BLOCK, ALLOW]),
    st.sampled_from(["presence", "size", "etag"]),
)
def test_any_work_is_found_to_be_what_the_plain_one_finds(
    planned: list[tuple[list[Entry] | str, list[list[Entry] | str]]],
    there: dict[str, bytes],
    refused: dict[str, LakeMirrorError],
    allowed: str,
    depth: str,
) -> None:
    store = FakeStore()
    store.objects |= there
    store.refused |= refused
    work = [(kept(store, members), [kept(store, base) for base in bases]) for members, bases in planned]
    settings = CheckSettings(NAMESPACE, imported=allowed, depth=depth, threads=2)
    found = [row for batch in check_batch(work, settings, BulkStandIn(store)) for row in batch.to_pylist()]
    assert findings(found) == findings(list(check_plainly(store, NAMESPACE, depth, work, allowed)))
