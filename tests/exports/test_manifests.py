"""When manifests are written, which ones stay, and that nobody else's file is removed for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.errors import Denied, Fenced
from core.exporting import manifests as core_manifests
from core.exporting.manifests import is_due
from db import clock
from deployment import config
from exports.engine import manifests
from exports.engine.run_io import Plane
from exports.engine.time_slice import Slice
from exports.models import Export, ExportManifest, ExportRun
from exports.services.exports import export_verify
from exports.status.failure_counts import status_file
from jobs.lease import Lease
from jobs.models import Duty
from tests.exports.world import World


@pytest.mark.parametrize(
    ("mode", "hours", "due"),
    [("always", 0, True), ("never", None, False), ("daily", None, True), ("daily", 23.9, False), ("daily", 24, True)],
)
def test_when_one_is_due(mode: str, hours: float | None, due: bool) -> None:
    now = datetime(2026, 11, 25, 12, tzinfo=UTC)
    last = None if hours is None else now - timedelta(hours=hours)
    assert is_due(mode, last, now) is due


def listed(w: World, prefix: str = "states/") -> list[str]:
    return sorted(key for key in w.there(prefix) if "_MANIFEST_" in key)


def reports(w: World) -> list[dict[str, Any]]:
    there = w.there("states/")
    return [json.loads(there[key]) for key in sorted(there) if "_STATUS_" in key]


def commit(w: World, number: int) -> str:
    head = w.lake.commit(files={"a": b"%d" % number})
    w.work(3)
    return head


@pytest.mark.django_db
def test_a_new_export_writes_one_a_day_and_its_states_name_the_last_one(w: World) -> None:
    first = w.lake.commit(files={"a": b"0"})
    export = w.set()
    w.work()
    assert Export.objects.get().manifest == "daily"
    second = commit(w, 1)
    (name,) = listed(w)
    earlier, later = reports(w)
    assert earlier["manifest"] == f"s3://out/states/{name}" and later["manifest"] is None
    assert later["last_manifest"] == earlier["last_manifest"] == {"uri": earlier["manifest"], "commit_id": first}
    run = ExportRun.objects.latest("pk")
    written = status_file(run)
    assert written is not None and (written.manifest, run.listed) == ("", False)
    ExportManifest.objects.update(written_at=clock.now() - timedelta(days=1))
    third = commit(w, 2)
    assert len(listed(w)) == 2 and reports(w)[-1]["last_manifest"]["commit_id"] == third
    assert w.problems(third) == [] and second != third
    w.client.delete_object(Bucket="out", Key="latest/a")  # and Verify asks no manifest
    asked = export_verify(actor=w.owner, export=export)
    w.work(2)
    asked.refresh_from_db()
    assert asked.missing == 1


@pytest.mark.django_db
def test_never_is_never(w: World) -> None:
    w.lake.commit(files={"a": b"0"})
    w.set(manifest="never")
    w.work()
    assert listed(w) == [] and reports(w)[-1]["manifest"] is None and reports(w)[-1]["last_manifest"] is None


@pytest.mark.django_db
def test_the_last_ones_stay_and_older_ones_of_ours_go(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_two(monkeypatch)
    w.lake.commit(files={"a": b"0"})
    w.set(manifest="always")
    w.work()
    (first,) = listed(w)
    theirs = first.replace("_MANIFEST_", "_MANIFEST_0")
    w.put(f"states/{theirs}")
    commit(w, 1)
    second = listed(w)[-1]
    w.put(f"states/{second}", b"somebody has written here")
    commit(w, 2)
    commit(w, 3)
    names = listed(w)
    assert first not in names and {theirs, second} < set(names) and len(names) == 4
    assert w.there("states/")[second] == b"somebody has written here"
    assert ExportManifest.objects.count() == 2
    run = ExportRun.objects.order_by("pk")[0]
    written = status_file(run)
    assert written is not None and written.manifest == ""  # it is no more there


@pytest.mark.django_db
def test_one_that_may_not_be_removed_keeps_nothing_from_being_exported(
    w: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def denied(plane: Plane, uri: str) -> None:
        raise Denied("403 AccessDenied")

    keep_two(monkeypatch)
    w.lake.commit(files={"a": b"0"})
    w.set(manifest="always")
    w.work()
    remove = Plane.delete
    monkeypatch.setattr(Plane, "delete", denied)
    commit(w, 1)
    head = commit(w, 2)
    assert Export.objects.get().last_success_ref == head and "stays for now: 403" in caplog.text
    assert len(listed(w)) == ExportManifest.objects.count() == 3
    monkeypatch.setattr(Plane, "delete", remove)
    commit(w, 3)
    assert len(listed(w)) == ExportManifest.objects.count() == 2


@pytest.mark.django_db
def test_those_at_a_former_status_path_stay(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_two(monkeypatch)
    w.lake.commit(files={"a": b"0"})
    w.set(manifest="always")
    w.work()
    for number in range(3):
        w.set(manifest="always", status_path="s3://out/told")
        commit(w, number + 1)
    assert (len(listed(w)), len(listed(w, "told/"))) == (1, 2)


@pytest.mark.django_db
def test_a_status_path_around_the_former_one_is_another_one(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_two(monkeypatch)
    w.lake.commit(files={"a": b"0"})
    w.set(status_path="s3://out/states/former")
    w.work()
    (former,) = listed(w)
    w.set()
    commit(w, 1)
    assert len(listed(w)) == 2
    w.set(manifest="always")
    commit(w, 2)
    commit(w, 3)
    names = listed(w)
    assert former in names and len(names) == 3


@pytest.mark.django_db
def test_a_worker_that_was_overtaken_does_not_say_that_there_is_none(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of a day: none was due for it, one was for who took over."""
    w.lake.commit(files={"a": b"0"})
    w.set()
    w.work()
    run = ExportRun.objects.get()
    ExportRun.objects.update(listed=None)
    lost = Lease(Duty.objects.get(kind="export"), "somebody", 0)
    with pytest.raises(Fenced):
        manifests.write(ExportRun.objects.get(), Plane(run, None), lost)  # type: ignore[arg-type]
    assert ExportRun.objects.get().listed is None


