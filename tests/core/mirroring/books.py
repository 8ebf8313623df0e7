"""The books of one mirror and the world around them, small enough to try every order of what can happen.

Two branches, three commits, two objects, one tag. Every decision is one of core/'s; what is here is only what the loops
do with it: which rows a transaction reads and writes. One step is one transaction, or one call, so that a crash may
come between any two of them. What a job looks at, and when it is written down, are one step: what is lost or arrives
in between could as well have done so right after.

Left out are records (always accepted), metaranges and ranges that get lost themselves, what is gone at both sides,
waivers, a pause, a freeze, people who move refs, and books that were restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from core.mirroring import check_planning, doubt, facts, judgement, promotion, source_moves, tag_promotion
from core.mirroring.check_planning import Data
from core.mirroring.doubt import KnownRange, Suspect
from core.mirroring.object_check import Depth, judge_object
from core.mirroring.promotion import UNKNOWN, Action, CandidateCommit, Decision, OwnMove, Whose, Why
from core.mirroring.tag_promotion import TagFacts
from core.types import ObjectInfo
from graveler.metarange import RangeRef

OBJECTS = ("x", "y")
COMMITS = ("A", "B", "C")
PARENTS = {"A": (), "B": ("A",), "C": ("A",)}
NAMES = {"R1": ("x",), "R2": ("x", "y"), "R3": ("y",)}
"""What each range names. An object's path is its name too."""
RANGE_OF = {"A": "R1", "B": "R2", "C": "R3"}
TAG = "v"
BRANCHES = ("main", "side")
ABSENT, RIGHT, ODD = "absent", "right", "odd"
"""What lies at an object's place; an odd one has the right size and another content."""
LESS, MORE = Depth.SIZE, Depth.ETAG
CRC = {one: doubt.address_crc(one) for one in OBJECTS}
KEPT = 1000


class SourceLook(NamedTuple):
    """What the source shows: a head per branch, and its tag's commit; "" where there is none."""

    main: str
    side: str
    tag: str

    def head(self, branch: str) -> str:
        """A branch's head."""
        return self.main if branch == "main" else self.side


LOOKS = (
    SourceLook("A", "", ""),
    SourceLook("B", "A", "A"),
    SourceLook("A", "C", "C"),
    SourceLook("B", "", ""),
)
"""The life of the source: a commit, a new branch and a tag; a reset, the tag made anew elsewhere; both deleted."""


def _candidates(branch: str) -> list[tuple[CandidateCommit, ...]]:
    found: list[tuple[CandidateCommit, ...]] = []
    known: tuple[CandidateCommit, ...] = ()
    last = ""
    for look in LOOKS:
        head = look.head(branch)
        if head and head != last:
            move = source_moves.describe_move(branch, head, last, lambda sha: "".join(PARENTS[sha][:1]))
            known += tuple(CandidateCommit(sha, len(known) + n, ff) for n, (sha, ff) in enumerate(move.candidates))
        last = head or last
        found.append(known)
    return found


CANDIDATES = {branch: _candidates(branch) for branch in BRANCHES}
_FOUND = {
    ABSENT: None,
    RIGHT: ObjectInfo("", 1, "0" * 32),
    ODD: ObjectInfo("", 1, "1" * 32),
}
PASSES = {
    (there, depth): judge_object(found, size=1, etag="0" * 32, depth=depth) is None
    for there, found in _FOUND.items()
    for depth in (LESS, MORE)
}
REFS = {
    name: RangeRef(name, min(names).encode(), max(names).encode(), len(names), len(names))
    for name, names in NAMES.items()
}


# --- the state ------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """Coverage of a range. `asked`: it is in question, or waits to be checked anew (`verify_at` is due)."""

    range_id: str
    state: str
    depth: str
    looked: bytes
    bases: tuple[str, ...]
    doubt: str = ""
    asked: bool = False
    deeper: str = ""

    @property
    def known(self) -> KnownRange:
        """As the rules about doubt take it."""
        ref = REFS[self.range_id]
        return KnownRange(self.range_id, ref.min_key, ref.max_key, self.looked, self.bases)


class Member(NamedTuple):
    """A commit's row: what is known of its data, whether its history is in order, what it waits for."""

    data: str = "unknown"
    history: bool = False
    waits: frozenset[str] = frozenset()
    metarange: str = "unknown"


