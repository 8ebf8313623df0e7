"""Queries that gather the facts about mirrors: their number doesn't grow with mirrors, branches or commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from core.facts import BranchFacts, Counted, DutyFacts, MirrorFacts, RunFacts, Waiting
from core.promotion import UNKNOWN
from mirrors.lacking import Commits, Key, waiting_at
from mirrors.models import Candidate, Commit, Duty, Mirror, MirrorBranch, MirrorCommit, Run, SourceBranch
from mirrors.settled import Open, open_branches

PAST = 4
AHEAD = 4
RAIL_COMMITS = 7


@dataclass(frozen=True, slots=True)
class Pending:
    """A commit that a branch's mirror has not reached, and how many of those there are."""

    commit_id: str
    position: int
    seen_at: datetime
    number: int
    rewound: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A branch at the source and at one mirror; `reached` is the position that the mirror has, -1 for none."""

    key: Key
    source: SourceBranch | None
    mirror: MirrorBranch | None
    reached: int
    default: bool
    selected: bool

    @property
    def behind(self) -> bool:
        live = self.source is not None and self.source.gone_at is None
        return live and self.selected and self.reached < self.source.position

    @property
    def inferred(self) -> bool:
        """Whether the mirror's branch shows what nobody has seen at the source's."""
        return self.behind and self.mirror is not None and self.mirror.position < UNKNOWN


@dataclass(frozen=True, slots=True)
class Gathered:
    """Facts of several mirrors by their keys, and the commits to draw, oldest first."""

    facts: Mapping[int, MirrorFacts]
    pending: Mapping[Key, Sequence[Pending]]
    past: Mapping[Key, Sequence[str]]
    commits: Commits


def gather(mirrors: Sequence[Mirror], now: datetime, *, rails: bool = False, brief: bool = False) -> Gathered:
    """All that the explanations need; with `rails` also the commits that a branch's line shows.

    If `brief`, most branches are only counted (mirrors/settled.py), where the mirror follows every branch.
    """
    counted = [mirror for mirror in mirrors if brief and mirror.selection.everything]
    opened = open_branches(counted)
    source = _source_branches([mirror for mirror in mirrors if mirror.pk not in opened.counted])
    places = _places(mirrors, source, opened)
    pending = _pending([place for place in places if place.behind], few=AHEAD if rails else 1)
    past = _past([place for place in places if place.mirror and not place.behind]) if rails else {}
    shown = {(key[0], row.commit_id) for key, rows in pending.items() for row in rows}
    newest = {(key[0], rows[-1].commit_id) for key, rows in pending.items()}
    commits = Commits(shown, newest)
    branches: dict[int, list[BranchFacts]] = defaultdict(list)
    for place in places:
        branches[place.key[0]].append(_branch_facts(place, pending.get(place.key, []), commits))
    facts = _mirrors(mirrors, branches, source, opened, sorted({key[0] for key in newest}), now)
    return Gathered(facts, pending, past, commits)


def places_of(mirror: Mirror) -> list[Place]:
    """Every branch of a mirror, or selected of its source."""
    return _every_place([mirror])


def first_pending(places: Sequence[Place]) -> dict[str, Pending]:
    """The oldest commit that a mirror's branch has not reached; by branch, of those behind."""
    rows = _pending([place for place in places if place.behind], few=1)
    return {name: row[0] for (_, name), row in rows.items()}


def stand(mirrors: Sequence[Mirror]) -> list[tuple[Place, Pending | None]]:
    """Where each branch of several mirrors stands, and the first commit that it lacks. Without those that are aside:
    dropped by the source, left by the selection, or not made by us."""
    places = [place for place in _every_place(mirrors) if _counts(place)]
    pending = _pending([place for place in places if place.behind], few=1)
    return [(place, pending[place.key][0] if place.key in pending else None) for place in places]


def _every_place(mirrors: Sequence[Mirror]) -> list[Place]:
    return _places(mirrors, _source_branches(mirrors), Open())


def _counts(place: Place) -> bool:
    return place.source is not None and place.source.gone_at is None and place.selected


# --- branches -------------------------------------------------------------------------------------------------------


def _source_branches(mirrors: Sequence[Mirror]) -> dict[int, dict[str, SourceBranch]]:
    source: dict[int, dict[str, SourceBranch]] = defaultdict(dict)
    for row in SourceBranch.objects.filter(repository__in={mirror.source_id for mirror in mirrors}):
        source[row.repository_id][row.name] = row
    return source


