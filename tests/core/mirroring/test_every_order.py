"""Every order of what can happen to one small mirror, to a stated depth: what arrives, is lost, found, returns, is
judged, moved, what crashes, which settings change (tests/core/mirroring/books.py).

In each state: no ref is moved to what is known to be torn or was never seen whole, no move of ours is blamed on others
or taken back (the steps themselves raise it), and no head is called better than the judge would. From each of the last
states everything is reached, once all has returned.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

import pytest

from core.mirroring import check_planning, doubt, facts, judgement, promotion
from core.mirroring.check_planning import Data
from core.mirroring.explain.mirror import explain
from core.mirroring.facts import MirrorFacts
from core.mirroring.promotion import UNKNOWN
from core.mirroring.rpo import Targets
from core.mirroring.states import State as Told
from tests.core.mirroring import books
from tests.core.mirroring.books import BRANCHES, LOOKS, Broken, State

ROUNDS = 3
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGETS = Targets()


def settled(look: int) -> State:
    """A mirror that has followed its source so far, undisturbed."""
    state = books.rounds(State(), ROUNDS)
    for _ in range(look):
        state = books.rounds(books.advance_source(state), ROUNDS)
    return state


STARTS = {
    "nothing is there yet": (State, 8),
    "a commit, a branch and a tag are new": (lambda: books.advance_source(settled(0)), 7),
    "all is there": (lambda: settled(1), 7),
    "a branch went back, another one on, the tag elsewhere": (lambda: books.advance_source(settled(1)), 6),
    "a branch and a tag are gone": (lambda: books.advance_source(settled(2)), 6),
}
"""Where the search begins, and how many steps it goes: about a minute in all on a core of its own."""


# --- what has to hold -----------------------------------------------------------------------------------------------


@cache
def verdicts(*branches: facts.BranchFacts) -> tuple[Told, tuple[Told, ...]]:
    """What the page says of the mirror, and of each branch."""
    mirror = MirrorFacts(name="m", source="s", source_region="us", region="eu", branches=branches, looked_at=NOW)
    whole, each = explain(mirror, NOW, TARGETS)
    return whole.state, tuple(verdict.state for verdict in each)


def expect_honest(state: State) -> None:
    """No page says better than the judge, and no flag says better than the page."""
    judged = {row.head: row.head and judgement.judge_commit(books.proof_of(state, row.head)) for row in heads(state)}
    for row in heads(state):
        if row.proven and not judged[row.head].allowed:
            raise Broken(f"{row.head} is called proven: {judged[row.head].detail}")
    whole, each = verdicts(*(books.told_of(state, branch) for branch in BRANCHES))
    for branch, told, row in zip(BRANCHES, each, state.branches, strict=True):
        if told is not Told.UP_TO_DATE or row is None:
            continue
        if not judged[row.head].allowed or books.needs(row.head) & state.found:
            raise Broken(f"{branch} is called up to date at {row.head}, which is torn or not proven")
    if whole is Told.UP_TO_DATE and any(not row.proven for row in heads(state)):
        raise Broken("the mirror is called up to date, and a head of it is not proven")


def heads(state: State) -> list[books.Branch]:
    return [row for row in state.branches if row is not None and row.head]


def expect_reached(state: State) -> None:
    """Every ref is where the source's is, and is called so."""
    look = LOOKS[state.look]
    there = (*state.heads, state.tag_there)
    if there != look:
        raise Broken(f"all is there, and the refs stay at {there}: the source's are at {tuple(look)}")
    if state.run or state.blockers or not all(row.proven and not row.misplaced for row in heads(state)):
        raise Broken("all is there, and still some of it is called torn, not proven or moved by others")


# --- the search -----------------------------------------------------------------------------------------------------


