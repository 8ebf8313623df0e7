"""Policies, and who has which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from audit.record import Actor, audit
from audit.verbs import Verb
from core.access.policies import parse_policy
from core.errors import Invalid, NotFound
from rbac.models import Attachment, Group, Policy, User
from rbac.services.administrators import administrator_kept
from rbac.services.authorize import forget
from rbac.services.rows import locked, save_new


def policy_find(name: str) -> Policy:
    """The policy of exactly that name, else NotFound."""
    policy = Policy.objects.filter(name=name).first()
    if policy is None:
        raise NotFound(f"there is no policy '{name[:80]}'")
    return policy


def policies_held(*, user: User | None = None, group: Group | None = None) -> QuerySet[Policy]:
    """The policies attached to one user or to one group itself, by name."""
    _holder(user, group)
    return Policy.objects.filter(attachments__user=user, attachments__group=group).order_by("name")


def policies_effective(user: User) -> QuerySet[Policy]:
    """The policies that reach a user, by name: on their own, or through a group."""
    reaching = Attachment.objects.reaching(user).order_by().values("policy")
    return Policy.objects.filter(pk__in=reaching).order_by("name")


@transaction.atomic
def policy_create(*, actor: Actor, document: Mapping[str, Any], reason: str = "") -> Policy:
    """A new policy. Invalid names the statement that is wrong; Conflict if there is one of that id."""
    name = parse_policy(document).name
    policy = Policy(name=name, statement=document["statement"])
    save_new(policy, f"there is a policy '{name}' already")
    after = policy.document
    audit(actor=actor, right=("auth:CreatePolicy", policy.arn), verb=Verb.CREATE, after=after, reason=reason)
    return policy


@administrator_kept()
def policy_update(*, actor: Actor, policy: Policy, statement: object, reason: str = "") -> Policy:
    """Replace a policy's statements; it stays the one it was. Invalid names the statement that is wrong."""
    parse_policy({"id": policy.name, "statement": statement})
    row = locked(policy)
    before, row.statement = row.document, statement
    row.save(update_fields=["statement", "updated_at"])
    forget(None)
    audit(
        actor=actor,
        right=("auth:UpdatePolicy", row.arn),
        verb=Verb.CHANGE,
        before=before,
        after=row.document,
        reason=reason,
    )
    return row


def policy_put(*, actor: Actor, document: Mapping[str, Any], reason: str = "") -> Policy:
    """Create a policy, or replace the statements of the one of that id. Invalid names the statement that is wrong."""
    old = Policy.objects.filter(name=parse_policy(document).name).first()
    if old is None:
        return policy_create(actor=actor, document=document, reason=reason)
    return policy_update(actor=actor, policy=old, statement=document["statement"], reason=reason)


@administrator_kept()
def policy_delete(*, actor: Actor, policy: Policy, reason: str = "") -> None:
    """Remove a policy from everybody."""
    before = locked(policy).document
    audit(actor=actor, right=("auth:DeletePolicy", policy.arn), verb=Verb.DELETE, before=before, reason=reason)
    Policy.objects.filter(pk=policy.pk).delete()
    forget(None)


@administrator_kept()
def policy_attach(
    *, actor: Actor, policy: Policy, user: User | None = None, group: Group | None = None, reason: str = ""
) -> bool:
    """Give a policy to one user or to one group; false if they had it."""
    holder = locked(_holder(user, group))
    _, created = Attachment.objects.get_or_create(policy=policy, user=user, group=group)
    forget(user)
    if created:
        after = {"policy": policy.arn, "to": holder.arn}
        audit(actor=actor, right=("auth:AttachPolicy", holder.arn), verb=Verb.ATTACH, after=after, reason=reason)
    return created


@administrator_kept()
def policy_detach(
    *, actor: Actor, policy: Policy, user: User | None = None, group: Group | None = None, reason: str = ""
) -> bool:
    """Take a policy from one user or one group; false if they didn't have it."""
    holder = _holder(user, group)
    removed, _ = Attachment.objects.filter(policy=policy, user=user, group=group).delete()
    forget(user)
    if removed:
        before = {"policy": policy.arn, "from": holder.arn}
        audit(actor=actor, right=("auth:DetachPolicy", holder.arn), verb=Verb.DETACH, before=before, reason=reason)
    return bool(removed)


def _holder(user: User | None, group: Group | None) -> User | Group:
    holder = user or group
    if holder is None or (user and group):
        raise Invalid("a policy is attached to one user or to one group", field="user")
    return holder
