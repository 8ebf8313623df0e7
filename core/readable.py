"""Can a commit be read in a region now? True or False only where that is known; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.facts import CommitFacts


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether, since when, and why not or why nobody knows (`answer` is None then)."""

    answer: bool | None
    reason: str = ""
    since: datetime | None = None


def at_source(*, seen_at: datetime, looked_at: datetime | None, frozen: bool, gone: bool) -> Readable:
    """At the source, which gave its record. `gone`: a mirror found that both sides lack something of it."""
    if frozen:
        return Readable(None, "the source is not the repository that was pinned")
    if looked_at is None:
        return Readable(None, "the source was not looked at yet")
    if gone:
        return Readable(False, "some of its data is gone at the source")
    return Readable(True, since=seen_at)


def at_mirror(commit: CommitFacts | None, *, state: str, damaged: bool | None) -> Readable:
    """At a mirror in that `state`. `damaged`: something of the commit is lost since it was complete; None: not known.

    Since a branch there pointed to it, or went past it; what none pointed to, since it was there and checked.
    """
    if state != "active":
        return Readable(None, f"the mirror's state is {state}")
    if commit is None:
        return Readable(None, "it is not mirrored there")
    if lack := _lack(commit):
        return lack
    if damaged is None:
        return Readable(None, "things are damaged there, and it is not known whether it needs them")
    if damaged:
        return Readable(False, "it was complete there, and is damaged now")
    times = [time for time in (commit.recorded_at, commit.validated_at) if time]
    return Readable(True, since=commit.promoted_at or commit.superseded_at or max(times, default=None))


def _lack(commit: CommitFacts) -> Readable | None:
    """What keeps a commit from being readable for certain."""
    if commit.record != "accepted":
        return Readable(False, f"its record is {commit.record}")
    if commit.data in ("unknown", "unchecked"):
        return Readable(None, "its data was not checked there")
    if commit.data != "complete":
        return Readable(False, f"its data is {commit.data}")
    return None if commit.history else Readable(False, "what it descends from is not in order there")
