"""Queries that gather the facts about mirrors: their number doesn't grow with mirrors, branches or commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, Min, OuterRef, Q, QuerySet, Subquery, Value, When, Window
from django.db.models.functions import Coalesce, RowNumber

from core.facts import BranchFacts, CommitFacts, DutyFacts, MirrorFacts, RunFacts, Thing
from mirrors.models import (
    Blocker,
    Candidate,
    Coverage,
    Duty,
    Mirror,
    MirrorBranch,
    MirrorCommit,
    Run,
    SourceBranch,
)

OPEN_COMMITS = 5_000
"""So many commits that are not settled are walked to find what a branch waits for; in a first copy there are more."""
TROUBLED = 20
THINGS = 10
PAST = 4
AHEAD = 4
RAIL_COMMITS = 7

Key = tuple[int, str]
"""A mirror's key and the name of a branch, or the id of a commit or holder, at it."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A commit that a branch's mirror has not reached, with what is known of all such commits of the branch."""

    commit_id: str
    position: int
    left: int
    seen_at: datetime
    number: int
    oldest_seen_at: datetime
    rewound: bool


@dataclass(slots=True)
class Gathered:
    """Facts of several mirrors by their keys, and the commits to draw, oldest first."""

    facts: dict[int, MirrorFacts] = field(default_factory=dict)
    pending: dict[Key, list[Pending]] = field(default_factory=dict)
    past: dict[Key, list[tuple[str, int]]] = field(default_factory=dict)
    commits: dict[Key, CommitFacts] = field(default_factory=dict)


def gather(mirrors: Sequence[Mirror], now: datetime, *, rails: bool) -> Gathered:
    """All that the explanations need; with `rails` also the commits that a branch's line shows."""
    gathered = Gathered(pending=_pending(mirrors, whole=rails))
    if rails:
        gathered.past = _past(mirrors)
    waiting = sorted({mirror_id for mirror_id, _ in gathered.pending})
    troubles, found = _troubles(waiting, {rows[-1].commit_id for rows in gathered.pending.values()})
    shown = {(key[0], row.commit_id) for key, rows in gathered.pending.items() for row in rows}
    gathered.commits = _commits(shown) | found
    branches = _branches(mirrors, gathered, troubles)
    counts, duties, runs = _open_counts(waiting), _duties(mirrors), _runs(mirrors, now)
    for mirror in mirrors:
        facts = _mirror_facts(mirror, branches[mirror.pk], counts.get(mirror.pk, (0, 0)), duties)
        gathered.facts[mirror.pk] = _with_run(facts, runs.get(mirror.pk))
    return gathered


# --- branches -------------------------------------------------------------------------------------------------------


def reached(mirror: str, branch: str = "branch") -> Any:
    """Where a branch stands at a mirror, as an expression over candidates: -1 when it isn't there.

    A mirror whose branch reads the source's head has reached the newest candidate, whatever we noted.
    """
    same = When(head=OuterRef(f"{branch}__head"), then=OuterRef(f"{branch}__position"))
    there = MirrorBranch.objects.filter(mirror=OuterRef(mirror), name=OuterRef(f"{branch}__name"), stray=False)
    at = there.annotate(at=Case(same, default=F("position"))).values("at")[:1]
    return Coalesce(Subquery(at), Value(-1))


def candidates_at(mirrors: Sequence[Mirror]) -> QuerySet[Candidate]:
    """Candidates of the mirrors' sources, once for each mirror (`at_mirror`), with where that mirror is (`reached`)."""
    rows = Candidate.objects.filter(branch__gone_at=None).alias(at_mirror=F("branch__repository__mirrors"))
    return rows.filter(at_mirror__in=[mirror.pk for mirror in mirrors]).alias(reached=reached("at_mirror"))


def _pending(mirrors: Sequence[Mirror], *, whole: bool) -> dict[Key, list[Pending]]:
    """The newest pending commit of each branch; with `whole` the first and last few. Oldest first."""
    of = {"partition_by": [F("at_mirror"), F("branch_id")]}
    rows = candidates_at(mirrors).filter(position__gt=F("reached"))
    rows = rows.annotate(
        mirror_id=F("at_mirror"),
        place=Window(RowNumber(), order_by="position", **of),
        left=Window(RowNumber(), order_by="-position", **of),
        number=Window(Count("pk"), **of),
        oldest=Window(Min("seen_at"), **of),
        moved=Window(Min(Case(When(fast_forward=False, then=0), default=1)), **of),
    )
    rows = rows.filter(Q(left__lte=AHEAD) | Q(place__lte=AHEAD)) if whole else rows.filter(left=1)
    found: dict[Key, list[Pending]] = defaultdict(list)
    fields = ("mirror_id", "branch__name", "commit__sha", "position", "left", "seen_at", "number", "oldest", "moved")
    for mirror_id, branch, sha, position, left, seen_at, number, oldest, moved in rows.values_list(*fields):
        row = Pending(sha, position, left, seen_at, number, oldest, moved == 0)
        found[mirror_id, branch].append(row)
    return {key: sorted(rows, key=lambda row: row.position) for key, rows in found.items()}


