"""Places that an export leaves, comes back to, or finds taken; and expressions that it does not have any more."""

from __future__ import annotations

import pytest

from core.errors import Invalid
from exports.models import Export
from tests.exports.soak import Soak

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
    assert (mine.path_at_success, mine.left, mine.marked) == ("", {}, {})
    theirs.delete()
    life.lake.commit(files={"b": None})
    life.set()
    life.rounds()
    assert at(life) == {"a", "b"}  # b is nobody's: the export does not know any more who brought it


def test_nobody_is_given_a_place_to_which_a_run_still_writes(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.lake.repository.branches["dev"] = head
    life.set()
    life.rounds(1)
    life.set("s3://out/other")
    with pytest.raises(Invalid, match="still writes"):
        life.set(branch="dev")


def test_a_marker_goes_though_its_expression_is_gone(life: Soak) -> None:
    life.lake.commit(files={"d1/a": b"1", "d2/a": b"2"})
    life.set(patterns=[r"d\d/"])
    life.rounds()
    assert at(life) == {"d1/a", "d2/a", "d1/_lakefs_success", "d2/_lakefs_success"}
    life.set(patterns=["^$"])
    life.lake.commit(files={"d1/a": b"other"})
    life.rounds()
    assert at(life) == {"d1/a", "d2/a", "_lakefs_success", "d2/_lakefs_success"}  # d2/ is as it was
