"""How mirrors, branches and commits are doing, for pages and API alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from core.installations.outages import Outage
from core.mirroring.explain.blocker_text import count_waiting
from core.mirroring.explain.branch import shows_something, worst_of
from core.mirroring.explain.gc_rules import both_of, own_rules_warning, unread_rules_note
from core.mirroring.explain.mirror import explain
from core.mirroring.explain.outages import blinding_outage
from core.mirroring.explain.stage import stage_of
from core.mirroring.explain.standing import is_current, judge_standing
from core.mirroring.explain.verdict import Verdict
from core.mirroring.facts import BranchFacts, MirrorFacts, Thing
from core.mirroring.rpo import lag, worst_lag
from core.mirroring.states import ASIDE, Stage, State, Tone
from core.text.phrases import Phrase
from db import clock
from mirrors.models import Mirror, Promotion
from mirrors.queries.candidates import Pending
from mirrors.status.copying import OnRequest, on_request
from mirrors.status.facts import Gathered, gather
from mirrors.transitions.rpo_breaches import targets
from web.serializers import rfc3339

LIVELY = timedelta(minutes=2)
"""A mirror on which something happened so lately is worth looking at often."""
RAIL_COMMITS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class RailCommit:
    """A commit on a branch's line."""

    commit_id: str
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchStatus:
    """One branch at one mirror. `lag` in seconds, None when nobody knows; heads are "" where the branch isn't.

    `blockers` are some of the things that it waits for, or that its head lacks; `lacking` is how many there are.
    `troubled`: the commit that it waits for of which its sentence speaks, "" for none. The
    history of an `unread` head of the source can't be read. `rail` runs from the mirror's head to the source's;
    `hidden` commits are left out after its third.
    """

    name: str
    default: bool
    source_head: str
    mirror_head: str
    pending: int
    rewound: bool
    lag: float | None
    state: State
    reason_code: str
    brief: Phrase
    explanation: Phrase
    inferred: bool
    since: datetime | None
    retry_at: datetime | None
    seen_at: datetime | None
    advanced_at: datetime | None
    blockers: Sequence[Thing]
    lacking: int
    troubled: str = ""
    unread: bool = False
    rail: Sequence[RailCommit] = ()
    hidden: int = 0

    @property
    def sentence(self) -> str:
        """What is going on and what to do, as plain text."""
        return str(self.explanation)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorStatus:
    """A mirror and its branches; `counted` more are not read one by one.

    `waiting` counts the things that have not arrived, since the oldest was missed; with `waiting_more` there are more.
    `lag`, `pending` and `behind` are those of the `staying` branches: what the source has dropped is no loss, nor is
    what is not selected. Unless `lag_known`, the lag may be longer by now. `left_out` branches of the source are not
    selected and not here; `warnings` are about that. `copied` is None once the first copy is done; till then how many
    commits are complete, of how many. `first_copy`: no branch shows anything of the source yet.
    `outages` are those of services of its two regions.
    `own_rules` warns of garbage-collection rules that its repository has; `unread_rules` says that nobody knows.
    """

    mirror: Mirror
    state: State
    reason_code: str
    explanation: Phrase
    retry_at: datetime | None
    branches: Sequence[BranchStatus]
    counted: int
    caught_up: int
    lag: float | None
    lag_known: bool
    staying: int
    pending: int
    behind: int
    waiting: int
    waiting_more: bool
    waiting_words: str
    waiting_since: datetime | None
    copied: tuple[int, int] | None
    first_copy: bool
    outages: Sequence[Outage]
    left_out: int
    warnings: Sequence[str]
    own_rules: str
    unread_rules: str
    looked_at: datetime | None
    destination_looked_at: datetime | None
    as_of: datetime
    active: bool

    @property
    def sentence(self) -> str:
        """What is going on and what to do, as plain text."""
        return str(self.explanation)

    @property
    def is_unchecked(self) -> bool:
        """Whether nothing of it was ever found whole: it is new, or its first copy has just begun."""
        return self.state is State.NEW or (self.first_copy and self.copied is not None and self.copied[0] == 0)

    @property
    def needs_somebody(self) -> bool:
        """Whether nothing goes on before somebody acts, or a pause lasts for longer than was said."""
        return self.state.tone is Tone.BAD or self.paused_too_long

    @property
    def paused_too_long(self) -> bool:
        """Whether it is paused for longer than was said."""
        return self.mirror.pause is not None and self.mirror.pause.is_overdue(self.as_of)

    @property
    def announced(self) -> str:
        """The state as it is announced when it changes: commits in flight are no news while the target is kept."""
        in_flight = self.state in (State.UP_TO_DATE, State.SYNCING, State.VALIDATING)
        late = self.lag is None or self.lag > targets(self.mirror).late_after.total_seconds()
        return "Within target" if in_flight and self.lag_known and not late else self.state.word

    @property
    def not_counted(self) -> str:
        """The branches that say nothing about how it is doing, by their states: "2 gone at source", "" for none."""
        aside = Counter(branch.state.word.lower() for branch in self.branches if branch.state in ASIDE)
        return ", ".join(f"{number:,} {word}" for word, number in aside.items())

    @property
    def to_repair(self) -> str:
        """The commit that the sentence says is blocked, if that is by files that somebody may bring, or ""."""
        blocked = [branch for branch in self.branches if branch.state is State.BLOCKED]
        worst = max(blocked, key=lambda branch: (branch.lag or 0, branch.default), default=None)
        return worst.troubled if worst and worst.blockers else ""

    @property
    def bringing(self) -> OnRequest | None:
        """What LakeMirror copies of it because somebody asked for it. Asked for anew each time, where somebody did."""
        return on_request(self.mirror, self.as_of)

    @property
    def waiting_figure(self) -> str:
        """How many things it waits for, with "+" where there are more."""
        return f"{self.waiting:,}{'+' if self.waiting_more else ''}"