class Search:
    """Breadth first, each state once; `deepest` steps at most."""

    def __init__(self, start: State, deepest: int) -> None:
        self.came_from: dict[State, tuple[State, str] | None] = {start: None}
        self.leaves, self.deepest, self.taken = [start], deepest, 0
        self.reached: set[State] = set()

    def run(self) -> None:
        """Raises Broken, with the steps that led there."""
        for _ in range(self.deepest):
            self.leaves = [after for state in self.leaves for after in self._beyond(state)]
        for state in self.leaves:
            self._held(state, "all returns", lambda state=state: self._end(state))

    def _beyond(self, state: State) -> list[State]:
        found = []
        for name, step in books.steps(state):
            self.taken += 1
            after = self._held(state, name, step)
            if after not in self.came_from:
                self.came_from[after] = (state, name)
                self._held(after, "it is looked at", lambda after=after: expect_honest(after))
                found.append(after)
        return found

    def _end(self, state: State) -> None:
        """Many leaves become one once all has returned."""
        calm = state._replace(objects=(books.RIGHT,) * 2, found=frozenset(), run=(), flight=None)
        calm = (books.land(calm) if calm.late else calm)._replace(seen=frozenset(), top=(UNKNOWN, UNKNOWN))
        if calm not in self.reached:
            self.reached.add(calm)
            expect_reached(books.rounds(state, ROUNDS))

    def _held(self, state: State, name: str, step: Callable[[], State]) -> State:
        try:
            return step()
        except Broken as broken:
            raise Broken(f"{broken}\nafter: {'; '.join([*self.way_to(state), name])}") from broken

    def way_to(self, state: State) -> list[str]:
        """The steps that led to a state."""
        names = []
        while (before := self.came_from[state]) is not None:
            state, name = before
            names.append(name)
        return names[::-1]


@pytest.mark.parametrize("name", STARTS)
def test_no_order_breaks_the_promise(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, deepest = STARTS[name]
    search = Search(make(), deepest)
    search.run()
    with capsys.disabled():
        print(
            f"\n{name}: {len(search.came_from):,} states by {search.taken:,} steps, "
            f"{deepest} deep; {len(search.reached):,} ends"
        )
    assert len(search.leaves) > 1000


# --- orders that broke it once ----------------------------------------------------------------------------------------


def test_what_is_known_by_a_deeper_check_holds_for_all_that_name_it() -> None:
    state = books.after(
        books.advance_source(settled(1)),
        "y is lost",
        "R2 is checked on demand",
        "checks are planned",
        "R3 is checked on nothing",
        "y arrives with another content",
        "what is missing is looked for",
        "commits are judged",
        "side is looked at",
    )
    assert state.flight is None
    assert "side to C is judged" not in dict(books.steps(state))


def test_a_tag_that_was_made_before_a_crash_is_ours_although_the_source_moved_on() -> None:
    state = books.after(
        books.advance_source(settled(0)),
        "the tag is looked at",
        "the source moves on",
        "v to A is judged",
        "v is moved to A, then a crash",
        "the tag is looked at",
    )
    assert (state.tag_there, state.tag_noted) == ("A", "A")


# --- sabotage -------------------------------------------------------------------------------------------------------


def without_history(state: State, shas: set[str]) -> State:
    """Commits are doubted, and what descends from them is not."""
    members = (
        its and its._replace(data="unknown" if sha in shas else its.data)
        for sha, its in zip(books.COMMITS, state.commits, strict=True)
    )
    return books.unprove(state._replace(commits=tuple(members)))


GONE_ON = ("main is looked at", "main to B is judged", "main is moved to B, then a crash", "y is lost")
CHECKED = ("checks are planned", "R3 is checked on nothing", "commits are judged")
FIRST = ("checks are planned", "R2 is checked on R1", "commits are judged")
TORN = (*CHECKED, "x is lost", "R1 is verified")
MUTANTS = {
    "the judge ignores problems and coverage": (judgement, "_judge_data", lambda proof: None, 2, ()),
    "nothing else may name what is missing": (doubt, "that_may_name", lambda suspects, ranges: set(), 2, ()),
    "intents are not written": (books, "write_intents", lambda state, flight: state, 0, FIRST),
    "histories are not doubted": (books, "doubt_commits", without_history, 1, CHECKED),
    "whatever is known serves descendants": (facts, "serves_descendants", lambda **known: True, 1, TORN),
    "a branch's position is ignored": (promotion, "_position_of", lambda known, promotable: UNKNOWN, 2, GONE_ON),
    "any range will do": (check_planning, "judge", lambda ids, covered: Data.COMPLETE, 0, ()),
    "what arrived settles all": (check_planning, "settled", lambda left, gone, counted, kept: Data.COMPLETE, 2, ()),
}
"""What is broken, by what; the look that was followed before the source moved on; steps that were taken then."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_sabotage_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, other, look, taken = MUTANTS[mutant]
    start = books.after(books.advance_source(settled(look)), *taken)
    Search(start, 4).run()
    monkeypatch.setattr(where, name, other)
    with pytest.raises(Broken):
        Search(start, 4).run()
