"""One key's refusal is that key's problem; only a store that refuses everything ends a check."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from core.errors import Denied, LakeMirrorError, RemoteFailure, Throttled, Unauthenticated
from spark_jobs.check.job import Work, check_batch, check_small, check_task
from spark_jobs.check.settings import ALLOW, CheckSettings, StoreLocation, store_of
from tests.s3_double import S3Double, Thing
from tests.spark.ranges import PREFIX, arrive, arrive_range, entries, entry, imported

PROBE = f"{PREFIX}_lakemirror/mirror.json"
Rows = list[dict[str, Any]]


def by_batch(work: list[Work], settings: CheckSettings) -> Rows:
    return [row for batch in check_batch(work, settings) for row in batch.to_pylist()]


def by_small(work: list[Work], settings: CheckSettings) -> Rows:
    found = check_small(work, settings, store_of(settings))
    assert found is not None
    return [dict(row) for row in found]


@pytest.fixture(params=[by_batch, by_small])
def check(request: pytest.FixtureRequest) -> Callable[[list[Work], CheckSettings], Rows]:
    return request.param  # type: ignore[no-any-return]


Check = Callable[[list[Work], CheckSettings], Rows]


def reasons(rows: Rows) -> list[tuple[bytes, str]]:
    return [(row["path"], row["reason"]) for row in rows if row["kind"] == "problem"]


def refuse(store: S3Double, *keys: str, kinds: str = "HEAD GET", status: int = 403) -> list[str]:
    """Refuse these keys; gives a list that grows by every key that a HEAD asked for."""
    asked: list[str] = []

    def fault(kind: str, key: str) -> int | None:
        asked.extend([key] if kind == "HEAD" else [])
        return status if kind in kinds.split() and key in keys else None

    store.fault = fault
    return asked


def test_a_range_s_file_that_is_refused_is_that_range_s_problem(
    store: S3Double, settings: CheckSettings, check: Check
) -> None:
    shut, fine = entries(3, start=700), entries(3, start=800)
    arrive(store, fine)
    work: list[Work] = [(arrive_range(store, shut), []), (arrive_range(store, fine), [])]
    asked = refuse(store, f"{PREFIX}_lakefs/{work[0][0]}")
    problem, row, other = check(work, settings)
    assert (problem["reason"], problem["path"], problem["full"]) == ("range-unreadable", b"", False)
    assert problem["address"] == f"_lakefs/{work[0][0]}" and "403" in problem["detail"]
    assert (row["range_id"], row["entries"], row["problems"]) == (work[0][0], 0, 1)
    assert (row["min_key"], row["max_key"], row["looked"]) == (b"", b"", b"")
    assert (other["range_id"], other["looked_up"], other["problems"]) == (work[1][0], 3, 0)
    assert asked.count(PROBE) == 1


def test_a_range_s_file_in_an_archive_says_so_and_needs_no_probe(
    store: S3Double, settings: CheckSettings, check: Check
) -> None:
    range_id = arrive_range(store, entries(3, start=900))
    store.things[f"{PREFIX}_lakefs/{range_id}"].storage_class = "GLACIER"
    problem, row = check([(range_id, [])], settings)
    assert (problem["reason"], row["problems"]) == ("range-archived", 1)
    assert "InvalidObjectState" in problem["detail"]
    assert store.asked["HEAD"] == 0


@pytest.mark.parametrize("status", [403, 400, 412])
@pytest.mark.parametrize("count", [1, 60])
def test_an_object_that_is_refused_is_its_own_problem(
    store: S3Double, settings: CheckSettings, check: Check, count: int, status: int
) -> None:
    members = [*entries(count, start=100), entry("z", address="data/alone/z")]
    arrive(store, members[1:])
    asked = refuse(store, PREFIX + members[0].address, status=status)
    found = check([(arrive_range(store, members), [])], settings)
    assert reasons(found) == [(members[0].path, "unreadable")]
    assert found[-1]["looked_up"] == count + 1 and str(status) in found[0]["detail"]
    assert asked.count(PROBE) == 1


@pytest.mark.parametrize("status", [403, 400])
def test_a_folder_that_is_refused_is_asked_for_by_head_and_probed_once(
    store: S3Double, settings: CheckSettings, check: Check, status: int
) -> None:
    members, fine = entries(60, start=200), entry("z", address="data/alone/z")
    arrive(store, [*members, fine])
    keys = [PREFIX + one.address for one in members]
    store.fault = lambda kind, key: status if kind == "LIST" or key in keys else None
    found = check([(arrive_range(store, [*members, fine]), [])], settings)
    assert reasons(found) == [(one.path, "unreadable") for one in members]
    assert store.asked["HEAD"] == len(members) + 1 + 1, "each object once, and the probe"


def test_the_probe_s_answer_need_not_be_a_descriptor(store: S3Double, settings: CheckSettings, check: Check) -> None:
    refuse(store, PREFIX + entry("a").address)
    work: list[Work] = [(arrive_range(store, [entry("a")]), [])]
    assert reasons(check(work, settings)) == [(b"a", "unreadable")]
    store.put(PROBE, b"{}")
    assert reasons(check(work, settings)) == [(b"a", "unreadable")]


@pytest.mark.parametrize("of", ["range", "object"])
def test_a_store_that_refuses_the_probe_too_is_raised(
    store: S3Double, settings: CheckSettings, check: Check, of: str
) -> None:
    range_id = arrive_range(store, [entry("a")])
    refuse(store, f"{PREFIX}_lakefs/{range_id}" if of == "range" else PREFIX + entry("a").address, PROBE)
    with pytest.raises(Denied) as caught:
        check([(range_id, [])], settings)
    assert PROBE not in caught.value.message


@pytest.mark.parametrize(("status", "raised"), [(503, Throttled), (401, Unauthenticated)])
def test_a_store_that_fails_for_one_key_is_raised_without_asking_whose_matter_it_is(
    store: S3Double, settings: CheckSettings, check: Check, status: int, raised: type[LakeMirrorError]
) -> None:
    asked = refuse(store, PREFIX + entry("a").address, status=status)
    with pytest.raises(raised):
        check([(arrive_range(store, [entry("a")]), [])], settings)
    assert PROBE not in asked


@pytest.mark.parametrize("of", ["range", "object"])
def test_a_store_that_fails_for_one_key_alone_lets_all_others_be_checked(
    store: S3Double, settings: CheckSettings, check: Check, of: str
) -> None:
    arrive(store, [entry("a"), entry("b")])
    failing, fine = arrive_range(store, [entry("a")]), arrive_range(store, [entry("b")])
    key = f"{PREFIX}_lakefs/{failing}" if of == "range" else PREFIX + entry("a").address
    asked = refuse(store, key, status=500)
    rows = check([(failing, []), (fine, [])], settings)
    assert {row["range_id"]: row["problems"] for row in rows if row["kind"] == "range"} == {failing: 1, fine: 0}
    assert [row["reason"] for row in rows if row["kind"] == "problem"] == [
        "range-unreadable" if of == "range" else "unreadable"
    ]
    assert PROBE in asked


@pytest.mark.parametrize("of", ["range", "object"])
def test_a_store_that_fails_for_the_probe_too_is_raised(
    store: S3Double, settings: CheckSettings, check: Check, of: str
) -> None:
    range_id = arrive_range(store, [entry("a")])
    failing = f"{PREFIX}_lakefs/{range_id}" if of == "range" else PREFIX + entry("a").address
    store.fault = lambda method, key: 500 if key == failing or "_lakemirror/" in key else None
    with pytest.raises(RemoteFailure):
        check([(range_id, [])], settings)


def test_a_store_that_answers_for_a_key_that_nobody_has_made_is_not_away(
    store: S3Double, settings: CheckSettings, check: Check
) -> None:
    """The object and the descriptor lie on the same broken disks."""
    range_id = arrive_range(store, [entry("a")])
    refuse(store, PREFIX + entry("a").address, PROBE, status=500)
    rows = check([(range_id, [])], settings)
    assert [row["reason"] for row in rows if row["kind"] == "problem"] == ["unreadable"]


def test_a_base_that_is_refused_is_not_built_upon(store: S3Double, settings: CheckSettings, check: Check) -> None:
    old, new = entries(4, start=300), entries(5, start=300)
    arrive(store, new)
    base, range_id = arrive_range(store, old), arrive_range(store, new)
    refuse(store, f"{PREFIX}_lakefs/{base}")
    [row] = check([(range_id, [base])], settings)
    assert (row["looked_up"], row["problems"], len(row["looked"])) == (5, 0, 5 * 4)
    assert base in row["detail"] and "not built upon" in row["detail"]


def test_a_base_whose_store_fails_is_raised(store: S3Double, settings: CheckSettings, check: Check) -> None:
    old, new = entries(4, start=400), entries(5, start=400)
    base, range_id = arrive_range(store, old), arrive_range(store, new)
    refuse(store, f"{PREFIX}_lakefs/{base}", status=503)
    with pytest.raises(Throttled):
        check([(range_id, [base])], settings)


def test_a_task_of_spark_s_gives_rows_of_a_refusal_and_does_not_fail(store: S3Double, settings: CheckSettings) -> None:
    work = pa.RecordBatch.from_pylist([{"range_id": arrive_range(store, [entry("a")]), "base_ids": []}])
    refuse(store, PREFIX + entry("a").address)
    found = [row for batch in check_task([work], settings) for row in batch.to_pylist()]
    assert [(row["kind"], row["reason"]) for row in found] == [("problem", "unreadable"), ("range", None)]


# --- content ---------------------------------------------------------------------------------------------------------


def reading(settings: CheckSettings, depth: str = "content", **more: Any) -> CheckSettings:
    return replace(
        settings, source=StoreLocation("s3://lake/source", settings.region, settings.endpoint), depth=depth, **more
    )


def test_an_object_that_shows_itself_and_is_not_given_out_is_found_by_reading(
    store: S3Double, settings: CheckSettings
) -> None:
    shut, also, fine = entry("a"), entry("b"), entry("c")
    for one in (shut, also, fine):
        store.put(PREFIX + one.address, b"some bytes")
    asked = refuse(store, PREFIX + shut.address, PREFIX + also.address, kinds="GET")
    work: list[Work] = [(arrive_range(store, [shut, also, fine]), [])]
    assert reasons(by_batch(work, reading(settings))) == [(b"a", "unreadable"), (b"b", "unreadable")]
    assert asked.count(PROBE) == 1
    assert reasons(by_batch(work, reading(settings, "etag"))) == []


def test_a_copy_in_other_parts_that_is_not_given_out_is_unreadable(store: S3Double, settings: CheckSettings) -> None:
    one = entry("a", etag="e" * 32)
    store.put(PREFIX + one.address, b"some bytes", etag="f" * 32 + "-3")
    store.put("source/" + one.address, b"some bytes", etag="e" * 32 + "-2")
    refuse(store, PREFIX + one.address, kinds="GET")
    work: list[Work] = [(arrive_range(store, [one]), [])]
    assert reasons(by_batch(work, reading(settings, "etag"))) == [(b"a", "unreadable")]


def test_an_imported_object_that_is_not_given_out_can_not_be_reached(store: S3Double, settings: CheckSettings) -> None:
    one = imported("a", "s3://lake/elsewhere/a")
    store.claim("elsewhere/a", Thing(one.size, hashlib.md5(b"some bytes").hexdigest()))
    asked = refuse(store, "elsewhere/a", kinds="GET")
    work: list[Work] = [(arrive_range(store, [one]), [])]
    found = by_batch(work, reading(settings, imported=ALLOW))
    assert [(row["reason"], row["full"]) for row in found if row["kind"] == "problem"] == [
        ("imported-unreachable", True)
    ]
    assert PROBE not in asked


def test_a_source_that_refuses_leaves_the_destination_s_object_unproven(
    store: S3Double, settings: CheckSettings
) -> None:
    one = entry("a")
    store.put(PREFIX + one.address, b"some bytes", headers={"x-amz-server-side-encryption": "aws:kms"})
    asked = refuse(store, "source/" + one.address)
    work: list[Work] = [(arrive_range(store, [one]), [])]
    assert reasons(by_batch(work, reading(settings))) == [(b"a", "content-unproven")]
    assert PROBE not in asked
