"""Somebody's own files at keys that the branch has, had, or was about to have: none of them is ever deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import pytest

from core.errors import Denied, Invalid, LakeMirrorError, Unauthenticated, Unreachable
from exports.api.serializers import run_json
from exports.models import Export, ExportFailure, ExportRun
from exports.services.exports import export_repair
from exports.status.timeline import steps_of
from tests.exports.soak import Soak
from tests.exports.test_places import at

pytestmark = pytest.mark.django_db
OWN = b"somebody's own"
BROKEN_OFF = {"keys": [], "sizes": [], "etags": [], "more": True}


def succeed(life: Soak) -> ExportRun:
    """Let it go on to its end; the run that succeeded."""
    if Export.objects.get().state == "export-failed":
        export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert (Export.objects.get().state, Export.objects.get().error) == ("exported-successfully", "")
    return ExportRun.objects.latest("pk")


def fail(life: Soak) -> None:
    """Nothing may be written any more, until the run has failed."""
    life.denied = "latest/"
    life.rounds()
    assert Export.objects.get().state == "export-failed"
    life.denied = ""


def out(life: Soak, key: str) -> bytes | None:
    return life.s3.buckets["out"].get(f"latest/{key}")


def begun(life: Soak, *, patterns: tuple[str, ...] = (), **files: bytes) -> None:
    life.lake.commit(files={"a": b"1", **files})
    life.set(patterns=patterns)
    succeed(life)


def test_a_file_that_an_attempt_would_have_replaced_survives_when_the_branch_drops_it(life: Soak) -> None:
    begun(life)
    life.s3.buckets["out"]["latest/report.csv"] = OWN
    life.lake.commit(files={"report.csv": b"ours"})
    fail(life)
    life.lake.commit(files={"report.csv": None})
    run = succeed(life)
    assert out(life, "report.csv") == OWN
    assert (run.kept, run.kept_keys, run.deleted) == (1, ["report.csv"], 0)
    told = run_json(run)
    assert (told["kept"], told["kept_paths"]) == (1, ["report.csv"])
    assert any("1 kept, since this export did not write them: report.csv" in step.note for step in steps_of(run))


def test_what_an_attempt_did_write_goes_when_the_branch_drops_it(life: Soak) -> None:
    begun(life)
    life.lake.commit(files={"report.csv": b"ours", "ü": b"2"})
    life.denied = "ü"
    life.rounds()
    assert (Export.objects.get().state, out(life, "report.csv")) == ("export-failed", b"ours")
    life.denied = ""
    life.lake.commit(files={"report.csv": None, "ü": None})
    run = succeed(life)
    assert (out(life, "report.csv"), run.kept, run.deleted) == (None, 0, 2)


@pytest.mark.parametrize("size", [len(b"ours"), len(OWN)])
def test_a_file_that_took_the_key_after_a_success_survives_when_the_branch_drops_it(life: Soak, size: int) -> None:
    begun(life, b=b"ours", c=b"ours too")
    life.s3.buckets["out"]["latest/b"] = OWN[:size]
    life.lake.commit(files={"b": None, "c": None})
    run = succeed(life)
    assert (out(life, "b"), out(life, "c")) == (OWN[:size], None)
    assert (run.kept_keys, run.deleted) == (["b"], 1)


def test_a_last_key_that_somebody_replaced_after_a_success_stays_until_ours_comes(life: Soak) -> None:
    begun(life, patterns=(r".*/_SUCCESS",), **{"d/x": b"1", "d/_SUCCESS": b"1"})
    life.s3.buckets["out"]["latest/d/_SUCCESS"] = OWN
    life.lake.commit(files={"d/x": b"2", "d/_SUCCESS": b"2"})
    life.denied = "latest/d/x"
    life.rounds()
    assert (Export.objects.get().state, out(life, "d/_SUCCESS")) == ("export-failed", OWN)
    life.denied = ""
    succeed(life)
    assert out(life, "d/_SUCCESS") == b"2"


def test_what_goes_together_is_looked_at_by_one_listing_and_what_is_copied_by_none(life: Soak) -> None:
    begun(life, **{f"d/{number}": b"1" for number in range(3)})
    asked = life.s3.asked["LIST"]
    life.lake.commit(files={"a": b"2", "e": b"2"})
    succeed(life)
    of_copies, asked = life.s3.asked["LIST"] - asked, life.s3.asked["LIST"]
    life.lake.commit(files={f"d/{number}": None for number in range(3)})
    succeed(life)
    assert life.s3.asked["LIST"] - asked == of_copies + 1


def test_a_refused_question_about_one_key_keeps_that_one_alone(life: Soak) -> None:
    """Of an object that is encrypted with somebody's own key a HEAD is a 400."""
    begun(life, **{f"k{number}": b"1234" for number in range(5)})
    life.s3.buckets["out"]["latest/k2"] = b"else"
    life.lake.commit(files={f"k{number}": None for number in range(5)})
    life.s3.before = refusing("latest/k2", Invalid("400 BadRequest"), life.s3.before)
    run = succeed(life)
    assert [key for key in life.s3.buckets["out"] if key.startswith("latest/k")] == ["latest/k2"]
    assert (run.kept_keys, run.deleted) == (["k2"], 4)


