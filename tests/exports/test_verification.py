"""A destination is compared with the commit that it shall hold: what is equal, what drifted, and what ends it."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from adapters.s3.copier import Copier, Destination
from core.errors import Conflict, NotFound, Unreachable
from core.exporting.deadline import Deadline, Late
from core.exporting.unit_planning import Unit, plan_units
from core.exporting.unit_values import UnitWork
from db import clock
from deployment import config
from exports.engine import verify
from exports.models import Export, ExportDrift, ExportVerification, VerificationUnit
from exports.services.exports import export_run, export_verify
from graveler.entries import Entry
from graveler.ranges import write_range
from rbac.models import User
from spark_jobs.check.settings import StoreLocation
from spark_jobs.export import verify as job
from spark_jobs.export.settings import ExportSettings
from tests.api import Api
from tests.exports.memory_s3 import MemoryS3, etag
from tests.exports.test_pages import a_run, an_export, body
from tests.exports.world import World
from tests.mirrors.harness import Deployment

DESTINATION = "latest/"


# --- units ------------------------------------------------------------------------------------------------------------


class Place3:
    """A commit in ranges and a destination, both in one memory."""

    def __init__(self, *ranges: dict[str | bytes, bytes]) -> None:
        self.s3, self.refs = MemoryS3(), []
        for members in ranges:
            written = write_range(sorted((entry(*one) for one in members.items()), key=lambda one: one.path))
            self.s3.buckets["src"][f"lake/_lakefs/{written.id}"] = written.data
            self.refs.append(written.ref)
            for key, data in members.items():
                if isinstance(key, str):
                    self.put(key, data)

    def put(self, key: str, data: bytes) -> None:
        self.s3.buckets["out"][DESTINATION + key] = data

    def remove(self, key: str) -> None:
        del self.s3.buckets["out"][DESTINATION + key]

    def settings(self, deadline: float = 0.0) -> ExportSettings:
        source, there = StoreLocation("s3://src/lake", "us-east-1"), StoreLocation("s3://out/latest", "us-east-1")
        return ExportSettings(source, there, deadline=deadline or time.time() + 60, threads=2)

    def work(self) -> list[UnitWork]:
        units = list(plan_units(self.refs, [[]])) or [Unit(b"", None, "", ((),))]
        return [UnitWork(number, unit) for number, unit in enumerate(units)]

    def verified(self, work: list[UnitWork] | None = None, settings: ExportSettings | None = None) -> list[Any]:
        same = mock.patch.multiple(
            job, source_store=lambda _: self.s3, destination_store=lambda _: self.s3, copier_of=self._copier
        )
        with same:
            batches = job.verify_units(self.work() if work is None else work, settings or self.settings())
            return [row for batch in batches for row in batch.to_pylist()]

    def _copier(self, settings: ExportSettings) -> Any:
        path = Destination(settings.destination.namespace)
        return Copier(self.s3, self.s3, path, Deadline(settings.deadline), within=True)


def entry(key: str | bytes, data: bytes) -> Entry:
    path = key.encode() if isinstance(key, str) else key
    return Entry(path, "data/x", len(data), etag(data))


def drift_of(rows: list[Any]) -> list[tuple[str, bytes]]:
    return [(one["kind"], one["key"]) for row in rows for one in row["drift"]]


def total(rows: list[Any], name: str) -> int:
    return sum(row[name] for row in rows)


def test_what_is_equal_is_counted_with_its_bytes() -> None:
    there = Place3({"a": b"1", "b/c": b"22"}, {"é": b"333", "z": b""})
    rows = there.verified()
    assert [(row["equal"], row["bytes"], row["done"], row["drift"]) for row in rows] == [
        (2, 3, True, []),
        (2, 3, True, []),
    ]
    assert total(rows, "requests") >= 4 and not {"PUT", "COPY", "DELETE", "DELETES"} & set(there.s3.asked)


def test_one_that_may_not_go_fast_gets_on_some_files_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    there, turns = Place3(dict.fromkeys("abcdef", b"1")), iter(range(2))
    for name in "abcdef":
        there.put(name, b"2")  # as long: it takes a look at each

    def pause(self: Deadline, seconds: float) -> None:
        if next(turns, None) is None:
            raise Late

    monkeypatch.setattr(Deadline, "pause", pause)
    (row,) = there.verified(settings=replace(there.settings(), objects_per_second=1.0))
    assert (row["different"], row["upto"], row["done"]) == (2, b"b", False)


def test_missing_different_and_foreign_are_told_wherever_they_are() -> None:
    there = Place3({"a": b"1", "b": b"2", "c": b"3", "d": b"4"}, {"m": b"5", b"n\xff": b"x", "o": b"6"})
    there.remove("b")
    there.put("c", b"other")
    there.put("m", b"7")  # as long, another content
    for key in ("!before", "a/between", "d0", "o/after", "zz"):
        there.put(key, b"theirs")
    there.s3.buckets["out"]["latest0"] = there.s3.buckets["out"]["late"] = there.s3.buckets["out"]["latest/"] = b""
    rows = there.verified()
    assert sorted(drift_of(rows), key=lambda one: one[1]) == [
        ("foreign", b"!before"),
        ("foreign", b"a/between"),
        ("missing", b"b"),
        ("different", b"c"),
        ("foreign", b"d0"),
        ("different", b"m"),
        ("missing", b"n\xff"),
        ("foreign", b"o/after"),
        ("foreign", b"zz"),
    ]
    assert [total(rows, name) for name in ("equal", "missing", "different", "foreign")] == [3, 2, 2, 5]


def test_a_stamp_proves_what_the_etag_does_not() -> None:
    there = Place3({"a": b"1", "b": b"2"})
    there.put("a", b"x")
    there.put("b", b"y")
    head = there.s3._head

    def stamped(bucket: Any, key: str, *more: Any) -> Any:
        found = head(bucket, key, *more)
        stamp = {"x-amz-meta-lakemirror-etag": etag(b"1")} if key.endswith("/a") else {}
        return replace(found, headers={**(found.headers or {}), **stamp})

    there.s3._head = stamped  # type: ignore[method-assign]
    assert drift_of(there.verified()) == [("different", b"b")]
    assert there.s3.asked["HEAD"] == 2


def test_markers_of_ours_are_not_foreign_but_what_only_has_the_name_is() -> None:
    there = Place3({"a/1": b"1", "b/_lakefs_success": b"by a user"})
    for key, data in (("_lakefs_success", b""), ("a/_lakefs_success", b""), ("c/_lakefs_success", b"theirs")):
        there.put(key, data)
    assert drift_of(there.verified()) == [("foreign", b"c/_lakefs_success")]
    there.remove("b/_lakefs_success")
    assert ("missing", b"b/_lakefs_success") in drift_of(there.verified())


def test_of_an_empty_commit_everything_is_foreign() -> None:
    there = Place3()
    assert [(row["done"], row["foreign"]) for row in there.verified()] == [(True, 0)]
    there.put("a", b"1")
    assert drift_of(there.verified()) == [("foreign", b"a")]


def test_of_many_foreign_ones_the_first_are_named_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST_TOLD", 5)
    there = Place3({"a": b"1", "z": b"2"})
    for number in range(50):
        there.put(f"f{number:02}", b"")
    (row,) = there.verified()
    assert (row["equal"], row["foreign"], [one["key"] for one in row["drift"]]) == (
        2,
        50,
        [b"f%02d" % number for number in range(5)],
    )


def test_a_slice_goes_on_after_what_the_one_before_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Place3({"a": b"1", "c": b"2", "m": b"3", "z": b"4"})
    there.remove("m")
    for number in range(10):
        there.put(f"f{number:02}", b"")
    work, rows, rounds = there.work(), [], 0
    monkeypatch.setattr("core.exporting.deadline.Deadline.check", lambda self: after_a_page(there.s3))
    while work and (rounds := rounds + 1) < 20:
        there.s3.asked.clear()
        (row,) = there.verified(work)
        rows.append(row)
        low = work[0].unit.low if row["upto"] is None else row["upto"] + b"\0"
        work = [] if row["done"] else [replace(work[0], unit=replace(work[0].unit, low=low))]
    assert rounds == 5
    assert [total(rows, name) for name in ("equal", "missing", "different", "foreign")] == [3, 1, 0, 10]
    assert len(drift_of(rows)) == len(set(drift_of(rows))) == 11


def after_a_page(s3: MemoryS3) -> None:
    if s3.asked["LIST"]:
        raise Late


# --- the export's duty ------------------------------------------------------------------------------------------------


def exported(w: World) -> Export:
    w.lake.commit(files={"a": b"1", "b": b"22", "c": b"333"})
    export = w.set(actions=True)  # all keys are one unit then
    w.work()
    export.refresh_from_db()
    assert export.state == "exported-successfully"
    return export


def verified(w: World, export: Export) -> ExportVerification:
    asked = export_verify(actor=w.owner, export=export)
    w.work(2)
    asked.refresh_from_db()
    return asked


@pytest.mark.django_db
def test_a_destination_is_proven_and_its_drift_named(w: World) -> None:
    export = exported(w)
    there = w.there("")
    first = verified(w, export)
    assert (first.outcome, first.ref, first.files) == ("equal", export.last_success_ref, 3)
    assert (first.equal, first.equal_bytes, first.drifted) == (3, 6, 0)
    assert w.there("") == there  # nothing was written
    w.client.delete_object(Bucket="out", Key="latest/a")
    w.put("latest/b", b"changed")
    w.put("latest/d", b"foreign")
    second = verified(w, export)
    assert [(one.sign, one.name, one.size, one.there_size) for one in second.drift.all()] == [
        ("+", "a", 1, None),
        ("*", "b", 2, 7),
        ("-", "d", None, 7),
    ]
    assert (second.outcome, second.seen, second.drifted) == ("drifted", 3, 3)
    assert not VerificationUnit.objects.exists()
    third = verified(w, export)
    assert set(ExportDrift.objects.values_list("verification", flat=True)) == {third.pk}


@pytest.mark.django_db
def test_a_run_goes_before_it_and_makes_it_outdated(w: World) -> None:
    export = exported(w)
    asked = export_verify(actor=w.owner, export=export)
    assert export_verify(actor=w.owner, export=export) == asked  # goes on already
    head = w.lake.commit(files={"a": b"other"})
    run = export_run(actor=w.owner, export=export)
    asked.refresh_from_db()
    assert (asked.outcome, asked.error) == ("outdated", f"the export of {head[:8]} began")
    with pytest.raises(Conflict, match="in progress"):
        export_verify(actor=w.owner, export=export)
    w.work()
    run.refresh_from_db()
    assert run.outcome == "exported-successfully"
    assert verified(w, export).outcome == "equal"


@pytest.mark.django_db
def test_a_slice_that_a_run_overtakes_notes_nothing(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    export = exported(w)
    compare = verify.export_jobs.verify

    def overtaken(*given: Any, **more: Any) -> None:
        w.lake.commit(files={"a": b"other"})
        export_run(actor=w.owner, export=export)
        compare(*given, **more)

    monkeypatch.setattr(verify.export_jobs, "verify", overtaken)
    asked = export_verify(actor=w.owner, export=export)
    assert w.work(1) == ["the verification is outdated: a run began"]
    asked.refresh_from_db()
    assert (asked.outcome, asked.equal) == ("outdated", 0) and not VerificationUnit.objects.exists()


@pytest.mark.django_db
def test_it_waits_for_writes_and_needs_a_success(w: World) -> None:
    w.lake.commit(files={"a": b"1"})
    export = w.set()
    with pytest.raises(Conflict, match="nothing to verify"):
        export_verify(actor=w.owner, export=export)
    w.work()
    export_verify(actor=w.owner, export=export)
    Export.objects.update(writes_until=clock.now() + timedelta(seconds=50))
    assert "waiting for the last writes" in w.work(1)[0]


@pytest.mark.django_db
def test_what_may_pass_is_tried_again_and_what_may_not_ends_it(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    export = exported(w)
    compare = verify.export_jobs.verify
    errors: list[Exception] = [Unreachable("away")]

    def failing(*given: Any, **more: Any) -> None:
        if errors:
            raise errors.pop()
        compare(*given, **more)

    monkeypatch.setattr(verify.export_jobs, "verify", failing)
    asked = verified(w, export)
    assert asked.outcome == "equal"
    errors[:] = [NotFound("the bucket is gone")]
    asked = verified(w, export)
    assert (asked.outcome, asked.error) == ("failed", "the bucket is gone")


@pytest.mark.django_db
def test_so_many_are_named_and_more_are_counted(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "MOST_NAMED", 2)
    export = exported(w)
    for number in range(5):
        w.put(f"latest/x{number}")
    asked = verified(w, export)
    assert (asked.foreign, asked.named, asked.drift.count()) == (5, 2, 2)


@pytest.mark.django_db
def test_what_a_slice_has_seen_is_not_looked_at_again(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    export = exported(w)
    compare, lows = verify.export_jobs.verify, []

    def in_two(work: Any, settings: Any, take: Any, **more: Any) -> None:
        lows.append(work[0].unit.low)
        if len(lows) > 1:
            return compare(work, settings, take, **more)
        counts = dict.fromkeys(job.COUNTS, 0) | {"equal": 1, "bytes": 1}
        take([{**counts, "unit": 0, "drift": [], "requests": 1, "done": False, "upto": b"a"}])

    monkeypatch.setattr(verify.export_jobs, "verify", in_two)
    asked = verified(w, export)
    assert (lows, asked.outcome, asked.equal, asked.equal_bytes) == ([b"", b"a\0"], "equal", 3, 6)


@pytest.mark.django_db
def test_large_ones_are_sparks(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    export = exported(w)
    seen: list[tuple[bool, str]] = []
    monkeypatch.setattr(
        verify.export_jobs, "verify", lambda work, settings, take, *, here, tag: seen.append((here, tag))
    )
    settings = config.current()
    monkeypatch.setattr(config, "current", lambda: settings)
    asked = export_verify(actor=w.owner, export=export)
    ExportVerification.objects.filter(pk=asked.pk).update(cut=True, files=10**9)
    VerificationUnit.objects.create(
        verification=asked, number=0, unit={"low": "", "high": None, "target": "", "others": [[]]}
    )
    monkeypatch.setattr(verify, "_some", lambda it: list(it.units.all()) if not seen else [])
    w.work(1)
    assert seen == [(False, str(export.pk))]


# --- asked by programs and people -------------------------------------------------------------------------------------

BRANCH = "/api/v1/repositories/analytics/branches/main"
DONE = {
    "last_success_ref": "9f31c0aa" * 8,
    "path_at_success": "s3://company-bucket/main",
    "state": "exported-successfully",
}


def drifted(export: Export) -> ExportVerification:
    made = ExportVerification.objects.create(
        export=export,
        ref=export.last_success_ref,
        path=export.path,
        asked_by="olga",
        started_at=clock.now(),
        ended_at=clock.now(),
        outcome="drifted",
        cut=True,
        files=9,
        equal=7,
        equal_bytes=1000,
        missing=1,
        different=1,
        foreign=1,
        named=3,
        requests=4,
    )
    for kind, key, size, there_size in (
        ("missing", b"a b", 1, None),
        ("different", b"c", 2, 3),
        ("foreign", b"=bad", None, 4),
    ):
        ExportDrift.objects.create(verification=made, kind=kind, key=key, size=size, there_size=there_size)
    return made


@pytest.mark.django_db
def test_the_api_asks_and_tells(lm: Deployment, api: Api) -> None:
    export = an_export(**DONE)
    status, told = api.call("GET", f"{BRANCH}/export-verification")
    assert (status, "has not been verified yet" in told["message"]) == (404, True)
    status, told = api.call("POST", f"{BRANCH}/export-verify")
    assert (status, told["outcome"], told["files"], told["ref"]) == (202, None, None, export.last_success_ref)
    assert api.call("POST", f"{BRANCH}/export-verify")[1]["id"] == told["id"]
    ExportVerification.objects.all().delete()
    made = drifted(export)
    status, told = api.call("GET", f"{BRANCH}/export-verification")
    assert (status, told["id"], told["outcome"], told["equal"]) == (200, str(made.pk), "drifted", 7)
    status, page = api.call("GET", f"{BRANCH}/export-drift?amount=2")
    assert [one["path"] for one in page["results"]] == ["a b", "c"] and page["pagination"]["has_more"]
    assert page["results"][0]["there_size"] is None
    table = api.client.get(f"{BRANCH}/export-drift?format=csv", headers=api.headers)
    lines = b"".join(table.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert lines == [
        "path,kind,size,etag,there_size,there_etag",
        "a b,missing,1,,,",
        "c,different,2,,3,",
        "'=bad,foreign,,,4,",
    ]


@pytest.mark.django_db
def test_who_may_verify(lm: Deployment, teammate: User, outsider: User) -> None:
    drifted(an_export(**DONE))
    reading, stranger = Api(teammate), Api(outsider)
    for path in ("export-verification", "export-drift"):
        assert reading.call("GET", f"{BRANCH}/{path}")[0] == 200
        assert stranger.call("GET", f"{BRANCH}/{path}")[0] == 403
    for who in (reading, stranger):
        assert who.call("POST", f"{BRANCH}/export-verify")[0] == 403


@pytest.mark.django_db
def test_the_page_proves_the_destination(owner: User) -> None:
    olga = Client()
    olga.force_login(owner)
    export = an_export(**DONE)
    run = a_run(export, phase="done", outcome="exported-successfully", ended_at=clock.now())
    page = body(olga, f"/exports/{export.pk}/")
    assert "not verified yet" in page and 'id="export_verify"' in page
    answer = olga.post(f"/exports/{export.pk}/verify/", headers={"HX-Request": "true"})
    assert b"Queued: verification of the destination" in answer.content
    page = body(olga, f"/exports/{export.pk}/")
    assert "verifying" in page and 'id="export_verify"' not in page and 'hx-trigger="every 3s' in page
    ExportVerification.objects.all().delete()
    drifted(export)
    page = body(olga, f"/exports/{export.pk}/")
    for told in ("3 drifted", "+ a b", "* c", "- =bad", "In the commit", "as CSV"):
        assert told in page
    run.delete()
    assert body(olga, f"/exports/{export.pk}/")
