"""The check without Spark: what it finds, what it leaves out, what it asks the store for."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from typing import Any

import pytest

from core.errors import Denied, Invalid, LakeMirrorError, Throttled, Unreachable
from graveler.entries import AddressType
from spark_jobs.check import job
from spark_jobs.check.job import CHECK_COLUMNS, check_batch, check_task
from spark_jobs.check.settings import ALLOW, CheckSettings, StoreLocation
from tests.s3_double import S3Double, Thing
from tests.spark.ranges import PREFIX, arrive, arrive_range, entries, entry, imported


def rows(work: list[tuple[str, list[str]]], settings: CheckSettings) -> list[dict[str, Any]]:
    return [row for batch in check_batch(work, settings) for row in batch.to_pylist()]


def problems(work: list[tuple[str, list[str]]], settings: CheckSettings) -> list[tuple[bytes, str]]:
    return [(row["path"], row["reason"]) for row in rows(work, settings) if row["kind"] == "problem"]


def range_row(work: list[tuple[str, list[str]]], settings: CheckSettings) -> dict[str, Any]:
    return next(row for row in rows(work, settings) if row["kind"] == "range")


# --- what it finds ---------------------------------------------------------------------------------------------------


def test_a_range_whose_objects_are_all_there_has_no_problems(store: S3Double, settings: CheckSettings) -> None:
    members = entries(3)
    arrive(store, members)
    [row] = rows([(arrive_range(store, members), [])], settings)
    assert row["kind"] == "range"
    assert (row["entries"], row["bytes"], row["looked_up"], row["problems"]) == (3, 30, 3, 0)
    assert row["s3_requests"] == 4


def test_a_missing_object_is_named_before_its_range(store: S3Double, settings: CheckSettings) -> None:
    here, gone = entry("a"), entry("b")
    arrive(store, [here])
    range_id = arrive_range(store, [here, gone])
    problem, row = rows([(range_id, [])], settings)
    assert (problem["kind"], problem["range_id"], problem["path"]) == ("problem", range_id, b"b")
    assert (problem["address"], problem["size"], problem["etag"]) == (gone.address, gone.size, gone.etag)
    assert (problem["reason"], row["kind"], row["problems"]) == ("missing", "range", 1)


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize(
    ("change", "reason"),
    [({"size": 11}, "size-differs"), ({"etag": "0" * 32}, "etag-differs"), ({"storage_class": "GLACIER"}, "archived")],
)
def test_a_wrong_object_is_told_by_its_first_fault(
    store: S3Double, settings: CheckSettings, change: dict[str, Any], reason: str, count: int
) -> None:
    members = entries(count)
    arrive(store, members)
    wrong = members[count // 2]
    for name, value in change.items():
        setattr(store.things[PREFIX + wrong.address], name, value)
    assert problems([(arrive_range(store, members), [])], settings) == [(wrong.path, reason)]


@pytest.mark.parametrize(
    ("depth", "found"), [("presence", []), ("size", ["size-differs"]), ("etag", ["size-differs", "etag-differs"])]
)
def test_each_depth_looks_at_more(store: S3Double, settings: CheckSettings, depth: str, found: list[str]) -> None:
    members = entries(2)
    arrive(store, members)
    store.things[PREFIX + members[0].address].size = 1
    store.things[PREFIX + members[1].address].etag = "0" * 32
    work = [(arrive_range(store, members), [])]
    assert [reason for _, reason in problems(work, replace(settings, depth=depth))] == found


@pytest.mark.parametrize("depth", ["presence", "size", "etag", "content"])
def test_an_archived_object_is_a_problem_at_every_depth(store: S3Double, settings: CheckSettings, depth: str) -> None:
    store.claim(PREFIX + entry("a").address, Thing(10, entry("a").etag, storage_class="DEEP_ARCHIVE"))
    work = [(arrive_range(store, [entry("a")]), [])]
    assert problems(work, with_source(settings, depth=depth)) == [(b"a", "archived")]


@pytest.mark.parametrize("count", [1, 60])
def test_an_archived_object_with_an_active_restore_is_fine(
    store: S3Double, settings: CheckSettings, count: int
) -> None:
    members = entries(count)
    arrive(store, members)
    thing = store.things[PREFIX + members[0].address]
    thing.storage_class = "GLACIER"
    thing.headers = {"x-amz-restore": 'ongoing-request="false", expiry-date="Fri, 21 Dec 2035 00:00:00 GMT"'}
    assert problems([(arrive_range(store, members), [])], settings) == []


def test_a_restore_that_is_still_going_on_is_no_restore(store: S3Double, settings: CheckSettings) -> None:
    headers = {"x-amz-restore": 'ongoing-request="true"'}
    store.claim(PREFIX + entry("a").address, Thing(10, entry("a").etag, storage_class="GLACIER", headers=headers))
    assert problems([(arrive_range(store, [entry("a")]), [])], settings) == [(b"a", "archived")]


def test_an_archive_tier_that_no_listing_shows_is_found(store: S3Double, settings: CheckSettings) -> None:
    members = entries(60)
    arrive(store, members)
    for one in members:
        store.things[PREFIX + one.address].storage_class = "INTELLIGENT_TIERING"
    store.things[PREFIX + members[5].address].headers = {"x-amz-archive-status": "DEEP_ARCHIVE_ACCESS"}
    assert problems([(arrive_range(store, members), [])], settings) == [(members[5].path, "archived")]


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("recorded", ["{}", '"{}"', "{}-3"])
@pytest.mark.parametrize("stored", ["{}", "{}-3", "{}-7"])
def test_etags_are_compared_without_quotes_and_part_counts(
    store: S3Double, settings: CheckSettings, recorded: str, stored: str, count: int
) -> None:
    members = [replace(one, etag=recorded.format("ab" * 16)) for one in entries(count)]
    for one in members:
        store.claim(PREFIX + one.address, Thing(one.size, stored.format("ab" * 16)))
    assert problems([(arrive_range(store, members), [])], settings) == []


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize(
    "header",
    [{"x-amz-server-side-encryption": "aws:kms"}, {"x-amz-server-side-encryption-customer-algorithm": "AES256"}],
)
def test_where_encryption_changes_etags_the_size_has_to_do(
    store: S3Double, settings: CheckSettings, header: dict[str, str], count: int
) -> None:
    members = entries(count)
    for one in members:
        store.claim(PREFIX + one.address, Thing(one.size, "f" * 32, headers=header))
    store.things[PREFIX + members[0].address].size = 1
    assert problems([(arrive_range(store, members), [])], settings) == [(members[0].path, "size-differs")]


# --- where the entry does not decide ----------------------------------------------------------------------------------


def with_source(settings: CheckSettings, **more: Any) -> CheckSettings:
    """The original's namespace is beside the mirror's, in the same store."""
    place = StoreLocation("s3://lake/source", settings.region, settings.endpoint)
    return replace(settings, source=place, **more)


@pytest.mark.parametrize("count", [1, 60])
def test_an_entry_that_differs_at_the_source_too_passes_with_a_note(
    store: S3Double, settings: CheckSettings, count: int
) -> None:
    members = entries(count)
    arrive(store, members)
    for namespace in (PREFIX, "source/"):
        store.claim(namespace + members[0].address, Thing(7, "0" * 32))
    row = range_row([(arrive_range(store, members), [])], with_source(settings))
    assert (row["problems"], row["detail"]) == (0, "1 of its objects: entry differs at the source too")


def test_what_differs_from_the_source_s_object_is_a_problem(store: S3Double, settings: CheckSettings) -> None:
    store.claim(PREFIX + entry("a").address, Thing(10, "0" * 32))
    store.claim("source/" + entry("a").address, Thing(10, entry("a").etag))
    work = [(arrive_range(store, [entry("a")]), [])]
    assert problems(work, with_source(settings)) == [(b"a", "etag-differs")]


@pytest.mark.parametrize("count", [1, 60])
def test_encryption_is_told_in_the_range_s_row(store: S3Double, settings: CheckSettings, count: int) -> None:
    members = entries(count)
    for one in members:
        store.claim(PREFIX + one.address, Thing(10, "f" * 32, headers={"x-amz-server-side-encryption": "aws:kms"}))
    row = range_row([(arrive_range(store, members), [])], with_source(settings))
    told = f"{count} of its objects: compared by size, because encryption changed the ETag"
    assert (row["problems"], row["detail"]) == (0, told)


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize(("depth", "found"), [("etag", []), ("content", ["content-differs"])])
def test_only_content_finds_bytes_that_their_etag_does_not_tell(
    store: S3Double, settings: CheckSettings, depth: str, found: list[str], count: int
) -> None:
    members = entries(count)
    for one in members:
        store.put(PREFIX + one.address, b"some bytes")
    store.put(PREFIX + members[0].address, b"SOME BYTES", etag=members[0].etag)
    work = [(arrive_range(store, members), [])]
    assert [reason for _, reason in problems(work, with_source(settings, depth=depth))] == found


def test_encrypted_content_is_held_against_the_source_s(store: S3Double, settings: CheckSettings) -> None:
    right, wrong = entry("a"), entry("b")
    for one, data in ((right, b"some bytes"), (wrong, b"SOME BYTES")):
        headers = {"x-amz-server-side-encryption": "aws:kms"}
        store.put(PREFIX + one.address, data, etag="f" * 32, headers=headers)
        store.put("source/" + one.address, b"some bytes")
    work = [(arrive_range(store, [right, wrong]), [])]
    assert problems(work, with_source(settings, depth="content")) == [(b"b", "content-differs")]


def test_a_copy_in_other_parts_is_read_at_depth_etag(store: S3Double, settings: CheckSettings) -> None:
    one = entry("a", etag="e" * 32)
    store.put(PREFIX + one.address, b"some bytes", etag="f" * 32 + "-3")
    store.put("source/" + one.address, b"some bytes", etag="e" * 32 + "-2")
    row = range_row([(arrive_range(store, [one]), [])], with_source(settings))
    assert row["problems"] == 0 and "content was compared" in row["detail"]


def test_a_sample_reads_its_share(store: S3Double, settings: CheckSettings) -> None:
    members = entries(200)
    for one in members:
        store.put(PREFIX + one.address, b"some bytes")
    rows([(arrive_range(store, members), [])], with_source(settings, depth="content", sample=0.1, sample_seed=3))
    assert 5 < store.asked["GET"] < 45


def test_content_is_not_promised_without_a_source(settings: CheckSettings) -> None:
    with pytest.raises(Invalid):
        rows([("0" * 64, [])], replace(settings, depth="content"))


def test_an_entry_without_etag_is_compared_by_size(store: S3Double, settings: CheckSettings) -> None:
    one = entry("a", etag="")
    store.claim(PREFIX + one.address, Thing(one.size, "whatever"))
    assert problems([(arrive_range(store, [one]), [])], settings) == []


def test_two_entries_of_one_object_are_judged_each(store: S3Double, settings: CheckSettings) -> None:
    right, wrong = entry("a", address="data/x/1"), entry("b", address="data/x/1", size=99)
    arrive(store, [right])
    assert problems([(arrive_range(store, [right, wrong]), [])], settings) == [(b"b", "size-differs")]


def test_a_path_that_is_not_utf8_comes_back_byte_for_byte(store: S3Double, settings: CheckSettings) -> None:
    assert problems([(arrive_range(store, [entry(b"\xff\xfe/\x00x")]), [])], settings) == [
        (b"\xff\xfe/\x00x", "missing")
    ]


# --- files of ranges -------------------------------------------------------------------------------------------------


def test_a_range_that_is_not_there_is_a_problem_of_its_own(settings: CheckSettings) -> None:
    problem, row = rows([("0" * 64, [])], settings)
    assert (problem["reason"], problem["address"], problem["path"]) == ("range-missing", "_lakefs/" + "0" * 64, b"")
    assert (row["kind"], row["entries"], row["problems"]) == ("range", 0, 1)


def test_a_damaged_range_is_told_and_none_of_its_entries_used(store: S3Double, settings: CheckSettings) -> None:
    range_id = arrive_range(store, entries(50))
    thing = store.things[f"{PREFIX}_lakefs/{range_id}"]
    thing.data = thing.data[:100] + bytes([thing.data[100] ^ 1]) + thing.data[101:]
    problem, row = rows([(range_id, [])], settings)
    assert (problem["reason"], row["entries"], row["looked_up"]) == ("range-damaged", 0, 0)
    assert range_id in problem["detail"]


@pytest.mark.parametrize("data", [b"", b"not a range", b"\0" * 60])
def test_something_else_under_a_range_s_name_is_damage(store: S3Double, settings: CheckSettings, data: bytes) -> None:
    store.put(f"{PREFIX}_lakefs/{'a' * 64}", data)
    assert problems([("a" * 64, [])], settings) == [(b"", "range-damaged")]


def test_a_good_range_under_another_s_name_is_damage(store: S3Double, settings: CheckSettings) -> None:
    thing = store.things[f"{PREFIX}_lakefs/{arrive_range(store, entries(2))}"]
    store.put(f"{PREFIX}_lakefs/{'b' * 64}", thing.data)
    assert problems([("b" * 64, [])], settings) == [(b"", "range-damaged")]


def test_one_bad_range_does_not_hold_up_the_others(store: S3Double, settings: CheckSettings) -> None:
    members = entries(2)
    arrive(store, members)
    work = [("0" * 64, []), (arrive_range(store, members), [])]
    assert [(row["range_id"], row["problems"]) for row in rows(work, settings) if row["kind"] == "range"] == [
        (work[0][0], 1),
        (work[1][0], 0),
    ]


def test_no_work_gives_no_rows(settings: CheckSettings) -> None:
    assert rows([], settings) == []


# --- the base --------------------------------------------------------------------------------------------------------


def test_what_a_base_names_is_not_looked_up(store: S3Double, settings: CheckSettings) -> None:
    old, new = entries(40), entries(3, start=40)
    arrive(store, new)
    base, range_id = arrive_range(store, old), arrive_range(store, old + new)
    row = range_row([(range_id, [base])], settings)
    assert (row["entries"], row["looked_up"], row["problems"], row["detail"]) == (43, 3, 0, "")
    assert (row["bytes"], row["new_bytes"]) == (sum(e.size for e in old + new), sum(e.size for e in new))


def test_the_base_is_subtracted_by_object_not_by_path(store: S3Double, settings: CheckSettings) -> None:
    base = arrive_range(store, [entry("a", address="data/x/1"), entry("b", address="data/x/2")])
    moved = entry("other/place", address="data/x/1")
    replaced = entry("b", address="data/x/3")
    range_id = arrive_range(store, [moved, replaced])
    assert problems([(range_id, [base])], settings) == [(b"b", "missing")]


@pytest.mark.parametrize("change", [{"size": 11}, {"etag": "0" * 32}])
def test_an_object_that_the_base_describes_otherwise_is_looked_up(
    store: S3Double, settings: CheckSettings, change: dict[str, Any]
) -> None:
    one = entry("a")
    base, range_id = arrive_range(store, [one]), arrive_range(store, [replace(one, **change)])
    assert range_row([(range_id, [base])], settings)["looked_up"] == 1


def test_several_bases_are_subtracted(store: S3Double, settings: CheckSettings) -> None:
    parts = [entries(10, start=start) for start in (0, 10, 20)]
    bases = [arrive_range(store, part) for part in parts[:2]]
    row = range_row([(arrive_range(store, [one for part in parts for one in part]), bases)], settings)
    assert row["looked_up"] == 10


@pytest.mark.parametrize("damaged", [False, True])
def test_a_base_that_cannot_be_read_is_not_built_upon(store: S3Double, settings: CheckSettings, damaged: bool) -> None:
    members = entries(2)
    arrive(store, members)
    if damaged:
        store.put(f"{PREFIX}_lakefs/{'c' * 64}", b"rubbish")
    row = range_row([(arrive_range(store, members), ["c" * 64])], settings)
    assert (row["looked_up"], row["problems"]) == (2, 0)
    assert "c" * 64 in row["detail"]


def test_a_base_shared_by_ranges_is_read_once(store: S3Double, settings: CheckSettings) -> None:
    base = arrive_range(store, entries(5))
    work = [(arrive_range(store, entries(3, start=start)), [base]) for start in (0, 1, 2)]
    rows(work, settings)
    assert store.asked["GET"] == 4


# --- imported objects ------------------------------------------------------------------------------------------------


def test_imported_objects_are_problems_unless_allowed(store: S3Double, settings: CheckSettings) -> None:
    one = imported("a", "s3://lake/elsewhere/a")
    store.claim("elsewhere/a", Thing(one.size, one.etag))
    work = [(arrive_range(store, [one]), [])]
    assert problems(work, settings) == [(b"a", "imported")]
    assert problems(work, replace(settings, imported=ALLOW)) == []


@pytest.mark.parametrize("status", [403, 301, 400])
@pytest.mark.parametrize("count", [1, 50])
def test_an_imported_object_s_place_that_refuses_is_a_problem_of_that_object(
    store: S3Double, settings: CheckSettings, count: int, status: int
) -> None:
    far = [imported(f"i/{n:03d}", f"s3://lake/elsewhere/{n:03d}") for n in range(count)]
    near = entry("near")
    arrive(store, [near])
    store.fault = lambda method, key: status if "elsewhere" in key or (method == "LIST" and count > 1) else None
    found = problems([(arrive_range(store, [*far, near]), [])], replace(settings, imported=ALLOW))
    assert found == [(one.path, "imported-unreachable") for one in far]


def test_an_imported_object_s_place_that_throttles_says_nothing(store: S3Double, settings: CheckSettings) -> None:
    range_id = arrive_range(store, [imported("a", "s3://lake/elsewhere/a")])
    store.fault = lambda method, key: 503 if "elsewhere" in key else None
    with pytest.raises(LakeMirrorError):
        rows([(range_id, [])], replace(settings, imported=ALLOW))


def test_an_imported_object_s_place_that_fails_keeps_no_other_object_from_its_check(
    store: S3Double, settings: CheckSettings
) -> None:
    range_id = arrive_range(store, [imported("a", "s3://lake/elsewhere/a"), entry("b")])
    store.fault = lambda method, key: 500 if "elsewhere" in key else None
    found = problems([(range_id, [])], replace(settings, imported=ALLOW))
    assert found == [(b"a", "unreadable"), (b"b", "missing")]


def test_a_refusal_in_our_own_namespace_still_ends_the_check(store: S3Double, settings: CheckSettings) -> None:
    range_id = arrive_range(store, [entry("a")])
    store.fault = lambda method, key: 403 if method == "HEAD" else None
    with pytest.raises(Denied):
        rows([(range_id, [])], replace(settings, imported=ALLOW))


def test_an_imported_object_is_looked_for_at_its_own_address(store: S3Double, settings: CheckSettings) -> None:
    members = [imported(f"i/{n:03d}", f"s3://lake/elsewhere/{n:03d}") for n in range(50)]
    for one in members[1:]:
        store.claim(one.address.removeprefix("s3://lake/"), Thing(one.size, one.etag))
    work = [(arrive_range(store, members), [])]
    assert problems(work, replace(settings, imported=ALLOW)) == [(b"i/000", "missing")]


def test_imported_objects_are_judged_even_if_a_base_names_them(store: S3Double, settings: CheckSettings) -> None:
    one = imported("a", "s3://lake/elsewhere/a")
    base, range_id = arrive_range(store, [one]), arrive_range(store, [one, entry("b")])
    assert (b"a", "imported") in problems([(range_id, [base])], settings)


@pytest.mark.parametrize("address", ["gs://lake/a", "https://host/a", "local:///a"])
def test_an_imported_object_outside_of_s3_stays_a_problem(
    store: S3Double, settings: CheckSettings, address: str
) -> None:
    work = [(arrive_range(store, [imported("a", address)]), [])]
    assert problems(work, replace(settings, imported=ALLOW)) == [(b"a", "imported")]


def test_an_old_entry_s_kind_of_address_shows_by_its_scheme(store: S3Double, settings: CheckSettings) -> None:
    old = {"address_type": AddressType.BY_PREFIX}
    near, far = entry("near", **old), entry("far", address="s3://lake/elsewhere/a", **old)
    arrive(store, [near])
    assert problems([(arrive_range(store, [near, far]), [])], settings) == [(b"far", "imported")]


def test_where_listing_is_denied_objects_are_asked_for_one_by_one(store: S3Double, settings: CheckSettings) -> None:
    members = entries(40)
    arrive(store, members)
    store.fault = lambda method, key: 403 if method == "LIST" else None
    assert problems([(arrive_range(store, members), [])], settings) == []
    assert store.asked["HEAD"] == 40


# --- the cost --------------------------------------------------------------------------------------------------------


def test_few_objects_are_asked_for_by_head_alone(store: S3Double, settings: CheckSettings) -> None:
    members = entries(19)
    arrive(store, members)
    rows([(arrive_range(store, members), [])], settings)
    assert (store.asked["HEAD"], store.asked["LIST"]) == (19, 0)


def test_many_objects_of_one_partition_are_listed(store: S3Double, settings: CheckSettings) -> None:
    members = entries(2500)
    arrive(store, members)
    rows([(arrive_range(store, members), [])], settings)
    assert (store.asked["HEAD"], store.asked["LIST"]) == (0, 3)


def test_a_few_wanted_in_a_huge_partition_do_not_make_it_be_listed(store: S3Double, settings: CheckSettings) -> None:
    everything = entries(30_000)
    arrive(store, everything)
    rows([(arrive_range(store, everything[::500]), [])], settings)
    assert store.asked["LIST"] <= 2
    assert store.asked["HEAD"] <= 60


def test_a_listing_jumps_over_what_nobody_asked_for(store: S3Double, settings: CheckSettings) -> None:
    everything = entries(30_000)
    arrive(store, everything)
    wanted = everything[100:300] + everything[20_000:20_200]
    assert problems([(arrive_range(store, wanted), [])], settings) == []
    assert (store.asked["HEAD"], store.asked["LIST"]) == (0, 2)


def test_what_a_listing_lacks_is_confirmed_by_head(store: S3Double, settings: CheckSettings) -> None:
    members = entries(100)
    arrive(store, members)
    store.unlisted = {PREFIX + one.address for one in members[:3]}
    store.drop(PREFIX + members[2].address)
    assert problems([(arrive_range(store, members), [])], settings) == [(members[2].path, "missing")]
    assert store.asked["HEAD"] == 3


def test_ranges_of_a_task_share_their_listings(store: S3Double, settings: CheckSettings) -> None:
    everything = entries(900)
    arrive(store, everything)
    work = [(arrive_range(store, everything[offset::3]), []) for offset in range(3)]
    assert [row["problems"] for row in rows(work, settings)] == [0, 0, 0]
    assert store.asked["LIST"] == 1


def test_the_requests_of_all_rows_add_up(store: S3Double, settings: CheckSettings) -> None:
    everything = entries(3000, partitions=7)
    arrive(store, everything)
    work = [(arrive_range(store, everything[at : at + 1000]), []) for at in (0, 1000, 2000)]
    counted = sum(row["s3_requests"] for row in rows(work, replace(settings, looked_up_at_once=1500)))
    assert counted == sum(store.asked.values())


def test_groups_of_ranges_are_handed_over_one_after_the_other(store: S3Double, settings: CheckSettings) -> None:
    work = [(arrive_range(store, entries(10, start=start)), []) for start in (0, 10, 20)]
    batches = check_batch(work, replace(settings, looked_up_at_once=10))
    assert [batch.column("range_id")[0].as_py() for batch in batches] == [range_id for range_id, _ in work]


@pytest.mark.parametrize("partitions", [1, 5, 5000])
def test_a_hundred_thousand_objects_with_three_faults(
    store: S3Double, settings: CheckSettings, partitions: int
) -> None:
    count = 100_000 if partitions == 5 else 10_000
    members = entries(count, partitions=partitions)
    arrive(store, members)
    store.drop(PREFIX + members[0].address)
    store.things[PREFIX + members[count // 2].address].size = 0
    store.things[PREFIX + members[-1].address].etag = "x"
    assert problems([(arrive_range(store, members), [])], settings) == [
        (members[0].path, "missing"),
        (members[count // 2].path, "size-differs"),
        (members[-1].path, "etag-differs"),
    ]


# --- a store that fails ----------------------------------------------------------------------------------------------


def test_where_no_listing_is_answered_objects_are_asked_for_one_by_one(
    store: S3Double, settings: CheckSettings
) -> None:
    members = entries(40)
    arrive(store, members[1:])
    store.fault = lambda method, key: 0 if method == "LIST" else None
    assert problems([(arrive_range(store, members), [])], settings) == [(members[0].path, "missing")]


@pytest.mark.parametrize(
    ("kind", "status", "raised"),
    [("GET", 0, Unreachable), ("HEAD", 0, Unreachable), *((kind, 503, Throttled) for kind in ("GET", "HEAD", "LIST"))],
)
def test_a_store_that_fails_is_raised_and_never_a_finding(
    store: S3Double, settings: CheckSettings, kind: str, status: int, raised: type[LakeMirrorError]
) -> None:
    members = [*entries(40), entry("zz", address="data/alone/1")]
    arrive(store, members)
    work = [(arrive_range(store, members), [])]
    store.fault = lambda method, key: status if method == kind else None
    with pytest.raises(raised) as caught:
        rows(work, settings)
    assert caught.value.retryable


def test_a_head_that_is_denied_is_raised_and_no_absence(store: S3Double, settings: CheckSettings) -> None:
    store.fault = lambda method, key: 403 if method == "HEAD" else None
    with pytest.raises(Denied):
        rows([(arrive_range(store, [entry("a")]), [])], settings)


def test_a_passing_failure_changes_nothing(store: S3Double, settings: CheckSettings) -> None:
    members = entries(300, partitions=30)
    arrive(store, members)
    seen: set[tuple[str, str]] = set()

    def once(method: str, key: str) -> int | None:
        first = (method, key) not in seen
        seen.add((method, key))
        return 503 if first and zlib.crc32(key.encode()) % 5 == 0 else None

    store.fault = once
    assert problems([(arrive_range(store, members), [])], settings) == []


def test_a_store_that_stops_halfway_leaves_only_what_was_looked_through(
    store: S3Double, settings: CheckSettings
) -> None:
    work = []
    for start in (0, 10):
        members = [entry(f"k{n}", address=f"data/s{start}/{n}") for n in range(start, start + 10)]
        arrive(store, members)
        work.append((arrive_range(store, members), []))
    store.fault = lambda method, key: 0 if "data/s10/" in key or "_lakemirror/" in key else None
    handed: list[str] = []
    with pytest.raises(Unreachable):
        for batch in check_batch(work, replace(settings, looked_up_at_once=5)):
            handed += batch.column("range_id").to_pylist()
    assert handed == [work[0][0]]


def test_a_task_tells_of_a_failing_store_by_a_row_of_its_own(store: S3Double, settings: CheckSettings) -> None:
    import pyarrow as pa

    work = pa.RecordBatch.from_pylist([{"range_id": arrive_range(store, [entry("a")]), "base_ids": []}])
    store.fault = lambda method, key: 0 if method == "HEAD" else None
    [batch] = check_task([work], settings)
    assert batch.schema == CHECK_COLUMNS
    [row] = batch.to_pylist()
    assert (row["kind"], row["reason"], row["range_id"]) == ("failed", "Unreachable", None)


@pytest.mark.parametrize(("region", "said"), [("eu-west-1", "set there"), ("ap-south-1", "not set there")])
def test_a_task_that_is_refused_names_the_variables_of_its_keys(
    store: S3Double, settings: CheckSettings, monkeypatch: pytest.MonkeyPatch, region: str, said: str
) -> None:
    import pyarrow as pa

    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(f"AWS_{name}")
        monkeypatch.setenv(f"LAKEMIRROR_STORE_EU_WEST_1_{name}", "wrong")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store.fault = lambda method, key: 403
    work = pa.RecordBatch.from_pylist([{"range_id": "0" * 64, "base_ids": []}])
    [batch] = check_task([work], replace(settings, region=region))
    [row] = batch.to_pylist()
    own = f"LAKEMIRROR_STORE_{region.upper().replace('-', '_')}_"
    assert row["reason"] in ("Denied", "Unauthenticated")
    assert f"from {own}ACCESS_KEY_ID and {own}SECRET_ACCESS_KEY ({said})" in row["detail"]


def test_no_secret_is_in_what_is_sent_with_a_job(settings: CheckSettings) -> None:
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in repr(settings)
    assert "secret" not in str(job.CHECK_COLUMNS)
