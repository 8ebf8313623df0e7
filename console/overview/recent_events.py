"""What happened last: branches that moved, duties that fail, and what somebody did."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from audit.models import AuditEvent
from audit.verbs import Verb
from console import exports_summary, rules_summary
from console.jobs.listing import duties_of, jobs_of, others_of
from core.mirroring.explain.verdict import STEPS
from core.mirroring.promotion import MOVED_BY_OTHERS, Why
from core.text.phrases import Phrase, name, say, short
from mirrors.models import Promotion
from mirrors.models.querysets import MirrorQuerySet
from mirrors.services.rights import sees_every_mirror
from rbac import services as rbac

AMOUNT = 10
MOVES_READ = 5 * AMOUNT
"""So many moves are read: of each branch only the last one is told."""
VERBS_READ = 20 * AMOUNT
"""So many acts are read, for somebody may not be told of all of them."""
_WORDS = {
    Verb.CHANGE: "edited",
    Verb.SYNC: "synced",
    Verb.VALIDATE: "started a validation of",
    Verb.STOP: "stopped a validation of",
    Verb.PRIORITISE: "prioritised a commit of",
    Verb.RETRY: "retried what is missing at",
    Verb.RESET_BRANCH: "undid uncommitted changes at",
    Verb.VERIFY: "verified",
    Verb.RUN: "ran",
}
"""What people did, where the page says it shorter than the audit record."""
_OF_RULES = {Verb.CHANGE: "edited", Verb.SYNC: "compared the places of", Verb.RETRY: "retried objects of"}
"""The same where it was done to a replication rule."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing, in words; `bad` where something failed. `url`: the page of what it is about, or ""."""

    at: datetime
    phrase: Phrase
    bad: bool = False
    url: str = ""


def latest(visible: MirrorQuerySet, now: datetime, user: Any) -> list[Happening]:
    """The newest few of all kinds, newest first, of these mirrors and of the exports that the user may see."""
    events = [*_moves(visible), *_failures(visible, now, others_of(user)), *_verbs(visible, user)]
    return sorted(events, key=lambda event: event.at, reverse=True)[:AMOUNT]


def _moves(visible: MirrorQuerySet) -> list[Happening]:
    """The last one of each branch, and all that somebody else did; by their keys, which is the order in which they were
    written. So branches that move each second leave room for what people do."""
    # Not `in`, for which all moves of all mirrors are read first.
    rows = Promotion.objects.filter(Exists(visible.filter(pk=OuterRef("mirror")))).select_related("mirror")
    told: dict[object, Promotion] = {}
    for row in rows.order_by("-pk")[:MOVES_READ]:
        told.setdefault(row.pk if row.why in _FOREIGN else (row.mirror_id, row.branch, row.is_tag), row)
    return [
        Happening(row.at, _move(row), row.why in _FOREIGN, reverse("mirror", args=[row.mirror.name]))
        for row in list(told.values())[:AMOUNT]
    ]


_FOREIGN = (*MOVED_BY_OTHERS, Why.WRITTEN)


def _move(row: Promotion) -> Phrase:
    which = say(name(row.mirror.name), " · ", row.branch)
    if row.why == Why.WRITTEN:
        return say(which, " was written to by somebody")
    if row.why == Why.FOREIGN:
        return say(which, " was moved by somebody")
    if row.why == Why.BACK:
        return say(which, " is back at ", short(row.to_commit), ": moved back by somebody, a restore or a late call")
    if row.why == Why.VANISHED:
        return say(which, " is gone at the mirror: deleted by somebody, or lost in a restore")
    if row.why == Why.FOUND:
        return say(which, " was found at ", short(row.to_commit))
    if row.why == Why.UNDONE:
        return say(which, ": uncommitted changes were undone")
    return say(which, " promoted to ", short(row.to_commit)) if row.to_commit else say(which, " was deleted")


def _failures(visible: MirrorQuerySet, now: datetime, others: Q) -> list[Happening]:
    """Duties that fail now, by their last try."""
    rows = duties_of(visible, others).filter(failures__gt=0).exclude(ended_at=None).order_by("-ended_at")
    jobs = jobs_of(list(rows[:AMOUNT]), now)
    return [Happening(job.duty.ended_at, _failure(job), bad=True) for job in jobs]


def _failure(job: Any) -> Phrase:
    step = STEPS.get(job.duty.kind) or job.label.lower()
    return say(name(job.name), f": {step} failed, {job.duty.outcome.rstrip('.')[:160]}")


def _verbs(visible: MirrorQuerySet, user: Any) -> list[Happening]:
    """What was done to mirrors, exports and rules; changes of access are told where access is managed. Who sees every
    mirror is told of those that are gone, too."""
    found = AuditEvent.objects.filter(action__startswith="fs:", refused=False)
    if not sees_every_mirror(user):
        names = visible.order_by().values_list("name", flat=True)
        subjects = [f"mirror/{name}" for name in names] + exports_summary.audit_names(user)
        found = found.filter(Q(subject__in=subjects) | rules_summary.audit_names(user))
        rows = list(found.order_by("-pk")[:AMOUNT])
    else:
        rows = list(islice((row for row in found.order_by("-pk")[:VERBS_READ] if _may_tell(row, user)), AMOUNT))
    about = {subject for kind, _, subject in (row.subject.partition("/") for row in rows) if kind == "mirror"}
    there = set(visible.filter(name__in=about).values_list("name", flat=True))
    return [Happening(row.at, _verb(row), url=_page_of(row, there)) for row in rows]


def _may_tell(row: AuditEvent, user: Any) -> bool:
    """Of an export or a rule, also of one that is gone, whoever may read its branch, or it, is told."""
    kind, _, subject = row.subject.partition("/")
    if kind == rules_summary.SUBJECT:
        return rules_summary.may_read(user, subject.partition("/")[0])
    return kind != "export" or rbac.allowed(user, "fs:ReadBranch", row.arn)


def _page_of(row: AuditEvent, mirrors: Collection[str]) -> str:
    kind, _, subject = row.subject.partition("/")
    return reverse("mirror", args=[subject]) if kind == "mirror" and subject in mirrors else ""


def _verb(row: AuditEvent) -> Phrase:
    why = f": “{row.reason[:160]}”" if row.reason else ""
    kind, _, subject = row.subject.partition("/")
    about = subject.partition("/")[2] if kind == "export" else subject.replace("/links/", " link ")
    return say(name(row.actor or "somebody"), f" {_did(row, kind)} ", name(about or row.arn.rpartition("/")[2]), why)


def _did(row: AuditEvent, kind: str) -> str:
    if row.verb not in Verb.values:  # another version's
        return f"used {row.action} on"
    verb = Verb(row.verb)
    if kind == rules_summary.SUBJECT:
        return f"{_OF_RULES.get(verb, verb.label)} rule"
    done = _WORDS.get(verb, verb.label)
    return f"{done} export" if kind == "export" else done
