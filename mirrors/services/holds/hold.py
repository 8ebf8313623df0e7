"""A merge that lakeFS asks about: held until enough regions have it, or until its time is over.

Who waits here waits without a connection to the database: what it waits for is looked at between its rests. What is
decided is written down before it is answered, and only while the row still says that it is held.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connections

from core.errors import Throttled
from core.holding import (
    MOST_HELD,
    MOST_HELD_OF_ONE,
    Arrival,
    HoldPolicy,
    WhenLate,
    late_words,
    policy_for,
    regions_of,
    seconds_to_hold,
    strictest,
)
from core.text.phrases import SHORT_ID, count
from db import clock
from jobs import duties
from mirrors.models import HeldMerge, MirrorDuty, Repository
from mirrors.services.holds.arrivals import arrivals_of
from mirrors.transitions.held_merges import decide, holding

SOON, SELDOM, SOON_FOR = 0.25, 1.0, 10.0
"""Seconds between two looks: often at first, for most merges bring little."""
_slots = threading.BoundedSemaphore(MOST_HELD)
"""Of this process: each of them is a thread that waits."""


@dataclass(frozen=True, slots=True)
class Question:
    """What lakeFS asks, and what its action file says: how many regions it wants at least, and when it stops to
    listen."""

    region: str
    repository: str
    branch: str
    commit: str
    merge_source: str
    copies: int
    timeout: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What is told: may it go on, in which regions the commit is complete, in words, and after how long."""

    goes_on: bool
    complete_in: Sequence[str]
    message: str
    seconds: float = 0.0

    @property
    def body(self) -> dict[str, Any]:
        """As JSON."""
        return {"message": self.message, "complete_in": list(self.complete_in), "seconds": round(self.seconds, 3)}


@contextmanager
def slot(source: Repository) -> Iterator[None]:
    """One of the threads that may wait here, and one of the merges that may be held in all processes together. Raises
    Throttled at once when there is none."""
    if not _slots.acquire(blocking=False):
        raise _full(MOST_HELD)
    try:
        held = HeldMerge.objects.filter(state=HeldMerge.State.HELD, until__gt=clock.now())
        if held.count() >= MOST_HELD:
            raise _full(MOST_HELD)
        if held.filter(repository=source).count() >= MOST_HELD_OF_ONE:
            raise _full(MOST_HELD_OF_ONE, f" of {source.name}")
        yield
    finally:
        _slots.release()


def _full(number: int, whose: str = "") -> Throttled:
    return Throttled(f"{number} merges{whose} are held already: merge again in a moment", retry_after=5)


def merge_hold(question: Question) -> Answer:
    """Wait until the merge commit is complete in as many regions as the mirrors' policies and the action file want.

    Raises Throttled when too many are held. Whatever is not proven is refused: no mirror that holds the branch, fewer
    regions than wanted, a row that is gone.
    """
    began = time.monotonic()
    source = Repository.objects.filter(region=question.region, name=question.repository).first()
    if source is None:
        return _nobody(question)
    with slot(source):
        mirrors = holding(source, question.branch)
        policies = [policy for one in mirrors if (policy := policy_for(one.hold, question.branch))]
        if not policies:
            return _nobody(question)
        policy = strictest(policies)
        wanted = max(policy.copies, question.copies)
        regions = {one.region for one in mirrors} - {source.region}
        if len(regions) < wanted:
            return _too_few(question, wanted, sorted(regions))
        held = _open(source, question, policy, wanted)
        answer = _Wait(held, wanted, policy, began).until_decided()
        duties.wake(MirrorDuty.SENSE, source.pk)  # the branch is seen at it as soon as it is there
        return answer


def _nobody(question: Question) -> Answer:
    """Nothing would be proven: the action file asks for something that no mirror does."""
    if question.copies < 1:
        return Answer(True, [], f"no mirror holds merges into {question.branch}")
    text = f"no mirror of {question.repository} holds merges into {question.branch}"
    return Answer(False, [], f"{text}: give one such a policy, or take the action file off the branches")