@pytest.mark.parametrize("error", [Unreachable("no answer in time"), Unauthenticated("403 ExpiredToken")])
def test_a_key_that_can_not_be_asked_for_now_fails_alone_and_is_nobody_elses_yet(
    life: Soak, error: LakeMirrorError
) -> None:
    begun(life, k1=b"1234", k2=b"1234")
    life.s3.buckets["out"]["latest/k2"] = b"else"
    life.lake.commit(files={"k1": None, "k2": None})
    before, life.s3.before = life.s3.before, refusing("latest/k2", error, life.s3.before)
    life.rounds(12)
    run = ExportRun.objects.latest("pk")
    assert (Export.objects.get().state, run.kept, [failure.name for failure in run.failures.all()]) == (
        *("export-failed", 0),
        ["k2"],
    )
    assert (out(life, "k1"), out(life, "k2")) == (None, b"else")
    life.s3.before = before
    assert succeed(life).kept_keys == ["k2"]


def refusing(asked: str, error: LakeMirrorError, known: Callable[[str, str, str], None]) -> Callable[..., None]:
    def before(method: str, bucket: str, key: str) -> None:
        known(method, bucket, key)
        if (method, key) == ("HEAD", asked):
            raise error

    return before


def test_a_listing_that_is_broken_off_is_tried_again_and_leaves_nothing_behind(life: Soak) -> None:
    begun(life, b=b"ours")
    life.lake.commit(files={"b": None})
    whole = life.s3.page
    with mock.patch.object(life.s3, "page", lambda prefix, after="": replace(whole(prefix, after), **BROKEN_OFF)):
        life.rounds()
    assert out(life, "b") == b"ours" and Export.objects.get().state == "in-progress"
    succeed(life)
    assert out(life, "b") is None


def test_a_file_that_took_the_key_after_an_attempt_removed_ours_survives(life: Soak) -> None:
    begun(life, b=b"ours", ü=b"2")
    life.lake.commit(files={"b": None, "ü": b"other"})
    life.denied = "ü"
    life.rounds()
    assert (Export.objects.get().state, out(life, "b")) == ("export-failed", None)
    life.s3.buckets["out"]["latest/b"] = OWN
    life.denied = ""
    run = succeed(life)
    assert (out(life, "b"), run.kept_keys) == (OWN, ["b"])


def test_a_file_that_took_the_key_survives_the_worker_that_takes_over(life: Soak) -> None:
    begun(life, b=b"ours")
    life.lake.commit(files={"b": None, "c": b"3", "d": b"4"})
    life.kill_in = 4  # after it was told that files change
    while not ExportRun.objects.latest("pk").in_hand:
        life.rounds(1)
    assert out(life, "b") is None
    life.kill_in = 0
    life.s3.buckets["out"]["latest/b"] = OWN
    assert (succeed(life).takeovers, out(life, "b")) == (0, OWN)
    assert out(life, "d") == b"4"


