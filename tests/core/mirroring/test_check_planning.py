"""Planning of checks, and judging what they found."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from core.mirroring.check_planning import (
    Data,
    judge,
    overlapping,
    pause_before_look,
    plan_checks,
    state_with,
    verify_again_at,
)
from core.mirroring.object_check import Depth, Reason, judge_object
from core.types import ObjectInfo
from graveler.metarange import RangeRef


def ref(name: str, first: str, last: str) -> RangeRef:
    return RangeRef(name, first.encode(), last.encode(), 10, 100)


BASES = [ref("b1", "a", "c"), ref("b2", "f", "h"), ref("b3", "m", "p")]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [("a", "z", "b1 b2 b3"), ("d", "e", ""), ("c", "f", "b1 b2"), ("h", "h", "b2"), ("q", "z", ""), ("i", "m", "b3")],
)
def test_a_range_is_checked_against_those_that_share_keys_with_it(first: str, last: str, expected: str) -> None:
    assert [base.id for base in overlapping(ref("new", first, last), BASES)] == expected.split()


def test_covered_ranges_are_not_checked_again() -> None:
    needed = [ref("b1", "a", "c"), ref("new", "f", "p")]
    checks = plan_checks(needed, BASES, {"b1": Data.COMPLETE, "b2": Data.COMPLETE, "b3": Data.COMPLETE})
    assert [(c.range_id, c.base_ids) for c in checks] == [("new", ("b2", "b3"))]


def test_a_range_that_lacks_something_is_never_a_base() -> None:
    covered = {"b1": Data.COMPLETE, "b2": Data.GONE, "b3": Data.WAITING}
    assert plan_checks([ref("new", "a", "z")], BASES, covered)[0].base_ids == ("b1",)


def test_a_range_is_planned_once_however_many_commits_name_it() -> None:
    assert len(plan_checks([ref("new", "a", "b"), ref("new", "a", "b")], [], {})) == 1


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({}, Data.COMPLETE),
        ({"x": Data.COMPLETE}, Data.COMPLETE),
        ({"x": Data.COMPLETE, "y": Data.GONE}, Data.GONE),
        ({"x": Data.WAITING, "y": Data.GONE}, Data.WAITING),
    ],
)
def test_a_commit_is_as_good_as_its_worst_range(states: dict[str, Data], expected: Data) -> None:
    assert judge(states.keys(), states) is expected


def test_a_range_that_nobody_checked_leaves_the_commit_unknown() -> None:
    assert judge(["x", "y"], {"x": Data.COMPLETE}) is Data.UNKNOWN


def test_looks_begin_after_half_a_second_and_double_up_to_the_cooldown() -> None:
    assert [pause_before_look(n) for n in (0, 1, 2, 6, 7, 500)] == [0.5, 1.0, 2.0, 32.0, 60.0, 60.0]


def found(size: int = 3, etag: str = '"abc"', **more: object) -> ObjectInfo:
    return ObjectInfo("k", size, etag, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "depth", "reason"),
    [
        (None, Depth.PRESENCE, Reason.MISSING),
        (found(), Depth.ETAG, None),
        (found(4), Depth.PRESENCE, None),
        (found(4), Depth.SIZE, Reason.SIZE),
        (found(etag='"other"'), Depth.SIZE, None),
        (found(etag='"other"'), Depth.ETAG, Reason.ETAG),
        (found(etag='"abc-17"'), Depth.ETAG, None),
        (found(etag='"other"', encryption="aws:kms"), Depth.ETAG, None),
        (found(4, encryption="aws:kms"), Depth.ETAG, Reason.SIZE),
        (found(storage_class="GLACIER"), Depth.PRESENCE, Reason.ARCHIVED),
        (found(storage_class="GLACIER", restored=True), Depth.ETAG, None),
    ],
)
def test_an_object_counts_as_arrived_or_says_why_not(
    there: ObjectInfo | None, depth: Depth, reason: Reason | None
) -> None:
    verdict = judge_object(there, size=3, etag="abc", depth=depth)
    assert (verdict[0] if verdict else None) is reason


def test_ranges_are_verified_again_each_at_its_own_time_and_in_time() -> None:
    checked, week = datetime(2026, 11, 21, tzinfo=UTC), timedelta(days=7)
    due = [verify_again_at(f"{number:064x}", checked, week) - checked for number in range(1000)]
    assert week * 0.75 <= min(due) and max(due) <= week
    by_quarter = Counter(int((one / week - 0.75) * 16) for one in due)
    assert all(200 < number < 300 for number in by_quarter.values())
    assert verify_again_at("a" * 64, checked, week) == verify_again_at("a" * 64, checked, week)


@pytest.mark.parametrize(
    ("problems", "gone", "state"),
    [(0, 0, Data.COMPLETE), (2, 0, Data.WAITING), (2, 2, Data.GONE), (3, 2, Data.WAITING)],
)
def test_what_a_range_is_by_its_problems(problems: int, gone: int, state: Data) -> None:
    assert state_with(problems, gone=gone) is state


def test_each_depth_is_deeper_than_those_before_it() -> None:
    depths = list(Depth)
    assert [one.is_deeper_than(Depth.SIZE) for one in depths] == [False, False, True, True]