def _past(mirrors: Sequence[Mirror]) -> dict[Key, list[tuple[str, int]]]:
    """The commits that led to each mirror's head, itself included: (id, position), oldest first."""
    near = candidates_at(mirrors).filter(position__lte=F("reached"), position__gt=F("reached") - PAST)
    found: dict[Key, list[tuple[str, int]]] = defaultdict(list)
    rows = near.annotate(mirror_id=F("at_mirror")).order_by("position")
    for mirror_id, branch, sha, position in rows.values_list("mirror_id", "branch__name", "commit__sha", "position"):
        found[mirror_id, branch].append((sha, position))
    return found


def _branches(
    mirrors: Sequence[Mirror], gathered: Gathered, troubles: Mapping[Key, tuple[str, ...]]
) -> dict[int, list[BranchFacts]]:
    theirs = {(row.mirror_id, row.name): row for row in MirrorBranch.objects.filter(mirror__in=mirrors)}
    source: dict[int, dict[str, SourceBranch]] = defaultdict(dict)
    for row in SourceBranch.objects.filter(repository__in={mirror.source_id for mirror in mirrors}):
        source[row.repository_id][row.name] = row
    found: dict[int, list[BranchFacts]] = {}
    for mirror in mirrors:
        ours = {name: row for (mirror_id, name), row in theirs.items() if mirror_id == mirror.pk}
        names = [name for name, row in source[mirror.source_id].items() if row.gone_at is None or name in ours]
        everywhere = sorted({*names, *ours})
        default = mirror.source.default_branch
        found[mirror.pk] = [
            _branch_facts(
                (mirror.pk, name),
                source[mirror.source_id].get(name),
                ours.get(name),
                gathered,
                troubles,
                default=name == default,
            )
            for name in everywhere
        ]
    return found


def _branch_facts(
    key: Key,
    source: SourceBranch | None,
    mirror: MirrorBranch | None,
    gathered: Gathered,
    troubles: Mapping[Key, tuple[str, ...]],
    *,
    default: bool,
) -> BranchFacts:
    rows = gathered.pending.get(key, [])
    newest = rows[-1] if rows else None
    needed = troubles.get((key[0], newest.commit_id), ()) if newest else ()
    return BranchFacts(
        name=key[1],
        default=default,
        source_head=source.head if source and source.gone_at is None else "",
        mirror_head=mirror.head if mirror else "",
        pending=newest.number if newest else 0,
        oldest_seen_at=newest.oldest_seen_at if newest else None,
        advanced_at=mirror.advanced_at if mirror else None,
        changed_at=source.changed_at if source else None,
        rewound=bool(newest and newest.rewound),
        stray=bool(mirror and mirror.stray),
        uncommitted=bool(mirror and mirror.uncommitted),
        missing_since=source.missing_since if source else None,
        gone=source is None or source.gone_at is not None,
        newest=gathered.commits.get((key[0], newest.commit_id)) if newest else None,
        troubled=tuple(gathered.commits[key[0], sha] for sha in needed),
    )


# --- commits and what they lack -------------------------------------------------------------------------------------

COMMIT_FIELDS = (
    "mirror_id",
    "commit__sha",
    "record",
    "data",
    "history",
    "detail",
    "recorded_at",
    "metadata_at",
    "validated_at",
    "promoted_at",
    "superseded_at",
)


def _facts(row: Mapping[str, Any], things: Sequence[Thing] = (), lacking: int = 0) -> CommitFacts:
    plain = {name: row[name] for name in COMMIT_FIELDS[2:]}
    since = min((thing.first_seen for thing in things), default=None)
    return CommitFacts(commit_id=row["commit__sha"], **plain, things=things, lacking=lacking, lacking_since=since)