def test_a_file_of_the_same_size_is_told_from_ours_by_its_stamp(life: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object whose ETag is none of the branch's may be ours all the same, where stores make ETags of their own."""
    begun(life)
    life.lake.commit(files={"mine": b"1234", "own": b"5678", "shut": b"9012", "ü": b"2"})
    life.denied = "ü"
    life.rounds()
    etags = {path: entry.etag for path, entry in life.lake.trees[Export.objects.get().current_ref].items()}
    life.denied = ""
    for key in ("mine", "own", "shut"):
        life.s3.buckets["out"][f"latest/{key}"] = b"else"

    def stamp(copier: object, key: bytes) -> str:
        if key == b"shut":
            raise Denied("403 AccessDenied")
        return etags[key] if key == b"mine" else ""

    monkeypatch.setattr("adapters.s3.copier.Copier.stamp", stamp)
    life.lake.commit(files={"mine": None, "own": None, "shut": None, "ü": None})
    run = succeed(life)
    assert (out(life, "mine"), out(life, "own"), out(life, "shut")) == (None, b"else", b"else")
    assert run.kept_keys == ["own", "shut"]


def test_a_key_of_a_place_that_was_left_is_judged_by_what_lies_there(life: Soak) -> None:
    begun(life, b=b"ours", c=b"ours too")
    life.set("s3://out/other")
    life.rounds()
    life.s3.buckets["out"]["latest/b"] = OWN
    life.lake.commit(files={"b": None, "c": None})
    life.set()
    run = succeed(life)
    assert (out(life, "b"), out(life, "c"), run.kept_keys) == (OWN, None, ["b"])


@pytest.mark.parametrize("first", [True, False])
def test_a_last_key_of_somebodys_own_stays_until_ours_replaces_it(life: Soak, first: bool) -> None:
    """Ours goes before anything below it changes. Theirs was never ours to take away, and may be all that there is."""
    patterns = (r".*/_SUCCESS",)
    if not first:
        begun(life, patterns=patterns)
    life.s3.buckets["out"]["latest/d/_SUCCESS"] = OWN
    life.lake.commit(files={"d/x": b"1", "d/_SUCCESS": b"ours"})
    life.set(patterns=patterns)
    life.denied = "latest/d/x"
    life.rounds()
    assert (Export.objects.get().state, out(life, "d/_SUCCESS")) == ("export-failed", OWN)
    life.denied = ""
    assert (succeed(life).kept, out(life, "d/_SUCCESS")) == (0, b"ours")


def test_a_file_of_the_branch_replaces_whatever_has_its_key(life: Soak) -> None:
    """As docs/exports.md says."""
    life.s3.buckets["out"]["latest/a"] = OWN
    begun(life)
    assert out(life, "a") == b"1"


# --- what the branch itself has there ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exported", [False, True])
def test_a_branch_that_was_given_objects_of_its_export_path_is_not_exported_there(life: Soak, exported: bool) -> None:
    life.lake.commit(files={"b": b"1"})
    if exported:
        begun(life)
    life.s3.buckets["out"]["latest/c"] = OWN
    life.lake.link("c", "s3://out/latest/c", OWN)
    life.set()
    before = at(life)
    life.rounds()
    export = Export.objects.get()
    assert export.state == "export-failed" and "Use another path" in export.error
    assert "s3://out/latest/c, in the export path s3://out/latest, is an object of the repository" in export.error
    life.lake.commit(files={"b": b"2", "c": None})  # the commit before needs it all the same
    export_repair(actor=life.owner, export=export)
    life.rounds()
    assert (Export.objects.get().state, at(life), out(life, "c")) == ("export-failed", before, OWN)
    life.set("s3://out/other")
    assert (succeed(life).path, out(life, "c")) == ("s3://out/other", OWN)


# --- markers ----------------------------------------------------------------------------------------------------------


def test_a_file_that_has_a_markers_name_is_neither_removed_nor_replaced(life: Soak) -> None:
    life.s3.buckets["out"]["latest/d1/_lakefs_success"] = OWN
    life.lake.commit(files={"a": b"1", "d1/a": b"2"})
    life.set(patterns=["^$", "d1/"])
    life.rounds()
    export = Export.objects.get()
    assert (export.state, out(life, "d1/_lakefs_success")) == ("export-failed", OWN)
    assert "s3://out/latest/d1/_lakefs_success is somebody's own file. Move that file elsewhere" in export.error
    assert ExportFailure.objects.get().reason == "foreign"
    assert out(life, "_lakefs_success") is None  # nor has its parent one
    del life.s3.buckets["out"]["latest/d1/_lakefs_success"]
    succeed(life)
    assert (out(life, "d1/_lakefs_success"), out(life, "_lakefs_success")) == (b"", b"")


def test_a_file_that_comes_while_a_run_goes_on_is_not_replaced_by_a_marker(life: Soak) -> None:
    life.lake.commit(files={"d1/a": b"2"})
    life.set(patterns=["d1/"])

    def meanwhile(method: str, bucket: str, key: str) -> None:
        if method == "COPY":
            life.s3.buckets["out"]["latest/d1/_lakefs_success"] = OWN

    life.s3.after = meanwhile
    life.rounds()
    assert (Export.objects.get().state, out(life, "d1/_lakefs_success")) == ("export-failed", OWN)


def test_a_users_own_success_file_that_the_branch_drops_makes_room_for_a_marker(life: Soak) -> None:
    begun(life, patterns=(r"d\d/",), **{"d1/a": b"1", "d1/_lakefs_success": b"by a user"})
    life.lake.commit(files={"d1/a": b"2", "d1/_lakefs_success": None})
    succeed(life)
    assert out(life, "d1/_lakefs_success") == b""
