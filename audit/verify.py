"""Reading the chain again: whole, or the first event that is wrong. Holds some thousand events at a time."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from audit import chain
from audit.models import FIRST_DIGEST, AuditChain, AuditCheckpoint, AuditEvent

log = logging.getLogger("lakemirror.audit")

BATCH = 2000
SOME = 1000
AGAIN_AFTER = timedelta(hours=1)
UNREADABLE: dict[str, Any] = {"number": -1}
"""A line of a file that is no event."""


@dataclass(frozen=True, slots=True)
class ChainPosition:
    """A place in the chain: an event's number and digest."""

    number: int = 0
    digest: str = FIRST_DIGEST

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"


@dataclass(frozen=True, slots=True)
class Found:
    """How far the chain is whole, and what is wrong with the next event, or ""."""

    place: ChainPosition
    wrong: str = ""


def verify(noted: ChainPosition | None = None) -> Found:
    """Read every event behind the last checkpoint. `noted`: what somebody wrote down of an event elsewhere."""
    start, head = start_of_chain(), chain.head()
    if wrong := wrong_checkpoint():
        return Found(start, wrong)
    result = follow(start, rows_between(start.number, head.number), noted)
    if not result.wrong:
        result = Found(result.place, _wrong_end(result.place, head) or _not_noted(result.place, start, noted))
    if result.wrong and start_of_chain() != start:  # events were sealed meanwhile
        return verify(noted)
    return result


def start_of_chain() -> ChainPosition:
    """Where the events that are here begin: at the last checkpoint."""
    last = AuditCheckpoint.objects.order_by("-number").first()
    return ChainPosition(last.number, last.digest) if last else ChainPosition()


def wrong_checkpoint() -> str:
    """What keeps the checkpoints from following one upon another, or ""."""
    place = ChainPosition()
    for point in AuditCheckpoint.objects.order_by("number").iterator():
        if (point.first - 1, point.previous) != (place.number, place.digest):
            return f"the checkpoint at event {point.number} does not follow event {place.number}"
        place = ChainPosition(point.number, point.digest)
    return ""


def follow(place: ChainPosition, rows: Iterable[dict[str, Any]], noted: ChainPosition | None = None) -> Found:
    """Go along events that follow a place, as far as they fit."""
    for row in rows:
        if wrong := _wrong(place, row, noted):
            return Found(place, wrong)
        place = ChainPosition(row["number"], row["digest"])
    return Found(place)


def _wrong(before: ChainPosition, row: dict[str, Any], noted: ChainPosition | None) -> str:
    number = before.number + 1
    if row is UNREADABLE:
        return f"event {number} can't be read"
    if row["number"] != number:
        return f"event {number} is missing: event {row['number']} follows event {before.number}"
    if not hmac.compare_digest(row["digest"], chain.digest_of(before.digest, row)):
        return f"event {number} (row {row['id']}) was changed or replaced"
    if noted and noted.number == number and noted.digest != row["digest"]:
        return f"event {number} (row {row['id']}) is not the recorded one: the chain was rebuilt"
    return ""


def rows_between(at: int, end: int) -> Iterator[dict[str, Any]]:
    """Events of the chain from behind one number up to another, as far as there are any."""
    while at < end and (rows := [row for row in chain.rows_after(at, BATCH) if row["number"] <= end]):
        yield from rows
        at = rows[-1]["number"]


def _wrong_end(last: ChainPosition, head: AuditChain) -> str:
    """What is wrong with the chain's end: events lack there, or there are some that nobody chained."""
    if last.number < head.number:
        return f"event {last.number + 1} is missing: the chain goes up to event {head.number}"
    if last.digest != head.digest:
        return f"event {last.number} does not match the latest hash"
    highest = AuditEvent.objects.aggregate(highest=Max("number"))["highest"] or 0
    after = chain.head().number
    return f"event {after + 1} comes after the end of the chain, event {after}" if highest > after else ""


def _not_noted(last: ChainPosition, start: ChainPosition, noted: ChainPosition | None) -> str:
    if noted is None or start.number < noted.number <= last.number:
        return ""
    if noted.number > last.number:
        return f"event {last.number + 1} is missing: event {noted.number} was recorded elsewhere"
    sealed = AuditCheckpoint.objects.filter(number__gte=noted.number).order_by("number")[0]
    if sealed.number == noted.number:
        return "" if sealed.digest == noted.digest else f"event {noted.number}, sealed, is not the recorded one"
    return f"event {noted.number} is sealed: verify the file {sealed.file} with --head"


# --- bit by bit -------------------------------------------------------------------------------------------------------


def check_some(amount: int = SOME) -> None:
    """Read on where the last look ended; from the start again when that is an hour ago. Says what is wrong."""
    now, head, start = timezone.now(), chain.head(), start_of_chain()
    place = _read_on_from(head, start, now)
    if place is None:
        return
    result = follow(place, (row for row in chain.rows_after(place.number, amount) if row["number"] <= head.number))
    if not result.wrong and (result.place == place or result.place.number >= head.number):
        result = Found(result.place, _wrong_end(result.place, head))
    if start == start_of_chain():  # else events were sealed meanwhile
        _note_progress(result, head, now)


def _read_on_from(head: AuditChain, start: ChainPosition, now: datetime) -> ChainPosition | None:
    """Where to read on; None when there is nothing to read now."""
    began = head.check_began_at
    is_done = head.check_number >= head.number or bool(head.wrong)
    is_behind = began is None or head.check_number < start.number
    if head.number and (is_behind or (is_done and now - began > AGAIN_AFTER)):
        AuditChain.objects.filter(pk=1).update(check_began_at=now)
        return start
    return None if is_done else ChainPosition(head.check_number, head.check_digest)


def _note_progress(result: Found, head: AuditChain, now: datetime) -> None:
    changes: dict[str, Any] = {"check_number": result.place.number, "check_digest": result.place.digest}
    if result.wrong:
        log.error("the audit's chain is broken: %s", result.wrong)
        changes["wrong"] = result.wrong[:300]
    elif result.place.number >= head.number:
        changes |= {"whole_number": result.place.number, "whole_at": now, "wrong": ""}
    AuditChain.objects.filter(pk=1).update(**changes)


def note(result: Found) -> None:
    """Let the page tell what reading all of it came to."""
    changes: dict[str, Any] = {"wrong": result.wrong[:300]}
    if not result.wrong:
        changes |= {"whole_number": result.place.number, "whole_at": timezone.now()}
    AuditChain.objects.filter(pk=1).update(**changes)