class Branch(NamedTuple):
    """A branch's row."""

    head: str
    position: int
    proven: bool = False
    misplaced: bool = False
    stray: bool = False


class Flight(NamedTuple):
    """What the worker that moves refs is at: `intended` once the move was judged and written down."""

    ref: str
    decision: Decision
    intended: bool = False


class State(NamedTuple):
    """World, books, workers, and what a witness knows who has seen all (`found`, `seen`, `top`)."""

    objects: tuple[str, ...] = (ABSENT, ABSENT)
    look: int = 0
    heads: tuple[str, str] = ("", "")
    tag_there: str = ""
    late: tuple[str, str] | None = None

    depth: Depth = LESS
    rows: tuple[Row, ...] = ()
    blockers: frozenset[tuple[str, str]] = frozenset()
    commits: tuple[Member | None, ...] = (Member(), None, None)
    branches: tuple[Branch | None, Branch | None] = (None, None)
    tag_noted: str | None = None
    intents: frozenset[tuple[str, str, int]] = frozenset()

    run: tuple[tuple[str, tuple[str, ...]], ...] = ()
    flight: Flight | None = None

    found: frozenset[str] = frozenset()
    seen: frozenset[tuple[str, str]] = frozenset()
    top: tuple[int, int] = (UNKNOWN, UNKNOWN)

    def row(self, range_id: str) -> Row | None:
        """Coverage of a range, if it was checked."""
        return next((row for row in self.rows if row.range_id == range_id), None)

    def member(self, sha: str) -> Member | None:
        """The row of a commit that was sensed."""
        return self.commits[COMMITS.index(sha)]

    def passes(self, thing: str, depth: str) -> bool:
        """Whether a look of that depth finds an object in order."""
        return PASSES[self.objects[OBJECTS.index(thing)], Depth(depth)]


class Broken(Exception):
    """The promise was broken: what was done, and what a reader gets."""


def _put(values: tuple, index: int, value: object) -> tuple:
    return (*values[:index], value, *values[index + 1 :])


def _upsert(state: State, row: Row) -> State:
    known = [one.range_id for one in state.rows]
    if row.range_id not in known:
        return state._replace(rows=(*state.rows, row))
    return state._replace(rows=_put(state.rows, known.index(row.range_id), row))


def lineage(sha: str) -> list[str]:
    """A commit and all that it descends from."""
    return [sha, *(one for parent in PARENTS[sha] for one in lineage(parent))]


def needs(sha: str) -> set[str]:
    """The objects that readers of a commit, or of its history, need."""
    return {thing for one in lineage(sha) for thing in NAMES[RANGE_OF[one]]}


def proves(state: State, row: Row) -> bool:
    """Whether a check was as deep as the mirror asks."""
    return row.depth == state.depth or Depth(row.depth).is_deeper_than(state.depth)


# --- doubt (mirrors/transitions/doubt.py)
# ------------------------------------------------------------------------------------


def doubt_sharers(state: State, holder: str, things: Collection[str]) -> State:
    """Objects were found missing or wrong by a range: every other one that may name them stands in question."""
    if not things:
        return state
    suspects = [Suspect(one.encode(), CRC[one]) for one in things]
    first, last = min(s.path for s in suspects), max(s.path for s in suspects)
    around = [row.known for row in state.rows if row.known.min_key <= last and row.known.max_key >= first]
    return doubt_ranges(state, doubt.that_may_name(suspects, around) - {holder})


def doubt_ranges(state: State, range_ids: Collection[str]) -> State:
    """These may name something that is missing or wrong: each is read before it counts again."""
    fell: set[str] = set()
    for range_id in sorted(range_ids):
        row = state.row(range_id)
        assert row is not None
        if row.state != "waiting":
            fell.add(range_id)
            state = _upsert(state, row._replace(state="waiting", doubt="shared", asked=True))
        elif not row.doubt:
            state = _upsert(state, row._replace(doubt="fresh", asked=True))
    return doubt_holders(state, fell)


def doubt_holders(state: State, fell: Collection[str]) -> State:
    """Ranges were taken for whole and are so no more: commits that name them are judged again."""
    concerned = [
        sha
        for sha in COMMITS
        if (its := state.member(sha)) and its.data in ("complete", "gone") and RANGE_OF[sha] in fell
    ]
    return doubt_commits(state, concerned)