@pytest.mark.django_db
@pytest.mark.parametrize("size", [1, 6 << 20], ids=["small", "in parts"])
def test_a_worker_that_is_overtaken_while_it_gathers_a_manifest_does_not_end_it(
    w: World, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Its place may be somebody else's by then."""
    w.lake.commit(files={"a": b"0"})
    w.set()
    w.work()
    w.client.delete_object(Bucket="out", Key=f"states/{listed(w)[0]}")
    ExportRun.objects.update(listed=None)
    ExportManifest.objects.all().delete()
    duties = Duty.objects.filter(kind="export")
    duties.update(holder="frozen", until=clock.now() + timedelta(minutes=1))
    duty = duties.get()
    lease, run = Lease(duty, "frozen", duty.attempt), ExportRun.objects.get()

    def slow(_: Any) -> Iterator[bytes]:
        yield b"x" * size
        duties.update(holder="another", attempt=duty.attempt + 1)
        yield b"y" * size

    monkeypatch.setattr(manifests, "PART_BYTES", 6 << 20)
    monkeypatch.setattr(core_manifests, "lines", slow)
    with pytest.raises(Fenced):
        manifests.write(run, Plane(run, Slice.begin(run.export, lease)), lease)
    assert listed(w) == []
    assert "Uploads" not in w.client.list_multipart_uploads(Bucket="out")


@pytest.mark.django_db
def test_a_large_manifest_goes_in_parts(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [b"x" * (4 << 20), b"y" * (9 << 20), b"z"]
    monkeypatch.setattr(manifests, "PART_BYTES", 6 << 20)
    monkeypatch.setattr(core_manifests, "lines", lambda _: iter(pieces))
    w.lake.commit(files={"a": b"0"})
    w.set()
    w.work()
    assert w.there("states/")[listed(w)[0]] == b"".join(pieces)
    assert "Uploads" not in w.client.list_multipart_uploads(Bucket="out")


def keep_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(config.current().exports), "kept_manifests", property(lambda self: 2))
