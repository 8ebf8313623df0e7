"""Places that an export leaves, comes back to, or finds taken; and expressions that it does not have any more."""

from __future__ import annotations

import pytest

from core.errors import Denied, Invalid
from exports.models import Export
from exports.services.exports import Wish, export_delete, export_pause, export_set
from mirrors.models import Mirror
from tests.exports.soak import Soak
from tests.fakes import Lake

pytestmark = pytest.mark.django_db


def at(life: Soak, place: str = "latest") -> set[str]:
    """The keys of a place; those that are somebody's own are left aside."""
    start = f"{place}/"
    foreign = {"theirs", "d1/theirs", "d1/e1/zz", "f"}
    return {key[len(start) :] for key in life.s3.buckets["out"] if key.startswith(start)} - foreign


def test_who_comes_back_to_a_place_removes_what_it_left_there(life: Soak) -> None:
    life.lake.commit(files={"a": b"1", "b": b"2"})
    life.set()
    life.rounds()
    life.set("s3://out/other")
    life.lake.commit(files={"b": None})
    life.rounds()
    life.set()
    life.rounds()
    assert (at(life), at(life, "other")) == ({"a"}, {"a"})
    assert Export.objects.get().left == {"s3://out/other": [life.lake.repository.branches["main"]]}


def test_what_a_failed_run_wrote_is_known_after_a_turn_elsewhere(life: Soak) -> None:
    first = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    life.lake.commit(files={"new": b"2", "ü": b"3"})
    life.denied = "ü"
    life.rounds()
    assert (Export.objects.get().state, at(life)) == ("export-failed", {"a", "new"})
    life.set("s3://out/other")
    life.repair()
    life.rounds()
    life.lake.repository.branches["main"] = first
    life.denied = ""
    life.set()
    life.repair()
    life.rounds()
    assert (Export.objects.get().state, at(life)) == ("exported-successfully", {"a"})


@pytest.mark.parametrize(("first", "then"), [("latest", "latest/d1"), ("latest/d1", "latest")])
def test_a_turn_to_a_place_that_overlaps_its_own_is_no_base_for_the_way_back(life: Soak, first: str, then: str) -> None:
    life.lake.commit(files={"a": b"above", "d1/a": b"in d1", "d1/d1/a": b"below", "gone": b"1", "ü": b"1"})
    life.set(f"s3://out/{first}")
    life.rounds()
    life.set(f"s3://out/{then}")
    life.denied = "ü"
    life.rounds()
    assert (Export.objects.get().state, Export.objects.get().path_at_success) == ("export-failed", "")
    life.denied = ""
    life.lake.commit(files={"new": b"1", "gone": None})
    life.set(f"s3://out/{first}")
    life.repair()
    life.rounds()
    export = Export.objects.get()
    assert (export.state, export.path_at_success) == ("exported-successfully", f"s3://out/{first}")
    there = {key: life.s3.buckets["out"][f"{first}/{key}"] for key in at(life, first)}
    wanted = {"a": b"above", "d1/a": b"in d1", "d1/d1/a": b"below", "new": b"1", "ü": b"1"}
    assert there | wanted == there
    assert f"{first}/gone" not in life.s3.buckets["out"]