def mirror_status(mirror: Mirror, now: datetime | None = None) -> MirrorStatus:
    """One mirror with the rails of its branches."""
    [reading] = _statuses([mirror], now, rails=True)
    return reading


def brief_statuses(mirrors: Iterable[Mirror], now: datetime | None = None) -> list[MirrorStatus]:
    """Many mirrors, in their order, each with a few of its `branches`: those that there is something to say of."""
    return _statuses(mirrors, now, brief=True)


def mirror_statuses(mirrors: Iterable[Mirror], now: datetime | None = None) -> list[MirrorStatus]:
    """Several mirrors, in their order, without rails. A queryset should select the related source."""
    return _statuses(mirrors, now)


def _statuses(
    mirrors: Iterable[Mirror], now: datetime | None, *, rails: bool = False, brief: bool = False
) -> list[MirrorStatus]:
    now = now or clock.now()
    rows = list(mirrors)
    gathered = gather(rows, now, rails=rails, brief=brief)
    return [_read(mirror, gathered, now) for mirror in rows]


def moved_lately(mirrors: Sequence[Mirror], now: datetime) -> bool:
    """Whether a branch of one of them was moved so lately that it is worth looking at often."""
    return Promotion.objects.filter(mirror__in=mirrors, at__gt=now - LIVELY).exists()


# --- mirrors and branches -------------------------------------------------------------------------------------------