def doubt_commits(state: State, shas: Collection[str]) -> State:
    """They are judged again, and the history of all that came later; no head says better than its commit."""
    if not shas:
        return state
    least = min(map(COMMITS.index, shas))
    members = [
        its and its._replace(data="unknown" if sha in shas else its.data, history=its.history and at <= least)
        for at, (sha, its) in enumerate(zip(COMMITS, state.commits, strict=True))
    ]
    return unprove(state._replace(commits=tuple(members)))


def is_whole(state: State, sha: str) -> bool:
    """Whether the words of a commit's row say that a ref may point to it."""
    its = state.member(sha) if sha else None
    return its is not None and its.data == "complete" and its.history


def unprove(state: State) -> State:
    """Heads whose commits are not known to be whole any more."""
    return _with_heads(state, lambda row: row._replace(proven=row.proven and is_whole(state, row.head)))


def prove(state: State) -> State:
    """Heads whose commits have been judged whole."""
    return _with_heads(state, lambda row: row._replace(proven=row.proven or is_whole(state, row.head)))


def _with_heads(state: State, change: Callable[[Branch], Branch]) -> State:
    main, side = (row and change(row) for row in state.branches)
    return state._replace(branches=(main, side))


# --- looking (mirroring/validate/run_check.py, rechecks.py, resolving.py, settling.py, verifying.py,
# validations.py) ---------------


def note_problems(state: State, holder: str, things: Iterable[str]) -> State:
    """What is missing or wrong, of what a range names; what is new puts in question all that may name it too."""
    new = [one for one in things if (holder, one) not in state.blockers]
    state = state._replace(blockers=state.blockers | {(holder, one) for one in new})
    return doubt_sharers(state, holder, new)


def witness(state: State, things: Iterable[str], depth: str) -> State:
    """Somebody sees each look and what it gave."""
    looked = list(things)
    right = {one for one in looked if state.passes(one, depth)}
    return state._replace(
        found=state.found | (set(looked) - right),
        seen=state.seen | {(one, str(depth)) for one in right},
    )


def check(
    state: State, range_id: str, bases: Collection[str], depth: Depth, *, noted_bases: Sequence[str] | None = None
) -> State:
    """A range is looked through, but for what its bases name alike, and written down."""
    left_out = {thing for base in bases for thing in NAMES[base]}
    looked = [one for one in NAMES[range_id] if one not in left_out]
    bad = [one for one in looked if not state.passes(one, depth)]
    state = note_problems(witness(state, looked, depth), range_id, bad)
    stale = {(holder, one) for holder, one in state.blockers if holder == range_id and one not in bad}
    state = state._replace(blockers=state.blockers - stale)
    row = Row(
        range_id,
        "waiting" if bad else "complete",
        state.depth,
        doubt.pack(CRC[one] for one in looked),
        tuple(bases if noted_bases is None else noted_bases),
        deeper=str(depth) if bad and depth.is_deeper_than(state.depth) else "",
    )
    return store(state, row)


def store(state: State, row: Row) -> State:
    """Write coverage over what there was."""
    before = state.row(row.range_id)
    if before is not None:
        kept = doubt.with_memory(row.known, before.known)
        row = row._replace(looked=kept.looked, bases=tuple(kept.bases))
    if row.state == "complete" and doubt.looked_for(row.known, {CRC[one] for _, one in state.blockers}):
        row = row._replace(state="waiting", doubt="fresh", asked=True)
    fell = before is not None and before.state != "waiting" and row.state == "waiting"
    return doubt_holders(_upsert(state, row), {row.range_id} if fell else ())


def settle_row(state: State, row: Row) -> State:
    """A range that is in no question any more, by the blockers that it holds."""
    left = sum(holder == row.range_id for holder, _ in state.blockers)
    found = check_planning.settled(left, 0, counted=left, kept=KEPT)
    assert found is not None
    deeper = "" if found is Data.COMPLETE else row.deeper
    return _upsert(state, row._replace(state=found.value, doubt="", asked=False, deeper=deeper))


