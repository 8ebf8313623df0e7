"""Can a commit be read in a region now? True or False only where that is known; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.installations.outages import Outage, outage_clause
from core.mirroring.facts import CommitFacts
from core.mirroring.judgement import Judgement, Obstacle
from core.mirroring.rpo import in_words


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether, since when, and why not or why nobody knows (`answer` is None then)."""

    answer: bool | None
    reason: str = ""
    since: datetime | None = None


def at_source(*, seen_at: datetime, looked_at: datetime | None, frozen: bool, gone: bool | None) -> Readable:
    """At the source, which gave its record. `gone`: a mirror found that both sides lack something of it; None where
    what both lack may be part of it."""
    if frozen:
        return Readable(None, "the source is not the repository that was mirrored")
    if looked_at is None:
        return Readable(None, "the source has not been checked yet")
    if gone:
        return Readable(False, "some of its data is missing at the source")
    if gone is None:
        return Readable(None, "the source lacks some objects; whether this commit needs one of them is not known yet")
    return Readable(True, since=seen_at)


def at_mirror(commit: CommitFacts | None, judgement: Judgement, *, state: str) -> Readable:
    """At a mirror in that `state`, as the judge finds its commit now.

    Since a branch there pointed to it, or went past it; what none pointed to, since it was there and checked.
    """
    if state != "active":
        return Readable(None, f"the mirror's state is {state}")
    if commit is None:
        return Readable(None, "it is not mirrored there")
    if not judgement.allowed:
        return _not_proven(commit, judgement)
    times = [time for time in (commit.recorded_at, commit.validated_at) if time]
    return Readable(True, since=commit.promoted_at or commit.superseded_at or max(times, default=None))


def as_seen(
    readable: Readable, *, outage: Outage | None, stale: bool, as_of: datetime | None, now: datetime
) -> Readable:
    """The same where the region does not answer, or nobody has looked for too long: what was found there `as_of` then
    says nothing about now. What was missing can't be read either way."""
    if not readable.answer or not (outage or stale):
        return readable
    ago = f"{in_words((now - as_of).total_seconds())} ago" if as_of else "when it was last checked"
    if outage:
        return Readable(None, f"{outage_clause(outage, now)}; it was complete there {ago}")
    return Readable(None, f"it was complete there {ago}, and nobody has checked since")


def _not_proven(commit: CommitFacts, judgement: Judgement) -> Readable:
    """For certain not, where something of it is known to be missing; else nobody knows."""
    obstacle = judgement.obstacle
    if obstacle is not None and obstacle.is_certain:
        if commit.validated_at and obstacle is not Obstacle.RECORD:
            return Readable(False, f"it was complete there and is damaged now: {judgement.detail}")
        return Readable(False, judgement.detail)
    if obstacle is Obstacle.HISTORY:
        return Readable(False, "a commit that it descends from is incomplete there")
    if commit.data in ("unknown", "unchecked"):
        return Readable(None, f"its data has not been checked there: {judgement.detail}")
    return Readable(None, judgement.detail)
