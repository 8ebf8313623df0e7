"""What a waiver changes: a commit serves its descendants, and is never shown itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.mirroring.explain.blocker_text import describe_lack
from core.mirroring.explain.commit_steps import Rung, climb
from core.mirroring.explain.stage import stage_of
from core.mirroring.facts import CommitFacts, Waived, serves_descendants
from core.mirroring.rpo import Targets
from core.mirroring.states import Stage

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
WAIVED = Waived(by="olga", reason="never replicated", at=NOW)
COMMIT = "a1b2c3d4" * 8


def waived(record: str = "accepted", data: str = "complete") -> CommitFacts:
    return CommitFacts(commit_id=COMMIT, record=record, data=data, history=True, waived=WAIVED)


@pytest.mark.parametrize(
    ("record", "data", "waiver", "serves"),
    [
        ("accepted", "complete", False, True),
        ("accepted", "gone", False, True),
        ("accepted", "waiting", False, False),
        ("accepted", "unknown", False, False),
        ("accepted", "waiting", True, True),
        ("accepted", "unknown", True, True),
        ("pending", "complete", True, False),
        ("refused", "waiting", True, False),
    ],
)
def test_which_commits_are_in_no_descendant_s_way(record: str, data: str, waiver: bool, serves: bool) -> None:
    assert serves_descendants(record=record, data=data, waived=waiver) is serves


def test_a_waived_commit_is_never_promotable_and_says_so() -> None:
    commit = waived()
    assert not commit.promotable
    assert stage_of(commit, now=NOW, targets=Targets()) is Stage.WAIVED
    lack = describe_lack(commit, region="eu-west-1", source_region="us-east-1")
    assert lack.code == "commit_waived"
    assert "was waived by olga (never replicated)" in str(lack.clause)


def test_a_refused_record_speaks_first() -> None:
    assert describe_lack(waived("refused"), region="eu-west-1", source_region="us-east-1").code == "record_refused"


def test_a_waived_commit_climbs_no_further() -> None:
    steps = climb(
        waived(data="waiting"), seen_at=NOW, stage=Stage.WAIVED, region="eu-west-1", source_region="us-east-1"
    )
    assert [step.rung for step in steps][1:] == [Rung.TODO] * 4
    assert str(steps[1].note) == "waived"
