"""Might somebody do something at all, whatever it is done to? Asked where a page leads to a form."""

from __future__ import annotations

from collections.abc import Sequence

from core.access.policies import Effect, Policy, Right, evaluate


def has_somewhere(policies: Sequence[Policy], everywhere: Right, username: str) -> bool:
    """Whether some statement allows the action, on whatever resource. `everywhere`: the action on all resources of its
    kind; who is denied that has it nowhere."""
    verdict = evaluate(policies, *everywhere, username)
    if verdict.is_denied or verdict.allowed:
        return verdict.allowed
    statements = (statement for policy in policies for statement in policy.statements)
    return any(s.effect is Effect.ALLOW and s.names(everywhere[0]) for s in statements)