def commit_facts(mirror: Mirror, shas: Iterable[str]) -> dict[str, CommitFacts]:
    """The named commits at one mirror, with what they lack."""
    fields = (*COMMIT_FIELDS, "waits_for", "commit__metarange_id")
    rows = list(MirrorCommit.objects.filter(mirror=mirror, commit__sha__in=list(shas)).values(*fields))
    holders = _holders([row for row in rows if row["record"] != "accepted" or row["data"] != "complete"])
    things, counts = things_of([mirror.pk], {holder for some in holders.values() for holder in some})
    found = {}
    for row in rows:
        sha = row["commit__sha"]
        found[sha] = _with_things(row, holders.get((mirror.pk, sha), ()), things, counts)
    return found


def _commits(shown: Iterable[Key]) -> dict[Key, CommitFacts]:
    """The named commits, without what they lack."""
    keys = set(shown)
    if not keys:
        return {}
    mirrors, shas = {key[0] for key in keys}, {key[1] for key in keys}
    rows = MirrorCommit.objects.filter(mirror__in=mirrors, commit__sha__in=shas).values(*COMMIT_FIELDS)
    return {(row["mirror_id"], row["commit__sha"]): _facts(row) for row in rows}


def _troubles(mirrors: Sequence[int], newest: set[str]) -> tuple[dict[Key, tuple[str, ...]], dict[Key, CommitFacts]]:
    """For each open commit the ids of the commits in trouble that it needs, itself included; and those commits.

    What is gone at both sides is in a head's way, but in no descendant's.
    """
    rows = _open_rows(mirrors, newest)
    holders = _holders(rows)
    things, counts = things_of(mirrors, {holder for some in holders.values() for holder in some})
    troubles: dict[Key, tuple[str, ...]] = {}
    passed_on: dict[Key, tuple[str, ...]] = {}
    found: dict[Key, CommitFacts] = {}
    for row in rows:
        key = (row["mirror_id"], row["commit__sha"])
        facts = _with_things(row, holders[key], things, counts)
        needed = [sha for parent in row["commit__parents"] for sha in passed_on.get((key[0], parent), ())]
        if facts.in_trouble:
            found[key] = facts
            needed.append(key[1])
        troubles[key] = tuple(dict.fromkeys(needed))[:TROUBLED]
        passed_on[key] = tuple(sha for sha in troubles[key] if found[key[0], sha].data != "gone")
    return troubles, found


def _open_rows(mirrors: Sequence[int], newest: set[str]) -> list[dict[str, Any]]:
    """Commits that are not settled, and those that branches wait to point at, parents first."""
    if not mirrors:
        return []
    unsettled = Q(history=False) | Q(data__in=["unknown", "waiting"]) | ~Q(record="accepted")
    wanted = unsettled | Q(data="gone", commit__sha__in=newest)
    rows = MirrorCommit.objects.filter(wanted, mirror__in=mirrors).order_by("commit_id")
    return list(rows.values(*COMMIT_FIELDS, "waits_for", "commit__parents", "commit__metarange_id")[:OPEN_COMMITS])


def _holders(rows: Sequence[Mapping[str, Any]]) -> dict[Key, tuple[str, ...]]:
    """Whose blockers count for a commit: what it waits for, its metarange, itself."""
    found = {}
    for row in rows:
        own = (*row["waits_for"], row["commit__metarange_id"], row["commit__sha"])
        found[row["mirror_id"], row["commit__sha"]] = tuple(dict.fromkeys(holder for holder in own if holder))
    return found


def _with_things(
    row: Mapping[str, Any],
    holders: Sequence[str],
    things: Mapping[Key, Sequence[Thing]],
    counts: Mapping[Key, int],
) -> CommitFacts:
    keys = [(row["mirror_id"], holder) for holder in holders]
    own = [thing for key in keys for thing in things.get(key, ())]
    return _facts(row, tuple(own[:THINGS]), sum(counts.get(key, 0) for key in keys))


def things_of(mirrors: Iterable[int], holders: Iterable[str]) -> tuple[dict[Key, list[Thing]], dict[Key, int]]:
    """What stands in the way, by holder: a few of the things, oldest first, and how many there are."""
    wanted = set(holders)
    things: dict[Key, list[Thing]] = defaultdict(list)
    counts: dict[Key, int] = {}
    if not wanted:
        return things, counts
    of = {"partition_by": [F("mirror_id"), F("holder_id")]}
    rows = Blocker.objects.filter(mirror__in=list(mirrors), holder_id__in=wanted).annotate(
        place=Window(RowNumber(), order_by=["first_seen", "pk"], **of), number=Window(Count("pk"), **of)
    )
    for row in rows.filter(place__lte=THINGS).order_by("first_seen", "pk"):
        things[row.mirror_id, row.holder_id].append(_thing(row))
        counts[row.mirror_id, row.holder_id] = row.number
    return things, counts | _problems(counts)


