"""From rows to readings: what pages and API say, in a number of queries that doesn't grow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.mirroring.states import Stage, State
from mirrors.models import Candidate, Commit, Mirror, MirrorBranch, MirrorCommit, SourceBranch
from mirrors.status.branch_commits import branch_commits
from mirrors.status.mirror import BranchStatus, branch_json, mirror_status, mirror_statuses
from tests.mirrors.factories import (
    Line,
    at_mirror,
    block,
    fail,
    make_commit,
    make_company,
    make_mirror,
    make_repository,
    run_check,
)

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)


@pytest.fixture
def main(mirror: Mirror) -> Line:
    """main at A, which the mirror has."""
    line = Line(mirror.source, "main", NOW)
    line.reached(mirror, line.commit("A", ago=600))
    return line


def read(mirror: Mirror, name: str = "main") -> BranchStatus:
    return next(branch for branch in mirror_status(mirror, NOW).branches if branch.name == name)


def stages(branch: BranchStatus) -> list[Stage]:
    return [commit.stage for commit in branch.rail]


def test_a_branch_at_the_source_head_is_up_to_date(mirror: Mirror, main: Line) -> None:
    branch = read(mirror)
    assert (branch.state, branch.pending, branch.lag) == (State.UP_TO_DATE, 0, 0)
    assert branch.source_head == branch.mirror_head == main.commits[0].sha


def test_lag_runs_from_the_oldest_commit_that_is_not_mirrored(mirror: Mirror, main: Line) -> None:
    for ago in (90, 60, 30):
        at_mirror(mirror, main.commit("B", ago=ago), "copying", now=NOW)
    branch = read(mirror)
    assert (branch.pending, branch.lag, branch.seen_at) == (3, 90, NOW - timedelta(seconds=90))
    assert stages(branch) == [Stage.HEAD, Stage.WAITING, Stage.WAITING, Stage.WAITING]


def test_a_mirror_at_the_source_head_is_up_to_date_whatever_position_was_noted(mirror: Mirror, main: Line) -> None:
    MirrorBranch.objects.update(position=-1)
    assert read(mirror).state is State.UP_TO_DATE


def test_a_branch_that_the_mirror_lacks_has_all_of_its_commits_pending(mirror: Mirror, main: Line) -> None:
    line = Line(mirror.source, "x", NOW)
    line.point_to(main.commits[0], ago=5)
    branch = read(mirror, "x")
    assert (branch.mirror_head, branch.pending, branch.reason_code) == ("", 1, "promoting")
    assert stages(branch) == [Stage.READY]


def test_a_missing_object_is_named_with_since_attempts_and_next_look(mirror: Mirror, main: Line) -> None:
    block(mirror, main.commit("B", ago=300), "orders/part-1", now=NOW, ago=290, attempts=9)
    branch = read(mirror)
    (thing,) = branch.blockers
    assert branch.state is State.BLOCKED
    assert (thing.path, thing.reason, thing.attempts) == ("orders/part-1", "missing", 9)
    assert thing.first_seen == NOW - timedelta(seconds=290)
    assert branch.retry_at == thing.look_at == NOW + timedelta(seconds=41)
    assert stages(branch) == [Stage.HEAD, Stage.BLOCKED]


def test_a_later_commit_waits_for_what_an_earlier_one_lacks(mirror: Mirror, main: Line) -> None:
    earlier = main.commit("B", ago=300)
    block(mirror, earlier, "orders/part-1", now=NOW, ago=290)
    at_mirror(mirror, main.commit("C", ago=100), "complete", now=NOW, history=False)
    branch = read(mirror)
    assert f"1 object missing for {earlier.sha[:8]}" == str(branch.brief)
    assert stages(branch) == [Stage.HEAD, Stage.BLOCKED, Stage.WAITING]


def test_a_merge_waits_for_a_commit_of_the_merged_branch(mirror: Mirror, main: Line) -> None:
    """Row 8 of the scenarios: a range of F1 is missing, so M does not become the head of main."""
    start = main.commits[0]
    merged = make_commit(mirror.source, "F1", parents=[start], at=NOW - timedelta(seconds=200))
    block(mirror, merged, "", kind="range", reason="range-missing", now=NOW, ago=190)
    merge = main.commit("M", ago=150, parents=[start, merged])
    at_mirror(mirror, merge, "complete", now=NOW, history=False)
    branch = read(mirror)
    assert (branch.state, branch.reason_code) == (State.BLOCKED, "range_missing")
    assert merged.sha[:8] in str(branch.explanation)


def test_a_stuck_branch_is_no_reason_for_the_others(mirror: Mirror, main: Line) -> None:
    block(mirror, main.commit("B", ago=300), "x", now=NOW, ago=290)
    other = Line(mirror.source, "other", NOW)
    other.reached(mirror, other.commit("O1", ago=500))
    at_mirror(mirror, other.commit("O2", ago=4), "checking", now=NOW, history=True)
    assert read(mirror, "other").state is State.VALIDATING
    assert read(mirror, "other").blockers == ()


def test_an_ancestor_that_is_gone_at_both_sides_blocks_no_descendant(mirror: Mirror, main: Line) -> None:
    gone = main.commit("B", ago=300)
    block(mirror, gone, "x", now=NOW, ago=290, gone_at_source=True)
    MirrorCommit.objects.filter(commit=gone).update(data="gone")
    at_mirror(mirror, main.commit("C", ago=3), "complete", now=NOW)
    assert read(mirror).reason_code == "promoting"
    assert stages(read(mirror)) == [Stage.HEAD, Stage.GONE, Stage.READY]


def test_a_head_that_is_gone_at_both_sides_is_blocked(mirror: Mirror, main: Line) -> None:
    gone = main.commit("B", ago=3)
    block(mirror, gone, "x", now=NOW, ago=2, gone_at_source=True)
    MirrorCommit.objects.filter(commit=gone).update(data="gone", history=True)
    assert (read(mirror).state, read(mirror).reason_code) == (State.BLOCKED, "object_gone_at_source")


def test_more_than_seven_commits_show_the_first_three_and_the_last_three(mirror: Mirror, main: Line) -> None:
    for number in range(12):
        at_mirror(mirror, main.commit(str(number), ago=60 - number), "copying", now=NOW)
    branch = read(mirror)
    assert (len(branch.rail), branch.hidden, branch.pending) == (6, 7, 12)
    shown = [commit.commit_id for commit in branch.rail]
    assert shown == [commit.sha for commit in (*main.commits[:3], *main.commits[-3:])]


@pytest.mark.parametrize("number", [6, 7])
def test_the_rail_leaves_nothing_out_while_there_is_room(mirror: Mirror, main: Line, number: int) -> None:
    for n in range(number):
        at_mirror(mirror, main.commit(str(n), ago=60 - n), "copying", now=NOW)
    branch = read(mirror)
    assert len(branch.rail) + branch.hidden == number + 1
    assert (branch.hidden == 0) == (number <= 6)


def test_a_source_that_moved_back_is_called_so(mirror: Mirror, main: Line) -> None:
    moved = main.commit("A'", ago=30, parents=[], forward=False)
    at_mirror(mirror, moved, "checking", now=NOW, history=True)
    assert read(mirror).state is State.REWOUND


def test_a_branch_that_is_gone_at_both_sides_is_no_longer_shown(mirror: Mirror, main: Line) -> None:
    SourceBranch.objects.update(gone_at=NOW)
    assert read(mirror).reason_code == "deleted_at_source"
    MirrorBranch.objects.all().delete()
    assert mirror_status(mirror, NOW).branches == []


def test_commits_of_a_branch_that_goes_are_not_counted_as_behind(mirror: Mirror, main: Line) -> None:
    Line(mirror.source, "going", NOW).commit("x", ago=50)
    SourceBranch.objects.filter(name="going").update(missing_since=NOW)
    reading = mirror_status(mirror, NOW)
    assert (reading.state, reading.lag, reading.pending, reading.behind) == (State.UP_TO_DATE, 0, 0, 0)
    assert (reading.staying, len(reading.branches)) == (1, 2)
    assert reading.not_counted == "1 gone at source"


def test_a_stray_branch_is_shown_as_tampering(mirror: Mirror, main: Line) -> None:
    MirrorBranch.objects.create(mirror=mirror, name="hand-made", head="f" * 64, stray=True)
    assert read(mirror, "hand-made").reason_code == "stray_branch"


def test_a_failing_duty_is_told_with_its_next_try(mirror: Mirror, main: Line) -> None:
    at_mirror(mirror, main.commit("B", ago=20), "copying", now=NOW)
    fail("copy", mirror.pk, "eu-west-1 answered 500", now=NOW)
    assert read(mirror).reason_code == "copy_failed"
    assert read(mirror).retry_at == NOW + timedelta(seconds=8)


def test_a_duty_of_another_subject_is_not_ours(mirror: Mirror, main: Line) -> None:
    at_mirror(mirror, main.commit("B", ago=20), "copying", now=NOW)
    fail("copy", mirror.pk + 1, "500", now=NOW)
    fail("sense", mirror.source_id + 1, "500", now=NOW)
    assert read(mirror).reason_code == "copying_record"


def test_a_run_that_nobody_holds_the_lease_of_is_not_progress(mirror: Mirror, main: Line) -> None:
    at_mirror(mirror, main.commit("B", ago=20), "checking", now=NOW, history=True)
    run_check(mirror, now=NOW)
    assert str(read(mirror).brief) == "12 of 31 ranges"
    later = NOW + timedelta(seconds=51)
    assert "ranges" not in str(mirror_status(mirror, later).branches[0].brief)


def test_the_mirror_counts_what_its_branches_wait_for_once(mirror: Mirror, main: Line) -> None:
    lost = main.commit("B", ago=300)
    block(mirror, lost, "x", now=NOW, ago=290)
    block(mirror, lost, "y", now=NOW, ago=280)
    Line(mirror.source, "copy-of-main", NOW).point_to(lost, ago=200)
    reading = mirror_status(mirror, NOW)
    assert (reading.waiting, reading.waiting_words) == (2, "2 objects")
    assert reading.waiting_since == NOW - timedelta(seconds=290)
    assert (reading.pending, reading.behind, reading.lag) == (2, 2, 300)


def test_a_thing_that_several_ranges_need_is_one_thing(mirror: Mirror, main: Line) -> None:
    for ago in (300, 200):
        block(mirror, main.commit("B", ago=ago), "the same", now=NOW, ago=ago - 10)
    branch = read(mirror)
    assert (len(branch.blockers), branch.lacking) == (1, 1)
    assert branch.blockers[0].first_seen == NOW - timedelta(seconds=290)
    assert mirror_status(mirror, NOW).waiting_words == "1 object"


def test_a_count_that_was_cut_short_says_so(mirror: Mirror, main: Line) -> None:
    blocker = block(mirror, main.commit("B", ago=300), "x", now=NOW, ago=290)
    assert mirror.coverage.filter(range_id=blocker.holder_id, state="waiting").update(problems=5000) == 1
    reading = mirror_status(mirror, NOW)
    assert reading.waiting_words == "1+ objects"
    assert "5,000 objects of" in reading.sentence


def test_unknown_lag_is_none_and_not_zero(mirror: Mirror, main: Line) -> None:
    mirror.source.looked_at = NOW - timedelta(minutes=10)
    mirror.source.save()
    reading = mirror_status(mirror, NOW)
    assert (reading.state, reading.lag, reading.branches[0].lag) == (State.UNKNOWN, None, None)


def test_lists_and_pages_say_the_same() -> None:
    mirrors = list(make_company(NOW).values())
    for listed in mirror_statuses(mirrors, NOW):
        alone = mirror_status(listed.mirror, NOW)
        assert (listed.state, listed.explanation, listed.lag) == (alone.state, alone.explanation, alone.lag)
        assert [b.explanation for b in listed.branches] == [b.explanation for b in alone.branches]


def test_the_company_shows_each_kind_of_mirror() -> None:
    states = {reading.mirror.name: reading.state for reading in mirror_statuses(make_company(NOW).values(), NOW)}
    assert states == {
        "analytics-eu": State.BLOCKED,
        "models-eu": State.UP_TO_DATE,
        "billing-us": State.PAUSED,
        "archive-eu": State.STOPPED,
        "fresh-eu": State.NEW,
        "orders-eu": State.SYNCING,
        "lab-eu": State.TAMPERED,
        "events-eu": State.UNKNOWN,
    }


# The commits of a branch


def test_an_opened_branch_lists_pending_and_mirrored_commits_newest_first(mirror: Mirror, main: Line) -> None:
    for number in range(3):
        at_mirror(mirror, main.commit(str(number), ago=60 - number), "copying", now=NOW)
    commits = branch_commits(mirror, "main", NOW)
    assert [commit.message for commit in commits.pending] == ["2", "1", "0"]
    assert [(commit.message, commit.stage) for commit in commits.mirrored] == [("A", Stage.HEAD)]


def test_an_opened_branch_says_how_many_commits_it_leaves_out(mirror: Mirror, main: Line) -> None:
    for number in range(5):
        main.commit(str(number), ago=60 - number)
    commits = branch_commits(mirror, "main", NOW, limit=4)
    assert [commit.message for commit in commits.pending] == ["4", "3", "2", "0"]
    assert commits.more_pending == 1


def test_a_blocked_commit_carries_what_it_lacks(mirror: Mirror, main: Line) -> None:
    block(mirror, main.commit("B", ago=300), "orders/part-1", now=NOW, ago=290)
    (commit,) = branch_commits(mirror, "main", NOW).pending
    (now,) = (step for step in commit.steps if step.rung == "blocked")
    assert commit.stage is Stage.BLOCKED and "1 object missing for" in str(now.note)


def test_a_branch_that_does_not_exist_has_no_commits(mirror: Mirror) -> None:
    assert branch_commits(mirror, "nowhere", NOW).pending == []


# As JSON, and the cost


def test_a_branch_as_json_names_the_object_and_leaves_unknown_null(mirror: Mirror, main: Line) -> None:
    block(mirror, main.commit("B", ago=300), "orders/part-1", now=NOW, ago=290)
    Line(mirror.source, "new", NOW).point_to(main.commits[1], ago=1)
    given = branch_json(read(mirror))
    assert given["blockers"][0]["path"] == "orders/part-1"
    assert given["blockers"][0]["first_seen"] == "2026-11-21T09:11:44.000Z"
    assert (given["status"], given["pending_commits"], given["lag_seconds"]) == ("Blocked", 1, 300)
    assert branch_json(read(mirror, "new"))["mirror_head"] is None


def queries(work: Callable[[], Any]) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        work()
    return len(captured)


def _more_branches(mirror: Mirror, number: int) -> None:
    for n in range(number):
        line = Line(mirror.source, f"more-{number}-{n}", NOW)
        line.reached(mirror, line.commit("1", ago=100))
        block(mirror, line.commit("2", ago=90), f"x{n}", now=NOW, ago=80)


def test_the_number_of_queries_does_not_grow_with_branches(mirror: Mirror) -> None:
    _more_branches(mirror, 2)
    few = queries(lambda: mirror_status(mirror, NOW))
    _more_branches(mirror, 20)
    assert queries(lambda: mirror_status(mirror, NOW)) == few <= 18


def test_the_number_of_queries_does_not_grow_with_mirrors() -> None:
    mirrors = list(make_company(NOW).values())
    few = queries(lambda: mirror_statuses(mirrors[:1], NOW))
    assert queries(lambda: mirror_statuses(mirrors, NOW)) <= few


def test_a_second_mirror_of_the_source_stands_where_it_stands(mirror: Mirror, main: Line) -> None:
    other = make_mirror("lake-ap", mirror.source, region="ap-south-1", now=NOW)
    commit = main.commit("B", ago=20)
    at_mirror(mirror, commit, "copying", now=NOW)
    at_mirror(other, commit, "complete", now=NOW)
    MirrorBranch.objects.create(mirror=other, name="main", head=commit.sha, position=1, advanced_at=NOW, proven=True)
    assert (read(mirror).pending, read(other).pending) == (1, 0)
    by_name = {reading.mirror.name: reading.pending for reading in mirror_statuses([mirror, other], NOW)}
    assert by_name == {"lake-eu": 1, "lake-ap": 0}


def test_the_factories_make_what_the_tables_allow() -> None:
    make_company(NOW)
    assert Candidate.objects.count() >= 20
    assert Commit.objects.count() >= 20
