"""What is said of one commit at a mirror."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from core.mirroring.explain.commit_text import explain_commit
from core.mirroring.explain.verdict import Verdict
from core.mirroring.facts import CommitFacts, Thing, Waived
from core.mirroring.states import Stage, State
from core.text.phrases import sentence

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
WHOLE = CommitFacts(commit_id="c" * 64, record="accepted", data="complete", history=True, metadata_at=NOW)
OBJECT = Thing(
    kind="object",
    holder_id="r",
    address="data/x",
    path="orders/1.parquet",
    size=1,
    reason="missing",
    detail="",
    gone_at_source=False,
    first_seen=NOW,
    attempts=3,
    look_at=NOW,
)
WAITING = replace(WHOLE, data="waiting", history=False, things=(OBJECT,), lacking=1, lacking_since=NOW)


def told(commit: CommitFacts, stage: Stage, **more: Any) -> str:
    given = {"heads": (), "needs": (), "region": "eu-west-1", "source_region": "us-east-1"} | more
    return str(explain_commit(commit, stage=stage, **given))


@pytest.mark.parametrize(
    ("commit", "stage", "heads", "words"),
    [
        (WHOLE, Stage.HEAD, ["main"], "main points to it in eu-west-1. All of it has arrived in eu-west-1"),
        (WHOLE, Stage.HEAD, ["main", "dev", "x"], "main and 2 more point to it in eu-west-1."),
        (replace(WHOLE, promoted_at=NOW), Stage.PAST, [], "A branch pointed to it in eu-west-1 and has moved on"),
        (replace(WHOLE, superseded_at=NOW), Stage.PAST, [], "Its branch in eu-west-1 skipped it"),
        (replace(WHOLE, data="unchecked"), Stage.PAST, [], "its objects are not validated"),
        (replace(WHOLE, data="gone"), Stage.PAST, [], "Part of it is missing on both sides"),
        (WHOLE, Stage.PAST, [], "No branch in eu-west-1 is waiting for it."),
        (WHOLE, Stage.READY, [], "its branch is about to move to it"),
        (replace(WHOLE, history=False), Stage.WAITING, [], "it waits for commits that it descends from"),
        (replace(WHOLE, data="gone"), Stage.GONE, [], "move the branch on at the source"),
        (CommitFacts(commit_id="c" * 64), Stage.WAITING, [], "Its record has not been copied yet."),
        (replace(WHOLE, data="unknown"), Stage.CHECKING, [], "its objects are being checked"),
        (
            replace(WHOLE, data="unknown", metadata_at=None),
            Stage.WAITING,
            [],
            "what it names has not been looked for in eu-west-1",
        ),
    ],
)
def test_a_commit_s_place_is_told(commit: CommitFacts, stage: Stage, heads: list[str], words: str) -> None:
    assert words in told(commit, stage, heads=heads)


def test_what_is_on_its_way_is_named_without_advice() -> None:
    said = told(WAITING, Stage.CHECKING, needs=[WAITING])
    assert said == "Object orders/1.parquet of cccccccc has not reached eu-west-1."


def test_a_blocked_one_says_what_to_do() -> None:
    assert "Check that the bucket replication from us-east-1 runs" in told(WAITING, Stage.BLOCKED, needs=[WAITING])


def test_an_ancestor_in_trouble_is_named_as_such() -> None:
    ancestor = replace(WAITING, commit_id="a" * 64)
    said = told(replace(WHOLE, history=False), Stage.WAITING, needs=[ancestor, replace(ancestor, commit_id="b" * 64)])
    assert said.startswith(
        "It waits for a commit that it descends from: object orders/1.parquet of aaaaaaaa has not reached"
    )
    assert said.endswith("1 other commit that it needs is waiting too.")


def test_what_waiting_won_t_help_is_spoken_of_first() -> None:
    waived = replace(WHOLE, commit_id="d" * 64, waived=Waived(by="ada", reason="lost", at=NOW))
    assert "dddddddd was waived by ada (lost)" in told(WAITING, Stage.BLOCKED, needs=[WAITING, waived])


def test_a_pause_is_told_of_what_is_on_its_way_only() -> None:
    paused = Verdict(State.PAUSED, "paused", sentence("paused: no branch moves until somebody resumes it"))
    assert told(WHOLE, Stage.READY, standing=paused).endswith("Paused: no branch moves until somebody resumes it.")
    assert "Paused" not in told(WHOLE, Stage.HEAD, heads=["main"], standing=paused)
