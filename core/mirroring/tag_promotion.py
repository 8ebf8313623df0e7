"""What is to be done about a tag at a mirror? Pure; the duties carry the answer out and read it back.

lakeFS never moves a tag: one that the source deleted and made anew elsewhere is deleted and made anew here.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.mirroring.promotion import Action, Whose, Why


@dataclass(frozen=True, slots=True)
class TagFacts:
    """`source`: the commit that the source's tag names, `there`: the mirror's, `noted`: where we made it last; or "".

    `promotable`: the source's commit is complete at the mirror; `ours`: this mirror made the tag; `intended`: what we
    lately meant it to name ("" for none).
    """

    source: str
    there: str
    noted: str = ""
    ours: bool = False
    promotable: bool = False
    intended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TagDecision:
    """`commit_id` is what the tag names afterwards, "" if there is none."""

    action: Action
    why: Why
    commit_id: str = ""


def choose_tag(facts: TagFacts) -> TagDecision:
    """A tag follows once its commit is complete. What others made is neither moved nor deleted."""
    if not facts.source:
        return _choose_deletion(facts)
    if facts.there and not facts.ours:
        why = Why.UP_TO_DATE if facts.there == facts.source else Why.NOT_OURS
        return TagDecision(Action.NOTHING, why, facts.there)
    target = facts.source if facts.promotable else facts.noted
    if not target or target == facts.there:
        why = Why.UP_TO_DATE if facts.there == facts.source else Why.WAITING
        return TagDecision(Action.NOTHING, why, facts.there)
    return TagDecision(Action.RESET if facts.there else Action.CREATE, _why(facts, target), target)


def _choose_deletion(facts: TagFacts) -> TagDecision:
    if not facts.there:
        return TagDecision(Action.NOTHING, Why.GONE)
    if not facts.ours:
        return TagDecision(Action.NOTHING, Why.NOT_OURS, facts.there)
    return TagDecision(Action.DELETE, Why.GONE)


def _why(facts: TagFacts, target: str) -> Why:
    if not facts.noted:
        return Why.FIRST
    return Why.REPAIRED if target == facts.noted else Why.REWOUND


def whose_tag_move(facts: TagFacts) -> Whose:
    """Who put a tag of ours where it is, or took it away. Nobody is blamed for what we may have done ourselves."""
    if facts.there and facts.there != facts.noted and facts.there in facts.intended:
        return Whose.OURS
    if not (facts.ours and facts.noted) or facts.there in (facts.noted, facts.source):
        return Whose.NOTED
    if facts.there in facts.intended:
        return Whose.OURS
    return Whose.OTHERS if facts.there else Whose.VANISHED