def reopen(state: State, holders: Collection[str]) -> State:
    """Commits that waited for these are judged again."""
    members = [
        its._replace(data="unknown") if its and its.data in ("waiting", "gone") and its.waits & set(holders) else its
        for its in state.commits
    ]
    return state._replace(commits=tuple(members))


def look_again(state: State) -> State:
    """All that was missing is looked for again."""
    depths = {row.range_id: row.deeper or state.depth for row in state.rows}
    for holder, thing in sorted(state.blockers):
        state = witness(state, [thing], depths[holder])
    arrived = {(holder, one) for holder, one in state.blockers if state.passes(one, depths[holder])}
    holders = {holder for holder, _ in arrived}
    state = state._replace(blockers=state.blockers - arrived)
    wrong = {one for row in state.rows if row.deeper for holder, one in state.blockers if holder == row.range_id}
    state = doubt_ranges(state, {holder for holder, one in arrived if one in wrong})
    for row in state.rows:
        if row.range_id in holders and row.state != "complete" and not row.asked:
            state = settle_row(state, row)
    return reopen(state, holders)


def to_read(state: State) -> list[Row]:
    """Ranges of which it is asked what they name."""
    return [row for row in state.rows if row.state == "waiting" and row.asked and row.doubt in ("shared", "fresh")]


def resolve(state: State) -> State:
    """Ranges in question are read: each is complete again, or waits for the very things that it names."""
    rows = to_read(state)
    missing = {one for _, one in state.blockers}
    depths = {row.range_id: row.deeper for row in state.rows if row.deeper}
    for row in rows:
        named = [one for one in NAMES[row.range_id] if one in missing]
        holders = {holder for holder, one in sorted(state.blockers) if one in named}
        state = note_problems(state, row.range_id, named)
        now = state.row(row.range_id)
        assert now is not None
        found = max((depths[one] for one in holders if one in depths), key=list(Depth).index, default=now.deeper)
        state = settle_row(state, now._replace(deeper=found))
    return reopen(state, {row.range_id for row in rows})


def verify(state: State, row: Row) -> State:
    """A range that had been complete is checked again on its bases, so far as those are complete and older."""
    order = {one.range_id: n for n, one in enumerate(state.rows) if one.state == "complete" and proves(state, one)}
    at = state.rows.index(row)
    bases = [base for base in row.bases if order.get(base, at) < at]
    return check(state, row.range_id, bases, Depth(row.deeper or state.depth), noted_bases=bases)


def check_on_demand(state: State, row: Row) -> State:
    """Somebody asks about a range: all that it names is looked for, as deep as can be."""
    was_open = row.state != "complete"
    state = check(state, row.range_id, (), MORE, noted_bases=row.bases)
    return reopen(state, {row.range_id} if was_open else ())


# --- judging (mirroring/validate/commits.py, mirrors/transitions/ancestry.py)
# ---------------------------------------------------------


def unjudged(state: State) -> list[str]:
    """Commits that are to be judged, oldest first."""
    return [sha for sha in COMMITS if (its := state.member(sha)) and its.data == "unknown"]


def coverage_of(state: State) -> dict[str, Data]:
    """What is known of ranges, by checks that are deep enough."""
    return {row.range_id: Data(row.state) for row in state.rows if proves(state, row)}


def plan(state: State) -> State:
    """One check for each range that no earlier one covers, on a complete parent's ranges or the last complete ones."""
    covered = coverage_of(state)
    complete = [sha for sha in COMMITS if (its := state.member(sha)) and its.data == "complete"]
    checks: dict[str, tuple[str, ...]] = {}
    for sha in unjudged(state):
        base = next((one for one in PARENTS[sha] if one in complete), complete[-1] if complete else "")
        bases = [REFS[RANGE_OF[base]]] if base else []
        for one in check_planning.plan_checks([REFS[RANGE_OF[sha]]], bases, covered):
            checks.setdefault(one.range_id, one.base_ids)
    return state._replace(run=tuple(sorted(checks.items())))


def judge(state: State) -> State:
    """What is now known of each commit is written down, and what follows for those that descend from it."""
    covered = coverage_of(state)
    for sha in unjudged(state):
        at, range_id = COMMITS.index(sha), RANGE_OF[sha]
        data = check_planning.judge([range_id], covered)
        waits = frozenset({range_id} if data is not Data.COMPLETE else ())
        its = state.commits[at]
        assert its is not None
        member = its._replace(data=data.value, waits=waits, metarange="complete")
        state = state._replace(commits=_put(state.commits, at, member))
    return prove(settle_history(state))


