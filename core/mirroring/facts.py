"""What is known of a mirror, as the explanations need it: plain values, gathered elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from core.installations.outages import Outage
from core.pauses import Pause

# What may simply still be under way. Every other reason needs somebody.
ARRIVING = frozenset({"missing", "range-missing", "metarange-missing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One thing that a commit lacks. `kind` is record, metarange, range or object; `holder_id` is what needs it.

    `damage`: what needs it had been complete before. `waived`: somebody accepted that history lacks it. `cause`: why
    the stores' replication has not brought it, with a sentence and advice (core/replication/causes.py); "" where nobody
    asked.
    """

    kind: str
    holder_id: str
    address: str
    reason: str
    first_seen: datetime
    look_at: datetime | None = None
    attempts: int = 1
    path: str = ""
    size: int | None = None
    detail: str = ""
    gone_at_source: bool = False
    id: int | None = None
    etag: str = ""
    damage: bool = False
    waived: bool = False
    cause: str = ""
    cause_told: str = ""
    cause_advice: str = ""

    @property
    def arriving(self) -> bool:
        """Whether waiting may be all that it takes."""
        return self.reason in ARRIVING and not self.gone_at_source


class History(StrEnum):
    """What of a head's ancestors has to be at a mirror: their records and all of their data, or their records only."""

    FULL = "full"
    HEAD = "head"


def serves_descendants(*, record: str, data: str, waived: bool, history: str = History.FULL) -> bool:
    """Whether a commit is in no descendant's way, its own ancestors apart: its record always has to be there.

    What is gone at both sides, and what an operator has waived, may be unreadable; it is never shown as a head itself.
    Of the data of ancestors a mirror with the history `head` asks nothing.
    """
    return record == "accepted" and (history == History.HEAD or waived or data in ("complete", "gone"))


class Link(NamedTuple):
    """A commit of which the history is not in order yet: the key of its row, and what its descendants need of it."""

    key: int
    sha: str
    parents: Sequence[str]
    record: str
    data: str
    waived: bool