def _too_few(question: Question, wanted: int, regions: Sequence[str]) -> Answer:
    where = f": {', '.join(regions)}" if regions else ""
    text = f"{count(wanted, 'region is', 'regions are')} wanted for merges into {question.branch}"
    return Answer(False, [], f"{text}, and mirrors that hold it are in {len(regions)}{where}")


def _open(source: Repository, question: Question, policy: HoldPolicy, wanted: int) -> HeldMerge:
    now = clock.now()
    held = HeldMerge.objects.create(
        repository=source,
        branch=question.branch,
        commit_id=question.commit,
        merge_source=question.merge_source,
        copies=wanted,
        when_late=policy.when_late,
        held_at=now,
        until=now + timedelta(seconds=seconds_to_hold(policy, question.timeout)),
    )
    duties.wake(MirrorDuty.SENSE, source.pk)
    return held


@dataclass(slots=True)
class _Wait:
    """One merge's time in the waiting room. `first` are the objects that were there when they could first be counted,
    by which it is told how long the rest may take."""

    held: HeldMerge
    wanted: int
    policy: HoldPolicy
    began: float
    first: dict[str, tuple[float, int]] = field(default_factory=dict)

    def until_decided(self) -> Answer:
        """Looks again and again. Once it is decided nothing of it is said otherwise."""
        while True:
            now = HeldMerge.objects.select_related("repository").filter(pk=self.held.pk).first()
            if now is None or now.state != HeldMerge.State.HELD:
                return self._answer(False, [], "this merge is known no more: merge again")
            arrivals = arrivals_of(now)
            if answer := self._decided(now, arrivals):
                return answer
            left = (now.until - clock.now()).total_seconds()
            usual = SOON if time.monotonic() < self.began + SOON_FOR else SELDOM
            rest(max(0.0, min(usual, left)))

    def _decided(self, held: HeldMerge, arrivals: Sequence[Arrival]) -> Answer | None:
        complete, sha = regions_of(arrivals), held.commit_id
        if len(complete) >= self.wanted:
            words = f"{sha[:SHORT_ID]} is complete in {', '.join(complete)}"
            return self._write(held, HeldMerge.State.RELEASED, words, complete)
        rate = self._rate(arrivals)
        if clock.now() < held.until:
            return None
        if self.policy.when_late == WhenLate.ALLOW:
            words = f"{late_words(sha, arrivals, rate).partition('. Merge')[0]}. It goes on all the same, by the policy"
            return self._write(held, HeldMerge.State.ALLOWED, words, complete)
        return self._write(held, HeldMerge.State.REFUSED, late_words(sha, arrivals, rate), complete)

    def _write(self, held: HeldMerge, state: HeldMerge.State, words: str, complete: Sequence[str]) -> Answer:
        if not decide(held, state.value, detail=words, complete_in=complete):
            return self._answer(False, [], "this merge was decided elsewhere meanwhile: merge again")
        return self._answer(state != HeldMerge.State.REFUSED, complete, words)

    def _answer(self, goes_on: bool, complete: Sequence[str], words: str) -> Answer:
        return Answer(goes_on, complete, words, time.monotonic() - self.began)

    def _rate(self, arrivals: Sequence[Arrival]) -> float | None:
        """Objects a second, in the region that brings them the slowest."""
        rates = []
        for one in arrivals:
            if one.arrived is None or one.complete:
                continue
            at, before = self.first.setdefault(one.region, (time.monotonic(), one.arrived))
            if (passed := time.monotonic() - at) > 0 and one.arrived > before:
                rates.append((one.arrived - before) / passed)
        return min(rates, default=None)


def rest(seconds: float) -> None:
    """Wait without a connection to the database: a database has few, and many may wait."""
    connections.close_all()
    time.sleep(seconds)