def settle_history(state: State) -> State:
    """Spread from parents to children."""
    sound = {
        sha
        for sha, its in zip(COMMITS, state.commits, strict=True)
        if its and its.history and facts.serves_descendants(record="accepted", data=its.data, waived=False)
    }
    links = [
        facts.Link(n, COMMITS[n], PARENTS[COMMITS[n]], "accepted", its.data, False)
        for n, its in enumerate(state.commits)
        if its and not its.history
    ]
    for at in facts.put_in_order(links, sound):
        state = state._replace(commits=_put(state.commits, at, state.commits[at]._replace(history=True)))  # type: ignore[union-attr]
    return state


# --- the judge, asked at the act (mirrors/queries/proof_facts.py, mirrors/transitions/move_intents.py)
# --------------------------------------------


def proof_of(state: State, sha: str) -> judgement.CommitProof | None:
    """What the rows prove of a commit."""
    its = state.member(sha)
    if its is None:
        return None
    row = state.row(RANGE_OF[sha])
    return judgement.CommitProof(
        record="accepted",
        waived=False,
        history=its.history,
        metarange=its.metarange,
        ranges=1,
        proven=int(row is not None and row.state == "complete" and proves(state, row)),
        problems=sum(holder == RANGE_OF[sha] for holder, _ in state.blockers),
    )


def intend(state: State) -> State:
    """The move is judged and written down, in one transaction."""
    flight = state.flight
    assert flight is not None
    target = flight.decision.commit_id
    around = judgement.Circumstances()
    if target:
        allowed = judgement.judge_move(proof_of(state, target), around)
    else:
        source = LOOKS[state.look]
        at_source = bool(source.tag if flight.ref == TAG else source.head(flight.ref))
        allowed = judgement.judge_deletion(around, at_source=at_source)
    if not allowed.allowed:
        its = state.member(target)
        state = state._replace(flight=None)
        return doubt_commits(state, [target]) if its and its.data == "complete" else state
    expect_whole(state, flight.ref, target)
    expect_forward(state, flight)
    return write_intents(state, flight)._replace(flight=flight._replace(intended=True))


def write_intents(state: State, flight: Flight) -> State:
    """Where a ref is brought to; a tag that is moved is deleted on the way."""
    position = flight.decision.position
    reset_tag = flight.ref == TAG and flight.decision.action is Action.RESET
    targets = [flight.decision.commit_id, *([""] if reset_tag else [])]
    kept = {one for one in state.intents if one[0] != flight.ref or one[1] not in targets}
    return state._replace(intents=frozenset(kept | {(flight.ref, one, position) for one in targets}))


def expect_whole(state: State, ref: str, sha: str) -> None:
    """No move to what is known to be torn, nor to what nobody has seen whole."""
    depths = {LESS: (LESS, MORE), MORE: (MORE,)}[state.depth]
    for thing in needs(sha) if sha else ():
        if thing in state.found:
            raise Broken(f"{ref} is moved to {sha}, of which {thing} is known to be missing or wrong")
        if not any((thing, str(depth)) in state.seen for depth in depths):
            raise Broken(f"{ref} is moved to {sha}, of which nobody has ever found {thing} in order")


def expect_forward(state: State, flight: Flight) -> None:
    """No branch is moved back to what its source left before."""
    if flight.ref in BRANCHES and flight.decision.commit_id:
        top = state.top[BRANCHES.index(flight.ref)]
        if flight.decision.position < top:
            raise Broken(f"{flight.ref} is moved back to position {flight.decision.position}, it had been at {top}")


# --- moving (mirroring/promote/move_ref.py, branches.py, books.py, tags.py)
# ----------------------------------------------------------------------


def is_gone(state: State, branch: str) -> bool:
    """Whether the source has the branch no more."""
    return not LOOKS[state.look].head(branch)