def _problems(counts: Mapping[Key, int]) -> dict[Key, int]:
    """How many problems a range really has, where only the first were kept by name."""
    rows = Coverage.objects.filter(
        mirror__in={key[0] for key in counts}, range_id__in={key[1] for key in counts}, state="waiting"
    )
    known = {(row.mirror_id, row.range_id): row.problems for row in rows.only("mirror_id", "range_id", "problems")}
    return {key: max(number, known.get(key, 0)) for key, number in counts.items()}


def _thing(row: Blocker) -> Thing:
    return Thing(
        kind=row.kind,
        holder_id=row.holder_id,
        address=row.address,
        path=row.path,
        size=row.size,
        reason=row.reason,
        detail=row.detail,
        gone_at_source=row.gone_at_source,
        first_seen=row.first_seen,
        attempts=row.attempts,
        look_at=row.look_at,
    )


# --- the mirror -----------------------------------------------------------------------------------------------------


def _open_counts(mirrors: Sequence[int]) -> dict[int, tuple[int, int]]:
    """How many commits still need their record copied, and their data checked."""
    if not mirrors:
        return {}
    unchecked = Q(data__in=["unknown", "waiting"])
    rows = MirrorCommit.objects.filter(Q(record="pending") | unchecked, mirror__in=mirrors).values("mirror_id")
    counted = rows.annotate(copying=Count("pk", filter=Q(record="pending")), checking=Count("pk", filter=unchecked))
    return {row["mirror_id"]: (row["copying"], row["checking"]) for row in counted.order_by()}


def _duties(mirrors: Sequence[Mirror]) -> dict[Key, list[Duty]]:
    """Failing duties by their subject: ("sense" for a repository, else "mirror")."""
    sensing = Q(kind="sense", subject__in={mirror.source_id for mirror in mirrors})
    others = ~Q(kind="sense") & Q(subject__in=[mirror.pk for mirror in mirrors])
    found: dict[Key, list[Duty]] = defaultdict(list)
    for duty in Duty.objects.filter(sensing | others, failures__gt=0):
        found[duty.subject, "sense" if duty.kind == "sense" else "mirror"].append(duty)
    return found


def _runs(mirrors: Sequence[Mirror], now: datetime) -> dict[int, RunFacts]:
    """The running Spark job of each mirror whose validation somebody holds the lease of."""
    held = Duty.objects.filter(kind="validate", subject=OuterRef("mirror_id"), until__gt=now)
    rows = Run.objects.filter(mirror__in=mirrors, ended_at=None).filter(Q(mirror_id__in=held.values("subject")))
    return {row.mirror_id: _run_facts(row) for row in rows.order_by("started_at")}


def _run_facts(row: Run) -> RunFacts:
    return RunFacts(ranges=row.ranges, ranges_done=row.ranges_done, started_at=row.started_at)


def _mirror_facts(
    mirror: Mirror, branches: Sequence[BranchFacts], counts: tuple[int, int], duties: Mapping[Key, list[Duty]]
) -> MirrorFacts:
    source = mirror.source
    sensing = duties.get((source.pk, "sense"), [])
    return MirrorFacts(
        name=mirror.name,
        source=source.name,
        source_region=source.region,
        region=mirror.region,
        state=mirror.state,
        reason_code=mirror.reason_code,
        reason=mirror.reason,
        paused=mirror.paused,
        frozen_reason=source.frozen_reason,
        look_error=source.look_error or next((duty.outcome for duty in sensing), ""),
        looked_at=source.looked_at,
        destination_looked_at=mirror.destination_looked_at,
        branches=branches,
        failing=_worst_duty(duties.get((mirror.pk, "mirror"), [])),
        copying=counts[0],
        checking=counts[1],
    )


def _worst_duty(failing: Sequence[Duty]) -> DutyFacts | None:
    duty = max(failing, key=lambda duty: duty.failures, default=None)
    if duty is None:
        return None
    return DutyFacts(kind=duty.kind, failures=duty.failures, outcome=duty.outcome, due_at=duty.due_at)


def _with_run(facts: MirrorFacts, run: RunFacts | None) -> MirrorFacts:
    return replace(facts, run=run) if run else facts
