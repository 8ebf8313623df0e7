"""What happened last: branches that moved, duties that fail, and what somebody did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from audit.models import AuditEvent
from audit.verbs import Verb
from console import exports_summary
from console.jobs.listing import duties_of, jobs_of
from core.mirroring.promotion import MOVED_BY_OTHERS, Why
from core.text.phrases import Phrase, name, say, short
from mirrors.models import Promotion
from mirrors.models.querysets import MirrorQuerySet
from mirrors.services.rights import sees_every_mirror

AMOUNT = 10
_EXPORTS = {
    Verb.CREATE: "configured the export of",
    Verb.CHANGE: "changed the export of",
    Verb.DELETE: "ended the export of",
    Verb.PAUSE: "paused the export of",
    Verb.RESUME: "resumed the export of",
    Verb.RUN: "had an export begun of",
    Verb.REPAIR: "repaired the export of",
    Verb.VERIFY: "had the export verified of",
}
"""What is said of exports; of all else what the verb itself says."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing, in words; `bad` where something failed."""

    at: datetime
    phrase: Phrase
    bad: bool = False


def latest(visible: MirrorQuerySet, now: datetime, user: Any) -> list[Happening]:
    """The newest few of all kinds, newest first, of these mirrors and of the exports that the user may see."""
    events = [*_moves(visible), *_failures(visible, now, exports_summary.subjects(user)), *_verbs(visible, user)]
    return sorted(events, key=lambda event: event.at, reverse=True)[:AMOUNT]


def _moves(visible: MirrorQuerySet) -> list[Happening]:
    """By their keys, which is the order in which they were written."""
    # Not `in`, for which all moves of all mirrors are read first.
    rows = Promotion.objects.filter(Exists(visible.filter(pk=OuterRef("mirror")))).select_related("mirror")
    return [Happening(row.at, _move(row), row.why in _FOREIGN) for row in rows.order_by("-pk")[:AMOUNT]]


_FOREIGN = (*MOVED_BY_OTHERS, Why.WRITTEN)


def _move(row: Promotion) -> Phrase:
    which = say(name(row.mirror.name), " · ", row.branch)
    if row.why == Why.WRITTEN:
        return say(which, " was written to by somebody")
    if row.why == Why.FOREIGN:
        return say(which, " was moved by somebody")
    if row.why == Why.BACK:
        return say(which, " is back at ", short(row.to_commit), ": moved back, restored, or by a late call")
    if row.why == Why.VANISHED:
        return say(which, " is gone at the mirror: deleted by somebody, or restored")
    if row.why == Why.FOUND:
        return say(which, " was found at ", short(row.to_commit))
    if row.why == Why.UNDONE:
        return say(which, ": uncommitted changes were undone")
    return say(which, " promoted to ", short(row.to_commit)) if row.to_commit else say(which, " was deleted")


def _failures(visible: MirrorQuerySet, now: datetime, exports: Sequence[int]) -> list[Happening]:
    """Duties that fail now, by their last try."""
    rows = duties_of(visible, exports).filter(failures__gt=0).exclude(ended_at=None).order_by("-ended_at")
    jobs = jobs_of(list(rows[:AMOUNT]), now)
    return [Happening(job.duty.ended_at, _failure(job), bad=True) for job in jobs]


def _failure(job: Any) -> Phrase:
    return say(name(job.name), f": {job.duty.kind} failed, {job.duty.outcome.rstrip('.')[:160]}")


def _verbs(visible: MirrorQuerySet, user: Any) -> list[Happening]:
    """What was done to mirrors and exports; changes of access are told where access is managed. Who sees every mirror
    is told of those that are gone, too."""
    rows = AuditEvent.objects.filter(action__startswith="fs:", refused=False)
    if not sees_every_mirror(user):
        names = visible.order_by().values_list("name", flat=True)
        subjects = [f"mirror/{name}" for name in names] + exports_summary.audit_names(user)
        rows = rows.filter(subject__in=subjects)
    return [Happening(row.at, _verb(row)) for row in rows.order_by("-pk")[:AMOUNT]]


def _verb(row: AuditEvent) -> Phrase:
    why = f": “{row.reason[:160]}”" if row.reason else ""
    kind, _, subject = row.subject.partition("/")
    about = subject.partition("/")[2] if kind == "export" else subject
    return say(name(row.actor or "somebody"), f" {_did(row, kind)} ", name(about or row.arn.rpartition("/")[2]), why)


def _did(row: AuditEvent, kind: str) -> str:
    if row.verb not in Verb.values:  # another version's
        return f"used {row.action} on"
    verb = Verb(row.verb)
    return _EXPORTS.get(verb, verb.label) if kind == "export" else verb.label
