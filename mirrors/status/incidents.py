"""A mirror that was tampered with, is damaged or frozen: what happened, when, to which branches, what to do first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db.models import Count, Max, Min

from core.errors import LakeMirrorError
from core.mirroring.promotion import MOVED_BY_OTHERS, Why
from core.mirroring.states import State
from core.text.phrases import count
from jobs.concurrent_calls import ask_all
from mirrors.models import Mirror
from mirrors.queries.metaranges import ranges_named
from mirrors.queries.missing_counts import damage_at
from mirrors.status.mirror import BranchStatus, MirrorStatus

MOST_HEADS, MOST_HOLDERS, SECONDS = 10, 1000, 2.0
"""So many branches are looked through for what is damaged, and for so long: a page may not wait for a store."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing. `branches` that it is about; `at` is when it was seen first, or None where nobody knows."""

    text: str
    at: datetime | None
    branches: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happened, and the one thing to do: sync, reset (of a branch), retry, repair (a commit), or anew (create
    another mirror)."""

    happened: Sequence[Happened] = ()
    action: str = "sync"
    branch: str = ""
    commit: str = ""


def trouble_of(reading: MirrorStatus) -> Trouble:
    """Asks for more only where the state wants it."""
    if reading.state is State.FROZEN:
        text = "The source was last seen unchanged then. Nothing has moved since; all branches stay where they are"
        return Trouble([Happened(text, reading.looked_at)], "anew")
    if reading.state is State.TAMPERED:
        return _tampered(reading)
    if reading.state is State.DAMAGED:
        never_whole = [branch for branch in reading.branches if branch.reason_code == "head_damaged"]
        if never_whole and not damage_at([reading.mirror]).exists():
            return Trouble([_not_whole(never_whole)], "retry")
        return Trouble([_damaged(reading.mirror)], "retry")
    if reading.to_repair:
        return Trouble(action="repair", commit=reading.to_repair)
    return Trouble()


def _tampered(reading: MirrorStatus) -> Trouble:
    branches = [branch for branch in reading.branches if branch.state is State.TAMPERED]
    changed = next((branch.name for branch in branches if branch.reason_code == "uncommitted_change"), "")
    happened = list(_foreign(reading.mirror, branches))
    if damage_at([reading.mirror]).exists():
        happened.append(_damaged(reading.mirror))
    return Trouble(happened, "reset" if changed else "sync", changed)


def _foreign(mirror: Mirror, branches: Sequence[BranchStatus]) -> Iterator[Happened]:
    names = [branch.name for branch in branches]
    seen = mirror.promotions.filter(branch__in=names, is_tag=False, why__in=[*MOVED_BY_OTHERS, Why.WRITTEN]).order_by()
    last = dict(seen.values_list("branch", "why").annotate(at=Max("at")).values_list("branch", "at").order_by("at"))
    for branch in branches:
        text = _DONE_BY_OTHERS.get(branch.reason_code, "Somebody created it at the mirror")
        yield Happened(text, last.get(branch.name), [branch.name])


_DONE_BY_OTHERS = {
    "uncommitted_change": "Somebody wrote to it without a commit",
    "moved_at_the_mirror": "Somebody moved or deleted it at the mirror, or the destination was restored",
}


def _not_whole(branches: Sequence[BranchStatus]) -> Happened:
    """Heads that lack something which was not there before either, as those of a mirror that was adopted may."""
    since = min((branch.since for branch in branches if branch.since), default=None)
    return Happened("An object of its head is missing or wrong", since, [branch.name for branch in branches])


def _damaged(mirror: Mirror) -> Happened:
    rows = damage_at([mirror]).order_by()
    totals = rows.aggregate(number=Count("key", distinct=True), since=Min("first_seen"))
    holders = set(rows.values_list("holder_id", flat=True).distinct()[:MOST_HOLDERS])
    showing, all_known = _showing(mirror, holders)
    text = count(
        totals["number"],
        "object that was complete is missing or wrong",
        "objects that were complete are missing or wrong",
    )
    if not showing:
        text += "; no branch is known to be affected now" if all_known else "; which branches are affected is not known"
    return Happened(text, totals["since"], showing)


def _showing(mirror: Mirror, holders: Collection[str]) -> tuple[list[str], bool]:
    """Branches whose heads name one of these metaranges or ranges, and whether all branches could be looked through."""
    heads = list(mirror.branches.order_by("name").values_list("name", "head")[: MOST_HEADS + 1])
    known = dict(mirror.source.commits.filter(sha__in=[head for _, head in heads]).values_list("sha", "metarange_id"))
    metaranges = {known[head] for _, head in heads[:MOST_HEADS] if known.get(head)}
    named = ask_all(
        {metarange: partial(ranges_named, mirror, metarange) for metarange in metaranges}, limit=4, seconds=SECONDS
    )
    damaged, unknown = set(), len(heads) > MOST_HEADS
    for metarange, refs in named.items():
        if metarange in holders:
            damaged.add(metarange)
        elif refs is None or isinstance(refs, LakeMirrorError):
            unknown = True
        elif any(ref.id in holders for ref in refs):
            damaged.add(metarange)
    return [name for name, head in heads if known.get(head) in damaged], not unknown
