"""Repairing a commit at a mirror: a plan that changes nothing, and carrying it out, as often as one likes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, Count, ExpressionWrapper, Min, Q, Sum

from core.bringing import REPLACEABLE, ObjectReplication
from core.mirroring.facts import ARRIVING
from core.mirroring.repair_plan import Group, Plan, plan_repair
from mirrors.models import Commit, Mirror
from mirrors.queries.missing import OPEN_COMMITS, TROUBLED, Commits, blockers_of, open_rows
from mirrors.queries.missing_counts import is_cut_short
from mirrors.services.backlog import things_retry
from mirrors.services.priority import mirror_prioritise
from mirrors.transitions.causes import awaited, wrong

_IS_ASKED_FOR = ExpressionWrapper(
    Q(reason__in=ARRIVING, bring_asked_at__isnull=False)
    | Q(reason__in=sorted(REPLACEABLE), replace_asked_at__isnull=False),
    output_field=BooleanField(),
)


@dataclass(frozen=True, slots=True)
class Repaired:
    """How many things are looked for now, and whether the commit goes first: nothing may be left to do for it."""

    blockers: int
    first: bool


def repair_plan(mirror: Mirror, commit: Commit) -> Plan:
    """What a commit lacks, who brings it, and what a retry would look at. Nothing is asked but the database."""
    records, more_records = _records_to_copy(mirror, commit)
    key = (mirror.pk, commit.sha)
    troubled = len(Commits([key], [key]).needed_by(key))
    return plan_repair(
        _groups(mirror, commit),
        records=records,
        more=more_records or troubled >= TROUBLED or is_cut_short(mirror),
        imported=mirror.imported,
        region=mirror.region,
        source_region=mirror.source.region,
        managed=mirror.object_replication == ObjectReplication.MANAGED,
        held=_held(mirror),
    )


@dataclass(frozen=True, slots=True)
class Offer:
    """What LakeMirror would copy once in place of the stores, for a commit: so many files that are `missing`, and those
    that are `wrong`, by blockers' ids (MOST of them). `held`: what keeps it from that, and what to do; "" if nothing
    does."""

    missing: int
    wrong: Sequence[int]
    held: str


MOST = 1000


def offer_of(mirror: Mirror, commit: Commit) -> Offer | None:
    """None where LakeMirror copies everything anyway, or nothing that it could copy and nobody has asked for yet."""
    if mirror.object_replication == ObjectReplication.MANAGED:
        return None
    rows = blockers_of(mirror, commit=commit.sha).order_by()
    awaits = awaited(mirror).filter(bring_asked_at=None).order_by().values("pk")
    missing = rows.filter(pk__in=awaits).values("kind", "key").distinct().count()
    wrongs = wrong(mirror).filter(replace_asked_at=None).order_by().values("pk")
    wrong_rows = rows.filter(pk__in=wrongs).values("kind", "key")
    ids = list(wrong_rows.annotate(first=Min("pk")).values_list("first", flat=True)[:MOST])
    paused = "Nothing is copied while the mirror is paused: resume it first" if mirror.paused else ""
    return Offer(missing, ids, _held(mirror) or paused) if missing or ids else None


def _held(mirror: Mirror) -> str:
    """What keeps a mirror from copying objects, and what to do about it; "" where nothing does."""
    if mirror.source.frozen_reason:
        return f"Nothing is copied while the source is frozen: {mirror.source.frozen_reason.rstrip('.')}"
    if mirror.state != Mirror.State.ACTIVE:
        return "Nothing is copied while the mirror is not active: see its page"
    return "Copying is paused: resume it in the mirror's settings" if mirror.copying_paused else ""


def commit_repair(*, actor: Any, mirror: Mirror, commit: Commit) -> Repaired:
    """Have all that keeps a commit back looked for now, and the commit copied and checked before others.

    Raises Denied. Once more is the same again: what has arrived meanwhile is looked for no more.
    """
    with transaction.atomic():
        number = things_retry(actor=actor, mirror=mirror, commit=commit.sha)
        row = mirror_prioritise(actor=actor, mirror=mirror, commit=commit.sha)
        first = mirror.commits.filter(pk=row.pk, urgency__gt=0).exists()
    return Repaired(number, first)


def _groups(mirror: Mirror, commit: Commit) -> list[Group]:
    """Each thing once, however many ranges need it."""
    same = ("kind", "key", "reason", "gone_at_source")
    copied = mirror.brings_on_request
    firsts = blockers_of(mirror, commit=commit.sha).order_by().values(*same).annotate(first=Min("pk")).values("first")
    found = mirror.blockers.filter(pk__in=firsts).order_by().annotate(asked=_IS_ASKED_FOR)
    rows = found.values("kind", "reason", "gone_at_source", "cause", "asked")
    told = {"told": Min("cause_told"), "advice": Min("cause_advice")}
    counted = rows.annotate(number=Count("pk"), bytes=Sum("size"), **told).order_by(
        "-number", "kind", "reason", "cause"
    )
    return [Group(**row | {"asked": row["asked"] and copied}) for row in counted]


def _records_to_copy(mirror: Mirror, commit: Commit) -> tuple[int, bool]:
    """Of a commit and what it descends from: how many records are still to be copied, and whether there may be more.

    So many open commits are gone through; below one whose history is in order there are none.
    """
    rows = open_rows({(mirror.pk, commit.sha)})
    opened = {row["commit__sha"]: row for row in rows}
    number, ahead, seen = 0, [commit.sha], {commit.sha}
    while ahead:
        row = opened.get(ahead.pop())
        if row is None:
            continue
        number += row["record"] == "pending"
        parents = () if row["history"] else set(row["commit__parents"]) - seen
        seen.update(parents)
        ahead.extend(parents)
    return number, len(rows) == OPEN_COMMITS
