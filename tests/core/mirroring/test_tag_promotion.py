"""What is to be done about a tag, case by case. Scenario 30 of docs/promotion.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mirroring.promotion import Action, Decision, Whose, Why
from core.mirroring.tag_promotion import TagFacts, choose_tag, whose_tag_move

COMMITS = st.sampled_from(["", "a", "b"])
FACTS = st.builds(
    TagFacts, source=COMMITS, head=COMMITS, noted=COMMITS, made_here=st.booleans(), promotable=st.booleans()
)


@pytest.mark.parametrize(
    ("facts", "decision"),
    [
        (TagFacts("a", "", promotable=True), Decision(Action.CREATE, Why.FIRST, "a")),
        (TagFacts("a", ""), Decision(Action.NOTHING, Why.WAITING)),
        (TagFacts("a", "a", "a", True, True), Decision(Action.NOTHING, Why.UP_TO_DATE, "a")),
        (TagFacts("b", "a", "a", True, True), Decision(Action.RESET, Why.REWOUND, "b")),
        (TagFacts("b", "a", "a", True), Decision(Action.NOTHING, Why.WAITING, "a")),
        (TagFacts("b", "", "", True, True), Decision(Action.CREATE, Why.FIRST, "b")),
        (TagFacts("a", "b", promotable=True), Decision(Action.NOTHING, Why.NOT_OURS, "b")),
        (TagFacts("a", "b", "a", True, True), Decision(Action.RESET, Why.REPAIRED, "a")),
        (TagFacts("a", "", "a", True, True), Decision(Action.CREATE, Why.REPAIRED, "a")),
        (TagFacts("b", "c", "a", True), Decision(Action.RESET, Why.REPAIRED, "a")),
        (TagFacts("", "a", "a", True), Decision(Action.DELETE, Why.GONE)),
        (TagFacts("", "a"), Decision(Action.NOTHING, Why.NOT_OURS, "a")),
        (TagFacts("", "", "a", True), Decision(Action.NOTHING, Why.GONE)),
    ],
)
def test_30_what_becomes_of_a_tag(facts: TagFacts, decision: Decision) -> None:
    assert choose_tag(facts) == decision


@given(FACTS)
def test_30_a_tag_is_put_only_where_everything_is(facts: TagFacts) -> None:
    """At the source's commit if that is complete, or where it was made before."""
    decision = choose_tag(facts)
    if decision.action in (Action.CREATE, Action.RESET):
        assert decision.commit_id == (facts.source if facts.promotable else facts.noted)


@given(FACTS)
def test_30_what_others_made_is_neither_moved_nor_deleted(facts: TagFacts) -> None:
    if facts.head and not facts.made_here:
        assert choose_tag(facts).action is Action.NOTHING


@pytest.mark.parametrize(
    ("facts", "whose"),
    [
        (TagFacts("a", "b", "a", True), Whose.OTHERS),
        (TagFacts("a", "", "a", True), Whose.VANISHED),
        (TagFacts("a", "a", "a", True), Whose.NOTED),
        (TagFacts("b", "b", "a", True), Whose.NOTED),  # made anew by a worker that died before its note
        (TagFacts("c", "b", "a", True, intended=frozenset("b")), Whose.OURS),
        (TagFacts("c", "b", intended=frozenset("b")), Whose.OURS),  # made first by a worker that died before its note
        (TagFacts("", "b", intended=frozenset("b")), Whose.OURS),
        (TagFacts("b", "", "a", True, intended=frozenset(["b", ""])), Whose.OURS),  # on its way to another commit
        (TagFacts("b", "", "", True), Whose.NOTED),
        (TagFacts("", "", "a", True), Whose.NOTED),
        (TagFacts("c", "b", "b", True, intended=frozenset("b")), Whose.NOTED),
        (TagFacts("a", "b"), Whose.NOTED),
        (TagFacts("", "b", former=True), Whose.BACK),
        (TagFacts("c", "b", "a", True, former=True), Whose.BACK),
        (TagFacts("b", "b", former=True), Whose.NOTED),  # the source has it again
    ],
)
def test_who_is_blamed_for_a_tag_that_is_elsewhere(facts: TagFacts, whose: Whose) -> None:
    assert whose_tag_move(facts) is whose
