"""When an alert opens and closes, decided from what is wrong now and what was known of it before.

An alert is one thing that is wrong with one subject. It opens when that has lasted, and closes when it was gone for two
rounds in a row; never because nobody could look.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.notifications.kinds import AlertKind

ROUNDS_GONE = 2
"""For so many rounds in a row something has to be gone before its alert closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that is wrong now. `since`: for how long it is known to last, if that is known; `cause`: what explains
    it and has an alert of its own, so that this one opens none, or ""."""

    kind: AlertKind
    subject: str
    sentence: str
    since: datetime | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a subject is doing. `sure`: it was really looked at; `well_at`: when it was last known to be in order;
    `mirror`: the key of the mirror that it is, for one that is made anew has the name of the one before."""

    told: str
    sure: bool = True
    well_at: datetime | None = None
    mirror: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is kept of an alert that has not closed: watched since, open or not yet, when last seen wrong, and for how
    many rounds it has been gone."""

    since: datetime
    is_open: bool
    seen_at: datetime
    gone: int = 0


class Step(StrEnum):
    """What a round does with an alert."""

    NOTHING = "nothing"
    WATCH = "watch"
    OPEN = "open"
    KEEP = "keep"
    MISS = "miss"
    CLOSE = "close"
    FORGET = "forget"


def step_for(
    condition: Condition | None, known: Known | None, standing: Standing | None, now: datetime, after: timedelta
) -> Step:
    """What to do about one kind of trouble with one subject. `standing` None: the subject is gone."""
    if condition is not None:
        return _wrong(condition, known, now, after)
    if known is None:
        return Step.NOTHING
    if not known.is_open:
        return Step.FORGET
    if standing is not None and not _is_well(standing, known):
        return Step.NOTHING
    return Step.CLOSE if known.gone + 1 >= ROUNDS_GONE else Step.MISS


def _wrong(condition: Condition, known: Known | None, now: datetime, after: timedelta) -> Step:
    if known is not None and known.is_open:
        return Step.KEEP
    if condition.cause:
        return Step.FORGET if known else Step.NOTHING
    since = known.since if known else condition.since or now
    if condition.kind.at_once or now - since >= after:
        return Step.OPEN
    return Step.KEEP if known else Step.WATCH


def _is_well(standing: Standing, known: Known) -> bool:
    """Whether it was looked at and found otherwise, or known to be in order at some time after it was wrong."""
    return standing.sure or (standing.well_at is not None and standing.well_at > known.seen_at)