def facts_of(state: State, branch: str) -> promotion.PromotionFacts:
    """What the decision for one branch needs."""
    at = BRANCHES.index(branch)
    ours, head = state.branches[at], state.heads[at]
    least = max(0, ours.position) if ours else 0
    noted = ours.head if ours else ""
    return promotion.PromotionFacts(
        candidates=[one for one in CANDIDATES[branch][state.look] if one.position >= least],
        head=head,
        noted=noted,
        position=ours.position if ours else UNKNOWN,
        stray=bool(ours and ours.stray),
        misplaced=bool(ours and ours.misplaced),
        gone=is_gone(state, branch),
        default=branch == "main",
        intended=frozenset(to for ref, to, _ in state.intents if ref == branch) if head != noted else frozenset(),
    )


def choose(state: State, branch: str) -> State:
    """Who brought the branch where it is, and where it is to go."""
    at, known = BRANCHES.index(branch), facts_of(state, branch)
    state, known = note_move(state, branch, known)
    decision = promotion.choose_promotion(known, lambda sha: is_whole(state, sha))
    if decision.action is not Action.NOTHING:
        return state._replace(flight=Flight(branch, decision))
    if promotion.is_news(known, decision, lambda sha: is_whole(state, sha)):
        return note_head(state, branch, decision)
    if known.gone and not known.head:
        return state._replace(branches=_put(state.branches, at, None))
    return state


def note_move(state: State, branch: str, known: promotion.PromotionFacts) -> tuple[State, promotion.PromotionFacts]:
    """Nobody else moves anything here: whoever is blamed, it was us."""
    whose = promotion.whose_move(known)
    if whose is Whose.NOTED:
        return state, known
    if whose is not Whose.OURS:
        raise Broken(f"{branch} is at {known.head or 'nothing'} by our own doing, and that is called {whose}")
    at = BRANCHES.index(branch)
    position = next(place for ref, to, place in state.intents if (ref, to) == (branch, known.head))
    became = promotion.own_move(known, position)
    if became is OwnMove.DELETED:
        return note_deletion(state, branch), replace(known, noted="")
    if became is OwnMove.LATE:
        ours = state.branches[at] or Branch("", UNKNOWN, stray=True)
        late = ours._replace(head=known.head, proven=False, misplaced=True)
        return state._replace(branches=_put(state.branches, at, late)), known
    decision = Decision(Action.RESET, Why.ADVANCED, known.head, position)
    return note_head(state, branch, decision), replace(known, noted=known.head, position=position, stray=False)


def note_head(state: State, branch: str, decision: Decision) -> State:
    """A move of ours goes into the books."""
    at = BRANCHES.index(branch)
    return prove(state._replace(branches=_put(state.branches, at, Branch(decision.commit_id, decision.position))))


def note_deletion(state: State, branch: str) -> State:
    """So does a deletion."""
    return state._replace(
        branches=_put(state.branches, BRANCHES.index(branch), None),
        intents=frozenset(one for one in state.intents if one[0] != branch),
    )


def tag_facts(state: State) -> TagFacts:
    """What the decision for the tag needs."""
    source = LOOKS[state.look].tag
    return TagFacts(
        source=source,
        head=state.tag_there,
        noted=state.tag_noted or "",
        made_here=state.tag_noted is not None,
        promotable=is_whole(state, source),
        intended=frozenset(to for ref, to, _ in state.intents if ref == TAG),
    )


def choose_tag(state: State) -> State:
    """Where the tag is to go; nobody else touches it."""
    known = tag_facts(state)
    whose = tag_promotion.whose_tag_move(known)
    if whose is Whose.OURS and known.head:
        state = state._replace(tag_noted=known.head)
        known = replace(known, noted=known.head, made_here=True)
    elif whose in (Whose.OTHERS, Whose.VANISHED):
        raise Broken(f"the tag is at {known.head or 'nothing'} by our own doing, and that is called {whose}")
    decision = tag_promotion.choose_tag(known)
    if decision.action is not Action.NOTHING:
        return state._replace(flight=Flight(TAG, decision))
    if not known.source and not known.head:
        return state._replace(tag_noted=None)
    if decision.why is Why.UP_TO_DATE and known.promotable and known.noted != known.source:
        return state._replace(tag_noted=known.source)
    if known.head and not known.made_here and known.head != known.source:
        raise Broken(f"the tag is at {known.head} by our own doing, and is taken for a stray")
    return state


