"""What may somebody do? Asked by whoever receives a call from outside, before anything is done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from core.access.policies import PART_OF, Right, Verdict, deny_everything, evaluate, parse_policy, settling
from core.access.policies import Policy as Reading
from core.errors import Denied, Invalid, NotSignedIn
from rbac.models import Attachment, Policy, User
from rbac.services import policy_cache

logger = logging.getLogger(__name__)


def require(user: Any, *needs: tuple[str, str]) -> None:
    """Return if the user has every (action, ARN); NotSignedIn for nobody, Denied naming the first that is missing."""
    if not getattr(user, "is_authenticated", False):
        raise NotSignedIn("no credentials: send an access key id and its secret by HTTP Basic, or sign in")
    for need in needs:
        _require_one(user, [need])


def require_any(user: Any, *rights: Right) -> Right:
    """The right by which the user may. Of rights that serve each as well one is enough, and a denial of any wins.

    NotSignedIn for nobody, Denied naming the first or the one that is denied."""
    require(user)
    return _require_one(user, rights)


def allowed_any(user: Any, *rights: Right) -> bool:
    """Whether the user has one of rights that serve each as well, and is denied none."""
    return getattr(user, "is_authenticated", False) and _decide_any(user, rights)[1].allowed


def _require_one(user: Any, rights: Sequence[Right]) -> Right:
    (action, arn), verdict = _decide_any(user, rights)
    if verdict.allowed:
        return action, arn
    user.refused = [*getattr(user, "refused", ()), (action, arn)]  # written down when the request has ended
    others = [f"{other} on {its}" for other, its in rights if (other, its) != (action, arn)]
    hint = _why(verdict, action, others)
    raise Denied(f"{user.get_username()} may not {action} on {arn}", action=action, arn=arn, hint=hint)


def _decide_any(user: Any, rights: Sequence[Right]) -> tuple[Right, Verdict]:
    """As `evaluate_any` does, for a user."""
    return settling([(right, decide(user, *right)) for right in rights])


def allowed(user: Any, action: str, arn: str) -> bool:
    """Whether the user may do the action on the resource; nobody may anything."""
    return getattr(user, "is_authenticated", False) and decide(user, action, arn).allowed


def decide(user: User, action: str, arn: str) -> Verdict:
    """The verdict and the statement behind it. Asks the database once for each user object, not for each question."""
    if not user.is_active:
        return Verdict(False)
    return evaluate(policies_of(user), action, arn, user.username)


def policies_of(user: User) -> tuple[Reading, ...]:
    """Every policy that reaches a user, by name, on their own or through groups; one query, kept on the object."""
    if user.given_policies is not None:
        return user.given_policies
    policies: tuple[Reading, ...] | None = user.__dict__.get("_policies")
    if policies is None:
        cache = policy_cache.shared()
        policies = cache.of(user.pk, lambda: policies_now(user)) if cache else policies_now(user)
        user.__dict__["_policies"] = policies
    return policies


def policies_now(user: User) -> tuple[Reading, ...]:
    """The same, asked of the database now."""
    reaching = {at.policy.name: at.policy for at in Attachment.objects.reaching(user)}
    return tuple(reading_of(policy) for policy in reaching.values())


def forget(user: User | None) -> None:
    """Ask anew what this user object may do, and all others once the transaction is through: policies have changed."""
    if user is not None:
        user.__dict__.pop("_policies", None)
    cache = policy_cache.shared()
    if cache is not None:
        transaction.on_commit(cache.clear)


def reading_of(policy: Policy) -> Reading:
    """A stored policy. One that can't be read (by an older version, say) might deny anything, so it denies all."""
    try:
        return parse_policy(policy.document)
    except Invalid as error:
        logger.error("policy %s can't be read and denies everything: %s", policy.name, error)
        return deny_everything(policy.name)


def _why(verdict: Verdict, action: str, others: Sequence[str]) -> str:
    if verdict.deciding:
        return f"It is a {verdict.deciding}"
    whole = PART_OF.get(action)
    part = f", nor {whole}, which it is a part of" if whole else ""
    return f"None of their policies allows it{part}" + "".join(f"; {other} would also be enough" for other in others)