def _read(mirror: Mirror, gathered: Gathered, now: datetime) -> MirrorStatus:
    facts = gathered.facts[mirror.pk]
    verdict, verdicts = explain(facts, now, targets(mirror))
    blind = facts.unchecked_since is not None or blinding_outage(facts) is not None
    standing = judge_standing(facts, now, targets(mirror))
    known = verdict.state is not State.UNKNOWN and is_current(facts, now, targets(mirror)) and not blind
    branches = [
        _read_branch(branch, branch_verdict, mirror, gathered, now, known=known)
        for branch, branch_verdict in zip(facts.branches, verdicts, strict=True)
    ]
    staying = [branch for branch in branches if branch.state not in ASIDE]
    counted, rules = facts.counted, both_of(mirror.gc_rules)
    lags = [branch.lag for branch in staying] + [0.0] * bool(counted.settled)
    return MirrorStatus(
        mirror=mirror,
        state=verdict.state,
        reason_code=verdict.reason_code,
        explanation=verdict.sentence,
        retry_at=verdict.retry_at,
        branches=branches,
        counted=counted.settled + counted.behind,
        caught_up=sum(map(_is_caught_up, branches)) + _settled(facts, standing, known=known, blind=blind),
        lag=worst_lag(lags) if known or any(lags) else None,
        lag_known=known,
        staying=counted.settled + counted.behind + len(staying),
        pending=counted.pending + sum(branch.pending for branch in staying),
        behind=counted.behind + sum(branch.pending > 0 for branch in staying),
        waiting=facts.waiting.number,
        waiting_more=facts.waiting.more,
        waiting_words=count_waiting(facts.waiting),
        waiting_since=facts.waiting.since,
        copied=facts.first_copy,
        first_copy=facts.first_copy is not None and not shows_something(facts),
        outages=facts.outages,
        left_out=facts.left_out,
        warnings=facts.warnings,
        own_rules=own_rules_warning(rules, name=mirror.name, source=mirror.source.name, namespace=mirror.namespace),
        unread_rules=unread_rules_note(rules, name=mirror.name),
        looked_at=facts.looked_at,
        destination_looked_at=facts.destination_looked_at,
        as_of=now,
        active=_is_active(facts, verdict, now) or mirror.bring_at is not None,
    )


def _settled(facts: MirrorFacts, standing: Verdict | None, *, known: bool, blind: bool) -> int:
    """How many branches that are only counted are known to be as at the source."""
    paused = standing is not None and standing.state is State.PAUSED and known
    return facts.counted.settled if paused or (standing is None and not blind) else 0


def _is_caught_up(branch: BranchStatus) -> bool:
    """Whether it is known to be as at the source; in a pause, too."""
    return branch.state is State.UP_TO_DATE or (branch.state is State.PAUSED and branch.lag == 0)


def _is_active(facts: MirrorFacts, verdict: Verdict, now: datetime) -> bool:
    """Whether something is going on that one would like to see at once."""
    if verdict.state in (State.PAUSED, State.STOPPED, State.FROZEN):
        return False
    times = [time for branch in facts.branches for time in (branch.advanced_at, branch.changed_at) if time]
    lately = max(times, default=None)
    lively = lately is not None and now - lately < LIVELY
    return lively or verdict.state is not State.UP_TO_DATE


def _read_branch(
    branch: BranchFacts, verdict: Verdict, mirror: Mirror, gathered: Gathered, now: datetime, *, known: bool
) -> BranchStatus:
    rail, hidden = _rail(branch, mirror, gathered, now)
    troubled = {commit.commit_id: commit for commit in (*branch.standing_needs, *branch.troubled)}.values()
    things = _different(thing for commit in troubled for thing in commit.things)
    sure = known and branch.mirror_head and branch.proven and not branch.misplaced and not branch.unseen
    late = lag(branch.oldest_seen_at, now) if branch.pending or sure else None
    return BranchStatus(
        name=branch.name,
        default=branch.default,
        source_head=branch.source_head,
        mirror_head=branch.mirror_head,
        pending=branch.pending,
        rewound=branch.rewound,
        lag=late,
        state=verdict.state,
        reason_code=verdict.reason_code,
        brief=verdict.brief,
        explanation=verdict.sentence,
        inferred=branch.inferred,
        since=verdict.since,
        retry_at=verdict.retry_at,
        seen_at=branch.oldest_seen_at,
        advanced_at=branch.advanced_at,
        blockers=things,
        lacking=max([len(things), *(commit.lacking for commit in troubled)]),
        troubled=spoken_of.commit_id if (spoken_of := worst_of(branch.troubled)) else "",
        unread=branch.unread,
        rail=rail,
        hidden=hidden,
    )