def _places(mirrors: Sequence[Mirror], source: Mapping[int, Mapping[str, SourceBranch]], opened: Open) -> list[Place]:
    """Branches of each mirror, or selected of its source, by name; without those that are gone at both, or settled."""
    theirs: dict[int, dict[str, MirrorBranch]] = defaultdict(dict)
    for ours in MirrorBranch.objects.filter(mirror__in=[one for one in mirrors if one.pk not in opened.counted]):
        theirs[ours.mirror_id][ours.name] = ours
    places = []
    for mirror in mirrors:
        if mirror.pk in opened.counted:
            places += _of_mirror(mirror, opened.source[mirror.pk], opened.here[mirror.pk])
        else:
            places += _of_mirror(mirror, source[mirror.source_id], theirs[mirror.pk])
    return places


def _of_mirror(mirror: Mirror, source: Mapping[str, SourceBranch], ours: Mapping[str, MirrorBranch]) -> list[Place]:
    chosen = mirror.selection
    live = {name for name, row in source.items() if row.gone_at is None and name in chosen}
    places = []
    for name in sorted(live | ours.keys()):
        there, here = source.get(name), ours.get(name)
        default = name == mirror.source.default_branch
        places.append(Place((mirror.pk, name), there, here, _reached(there, here), default, name in chosen))
    return places


def _reached(source: SourceBranch | None, mirror: MirrorBranch | None) -> int:
    """A mirror whose branch reads the source's head has reached the newest candidate, whatever we noted."""
    if source is None or mirror is None or mirror.stray:
        return -1
    return source.position if mirror.head == source.head else max(mirror.position, UNKNOWN)


def _branch_facts(place: Place, rows: Sequence[Pending], commits: Commits) -> BranchFacts:
    source, mirror = place.source, place.mirror
    newest = (place.key[0], rows[-1].commit_id) if rows else None
    return BranchFacts(
        name=place.key[1],
        default=place.default,
        source_head=source.head if source and source.gone_at is None else "",
        mirror_head=mirror.head if mirror else "",
        pending=rows[0].number + (UNKNOWN - 1 - mirror.position if place.inferred and mirror else 0) if rows else 0,
        oldest_seen_at=rows[0].seen_at if rows else None,
        advanced_at=mirror.advanced_at if mirror else None,
        changed_at=source.changed_at if source else None,
        rewound=bool(rows and rows[0].rewound),
        stray=bool(mirror and mirror.stray),
        uncommitted=bool(mirror and mirror.uncommitted),
        inferred=place.inferred,
        missing_since=source.missing_since if source else None,
        gone=source is None or source.gone_at is not None,
        selected=place.selected or source is None,
        dropped=bool(mirror and mirror.delete_asked),
        newest=commits.facts.get(newest) if newest else None,
        troubled=commits.needed_by(newest) if newest else (),
    )


# --- candidates -----------------------------------------------------------------------------------------------------

# A join with a list of values: each branch is entered at its own position by the index, which no plan can miss.
_PENDING = """
WITH place (mirror_id, branch_id, reached) AS (VALUES {places}), pending AS (
    SELECT candidate.*, place.mirror_id AS mirror_id,
        row_number() OVER (PARTITION BY place.mirror_id, place.branch_id ORDER BY position) AS nth,
        row_number() OVER (PARTITION BY place.mirror_id, place.branch_id ORDER BY position DESC) AS nth_last,
        count(*) OVER (PARTITION BY place.mirror_id, place.branch_id) AS number,
        sum(CASE WHEN fast_forward THEN 0 ELSE 1 END) OVER (PARTITION BY place.mirror_id, place.branch_id) AS moves
    FROM place JOIN {candidate} candidate ON candidate.branch_id = place.branch_id AND position > place.reached
)
SELECT pending.*, record.sha AS sha FROM pending JOIN {commit} record ON record.id = pending.commit_id
WHERE nth <= {few} OR nth_last <= {few} ORDER BY position
"""
_PAST = """
WITH place (mirror_id, branch_id, reached) AS (VALUES {places})
SELECT candidate.*, place.mirror_id AS mirror_id, record.sha AS sha FROM place
JOIN {candidate} candidate ON candidate.branch_id = place.branch_id
    AND position >= 0 AND position <= place.reached AND position > place.reached - {few}
JOIN {commit} record ON record.id = candidate.commit_id ORDER BY position
"""


