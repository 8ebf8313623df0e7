"""What is to be done about a tag at a mirror? Pure; the duties carry the answer out and read it back.

lakeFS never moves a tag: one that the source deleted and made anew elsewhere is deleted and made anew here.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.mirroring.promotion import Action, Decision, Whose, Why


@dataclass(frozen=True, slots=True)
class TagFacts:
    """`source`: the commit that the source's tag names, `head`: the mirror's, `noted`: where we made it last; or "".

    `made_here`: this mirror made the tag; `promotable`: the source's commit is complete at the mirror; `intended`: what
    we lately meant it to name ("" for none); `former`: it named `head` before, by our own doing, and nobody else is
    known to have made it since.
    """

    source: str
    head: str
    noted: str = ""
    made_here: bool = False
    promotable: bool = False
    intended: frozenset[str] = frozenset()
    former: bool = False


def choose_tag(facts: TagFacts) -> Decision:
    """A tag follows once its commit is complete. What others made is neither moved nor deleted."""
    if not facts.source:
        return _choose_deletion(facts)
    if facts.head and not facts.made_here:
        why = Why.UP_TO_DATE if facts.head == facts.source else Why.NOT_OURS
        return Decision(Action.NOTHING, why, facts.head)
    target = facts.source if facts.promotable else facts.noted
    if not target or target == facts.head:
        why = Why.UP_TO_DATE if facts.head == facts.source else Why.WAITING
        return Decision(Action.NOTHING, why, facts.head)
    return Decision(Action.RESET if facts.head else Action.CREATE, _why(facts, target), target)


def _choose_deletion(facts: TagFacts) -> Decision:
    if not facts.head:
        return Decision(Action.NOTHING, Why.GONE)
    if not facts.made_here:
        return Decision(Action.NOTHING, Why.NOT_OURS, facts.head)
    return Decision(Action.DELETE, Why.GONE)


def _why(facts: TagFacts, target: str) -> Why:
    if not facts.noted:
        return Why.FIRST
    return Why.REPAIRED if target == facts.noted else Why.REWOUND


def whose_tag_move(facts: TagFacts) -> Whose:
    """Who put a tag of ours where it is, or took it away. Nobody is blamed for what we may have done ourselves."""
    if facts.head and facts.head != facts.noted and facts.head in facts.intended:
        return Whose.OURS
    if facts.head in (facts.noted, facts.source):
        return Whose.NOTED
    if facts.former:
        return Whose.BACK
    if not (facts.made_here and facts.noted):
        return Whose.NOTED
    if facts.head in facts.intended:
        return Whose.OURS
    return Whose.OTHERS if facts.head else Whose.VANISHED