def test_a_place_that_others_had_meanwhile_is_begun_anew(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1", "b": b"2"})
    life.lake.repository.branches["dev"] = head
    mine = life.set()
    life.rounds()
    life.set("s3://out/other", continuous=False)
    theirs = life.set(branch="dev")
    with pytest.raises(Invalid):
        life.set()
    mine.refresh_from_db()
    assert (mine.path_at_success, mine.left) == ("", {})
    theirs.delete()
    life.lake.commit(files={"b": None})
    life.set()
    life.rounds()
    assert at(life) == {"a", "b"}  # b is nobody's: the export does not know any more who brought it


def test_a_place_at_which_a_mirror_was_meanwhile_is_begun_anew(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    export_pause(actor=life.owner, export=Export.objects.get(), paused=True)
    life.set("s3://out/other")
    life.rival("s3://out/latest")
    assert Export.objects.get().path_at_success == ""
    Mirror.objects.all().delete()
    del life.s3.buckets["out"]["latest/a"]  # who removes a mirror empties its place
    life.set()
    export_pause(actor=life.owner, export=Export.objects.get(), paused=False)
    life.rounds()
    assert (Export.objects.get().state, at(life)) == ("exported-successfully", {"a"})


@pytest.mark.parametrize("rounds", [6, 1])
def test_an_export_that_is_turned_off_brings_no_later_commit(life: Soak, rounds: int) -> None:
    """Also where that was while the run went on that brings the last one."""
    first = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds(rounds)
    life.set(continuous=False)
    life.lake.commit(files={"b": b"2"})
    life.rounds()
    assert (Export.objects.get().last_success_ref, at(life)) == (first, {"a"})


def test_nobody_is_given_a_place_to_which_a_run_still_writes(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.lake.repository.branches["dev"] = head
    life.set()
    life.rounds(1)
    life.set("s3://out/other")
    with pytest.raises(Invalid, match="still writes"):
        life.set(branch="dev")


def test_who_gives_up_a_place_that_failed_and_goes_back_to_the_last_success_is_exported(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    life.denied = "other/"
    life.set("s3://out/other")
    life.rounds()
    assert Export.objects.get().state == "export-failed"
    life.set()
    life.repair()
    life.rounds()
    assert (Export.objects.get().state, Export.objects.get().last_success_ref) == ("exported-successfully", head)
    assert life.s3.buckets["out"][f"states/lake-main-{head}"].startswith(b"status: exported-successfully")


def test_a_marker_goes_though_its_expression_is_gone(life: Soak) -> None:
    life.lake.commit(files={"d1/a": b"1", "d2/a": b"2"})
    life.set(patterns=[r"d\d/"])
    life.rounds()
    assert at(life) == {"d1/a", "d2/a", "d1/_lakefs_success", "d2/_lakefs_success"}
    life.set(patterns=["^$"])
    life.lake.commit(files={"d1/a": b"other"})
    life.rounds()
    assert at(life) == {"d1/a", "d2/a", "_lakefs_success", "d2/_lakefs_success"}  # d2/ is as it was


@pytest.mark.parametrize("path", ["s3://out/x/lake/main", "s3://out/x/lake", "s3://out/x"])
def test_no_status_file_lies_in_the_export_path(life: Soak, path: str) -> None:
    with pytest.raises(Invalid, match="inside of the export path") as refused:
        configure(life, "lake", "main", path, "s3://out/x")
    assert refused.value.field == "exportStatusPath"
    configure(life, "lake", "main", "s3://out/x/lake/mainland", "s3://out/x")


@pytest.mark.parametrize(("repository", "branch"), [("lake", "eu-main"), ("lake-eu", "main")])
def test_two_exports_whose_status_files_have_the_same_names_share_no_status_path(
    life: Soak, repository: str, branch: str
) -> None:
    """Each may read what the other one wrote of a commit that both have."""
    twin = Lake(life.lm.us, life.s3, name="lake-eu", namespace="s3://src/twin")  # type: ignore[arg-type]
    for lake, name in ((life.lake, "eu-main"), (twin, "main")):
        lake.repository.branches[name] = lake.commit(files={"a": b"1"})
    first, second = ("lake", "eu-main"), ("lake-eu", "main")
    other = second if (repository, branch) == first else first
    configure(life, repository, branch, "s3://out/one", "s3://out/told")
    with pytest.raises(Invalid, match="have the same names, s3://out/told/lake-eu-main-COMMIT") as refused:
        configure(life, *other, "s3://out/two", "s3://out/told")
    assert refused.value.field == "exportStatusPath"
    configure(life, *other, "s3://out/two", "s3://out/told/elsewhere")


def test_the_same_branch_in_two_regions_has_two_status_paths(life: Soak) -> None:
    twin = Lake(life.lm.eu, life.s3, namespace="s3://src/twin")  # type: ignore[arg-type]
    for lake in (life.lake, twin):
        lake.commit(files={"a": b"1"})
    configure(life, "lake", "main", "s3://out/us", "s3://out/told")
    with pytest.raises(Invalid, match=r"the status files of lake/main \(us-east-1\) have the same names"):
        configure(life, "lake", "main", "s3://out/eu", "s3://out/told", region="eu-west-1")


def test_a_status_path_that_a_run_still_writes_to_counts_as_well(life: Soak) -> None:
    twin = Lake(life.lm.eu, life.s3, namespace="s3://src/twin")  # type: ignore[arg-type]
    for lake in (life.lake, twin):
        lake.commit(files={"a": b"1"})
    configure(life, "lake", "main", "s3://out/us", "s3://out/told")
    life.rounds(1)
    configure(life, "lake", "main", "s3://out/us", "s3://out/elsewhere")
    with pytest.raises(Invalid, match="have the same names"):
        configure(life, "lake", "main", "s3://out/eu", "s3://out/told", region="eu-west-1")


def configure(life: Soak, repository: str, branch: str, path: str, status_path: str, region: str = "us-east-1") -> None:
    wish = Wish(path, status_path, (), continuous=True)
    export_set(actor=life.owner, region=region, repository=repository, branch=branch, wish=wish)


def test_a_marker_outlives_its_export_and_goes_before_the_next_one_changes_what_is_below(life: Soak) -> None:
    life.lake.commit(files={"d1/a": b"1", "d1/b": b"1", "d2/a": b"1"})
    life.set(patterns=[r"d\d/"])
    life.rounds()
    export_delete(actor=life.owner, export=Export.objects.get())
    life.rounds()
    life.lake.commit(files={"d1/a": b"2", "d1/b": b"2"})
    life.denied = "latest/d1/b"
    life.set()
    life.rounds()
    assert (Export.objects.get().state, life.s3.buckets["out"]["latest/d1/a"]) == ("export-failed", b"2")
    assert at(life) == {"d1/a", "d1/b", "d2/a"}


@pytest.mark.parametrize("patterns", [[], [r"d\d/"]])
def test_a_marker_goes_though_others_had_the_place_meanwhile(life: Soak, patterns: list[str]) -> None:
    head = life.lake.commit(files={"d1/a": b"1", "d1/b": b"1"})
    life.lake.repository.branches["dev"] = head
    life.set(patterns=[r"d\d/"])
    life.rounds()
    mine = life.set("s3://out/other")
    life.rounds()
    mine.delete()
    life.lake.commit(branch="dev", files={"d1/a": b"2", "d1/b": b"2"})
    life.denied = "latest/d1/b"
    life.set(branch="dev", patterns=patterns)
    life.rounds()
    assert (Export.objects.get().state, at(life)) == ("export-failed", {"d1/a", "d1/b"})


@pytest.mark.parametrize(
    ("first", "then", "gone"),
    [
        ("latest", "latest/d1", {"_lakefs_success", "d1/_lakefs_success"}),
        ("latest/d1", "latest", {"d1/_lakefs_success", "d1/d1/_lakefs_success"}),
    ],
)
def test_markers_of_an_overlapping_place_go_before_what_is_below_them_changes(
    life: Soak, first: str, then: str, gone: set[str]
) -> None:
    life.lake.commit(files={"a": b"above", "d1/a": b"in d1", "d1/d1/a": b"below", "d2/a": b"1"})
    life.set(f"s3://out/{first}", patterns=["^$", r"^d\d/$"])
    life.rounds()
    before = at(life)
    life.set(f"s3://out/{then}")
    life.rounds()
    assert Export.objects.get().state == "exported-successfully"
    assert (before & gone, at(life) & gone) == (gone, set())
    assert ("d2/_lakefs_success" in at(life)) == (first == "latest")  # nothing has changed there


def test_a_marker_around_the_place_that_may_not_be_removed_keeps_nothing_from_being_exported(
    life: Soak, caplog: pytest.LogCaptureFixture
) -> None:
    life.lake.commit(files={"a": b"1", "d1/a": b"2"})
    life.set(patterns=["^$"])
    life.rounds()
    known = life.s3.before

    def before(method: str, bucket: str, key: str) -> None:
        known(method, bucket, key)
        if (method, key) == ("LIST", "latest/"):
            raise Denied("403 AccessDenied")

    life.s3.before = before
    life.set("s3://out/latest/d1")
    life.rounds()
    assert Export.objects.get().state == "exported-successfully"
    assert "s3://out/latest/_lakefs_success may stay" in caplog.text