def put_in_order(links: Iterable[Link], sound: Collection[str], history: str = History.FULL) -> list[int]:
    """Keys of the commits that have a whole history now, of some that come parents first.

    `sound`: those of the parents which have one already, and are in no descendant's way.
    """
    known, settled = set(sound), []
    for link in links:
        if known.issuperset(link.parents):
            settled.append(link.key)
            if serves_descendants(record=link.record, data=link.data, waived=link.waived, history=history):
                known.add(link.sha)
    return settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Waived:
    """Who accepted that a commit is unreadable at a mirror, why and when."""

    by: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """One commit at one mirror. `things` are samples of what it lacks, `lacking` is how many there are. `managed`:
    LakeMirror copies its objects."""

    commit_id: str
    record: str = "pending"
    data: str = "unknown"
    history: bool = False
    waived: Waived | None = None
    detail: str = ""
    recorded_at: datetime | None = None
    metadata_at: datetime | None = None
    validated_at: datetime | None = None
    promoted_at: datetime | None = None
    superseded_at: datetime | None = None
    things: Sequence[Thing] = ()
    lacking: int = 0
    lacking_since: datetime | None = None
    managed: bool = False

    @property
    def look_at(self) -> datetime | None:
        """When the first of the things is looked for again."""
        return min((thing.look_at for thing in self.things if thing.look_at), default=None)

    @property
    def promotable(self) -> bool:
        """Whether a branch may point at it."""
        return self.record == "accepted" and self.data == "complete" and self.history and self.waived is None

    @property
    def in_trouble(self) -> bool:
        """Whether something is missing or wrong with the commit itself, or it is waived and so never a head."""
        return self.waived is not None or self.record in ("refused", "tampered") or self.data in ("waiting", "gone")

    @property
    def hopeless(self) -> bool:
        """Whether waiting alone won't help."""
        beyond = self.record in ("refused", "tampered") or self.data == "gone" or self.waived is not None
        return beyond or any(not thing.arriving for thing in self.things)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How much a mirror waits for in all; `kind` is "" when it is of several kinds, `more` if not all were counted.

    `damaged` of it had been complete before, or more than that; `example` is the path of one of these.
    """

    number: int = 0
    more: bool = False
    kind: str = ""
    since: datetime | None = None
    damaged: int = 0
    more_damaged: bool = False
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The Spark job at work."""

    ranges: int
    ranges_done: int
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyFacts:
    """A duty whose last tries failed. `refusal`: a code where no later try helps by itself (core/errors.py)."""

    kind: str
    failures: int
    outcome: str
    due_at: datetime | None = None
    refusal: str = ""

    @property
    def refused(self) -> bool:
        """Whether somebody has to change something first; what was met once may have been a slip."""
        return bool(self.refusal) and self.failures > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFacts:
    """A branch at source and mirror. Heads are "" where the branch isn't.

    `newest` is the newest commit that is not mirrored yet; `troubled` are the commits in trouble that it needs, oldest
    first. One that is not `selected` is left where it is, or deleted here if `dropped`. `inferred`: the mirror's head
    is older than the first head that was seen at the source. `proven`: the mirror's head is proven whole now; else
    `standing` tells of its commit. `misplaced`: it is not where this mirror put it. `unread`: the history of the
    source's head can't be read, so it is behind by at least that commit, and `newest` is older. `unseen`: nobody has
    looked at it at the source since the books were rebuilt; `source_head` is then what a certificate tells.
    `unlooked_since`: since when no look for uncommitted changes of it got an answer; `look_error` is what the last met.
    """

    name: str
    default: bool = False
    source_head: str = ""
    mirror_head: str = ""
    pending: int = 0
    oldest_seen_at: datetime | None = None
    advanced_at: datetime | None = None
    changed_at: datetime | None = None
    rewound: bool = False
    stray: bool = False
    uncommitted: bool = False
    inferred: bool = False
    unread: bool = False
    unseen: bool = False
    unlooked_since: datetime | None = None
    look_error: str = ""
    missing_since: datetime | None = None
    gone: bool = False
    selected: bool = True
    dropped: bool = False
    newest: CommitFacts | None = None
    troubled: Sequence[CommitFacts] = ()
    proven: bool = True
    misplaced: bool = False
    standing: CommitFacts | None = None
    standing_needs: Sequence[CommitFacts] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Branches that are not told of one by one: `settled` are up to date, `name` is one of them.

    `behind` more are behind by `pending` commits, and none of them has waited for longer than those told of.
    """

    settled: int = 0
    name: str = ""
    behind: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorFacts:
    """A mirror with its branches, but for those that are only `counted`.

    `copying` and `checking` count commits whose record, or data, is still open. `first_copy`: while no branch shows a
    commit of the source's yet, how many commits are complete, of how many. `failing` are the duties whose last
    tries failed, worst first. `elsewhere`: its region has another store now than the one that it was checked at.
    `tags_unseen_since`: since when nobody has seen the destination's tags, if it follows tags. `unchecked_since`: when
    the destination was last checked, if that is too long ago to speak of now; `checks_start`: the worker for it starts.
    `look_failures`: how often in a row the look at the source failed; `look_refused`: for something that somebody has
    to change there. `outages` are those of services of its two regions, now.
    `moving`: rounds of promotion go on, so the next one looks at the destination, whenever it was seen last.
    `created_at`: since when it waits to be made, while it is being made.
    `left_out` counts the source's branches that are not selected and not here; `warnings` are about the selection.
    """

    name: str
    source: str
    source_region: str
    region: str
    state: str = "active"
    reason_code: str = ""
    reason: str = ""
    pause: Pause | None = None
    frozen_reason: str = ""
    look_error: str = ""
    look_refused: bool = False
    look_failures: int = 0
    looked_at: datetime | None = None
    destination_looked_at: datetime | None = None
    tags_unseen_since: datetime | None = None
    unchecked_since: datetime | None = None
    checks_start: bool = False
    created_at: datetime | None = None
    outages: Sequence[Outage] = ()
    moving: bool = False
    elsewhere: bool = False
    branches: Sequence[BranchFacts] = ()
    counted: Counted = Counted()
    failing: Sequence[DutyFacts] = ()
    run: RunFacts | None = None
    copying: int = 0
    checking: int = 0
    first_copy: tuple[int, int] | None = None
    waiting: Waiting = Waiting()
    left_out: int = 0
    warnings: Sequence[str] = ()

    @property
    def worst_failing(self) -> DutyFacts | None:
        """The duty that failed most often in a row."""
        return next(iter(self.failing), None)

    def failing_of(self, *kinds: str) -> DutyFacts | None:
        """The first of these kinds of duty that fails."""
        by_kind = {duty.kind: duty for duty in self.failing}
        return next((by_kind[kind] for kind in kinds if kind in by_kind), None)
