"""Whole runs against a real S3 server: what arrives, in which order, and what becomes of failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from core.errors import Denied, Invalid
from db import clock
from exports.engine import commits_behind
from exports.engine.note_failures import failed_directories
from exports.models import Export, ExportFailure, ExportRun
from exports.services.exports import export_delete, export_repair, export_run
from exports.status.failure_counts import status_file
from tests.exports.soak import Soak
from tests.exports.world import World

pytestmark = pytest.mark.django_db


def test_a_branch_is_exported_and_followed(w: World) -> None:
    first = w.lake.commit(files={"a": b"1", "logs/day=1/x": b"2", "logs/day=1/y": b"3"})
    export = w.set(patterns=[r".*/day=\d+/"], manifest="always")
    w.work()
    export.refresh_from_db()
    assert (export.state, export.last_success_ref, export.error) == ("exported-successfully", first, "")
    assert w.problems(first) == []
    assert w.there()["logs/day=1/_lakefs_success"] == b""
    second = w.lake.commit(files={"a": None, "logs/day=2/z": b"4"})
    w.work()
    assert w.problems(second) == []
    states = w.there("states/")
    assert states[f"lake-main-{second}"] == b"status: exported-successfully, signalled_errors: 0\n"
    manifest = sorted(key for key in states if "_MANIFEST_" in key)[-1]
    lines = [json.loads(line) for line in states[manifest].splitlines()]
    assert {line["path"]: line["etag"] for line in lines} == w.tree(second)
    run = ExportRun.objects.order_by("-pk").first()
    assert run is not None
    assert (run.base, run.copied, run.deleted, run.skipped) == (first, 1, 1, 0)


def state(export: Export) -> tuple[str, str]:
    export.refresh_from_db()
    return export.state, export.error


def test_a_missing_bucket_is_named_and_repaired(w: World) -> None:
    head = w.lake.commit(files={"a": b"1"})
    export = w.set("s3://absent/latest", status_path="s3://out/states")
    w.work()
    export.refresh_from_db()
    assert export.writes_until is None  # nothing is under way: a repair need not wait
    failed, why = state(export)
    assert (failed, "the bucket 'absent' does not exist" in why) == ("export-failed", True)
    assert w.there("states/")[f"lake-main-{head}"] == b"status: export-failed, signalled_errors: 1\n"
    w.client.create_bucket(Bucket="absent")
    export_repair(actor=w.owner, export=export)
    assert state(export)[0] == "export-repaired"
    seen = [w.work(1) and w.there("states/")[f"lake-main-{head}"] for _ in range(4)]
    assert seen[0] == b"status: export-repaired, signalled_errors: 1\n"
    assert seen[-1] == b"status: exported-successfully, signalled_errors: 0\n"
    assert state(export) == ("exported-successfully", "")
    w.client.delete_object(Bucket="absent", Key="latest/a")
    w.client.delete_bucket(Bucket="absent")


def test_a_status_that_has_no_bucket_either_is_not_shown_as_written(w: World) -> None:
    w.lake.commit(files={"a": b"1"})
    export = w.set("s3://absent/latest", status_path="s3://absent/states")
    w.work()
    told = "the bucket 'absent' does not exist. Create it, then click Repair. The status could not be written either"
    assert state(export) == ("export-failed", told)
    assert status_file(export.runs.get()) is None


def test_what_fails_keeps_its_directories_from_having_markers(w: World) -> None:
    w.lake.commit(files={"x/a/1": b"1", "x/b/2": b"2", "y/3": b"3"})
    gone = w.lake.commit(files={"x/a/4": b"4", "x/b/5": b"5", "y/6": b"6"})
    address = w.lake.address_of(gone, "x/a/4")
    w.client.delete_object(Bucket="src", Key=f"lake/{address}")
    export = w.set(patterns=[".*"])
    w.work()
    failed, why = state(export)
    assert (failed, "1 task failed" in why, "missing at the source" in why) == ("export-failed", True, True)
    markers = {key for key in w.there() if key.endswith("_lakefs_success")}
    assert markers == {"x/b/_lakefs_success", "y/_lakefs_success"}  # not x/a/, x/, nor the root
    run = ExportRun.objects.get()
    assert [(bytes(one.key), one.reason) for one in run.failures.all()] == [(b"x/a/4", "gone")]
    assert not any("_MANIFEST_" in key for key in w.there("states/"))
    later = w.lake.commit(files={"x/a/4": None})
    assert w.work(2)[-1] == "failed: waiting for Repair"
    export_repair(actor=w.owner, export=export)
    w.work()
    assert state(export) == ("exported-successfully", "")
    assert w.problems(later) == []
    assert {key for key in w.there() if key.endswith("_lakefs_success")} == markers | {
        "x/a/_lakefs_success",
        "x/_lakefs_success",
        "_lakefs_success",
    }
    last = ExportRun.objects.order_by("-pk").first()
    assert last is not None and (last.copied, last.skipped) == (0, 5)


def test_what_a_failed_run_wrote_of_a_commit_that_is_gone_is_removed(w: World) -> None:
    first = w.lake.commit(files={"a": b"1"})
    export = w.set()
    w.work()
    bad = w.lake.commit(files={"a": b"other", "new": b"2", "gone": b"3"})
    w.client.delete_object(Bucket="src", Key=f"lake/{w.lake.address_of(bad, 'gone')}")
    w.work()
    assert state(export)[0] == "export-failed"
    assert w.there() == {"a": b"other", "new": b"2"}
    w.lake.repository.branches["main"] = first
    export_repair(actor=w.owner, export=export)
    w.work()
    assert state(export)[0] == "exported-successfully"
    assert w.there() == {"a": b"1"}
    assert Export.objects.get().attempted == []


def test_foreign_objects_survive_and_a_users_success_file_is_theirs(w: World) -> None:
    w.put("latest/theirs", b"x")
    w.put("latest/a/theirs", b"y")
    w.put("latestelse", b"z")
    w.lake.commit(files={"a/1": b"1", "a/_lakefs_success": b"by a user", "b/_SUCCESS": b"", "b/2": b"2"})
    export = w.set(patterns=[".*/", ".*/_SUCCESS"])
    w.work()
    head = w.lake.commit(files={"a/1": None, "b/2": b"other"})
    w.work()
    assert state(export) == ("exported-successfully", "")
    assert w.problems(head, foreign=("theirs", "a/theirs")) == []
    there = w.there("latest")
    assert (there["else"], there["/theirs"], there["/a/theirs"]) == (b"z", b"x", b"y")
    assert there["/a/_lakefs_success"] == b"by a user"


def test_a_changed_path_is_a_full_export_and_the_old_place_stays(w: World) -> None:
    head = w.lake.commit(files={"a": b"1", "b": b"2"})
    w.set()
    w.work()
    w.set("s3://out/other")
    w.work()
    assert w.problems(head) == [] and w.problems(head, prefix="other/") == []
    run = ExportRun.objects.order_by("-pk").first()
    assert run is not None and (run.base, run.copied) == ("", 2)


def test_commits_during_a_run_give_one_catch_up(w: World) -> None:
    w.lake.commit(files={"a": b"1"})
    export = w.set()
    w.work(1)  # started
    for number in range(3):
        w.lake.commit(files={"a": b"%d" % number})
    w.work()
    assert ExportRun.objects.count() == 2
    assert state(export)[0] == "exported-successfully" and w.there() == {"a": b"2"}
    first, second = ExportRun.objects.order_by("pk")
    assert (first.skipped_commits, second.skipped_commits) == (0, 2)
    assert [one.message for one in second.skipped_ones.all()] == ["commit 3", "commit 2"]
    assert set(second.begun) == {"clear", "copy", "last", "markers", "manifest", "status"}


def test_commits_that_wait_for_a_run_are_counted_while_it_goes_on(w: World) -> None:
    w.lake.commit(files={"a": b"1"})
    export = w.set()
    w.work()
    base = w.lake.commit(files={"a": b"2"})
    w.work(1)  # started
    heads = [w.lake.commit(files={"b": b"%d" % number}) for number in range(2)]
    w.lm.us.repositories["lake"].branches["main"] = heads[-1]
    Export.objects.update(paused=False, head_at=clock.now() - timedelta(minutes=2))
    export.refresh_from_db()
    commits_behind.look_meanwhile(export)
    export.refresh_from_db()
    assert (export.current_ref, export.head) == (base, heads[-1])
    assert (export.behind_commits, export.behind_more) == (3, False) and export.behind_since is not None


def test_once_is_once(w: World) -> None:
    w.lake.commit(files={"a": b"1"})
    export = w.set(continuous=False)
    w.work()
    assert w.there() == {"a": b"1"}
    w.lake.commit(files={"a": b"2"})
    w.work()
    assert w.there() == {"a": b"1"}
    export.refresh_from_db()
    export_run(actor=w.owner, export=export)
    w.work()
    assert w.there() == {"a": b"2"}


def test_a_status_that_can_not_be_written_is_told_and_keeps_nobody_waiting(w: World) -> None:
    w.lake.commit(files={"a": b"1"})
    export = w.set(status_path="s3://absent/states")
    w.work()
    failed, why = state(export)
    assert (failed, "the bucket 'absent' does not exist" in why) == ("export-failed", True)
    assert export.writes_until is None


def test_a_refusal_says_that_a_repair_is_wanted(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise Denied("403 AccessDenied", hint="continues by itself")

    w.lake.commit(files={"a/1": b"1"})
    monkeypatch.setattr("adapters.s3.copier.Copier.copy", refused)
    export = w.set(patterns=[".*"])
    w.work()
    words = "1 task failed: 403 AccessDenied. Grant this access key the missing permission, then click Repair"
    assert state(export) == ("export-failed", words)


def test_what_no_commit_describes_is_asked_for_its_type_and_metadata(life: Soak) -> None:
    """The export is deleted, and made anew when a file is described otherwise: there is no base then."""
    life.lake.commit(files={"a": b"1", "b": b"2", "c": b"3"})
    life.set()
    life.rounds()
    export_delete(actor=life.owner, export=Export.objects.get())
    life.rounds()
    life.lake.describe("a", content_type="text/plain")
    life.lake.describe("b", metadata={"owner": "ada"})
    life.set()
    life.rounds()
    run = ExportRun.objects.get()
    assert (Export.objects.get().state, run.copied, run.skipped) == ("exported-successfully", 2, 1)
    told = {key: life.s3.send("HEAD", life.s3.url("out", f"latest/{key}"), "head").headers for key in "ab"}
    assert told["a"]["content-type"] == "text/plain"
    assert told["b"]["x-amz-meta-owner"] == "ada"


def test_a_key_with_a_nul_is_named_where_it_fails_and_where_it_stays(life: Soak) -> None:
    """PostgreSQL takes no such text."""
    life.lake.commit(files={"a": b"1", "x\0y/z": b"2"})
    life.set()
    before, life.s3.before = life.s3.before, refusing_nul(life.s3.before)
    life.rounds()
    assert (Export.objects.get().state, ExportFailure.objects.get().reason) == ("export-failed", "refused")
    assert "InvalidArgument" in Export.objects.get().error
    assert failed_directories(ExportRun.objects.get()) == [b"x\0y/"]
    life.s3.before = before
    life.s3.buckets["out"]["latest/x\0y/z"] = b"somebody's own"
    life.lake.commit(files={"x\0y/z": None})
    export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    run = ExportRun.objects.latest("pk")
    assert (Export.objects.get().state, run.kept_keys) == ("exported-successfully", [r"x\x00y/z"])


def refusing_nul(known: Callable[[str, str, str], None]) -> Callable[[str, str, str], None]:
    def before(method: str, bucket: str, key: str) -> None:
        known(method, bucket, key)
        if "\0" in key and bucket == "out":
            raise Invalid("400 InvalidArgument: key")

    return before
