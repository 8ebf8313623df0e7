"""How far a commit has come at a mirror."""

from __future__ import annotations

from datetime import datetime, timedelta

from core.mirroring.facts import CommitFacts
from core.mirroring.rpo import Targets
from core.mirroring.states import Stage


def stage_of(commit: CommitFacts | None, *, now: datetime, targets: Targets, validating: bool = False) -> Stage:
    """How far a commit has come that its branch has not been promoted to, or past."""
    if commit is None:
        return Stage.WAITING
    if commit.waived is not None:
        return Stage.WAIVED
    if commit.promotable:
        return Stage.READY
    if commit.data == "gone":
        return Stage.WAIVED if any(thing.waived for thing in commit.things) else Stage.GONE
    waited = now - commit.lacking_since if commit.lacking_since else timedelta()
    if commit.in_trouble and (commit.hopeless or waited >= targets.blocked_after):
        return Stage.BLOCKED
    if commit.record == "accepted" and commit.data in ("unknown", "waiting") and (validating or commit.metadata_at):
        return Stage.CHECKING
    return Stage.WAITING
