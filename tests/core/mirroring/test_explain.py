"""From facts to a state, a reason and one sentence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.mirroring.explain.mirror import explain
from core.mirroring.explain.stage import stage_of
from core.mirroring.explain.verdict import Verdict
from core.mirroring.facts import BranchFacts, CommitFacts, Counted, DutyFacts, MirrorFacts, RunFacts, Thing, Waiting
from core.mirroring.rpo import Targets
from core.mirroring.states import Stage, State, Tone
from core.pauses import Pause
from core.text.phrases import Kind

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
OLD, NEW = "9f31c0aa" * 8, "a1b2c3d4" * 8


def ago(**length: float) -> datetime:
    return NOW - timedelta(**length)


def mirror(*branches: BranchFacts, **more: Any) -> MirrorFacts:
    facts: dict[str, Any] = {
        "name": "analytics-eu",
        "source": "analytics",
        "source_region": "us-east-1",
        "region": "eu-west-1",
        "looked_at": ago(seconds=3),
        "branches": branches,
    }
    return MirrorFacts(**(facts | more))


def branch(**more: Any) -> BranchFacts:
    facts: dict[str, Any] = {"name": "main", "default": True, "source_head": OLD, "mirror_head": OLD}
    return BranchFacts(**(facts | more))


def behind(newest: CommitFacts | None = None, **more: Any) -> BranchFacts:
    """main, 4 commits and 14 minutes behind."""
    facts: dict[str, Any] = {"source_head": NEW, "pending": 4, "oldest_seen_at": ago(minutes=14), "newest": newest}
    return branch(**(facts | more))


def thing(**more: Any) -> Thing:
    facts: dict[str, Any] = {
        "kind": "object",
        "holder_id": "r",
        "address": "data/x",
        "path": "orders/part-17.parquet",
        "reason": "missing",
        "first_seen": ago(minutes=14),
        "look_at": NOW + timedelta(seconds=41),
    }
    return Thing(**(facts | more))


def lacking(*things: Thing, **more: Any) -> CommitFacts:
    facts: dict[str, Any] = {
        "commit_id": NEW,
        "record": "accepted",
        "data": "waiting",
        "history": True,
        "things": things,
        "lacking": len(things),
        "lacking_since": min((t.first_seen for t in things), default=None),
    }
    return CommitFacts(**(facts | more))


def judge(facts: MirrorFacts) -> Verdict:
    verdict, _ = explain(facts, NOW, Targets())
    return verdict


def blocked_by(*things: Thing, **more: Any) -> Verdict:
    commit = lacking(*things, **more)
    return judge(mirror(behind(commit, troubled=(commit,))))


def test_a_branch_that_has_what_the_source_has_is_up_to_date() -> None:
    verdict = judge(mirror(branch()))
    assert verdict.state is State.UP_TO_DATE
    assert str(verdict.sentence) == "main is up to date: eu-west-1 has every commit that was seen in us-east-1."


def test_several_branches_that_are_up_to_date_are_said_in_one_sentence() -> None:
    assert str(judge(mirror(branch(), branch(name="x"))).sentence).startswith("All 2 branches are up to date")


def test_a_branch_that_never_arrived_is_never_up_to_date() -> None:
    assert judge(mirror(branch(mirror_head=""))).state is not State.UP_TO_DATE


def test_the_sentence_names_branch_commits_lag_and_what_is_missing() -> None:
    verdict = blocked_by(thing(), thing(path="b"), thing(path="c"))
    assert (verdict.state, verdict.reason_code) == (State.BLOCKED, "object_missing")
    assert str(verdict.sentence).startswith(
        "main is 4 commits and 14 min behind: 3 objects of a1b2c3d4 have not reached eu-west-1."
    )
    assert str(verdict.brief) == "3 objects missing for a1b2c3d4"


def test_a_single_missing_object_is_named() -> None:
    told = str(blocked_by(thing()).sentence)
    assert "object orders/part-17.parquet of a1b2c3d4 has not reached eu-west-1" in told


def test_the_sentence_says_since_when_and_when_it_is_looked_for_again() -> None:
    verdict = blocked_by(thing())
    assert (verdict.since, verdict.retry_at) == (ago(minutes=14), NOW + timedelta(seconds=41))


def test_what_was_missed_a_moment_ago_is_on_its_way_and_not_blocked() -> None:
    commit = lacking(thing(first_seen=ago(seconds=2)))
    facts = behind(commit, troubled=(commit,), pending=1, oldest_seen_at=ago(seconds=4))
    verdict = judge(mirror(facts))
    assert verdict.state is State.SYNCING
    assert str(verdict.sentence).endswith("has not reached eu-west-1 yet.")


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("size-differs", "object_size_differs", "has another size in eu-west-1"),
        ("etag-differs", "object_etag_differs", "has other content in eu-west-1"),
        ("archived", "object_archived", "is archived in eu-west-1"),
        ("unreadable", "object_unreadable", "can't be read in eu-west-1, whose store returns other objects"),
        ("imported", "object_imported", "is imported and lies outside"),
    ],
)
def test_what_waiting_will_not_help_blocks_at_once(reason: str, code: str, words: str) -> None:
    verdict = blocked_by(thing(reason=reason, first_seen=NOW))
    assert (verdict.state, verdict.reason_code) == (State.BLOCKED, code)
    assert words in str(verdict.sentence)


def test_what_waiting_will_not_help_is_spoken_of_before_what_is_only_missing() -> None:
    assert blocked_by(thing(), thing(reason="archived", first_seen=NOW)).reason_code == "object_archived"


def test_things_of_different_kinds_are_counted_apart() -> None:
    wrong = thing(path="a", reason="size-differs", gone_at_source=False)
    told = str(blocked_by(thing(path="b"), thing(path="c"), thing(path="d", reason="etag-differs")).sentence)
    assert "and 2 other objects are missing or wrong too" in told
    assert "other thing" not in str(blocked_by(thing(path="b"), thing(path="c")).sentence)
    assert "and 1 other object is missing or wrong too" in str(blocked_by(wrong, thing(path="b")).sentence)


def test_what_is_gone_at_both_sides_says_so_and_what_to_do() -> None:
    verdict = blocked_by(thing(gone_at_source=True))
    assert verdict.reason_code == "object_gone_at_source"
    assert "is missing in us-east-1 too. Restore it in us-east-1" in str(verdict.sentence)


@pytest.mark.parametrize(
    ("kind", "reason", "words"),
    [
        ("range", "range-missing", "a range file of a1b2c3d4 has not reached eu-west-1"),
        ("range", "range-damaged", "a range file of a1b2c3d4 is damaged in eu-west-1"),
        ("metarange", "metarange-missing", "the metarange of a1b2c3d4 has not reached eu-west-1"),
        ("range", "range-archived", "a range file of a1b2c3d4 is archived in eu-west-1"),
        (
            "metarange",
            "metarange-unreadable",
            "the metarange of a1b2c3d4 can't be read in eu-west-1, whose store returns other objects",
        ),
    ],
)
def test_files_of_metadata_are_named_by_what_they_are(kind: str, reason: str, words: str) -> None:
    assert words in str(blocked_by(thing(kind=kind, reason=reason, path="")).sentence)


def test_a_reason_that_nobody_foresaw_is_told_as_it_is() -> None:
    verdict = blocked_by(thing(reason="on-fire", detail="the disk smokes"))
    assert "can't be used: the disk smokes" in str(verdict.sentence)


def test_a_refused_record_is_a_failure_and_names_the_source() -> None:
    verdict = blocked_by(record="refused", data="unknown")
    assert (verdict.state, verdict.reason_code) == (State.FAILED, "record_refused")
    assert "Check that commit in us-east-1" in str(verdict.sentence)


def test_a_record_that_differs_at_the_mirror_is_tampering() -> None:
    assert blocked_by(record="tampered", data="unknown").state is State.TAMPERED


def test_a_commit_without_named_blockers_still_says_what_it_waits_for() -> None:
    told = str(blocked_by(detail="2 of 31 ranges are not complete").sentence)
    assert "a1b2c3d4 waits: 2 of 31 ranges are not complete." in told


def test_the_other_branches_get_a_word() -> None:
    commit = lacking(thing())
    late = behind(commit, troubled=(commit,))
    fresh = {"pending": 1, "oldest_seen_at": ago(seconds=2), "source_head": NEW}
    well = [branch(name=str(n)) for n in range(6)]
    assert str(judge(mirror(late, *well)).sentence).endswith("The other 6 branches are up to date.")
    assert str(judge(mirror(late, well[0])).sentence).endswith("The other branch is up to date.")
    mixed = mirror(late, branch(name="x", **fresh), *well)
    assert str(judge(mixed).sentence).endswith("1 other branch is behind too, 6 up to date.")


@pytest.mark.parametrize(
    ("commit", "code", "words"),
    [
        (None, "copying_record", "the record of a1b2c3d4 is being copied"),
        (CommitFacts(commit_id=NEW), "copying_record", "the record of a1b2c3d4 is being copied"),
        (CommitFacts(commit_id=NEW, record="accepted"), "validating", "a1b2c3d4 is being validated"),
        (
            CommitFacts(commit_id=NEW, record="accepted", data="complete", history=True),
            "promoting",
            "a1b2c3d4 is complete and about to be promoted",
        ),
    ],
)
def test_work_in_progress_says_which_step_it_is_in(commit: CommitFacts | None, code: str, words: str) -> None:
    verdict = judge(mirror(behind(commit, pending=1, oldest_seen_at=ago(seconds=3))))
    assert verdict.reason_code == code
    assert str(verdict.sentence) == f"main is 1 commit and 3 s behind: {words}."


def test_validation_tells_its_progress() -> None:
    commit = CommitFacts(commit_id=NEW, record="accepted")
    run = RunFacts(ranges=31, ranges_done=12, started_at=NOW)
    verdict = judge(mirror(behind(commit, oldest_seen_at=ago(seconds=3)), run=run))
    assert verdict.state is State.VALIDATING
    assert str(verdict.brief) == "12 of 31 ranges"


def test_a_first_copy_counts_the_records_that_are_left() -> None:
    facts = mirror(behind(mirror_head="", oldest_seen_at=ago(hours=2)), copying=12_400)
    verdict = judge(facts)
    assert verdict.state is State.SYNCING
    assert "the records of 12,400 commits are being copied" in str(verdict.sentence)


def test_work_that_takes_longer_than_aimed_at_is_late() -> None:
    commit = CommitFacts(commit_id=NEW, record="accepted")
    verdict = judge(mirror(behind(commit)))
    assert (verdict.state, verdict.reason_code) == (State.LATE, "validating")
    assert str(verdict.sentence).endswith("is being validated. The target is 5 min.")


def test_a_failing_step_is_retrying_and_says_when_it_goes_on() -> None:
    due = NOW + timedelta(seconds=8)
    failing = DutyFacts(kind="promote", failures=3, outcome="eu-west-1 answered 500", due_at=due)
    verdict = judge(mirror(behind(oldest_seen_at=ago(seconds=40)), failing=(failing,)))
    assert (verdict.state, verdict.reason_code, verdict.retry_at) == (State.RETRYING, "promote_failed", due)
    assert "moving branches failed 3 times in a row (eu-west-1 answered 500)." in str(verdict.sentence)


@pytest.mark.parametrize("kind", ["promote", "manage", "validate", "copy"])
@pytest.mark.parametrize(("failures", "state"), [(2, State.UP_TO_DATE), (3, State.RETRYING)])
def test_a_step_that_keeps_failing_is_told_though_all_branches_are_up_to_date(
    kind: str, failures: int, state: State
) -> None:
    failing = DutyFacts(kind=kind, failures=failures, outcome="the store is full")
    verdict = judge(mirror(branch(), failing=(failing,)))
    assert verdict.state is state
    assert ("failed 3 times in a row (the store is full). Retrying." in str(verdict.sentence)) == (failures > 2)
    assert "up to date" in str(verdict.sentence)


def test_what_is_refused_twice_has_failed_and_needs_somebody() -> None:
    denied = DutyFacts(kind="copy", failures=2, outcome="403: grant it fs:CreateCommit", refusal="permission_denied")
    late = behind(oldest_seen_at=ago(minutes=2))
    verdict = judge(mirror(late, failing=(denied,)))
    assert (verdict.state, verdict.reason_code) == (State.FAILED, "copy_failed")
    assert "fs:CreateCommit). It is retried, and continues once that is fixed." in str(verdict.sentence)
    once = replace(denied, failures=1)
    assert judge(mirror(late, failing=(once,))).state is State.RETRYING
    on_its_way = behind(oldest_seen_at=ago(seconds=3))
    assert judge(mirror(on_its_way, failing=(denied,))).state is State.RETRYING


def test_in_a_bucket_that_is_not_there_nothing_is_merely_missing() -> None:
    gone = DutyFacts(kind="manage", failures=4, outcome="no bucket", refusal="no_such_bucket")
    missing = lacking(thing(first_seen=ago(minutes=9)))
    late = behind(oldest_seen_at=ago(minutes=9), newest=missing, troubled=(missing,))
    assert judge(mirror(late, failing=(gone,))).reason_code == "manage_failed"
    assert judge(mirror(late, failing=(replace(gone, refusal=""),))).state is State.BLOCKED


def test_a_repository_that_may_not_be_created_has_failed() -> None:
    denied = DutyFacts(kind="manage", failures=2, outcome="403: grant it that", refusal="permission_denied")
    verdict = judge(mirror(state="creating", failing=(denied,)))
    assert (verdict.state, verdict.reason_code) == (State.FAILED, "creating_failed")


def test_a_refused_look_hides_nothing_that_readers_meet() -> None:
    denied = DutyFacts(kind="promote", failures=9, outcome="403", refusal="permission_denied")
    unseen = {"look_error": "403", "look_refused": True, "looked_at": ago(hours=5)}
    verdict = judge(mirror(branch(misplaced=True), failing=(denied,), **unseen))
    assert verdict.state is State.TAMPERED
    assert "The source was last checked 5 h ago" in str(verdict.sentence)
    assert judge(mirror(branch(), **unseen)).state is State.FAILED


def test_a_first_copy_tells_how_far_it_is() -> None:
    verdict = judge(mirror(behind(mirror_head=""), first_copy=(12, 248)))
    assert "First copy to eu-west-1, 12 of 248 commits complete: main is not there yet" in str(verdict.sentence)


def test_178_each_failing_duty_is_told_and_not_only_the_worst_of_them() -> None:
    duties = [
        DutyFacts(kind="promote", failures=9, outcome="403"),
        DutyFacts(kind="validate", failures=6, outcome="503"),
    ]
    verdict = judge(mirror(branch(), failing=duties))
    assert (verdict.state, verdict.reason_code) == (State.RETRYING, "promote_failed")
    assert "Moving branches failed 9 times in a row (403). Validation failed 6 times in a row (503)." in str(
        verdict.sentence
    )


def test_a_rewound_source_is_followed_once_its_head_is_complete() -> None:
    verdict = judge(mirror(behind(rewound=True, pending=1, oldest_seen_at=ago(seconds=38))))
    assert verdict.state is State.REWOUND
    assert str(verdict.brief) == "waits for a1b2c3d4"


def test_a_branch_that_left_the_source_waits_for_a_second_look() -> None:
    verdict = judge(mirror(branch(name="x", default=False, missing_since=ago(seconds=9))))
    assert verdict.reason_code == "deleted_at_source"
    assert "once a second check confirms it" in str(verdict.sentence)


def test_branches_that_go_are_counted_and_do_not_speak_for_the_mirror() -> None:
    going = branch(name="x", default=False, missing_since=ago(seconds=9))
    verdict = judge(mirror(branch(), going))
    assert verdict.state is State.UP_TO_DATE
    assert str(verdict.sentence).endswith("seen in us-east-1. 1 branch is deleted at the source.")
    assert "1 branch is deleted at the source." in str(judge(mirror(behind(), branch(name="y"), going)).sentence)


def test_of_two_branches_that_are_equally_late_the_default_one_is_named() -> None:
    verdict = judge(mirror(behind(name="a", default=False), behind()))
    assert str(verdict.sentence).startswith("main is")


def test_the_default_branch_stays_although_it_left_the_source() -> None:
    assert "never deleted" in str(judge(mirror(branch(gone=True))).sentence)


def test_an_uncommitted_change_at_the_mirror_is_tampering() -> None:
    verdict = judge(mirror(branch(uncommitted=True)))
    assert (verdict.state, verdict.reason_code) == (State.TAMPERED, "uncommitted_change")


def test_a_branch_that_only_the_mirror_has_is_tampering() -> None:
    assert judge(mirror(branch(source_head="", stray=True, gone=True))).reason_code == "stray_branch"


# What holds for all branches


def test_a_stopped_mirror_says_why_and_what_to_do() -> None:
    verdict, (row,) = explain(
        mirror(branch(), state="stopped", reason_code="failed-over", reason="it became writable"), NOW, Targets()
    )
    assert (verdict.state, verdict.reason_code, row.state) == (State.STOPPED, "failed_over", State.STOPPED)
    assert str(verdict.sentence).startswith("Stopped: it became writable. If people work there now, delete")


def test_a_frozen_source_says_that_nothing_is_deleted() -> None:
    verdict = judge(mirror(branch(), frozen_reason="the source repository is gone"))
    assert verdict.state is State.FROZEN
    assert "What is in eu-west-1 stays as it is" in str(verdict.sentence)


def test_a_paused_mirror_counts_who_waits() -> None:
    verdict, (row,) = explain(mirror(behind(), pause=Pause()), NOW, Targets())
    assert verdict.state is State.PAUSED
    assert "1 branch waits" in str(verdict.sentence)
    assert str(row.brief) == "4 commits wait"


def test_a_new_mirror_is_new_until_its_repository_exists() -> None:
    assert judge(mirror(state="creating")).state is State.NEW


def test_a_repository_that_cannot_be_made_is_retried_and_not_failed() -> None:
    failing = DutyFacts(kind="manage", failures=2, outcome="eu-west-1 did not answer")
    verdict = judge(mirror(state="creating", failing=(failing,)))
    assert (verdict.state, verdict.reason_code) == (State.RETRYING, "creating_failed")


def test_a_mirror_whose_source_was_not_looked_at_yet_is_new() -> None:
    assert judge(mirror(looked_at=None)).reason_code == "not_looked_yet"


def test_an_old_look_at_the_source_makes_everything_unknown() -> None:
    verdict, (row,) = explain(mirror(branch(), looked_at=ago(minutes=4)), NOW, Targets())
    assert (verdict.state, row.state) == (State.UNKNOWN, State.UNKNOWN)
    assert "Check that the controller and the workers are running" in str(verdict.sentence)


def test_an_unreachable_source_is_named_with_its_error() -> None:
    verdict = judge(mirror(branch(), looked_at=ago(minutes=4), look_error="no answer within 10 s."))
    assert verdict.reason_code == "source_unreachable"
    assert "Polling us-east-1 failed: no answer within 10 s." in str(verdict.sentence)


def test_an_old_look_at_the_destination_makes_everything_unknown() -> None:
    failing = DutyFacts(kind="manage", failures=9, outcome="connection refused")
    verdict = judge(mirror(branch(), destination_looked_at=ago(minutes=4), failing=(failing,)))
    assert (verdict.state, verdict.reason_code) == (State.UNKNOWN, "destination_unreachable")


def test_an_old_look_at_the_destination_tells_why_promote_could_not_look() -> None:
    duties = [
        DutyFacts(kind="validate", failures=9, outcome="slow"),
        DutyFacts(kind="promote", failures=5, outcome="403."),
    ]
    verdict = judge(mirror(branch(), destination_looked_at=ago(minutes=4), failing=duties))
    assert (verdict.state, verdict.reason_code) == (State.UNKNOWN, "destination_unreachable")
    assert "The last try failed: 403. Retrying." in str(verdict.sentence)


def test_the_destination_is_looked_at_as_often_as_promote_runs() -> None:
    hourly = Targets(promote_interval=timedelta(hours=1))
    facts = mirror(branch(), destination_looked_at=ago(minutes=70), tags_unseen_since=ago(minutes=70))
    assert explain(facts, NOW, hourly)[0].state is State.UP_TO_DATE
    assert explain(facts, NOW, Targets(look_interval=timedelta(hours=1)))[0].state is State.UNKNOWN


def test_tags_that_nobody_has_seen_for_long_are_told_and_hide_nothing_worse() -> None:
    verdict = judge(mirror(branch(), tags_unseen_since=ago(minutes=4)))
    assert (verdict.state, verdict.reason_code) == (State.UNKNOWN, "tags_unseen")
    assert str(verdict.sentence).startswith("The tags in eu-west-1 could not be read for 4 min. main is up to date")
    assert judge(mirror(branch(uncommitted=True), tags_unseen_since=ago(minutes=4))).state is State.TAMPERED
    assert judge(mirror(branch(), tags_unseen_since=ago(minutes=2))).state is State.UP_TO_DATE


def test_a_branch_of_which_nobody_can_tell_uncommitted_changes_is_unknown_after_a_while() -> None:
    verdict, rows = explain(
        mirror(branch(unlooked_since=ago(minutes=4), look_error="403."), branch(name="x")), NOW, Targets()
    )
    assert [row.state for row in rows] == [State.UNKNOWN, State.UP_TO_DATE]
    assert verdict.reason_code == "uncommitted_unknown"
    assert str(rows[0].sentence) == (
        "Uncommitted changes on main in eu-west-1 could not be checked for 4 min: 403. The check is repeated."
    )
    assert judge(mirror(branch(unlooked_since=ago(minutes=2)))).state is State.UP_TO_DATE


def test_at_another_store_nothing_is_proven() -> None:
    verdict, (row,) = explain(mirror(branch(), elsewhere=True), NOW, Targets())
    assert (verdict.state, verdict.reason_code, row.state) == (State.UNPROVEN, "another_store", State.UNPROVEN)


# States, stages, sentences


def test_damage_after_promotion_is_said_before_what_is_only_late() -> None:
    lost = Waiting(number=3, damaged=2, example="orders/part-17.parquet")
    verdict, [main] = explain(mirror(branch(), waiting=lost), NOW, Targets())
    assert (verdict.state, verdict.reason_code, main.state) == (State.DAMAGED, "damaged", State.UP_TO_DATE)
    assert str(verdict.sentence) == (
        "Damaged: 2 objects that were complete before are missing or wrong in eu-west-1 now"
        " (orders/part-17.parquet among them). No branch was moved back. Copy them again from us-east-1."
        " main is up to date: eu-west-1 has every commit that was seen in us-east-1."
    )


def test_damage_does_not_hide_what_is_worse() -> None:
    lost = Waiting(number=1, damaged=1)
    verdict, _ = explain(mirror(branch(stray=True, gone=False), waiting=lost), NOW, Targets())
    assert verdict.state is State.TAMPERED
    assert "complete before" in str(verdict.sentence)


def test_red_is_kept_for_what_needs_somebody() -> None:
    red = {state for state in State if state.tone is Tone.BAD}
    late = {State.LATE, State.BLOCKED}
    assert red == late | {State.DAMAGED, State.TAMPERED, State.FAILED, State.FROZEN, State.STOPPED}


def test_every_state_and_stage_has_a_word() -> None:
    assert State.REWOUND.word == "Source rewound"
    assert all(state.word for state in State)
    assert all(stage.word for stage in Stage)


@pytest.mark.parametrize(
    ("commit", "stage"),
    [
        (None, Stage.WAITING),
        (CommitFacts(commit_id=NEW), Stage.WAITING),
        (CommitFacts(commit_id=NEW, record="accepted", metadata_at=NOW), Stage.CHECKING),
        (CommitFacts(commit_id=NEW, record="accepted", data="complete", history=True), Stage.READY),
        (CommitFacts(commit_id=NEW, record="accepted", data="complete"), Stage.WAITING),
        (CommitFacts(commit_id=NEW, record="accepted", data="gone", history=True), Stage.GONE),
        (CommitFacts(commit_id=NEW, record="refused"), Stage.BLOCKED),
        (lacking(thing()), Stage.BLOCKED),
        (lacking(thing(first_seen=NOW)), Stage.WAITING),
        (lacking(thing(first_seen=NOW, reason="archived")), Stage.BLOCKED),
    ],
)
def test_the_rail_shows_how_far_a_commit_has_come(commit: CommitFacts | None, stage: Stage) -> None:
    assert stage_of(commit, now=NOW, targets=Targets()) is stage


def test_ids_are_kept_whole_and_shown_short() -> None:
    parts = [part for part in blocked_by(thing()).sentence.parts if part.kind is Kind.ID]
    assert parts[0].text == NEW
    assert str(parts[0]) == "a1b2c3d4"


# Branches that are only counted


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        (Counted(settled=1, name="main"), "main is up to date:"),
        (Counted(settled=50, name="main"), "All 50 branches are up to date:"),
    ],
)
def test_a_mirror_of_settled_branches_is_up_to_date(counted: Counted, told: str) -> None:
    verdict, verdicts = explain(mirror(counted=counted), NOW, Targets())
    assert (verdict.state, verdicts) == (State.UP_TO_DATE, [])
    assert str(verdict.sentence).startswith(told)


def test_counted_branches_are_among_the_others() -> None:
    facts = mirror(branch(pending=1, oldest_seen_at=ago(minutes=20)), counted=Counted(settled=40, behind=9))
    verdict, _ = explain(facts, NOW, Targets())
    assert verdict.state is State.LATE
    assert str(verdict.sentence).endswith("9 other branches are behind too, 40 up to date.")
