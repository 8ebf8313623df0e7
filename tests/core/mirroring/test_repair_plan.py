"""Who brings what a commit lacks, and what a retry would look at."""

from __future__ import annotations

from typing import Any

import pytest

from core.mirroring.repair_plan import Group, Plan, Way, plan_repair


def plan(*groups: Group, records: int = 0, more: bool = False, imported: str = "block") -> Plan:
    places: dict[str, Any] = {"region": "eu-west-1", "source_region": "us-east-1"}
    return plan_repair(groups, records=records, more=more, imported=imported, **places)


@pytest.mark.parametrize(
    ("group", "way", "words"),
    [
        (Group("object", "missing", False, 3, 60), Way.AWAITED, "3 objects have not reached eu-west-1"),
        (Group("range", "range-missing", False, 1), Way.AWAITED, "1 range file has not reached eu-west-1"),
        (Group("metarange", "metarange-damaged", False, 1), Way.MENDED, "1 metarange is damaged in eu-west-1"),
        (Group("object", "etag-differs", False, 1), Way.MENDED, "1 object has other content"),
        (Group("object", "missing", True, 2), Way.GONE, "2 objects are missing in us-east-1 too"),
        (Group("record", "refused", False, 1), Way.MENDED, "1 record can't be used: refused"),
    ],
)
def test_each_thing_has_its_way(group: Group, way: Way, words: str) -> None:
    (step,) = plan(group).steps
    assert (step.way, step.number) == (way, group.number)
    assert words in step.told


def test_what_we_copy_comes_first_and_what_is_gone_last() -> None:
    found = plan(Group("object", "missing", True, 1), Group("object", "missing", False, 1), records=2)
    assert [step.way for step in found.steps] == [Way.COPIED, Way.AWAITED, Way.GONE]
    assert "2 commit records are still to be copied to eu-west-1" in found.steps[0].told


def test_a_retry_looks_at_everything_but_refused_records_and_what_is_not_allowed() -> None:
    groups = [
        Group("object", "missing", False, 5),
        Group("object", "content-differs", False, 2),
        Group("object", "imported", False, 4),
        Group("record", "refused", False, 1),
    ]
    found = plan(*groups)
    assert (found.looks, found.reads, found.records, found.helps) == (7, 2, 0, True)
    assert plan(*groups, imported="allow").looks == 11
    assert not plan(groups[2], groups[3]).helps


def test_nothing_missing_is_no_plan() -> None:
    found = plan()
    assert (found.steps, found.helps) == ([], False)


def test_what_we_copy_needs_nobody_unless_something_keeps_us_from_it() -> None:
    places: dict[str, Any] = {"region": "eu-west-1", "source_region": "us-east-1", "imported": "block"}
    groups = [Group("object", "missing", False, 1), Group("object", "archived", False, 1)]
    copied, archived = plan_repair(groups, records=0, more=False, managed=True, **places).steps
    assert (copied.way, archived.way) == (Way.COPIED, Way.MENDED)
    steps = plan_repair(groups, records=0, more=False, managed=True, held="Copying is paused", **places).steps
    assert (steps[0].way, steps[0].advice) == (Way.MENDED, "Copying is paused")