def call(state: State) -> State:
    """The forced call itself."""
    flight = state.flight
    assert flight is not None
    if flight.ref == TAG:
        return state._replace(tag_there=flight.decision.commit_id)
    return _stand(state, flight.ref, flight.decision.commit_id)


def _stand(state: State, branch: str, sha: str) -> State:
    at = BRANCHES.index(branch)
    reached = [one.position for one in CANDIDATES[branch][state.look] if one.commit_id == sha]
    flight = state.flight
    if flight is not None and flight.ref in BRANCHES and sha:
        reached = [flight.decision.position]
    top = state.top if state.flight is None else _put(state.top, at, max(reached, default=UNKNOWN))
    return state._replace(heads=_put(state.heads, at, sha), top=top)


def record(state: State) -> State:
    """The ref was read back: the move goes into the books."""
    flight = state.flight
    assert flight is not None
    state = state._replace(flight=None)
    if flight.ref == TAG:
        return state._replace(tag_noted=flight.decision.commit_id or None)
    if flight.decision.action is Action.DELETE:
        return note_deletion(state, flight.ref)
    return note_head(state, flight.ref, flight.decision)


# --- settings (mirrors/transitions/validity.py)
# -----------------------------------------------------------------------------------


def change_depth(state: State) -> State:
    """From the one depth to the other. A check that is at work is fenced off."""
    new = MORE if state.depth == LESS else LESS
    deeper = new.is_deeper_than(state.depth)
    rows = tuple(
        row._replace(depth=new) if row.state != "complete" and Depth(row.depth).is_deeper_than(new) else row
        for row in state.rows
    )
    forgiven = {one for one in state.found if not deeper and state.passes(one, new)}
    state = state._replace(depth=new, rows=rows, run=(), found=state.found - forgiven)
    if not deeper:
        return state
    members = tuple(its and its._replace(data="unknown", history=False) for its in state.commits)
    return unprove(state._replace(commits=members))


# --- the world -------------------------------------------------------------------------------------------------------


def place(state: State, thing: str, there: str) -> State:
    """An object arrives, returns or is lost at the destination."""
    at = OBJECTS.index(thing)
    found = state.found if there == ABSENT else state.found - {thing}
    return state._replace(objects=_put(state.objects, at, there), found=found)


def advance_source(state: State) -> State:
    """The source moves on, and is looked at."""
    look = state.look + 1
    known = {one.commit_id for branch in BRANCHES for one in CANDIDATES[branch][look]}
    known |= {one.tag for one in LOOKS[: look + 1] if one.tag}
    pairs = zip(COMMITS, state.commits, strict=True)
    return state._replace(look=look, commits=tuple(its or (Member() if sha in known else None) for sha, its in pairs))


# --- what can happen -------------------------------------------------------------------------------------------------


def steps(state: State, *, odd: bool = True, late: bool = True) -> Iterator[tuple[str, Callable[[], State]]]:
    """All that can happen next. `odd`: objects may arrive with another content, and the depth may change."""
    yield from _of_the_world(state, odd=odd)
    yield from _of_the_validator(state, odd=odd)
    yield from _of_the_mover(state, late=late)


def _of_the_world(state: State, *, odd: bool) -> Iterator[tuple[str, Callable[[], State]]]:
    for thing, there in zip(OBJECTS, state.objects, strict=True):
        if there != RIGHT:
            yield f"{thing} arrives", lambda thing=thing: place(state, thing, RIGHT)
        if there != ABSENT:
            yield f"{thing} is lost", lambda thing=thing: place(state, thing, ABSENT)
    if odd and state.objects[1] == ABSENT:
        yield "y arrives with another content", lambda: place(state, "y", ODD)
    if state.look + 1 < len(LOOKS):
        yield "the source moves on", lambda: advance_source(state)
    if state.late is not None:
        yield "a late call is carried out", lambda: land(state)


def land(state: State) -> State:
    """A call that was given up is carried out after all."""
    assert state.late is not None
    ref, sha = state.late
    state = state._replace(late=None)
    return state._replace(tag_there=sha) if ref == TAG else _stand(state, ref, sha)