def _candidates(query: str, places: Sequence[Place], few: int) -> Iterable[tuple[Key, Any]]:
    """Rows of a query for some places, each with its key."""
    if not places:
        return []
    names = {place.source.pk: place.key[1] for place in places if place.source}
    values = ", ".join(
        f"({place.key[0]:d}, {place.source.pk:d}, {place.reached:d})" for place in places if place.source
    )
    tables = {"candidate": Candidate._meta.db_table, "commit": Commit._meta.db_table}
    rows: Any = Candidate.objects.raw(query.format(places=values, few=few, **tables))
    return (((row.mirror_id, names[row.branch_id]), row) for row in rows)


def _pending(places: Sequence[Place], *, few: int) -> dict[Key, list[Pending]]:
    """The first and the last `few` pending commits of each branch, oldest first."""
    found: dict[Key, list[Pending]] = defaultdict(list)
    for key, row in _candidates(_PENDING, places, few):
        found[key].append(Pending(row.sha, row.position, row.seen_at, row.number, row.moves > 0))
    return found


def _past(places: Sequence[Place]) -> dict[Key, list[str]]:
    """The commits that led to each mirror's head, itself included, oldest first."""
    found: dict[Key, list[str]] = defaultdict(list)
    for key, row in _candidates(_PAST, [place for place in places if place.source], PAST):
        found[key].append(row.sha)
    return found


def candidates_of(mirror: Mirror, branch: str) -> QuerySet[Candidate]:
    """A branch's candidates, with where the mirror is on them (`reached`)."""
    there = MirrorBranch.objects.filter(mirror=mirror, name=branch, stray=False)
    same = When(head=OuterRef("branch__head"), then=OuterRef("branch__position"))
    at = there.order_by().annotate(at=Case(same, default=F("position"))).values("at")[:1]
    rows = Candidate.objects.filter(branch__repository=mirror.source_id, branch__name=branch, branch__gone_at=None)
    # What is only inferred is no part of the branch's line, but for a mirror that stands at such a commit.
    on_the_line = Q(position__gte=0) | Q(reached__lt=UNKNOWN)
    return rows.alias(reached=Coalesce(Subquery(at), Value(UNKNOWN))).filter(on_the_line)


# --- the mirror -----------------------------------------------------------------------------------------------------


def _mirrors(
    mirrors: Sequence[Mirror],
    branches: Mapping[int, Sequence[BranchFacts]],
    source: Mapping[int, Mapping[str, SourceBranch]],
    opened: Open,
    behind: Sequence[int],
    now: datetime,
) -> dict[int, MirrorFacts]:
    counts, duties, runs, waiting = _open_counts(behind), _duties(mirrors), _runs(mirrors, now), waiting_at(mirrors)
    return {
        mirror.pk: _mirror_facts(
            mirror,
            duties,
            branches=branches.get(mirror.pk, ()),
            copying=counts.get(mirror.pk, (0, 0))[0],
            checking=counts.get(mirror.pk, (0, 0))[1],
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
    chosen, here = mirror.selection, {branch.name for branch in shown}
    live = [name for name, row in source.items() if row.gone_at is None]
    left_out = sum(name not in chosen and name not in here for name in live)
    return {"left_out": left_out, "warnings": chosen.warnings(live) if live else ()}


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
    held = Duty.objects.filter(kind="validate", until__gt=now).values("subject")
    rows = Run.objects.filter(mirror__in=mirrors, ended_at=None, mirror_id__in=held).order_by("started_at")
    return {row.mirror_id: _run_facts(row) for row in rows}


def _run_facts(row: Run) -> RunFacts:
    return RunFacts(ranges=row.ranges, ranges_done=row.ranges_done, started_at=row.started_at)


def _mirror_facts(mirror: Mirror, duties: Mapping[Key, list[Duty]], **more: Any) -> MirrorFacts:
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
        failing=_worst_duty(duties.get((mirror.pk, "mirror"), [])),
        **more,
    )


def _worst_duty(failing: Sequence[Duty]) -> DutyFacts | None:
    duty = max(failing, key=lambda duty: duty.failures, default=None)
    if duty is None:
        return None
    return DutyFacts(kind=duty.kind, failures=duty.failures, outcome=duty.outcome, due_at=duty.due_at)
