"""Queries that gather the facts about mirrors: their number doesn't grow with mirrors, branches or commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Q

from core.mirroring.explain.standing import judge_standing
from core.mirroring.explain.verdict import Verdict
from core.mirroring.facts import BranchFacts, Counted, DutyFacts, MirrorFacts, RunFacts, Waiting
from core.mirroring.promotion import UNKNOWN
from core.mirroring.rpo import is_destination_stale
from jobs.models import Duty
from jobs.queue_status import is_starting
from mirrors.models import Mirror, MirrorCommit, MirrorDuty, Run, SourceBranch
from mirrors.models.querysets import UNCHECKED
from mirrors.queries.branch_positions import BranchPosition, positions_at, source_branches, spots_of
from mirrors.queries.branch_summary import OpenBranches, open_branches
from mirrors.queries.candidates import Pending, past_of, pending_of
from mirrors.queries.duties import duties_about
from mirrors.queries.missing import Commits, Key
from mirrors.queries.missing_counts import waiting_at
from mirrors.queries.proof_facts import is_at_its_store
from mirrors.status.outages import outages_by_mirror
from mirrors.transitions.rpo_breaches import last_seen, targets, unchecked

AHEAD = 4


@dataclass(frozen=True, slots=True)
class Gathered:
    """Facts of several mirrors by their keys, and the commits to draw, oldest first."""

    facts: Mapping[int, MirrorFacts]
    pending: Mapping[Key, Sequence[Pending]]
    past: Mapping[Key, Sequence[str]]
    commits: Commits


def gather(mirrors: Sequence[Mirror], now: datetime, *, rails: bool = False, brief: bool = False) -> Gathered:
    """All that the explanations need; with `rails` also the commits that a branch's line shows.

    If `brief`, most branches are only counted (mirrors/queries/branch_summary.py), where the mirror follows every
    branch.
    """
    counted = [mirror for mirror in mirrors if brief and mirror.selection.everything]
    opened = open_branches(counted)
    source = source_branches([mirror for mirror in mirrors if mirror.pk not in opened.counted])
    places = positions_at(mirrors, source, opened)
    pending = pending_of(spots_of([place for place in places if place.behind]), few=AHEAD if rails else 1)
    past = past_of(spots_of([place for place in places if place.mirror and not place.behind])) if rails else {}
    shown = {(key[0], row.commit_id) for key, rows in pending.items() for row in rows}
    newest = {(key[0], rows[-1].commit_id) for key, rows in pending.items()}
    unproven = {(place.key[0], place.mirror.head) for place in places if place.mirror and place.unproven}
    commits = Commits(shown | unproven, newest | unproven)
    branches: dict[int, list[BranchFacts]] = defaultdict(list)
    created = {mirror.pk: mirror.created_at for mirror in mirrors}
    for place in places:
        seen_since = created[place.key[0]]
        branches[place.key[0]].append(_branch_facts(place, pending.get(place.key, []), commits, seen_since))
    facts = _mirrors(mirrors, branches, source, opened, sorted({key[0] for key in newest}), now)
    return Gathered(facts, pending, past, commits)


def _branch_facts(
    place: BranchPosition, rows: Sequence[Pending], commits: Commits, created_at: datetime
) -> BranchFacts:
    """A mirror can't have been late before it was created, however long ago its source's commits were seen."""
    source, mirror = place.source, place.mirror
    oldest = rows[0].seen_at if rows else source.unread_since if source and place.unread_head else None
    newest = (place.key[0], rows[-1].commit_id) if rows else None
    head = (place.key[0], mirror.head) if mirror and place.unproven else None
    return BranchFacts(
        name=place.key[1],
        default=place.default,
        source_head=place.unread_head or (source.head if source and source.gone_at is None else ""),
        mirror_head=mirror.head if mirror else "",
        pending=_pending(place, rows),
        oldest_seen_at=max(oldest, created_at) if oldest else None,
        advanced_at=mirror.advanced_at if mirror else None,
        changed_at=source.changed_at if source else None,
        rewound=bool(rows and rows[0].rewound),
        stray=bool(mirror and mirror.stray),
        uncommitted=bool(mirror and mirror.uncommitted),
        inferred=place.inferred,
        unread=bool(place.unread_head),
        unseen=place.unseen,
        unlooked_since=mirror.unlooked_since if mirror else None,
        look_error=mirror.look_error if mirror else "",
        missing_since=source.missing_since if source else None,
        gone=source is None or source.gone_at is not None,
        selected=place.selected or source is None,
        dropped=bool(mirror and mirror.delete_asked),
        newest=commits.facts.get(newest) if newest else None,
        troubled=commits.needed_by(newest) if newest else (),
        proven=not place.unproven,
        misplaced=bool(mirror and mirror.misplaced and not mirror.stray),
        standing=commits.facts.get(head) if head else None,
        standing_needs=commits.needed_by(head) if head else (),
    )


def _pending(place: BranchPosition, rows: Sequence[Pending]) -> int:
    number = rows[0].number if rows else 0
    if rows and place.inferred and place.mirror:
        number += UNKNOWN - 1 - place.mirror.position
    return number + bool(place.unread_head)


# --- the mirror -----------------------------------------------------------------------------------------------------


def _mirrors(
    mirrors: Sequence[Mirror],
    branches: Mapping[int, Sequence[BranchFacts]],
    source: Mapping[int, Mapping[str, SourceBranch]],
    opened: OpenBranches,
    behind: Sequence[int],
    now: datetime,
) -> dict[int, MirrorFacts]:
    copying, checking = _open_counts(behind)
    totals = _totals([mirror.pk for mirror in mirrors if mirror.watched_since is None and mirror.pk in behind])
    duties, runs, waiting = _duties(mirrors, now), _runs(mirrors, now), waiting_at(mirrors)
    outages = outages_by_mirror(mirrors, now)
    return {
        mirror.pk: _mirror_facts(
            mirror,
            duties,
            now,
            outages=outages.get(mirror.pk, ()),
            branches=branches.get(mirror.pk, ()),
            copying=copying.get(mirror.pk, 0),
            checking=checking.get(mirror.pk, 0),
            first_copy=_first_copy(totals.get(mirror.pk), checking.get(mirror.pk, 0)),
            run=runs.get(mirror.pk),
            waiting=waiting.get(mirror.pk, Waiting()),
            counted=opened.counted.get(mirror.pk, Counted()),
            **_selected(mirror, source.get(mirror.source_id, {}), branches.get(mirror.pk, ())),
        )
        for mirror in mirrors
    }


def _selected(mirror: Mirror, source: Mapping[str, SourceBranch], shown: Sequence[BranchFacts]) -> Mapping[str, Any]:
    """How many branches are left out, and what about the selection may be a slip."""
    if mirror.selection.everything:
        return {}
    chosen, shown_names = mirror.selection, {branch.name for branch in shown}
    live = [name for name, row in source.items() if row.gone_at is None]
    left_out = sum(name not in chosen and name not in shown_names for name in live)
    return {"left_out": left_out, "warnings": chosen.warnings(live) if live else ()}


def _open_counts(mirrors: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """How many commits still need their record copied, and their data checked; each by an index of its own."""
    rows = MirrorCommit.objects.filter(mirror__in=mirrors).order_by().values_list("mirror_id").annotate(Count("pk"))
    return (
        (dict(rows.filter(record=MirrorCommit.Record.PENDING)), dict(rows.filter(UNCHECKED))) if mirrors else ({}, {})
    )


def _totals(copying: Sequence[int]) -> dict[int, int]:
    """How many commits each of these mirrors needs."""
    rows = MirrorCommit.objects.filter(mirror__in=copying).order_by().values_list("mirror_id").annotate(Count("pk"))
    return dict(rows) if copying else {}


def _first_copy(total: int | None, unchecked_commits: int) -> tuple[int, int] | None:
    return (total - unchecked_commits, total) if total else None


def _duties(mirrors: Sequence[Mirror], now: datetime) -> dict[Key, list[Duty]]:
    """Failing duties, checks of which none has ended for long, and those that would look at a destination that was not
    seen for long, by their subject: ("sense" for a repository, else "mirror")."""
    if not mirrors:
        return {}
    rows = Duty.objects.annotate(unchecked=ExpressionWrapper(unchecked(mirrors[0], now), BooleanField()))
    concerning = duties_about([mirror.pk for mirror in mirrors], {mirror.source_id for mirror in mirrors})
    unseen = [one.pk for one in mirrors if is_destination_stale(one.destination_looked_at, now, targets(one))]
    looks = Q(kind=MirrorDuty.PROMOTE, subject__in=unseen)
    by_subject: dict[Key, list[Duty]] = defaultdict(list)
    for duty in rows.filter(concerning, Q(failures__gt=0) | Q(unchecked=True) | looks):
        by_subject[duty.subject, "sense" if duty.kind == MirrorDuty.SENSE else "mirror"].append(duty)
    return by_subject


def _runs(mirrors: Sequence[Mirror], now: datetime) -> dict[int, RunFacts]:
    """The running Spark job of each mirror whose validation somebody holds the lease of."""
    held = Duty.objects.filter(kind=MirrorDuty.VALIDATE, until__gt=now).values("subject")
    rows = Run.objects.filter(mirror__in=mirrors, ended_at=None, mirror_id__in=held).order_by("started_at")
    return {
        row.mirror_id: RunFacts(ranges=row.ranges, ranges_done=row.ranges_done, started_at=row.started_at)
        for row in rows
    }


def _mirror_facts(mirror: Mirror, duties: Mapping[Key, list[Duty]], now: datetime, **more: Any) -> MirrorFacts:
    source = mirror.source
    sensing, working = duties.get((source.pk, "sense"), []), duties.get((mirror.pk, "mirror"), [])
    overdue = [duty for duty in working if duty.unchecked]
    return MirrorFacts(
        name=mirror.name,
        source=source.name,
        source_region=source.region,
        region=mirror.region,
        state=mirror.state,
        reason_code=mirror.reason_code,
        reason=mirror.reason,
        pause=mirror.pause,
        frozen_reason=source.frozen_reason,
        look_error=source.look_error or next((duty.outcome for duty in sensing), ""),
        look_refused=any(_failing(duty).refused for duty in sensing),
        look_failures=max((duty.failures for duty in sensing), default=0),
        looked_at=last_seen(mirror),
        destination_looked_at=mirror.destination_looked_at,
        tags_unseen_since=mirror.tags_unseen_since if mirror.tags else None,
        created_at=mirror.created_at,
        moving=any(_goes_on(duty, mirror, now) for duty in working),
        elsewhere=not is_at_its_store(mirror),
        failing=_worst_first([duty for duty in working if duty.failures]),
        unchecked_since=next((duty.ended_at or duty.due_at for duty in overdue), None),
        checks_start=any(is_starting(duty.queue, duty.ended_at, duty.due_at, now) for duty in overdue),
        **more,
    )


def standing_of(mirror: Mirror, now: datetime) -> Verdict | None:
    """What holds for the whole mirror, like a pause: told by its own row, without a query."""
    return judge_standing(_mirror_facts(mirror, {}, now), now, targets(mirror))


def _goes_on(duty: Duty, mirror: Mirror, now: datetime) -> bool:
    """Whether it is a duty that moves branches, and was done lately."""
    done = duty.kind == MirrorDuty.PROMOTE and not duty.failures and duty.ended_at is not None
    return done and not is_destination_stale(duty.ended_at, now, targets(mirror))


def _worst_first(failing: Sequence[Duty]) -> Sequence[DutyFacts]:
    worst_first = sorted(failing, key=lambda duty: (-duty.failures, duty.pk))
    return [_failing(duty) for duty in worst_first]


def _failing(duty: Duty) -> DutyFacts:
    return DutyFacts(
        kind=duty.kind, failures=duty.failures, outcome=duty.outcome, due_at=duty.due_at, refusal=duty.refusal
    )
