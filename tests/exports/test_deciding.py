"""The state machine and the words, without I/O."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.errors import Conflict, Invalid
from core.exporting.destinations import check_place, status_uri, timed_uris
from core.exporting.explain import Drift, ExportFacts, Gone, RunFacts, Unverified, tell
from core.exporting.state_machine import (
    ExportSituation,
    State,
    basis,
    check_repair,
    check_start,
    is_exported,
    note_attempt,
    starts_by_itself,
    status_text,
)
from core.installations.places import inside, overlap

PATH = "s3://bucket/latest"
A, B, C = "a" * 64, "b" * 64, "c" * 64


def standing(state: State = State.SUCCESS, **more: object) -> ExportSituation:
    done = {"last_success_ref": A, "path_at_success": PATH} if state is State.SUCCESS else {}
    return ExportSituation(**{"state": state, "path": PATH, **done, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [State.NEVER, State.REPAIRED])
def test_a_run_starts_where_nothing_stands_in_its_way(state: State) -> None:
    check_start(standing(state), A)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (standing(State.IN_PROGRESS), "in progress"),
        (standing(State.FAILED), "Repair it first"),
        (standing(), "nothing to export"),
        (standing(State.NEVER, paused=True), "paused"),
    ],
)
def test_it_does_not_start_otherwise(one: ExportSituation, told: str) -> None:
    with pytest.raises(Conflict, match=told):
        check_start(one, A)


@pytest.mark.parametrize("state", [one for one in State if one is not State.FAILED])
def test_only_what_failed_is_repaired(state: State) -> None:
    with pytest.raises(Conflict, match="nothing to repair"):
        check_repair(standing(state))


def test_a_changed_path_is_exported_whole() -> None:
    moved = standing(path="s3://bucket/other")
    assert not is_exported(moved, A)
    check_start(moved, A)
    assert basis(moved).base == ""
    assert basis(standing()).base == A


def test_what_was_tried_is_looked_at_again_until_a_success_at_the_same_path() -> None:
    tried = standing(attempted=(B, A), attempted_path=PATH)
    assert (basis(tried).base, basis(tried).attempted) == (A, (B,))
    assert not is_exported(tried, A)  # the destination may hold parts of B
    assert note_attempt(tried, C) == (B, A, C)
    assert note_attempt(tried, B) == (A, B)
    elsewhere = standing(attempted=(B,), attempted_path="s3://bucket/other")
    assert basis(elsewhere).attempted == ()
    assert note_attempt(elsewhere, C) == (C,)


@pytest.mark.parametrize(
    ("one", "starts"),
    [
        (standing(continuous=True), True),
        (standing(wanted=True), True),
        (standing(wanted=True, wanted_ref=B), True),
        (standing(wanted=True, wanted_ref=A), False),
        (standing(wanted=True, wanted_ref=A, attempted=(B,), attempted_path=PATH), True),
        (standing(wanted=True, wanted_ref=A, path="s3://bucket/other"), True),
        (standing(), False),
        (standing(State.NEVER, continuous=True), True),
        (standing(continuous=True, paused=True), False),
        (standing(State.FAILED, continuous=True, wanted=True), False),
        (standing(State.IN_PROGRESS, continuous=True), False),
        (standing(State.REPAIRED), True),
    ],
)
def test_what_starts_by_itself(one: ExportSituation, starts: bool) -> None:
    assert starts_by_itself(one, B) is starts
    assert not starts_by_itself(one, "")


def test_the_status_file_is_that_of_old() -> None:
    assert status_text(State.SUCCESS, 0) == "status: exported-successfully, signalled_errors: 0\n"
    assert status_uri("s3://b/states/", "lake", "feature/ä b", A) == f"s3://b/states/lake-feature%2F%C3%A4%20b-{A}"
    at = datetime(2026, 11, 20, 9, 12, 1, 5, UTC)
    names = timed_uris("s3://b/states", "lake", "feature/a", at)
    assert names.status == "s3://b/states/lake/feature%2Fa/_STATUS_20261120T091201.000005Z.json"
    assert names.manifest == "s3://b/states/lake/feature%2Fa/_MANIFEST_20261120T091201.000005Z.json"


@pytest.mark.parametrize("given", ["s3://bucket", "s3://bucket/", "s3://bucket/a b/ü+%2F#?", "s3a://bucket/x//y"])
def test_places_that_can_be(given: str) -> None:
    assert check_place(given, "exportPath").startswith("s3://bucket")


@pytest.mark.parametrize("given", ["", "s3:/b", "gs://b/x", "s3://B", "s3://b", "s3://bucket/..", "s3://bucket/a\nb"])
def test_places_that_can_not_be(given: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_place(given, "exportPath")
    assert refused.value.field == "exportPath"


def test_places_overlap_by_folders_not_by_letters() -> None:
    assert inside("s3://b/x/y", "s3://b/x") and inside("s3://b/x", "s3://b/x")
    assert not inside("s3://b/xy", "s3://b/x")
    assert overlap("s3://b", "s3://b/x") and not overlap("s3://b", "s3://bb")


NOW = datetime(2026, 11, 20, 9, 12, tzinfo=UTC)


def told(one: ExportSituation, **more: object) -> tuple[str, str, str]:
    found = tell(ExportFacts(branch="main", standing=one, **more), NOW)  # type: ignore[arg-type]
    return found.word, str(found.sentence), found.action


def test_each_state_says_what_is_going_on_and_what_helps() -> None:
    run = RunFacts(B, "copy", NOW - timedelta(minutes=5), to_copy=10, through=4, failed=1)
    ended = RunFacts(B, "copy", NOW - timedelta(minutes=5), NOW - timedelta(minutes=4))
    assert told(standing(State.FAILED, last_success_ref=A), error="access denied", run=ended) == (
        "Failed",
        "The export of bbbbbbbb stopped 4 min ago: access denied. Fix that, then click Repair: it continues from "
        "aaaaaaaa, the last complete export.",
        "repair",
    )
    advised = told(standing(State.FAILED), error="there is no bucket. Create it, then click Repair", run=ended)[1]
    assert advised.endswith("then click Repair. Repair restarts the export and skips files already copied.")
    assert told(standing(State.REPAIRED), retrying="branch not found")[:2] == (
        "Retrying",
        "Repair is waiting to start: branch not found.",
    )
    assert told(standing(State.IN_PROGRESS, continuous=True), run=run, head=C) == (
        "Exporting",
        "bbbbbbbb is being exported: 4 of 10 files done, 1 failed. cccccccc is next.",
        "",
    )
    assert told(standing(State.IN_PROGRESS), run=run, retrying="503 SlowDown")[0] == "Retrying"
    assert told(standing(), head=A, succeeded_at=NOW - timedelta(hours=2))[:2] == (
        "Exported",
        "The destination has matched main (aaaaaaaa) for 2 h.",
    )
    assert told(standing(), head=B)[2] == "run"
    assert told(standing(State.NEVER, continuous=True))[0] == "New"
    assert told(standing(), head=A, look_error="no answer")[0] == "Unknown"
    gone = {"gone": Gone.BRANCH, "gone_since": NOW - timedelta(minutes=3), "look_error": "branch not found"}
    for state in (State.SUCCESS, State.FAILED, State.REPAIRED):
        assert told(standing(state, last_success_ref=A), run=ended, **gone) == (
            "Branch deleted",
            "Branch deleted at source, seen 3 min ago: delete this export, or export another branch instead. "
            "The destination keeps aaaaaaaa, the last complete export.",
            "delete",
        )
    assert told(standing(paused=True), **gone)[0] == "Paused"
    assert told(standing(State.IN_PROGRESS), run=run, **gone)[0] == "Exporting"


def test_a_verification_that_could_not_be_finished_is_said_beside_what_is_no_worse() -> None:
    last = {"unverified": Unverified(A, "access denied", NOW - timedelta(minutes=3)), "head": A}
    why = "The last verification, of aaaaaaaa 3 min ago, could not be finished: access denied. Fix that, then click"
    assert told(standing(), **last) == (
        "Not verified",
        f"The destination has matched main (aaaaaaaa). {why} Verify.",
        "verify",
    )
    assert told(standing(), **last | {"head": B})[2] == "verify"
    word, sentence, action = told(standing(paused=True), **last)
    assert (word, action) == ("Paused", "resume") and why in sentence
    for worse in ({"drift": Drift(A, 1, 0, NOW)}, {"gone": Gone.BRANCH}):
        assert why not in told(standing(), **last, **worse)[1]