def _different(things: Iterable[Thing]) -> tuple[Thing, ...]:
    """Each thing once, although several ranges need it; as it was seen first."""
    distinct: dict[tuple[str, str, str], Thing] = {}
    for thing in sorted(things, key=lambda thing: thing.first_seen):
        distinct.setdefault((thing.kind, thing.address, thing.path), thing)
    return tuple(distinct.values())


# --- the rail -------------------------------------------------------------------------------------------------------


def _rail(branch: BranchFacts, mirror: Mirror, gathered: Gathered, now: datetime) -> tuple[list[RailCommit], int]:
    """From the mirror's head to the source's; a branch that is up to date shows how it came there."""
    key = (mirror.pk, branch.name)
    pending = gathered.pending.get(key, [])
    past = gathered.past.get(key, [])
    line = [RailCommit(commit_id=sha, stage=Stage.PAST) for sha in past[:-1]] if not pending else []
    if branch.mirror_head:
        line.append(RailCommit(commit_id=branch.mirror_head, stage=Stage.HEAD))
    room = RAIL_COMMITS - len(line)
    number = pending[-1].number if pending else 0
    shown = pending if number <= room else [*pending[: room - 4], *pending[-3:]]
    line += [_rail_commit(row, branch, mirror, gathered, now) for row in shown]
    return line, branch.pending - len(shown)


def _rail_commit(row: Pending, branch: BranchFacts, mirror: Mirror, gathered: Gathered, now: datetime) -> RailCommit:
    commit = gathered.commits.facts.get((mirror.pk, row.commit_id))
    validating = gathered.facts[mirror.pk].run is not None
    stage = stage_of(commit, now=now, targets=targets(mirror), validating=validating)
    return RailCommit(commit_id=row.commit_id, stage=stage)


# --- as JSON --------------------------------------------------------------------------------------------------------


def branch_json(branch: BranchStatus) -> dict[str, Any]:
    """A branch as the API gives it. Unknown is null; times in RFC 3339 UTC."""
    return {
        "name": branch.name,
        "source_head": branch.source_head or None,
        "mirror_head": branch.mirror_head or None,
        "inferred": branch.inferred,
        "pending_commits": branch.pending,
        "lag_seconds": None if branch.lag is None else round(branch.lag, 3),
        "status": branch.state.word,
        "reason_code": branch.reason_code,
        "reason": branch.sentence,
        "oldest_pending_seen_at": rfc3339(branch.seen_at),
        "advanced_at": rfc3339(branch.advanced_at),
        "retry_at": rfc3339(branch.retry_at),
        "blockers_total": branch.lacking,
        "blockers": [thing_json(thing) for thing in branch.blockers],
    }


def thing_json(thing: Thing) -> dict[str, Any]:
    """One thing that is missing or wrong; `holder` is what needs it: a commit, a metarange or a range."""
    return {
        "id": thing.id,
        "kind": thing.kind,
        "path": thing.path or None,
        "address": thing.address,
        "size": thing.size,
        "etag": thing.etag or None,
        "reason": thing.reason,
        "detail": thing.detail,
        "gone_at_source": thing.gone_at_source,
        "waived": thing.waived,
        "cause": thing.cause or None,
        "cause_message": thing.cause_told or None,
        "cause_fix": thing.cause_advice or None,
        "damage": thing.damage,
        "holder_kind": _HOLDERS.get(thing.kind),
        "holder": thing.holder_id,
        "first_seen": rfc3339(thing.first_seen),
        "attempts": thing.attempts,
        "look_at": rfc3339(thing.look_at),
    }


_HOLDERS = {"record": "commit", "metarange": "metarange", "range": "range", "object": "range"}