def _of_the_validator(state: State, *, odd: bool) -> Iterator[tuple[str, Callable[[], State]]]:
    if state.blockers:
        yield "what is missing is looked for", lambda: look_again(state)
    if to_read(state):
        yield "ranges in question are read", lambda: resolve(state)
    if unjudged(state):
        if not state.run:
            yield "checks are planned", lambda: plan(state)
        yield "commits are judged", lambda: judge(state)
    for n, (range_id, bases) in enumerate(state.run):
        rest = state.run[:n] + state.run[n + 1 :]
        yield (
            f"{range_id} is checked on {','.join(bases) or 'nothing'}",
            lambda range_id=range_id, bases=bases, rest=rest: check(
                state._replace(run=rest), range_id, bases, state.depth
            ),
        )
    if state.run:
        yield "the check breaks off", lambda: state._replace(run=())
    else:
        for row in state.rows:
            if row.state == "complete":
                yield f"{row.range_id} is verified", lambda row=row: verify(state, row)
            if odd or row.state == "complete":
                yield f"{row.range_id} is checked on demand", lambda row=row: check_on_demand(state, row)
    if odd:
        yield "the depth is changed", lambda: change_depth(state)


def _of_the_mover(state: State, *, late: bool) -> Iterator[tuple[str, Callable[[], State]]]:
    flight = state.flight
    if flight is None:
        for branch in BRANCHES:
            yield f"{branch} is looked at", lambda branch=branch: choose(state, branch)
        yield "the tag is looked at", lambda: choose_tag(state)
        return
    to = flight.decision.commit_id or "nothing"
    if not flight.intended:
        yield f"{flight.ref} to {to} is judged", lambda: intend(state)
        return
    yield f"{flight.ref} is moved to {to}, and noted", lambda: record(call(state))
    yield f"{flight.ref} is moved to {to}, then a crash", lambda: call(state)._replace(flight=None)
    yield "a crash before the call", lambda: state._replace(flight=None)
    if flight.ref == TAG and flight.decision.action is Action.RESET:
        yield "a crash while there is no tag", lambda: state._replace(flight=None, tag_there="")
    if late and state.late is None and flight.ref != TAG:
        yield (
            "a crash, and the call comes late",
            lambda: state._replace(flight=None, late=(flight.ref, flight.decision.commit_id)),
        )


# --- what ought to hold ----------------------------------------------------------------------------------------------


def rounds(state: State, number: int) -> State:
    """All returns, whoever was at work ends or is gone, and the loops go round so many times, undisturbed."""
    state = state._replace(objects=(RIGHT, RIGHT), found=frozenset(), run=(), flight=None)
    state = land(state) if state.late is not None else state
    for _ in range(number):
        state = _go_round(state)
    return state


def _go_round(state: State) -> State:
    state = plan(resolve(look_again(state)))
    while state.run:
        (range_id, bases), *rest = state.run
        state = check(state._replace(run=tuple(rest)), range_id, bases, state.depth)
    state = judge(resolve(state))
    for branch in BRANCHES:
        state = _carried_out(choose(state, branch))
    return _carried_out(choose_tag(state))


def _carried_out(state: State) -> State:
    state = intend(state) if state.flight is not None else state
    return record(call(state)) if state.flight is not None else state


def after(state: State, *names: str) -> State:
    """The state once these steps were taken, in this order. Raises Broken as they do, KeyError where one can't be."""
    for name in names:
        state = dict(steps(state))[name]()
    return state


def told_of(state: State, branch: str) -> facts.BranchFacts:
    """A branch as the page is told of it (mirrors/status/facts.py, mirrors/queries/branch_positions.py)."""
    at = BRANCHES.index(branch)
    here, source = state.branches[at], LOOKS[state.look].head(branch)
    newest = CANDIDATES[branch][state.look][-1].position if source else UNKNOWN
    if here is None or here.stray:
        reached = UNKNOWN
    elif here.misplaced and here.head != source:
        reached = max(here.position - 1, UNKNOWN)
    else:
        reached = newest if here.head == source else here.position
    return facts.BranchFacts(
        name=branch,
        default=branch == "main",
        source_head=source,
        mirror_head=here.head if here else "",
        pending=max(0, newest - reached),
        stray=bool(here and here.stray),
        gone=not source,
        proven=not (here and here.head and not here.stray and not here.proven),
        misplaced=bool(here and here.misplaced and not here.stray),
    )
