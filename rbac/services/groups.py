"""Groups and who is in them."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from audit.record import Actor, audit
from audit.verbs import Verb
from core.errors import NotFound
from rbac.models import Group, Membership, Policy, User
from rbac.services.administrators import administrator_kept
from rbac.services.authorize import forget
from rbac.services.rows import locked, save_new


def group_find(name: str) -> Group:
    """The group of exactly that name, else NotFound."""
    group = Group.objects.filter(name=name).first()
    if group is None:
        raise NotFound(f"there is no group '{name[:80]}'")
    return group


def groups_of(user: User) -> QuerySet[Group]:
    """The groups that a user is in, by name."""
    return Group.objects.filter(memberships__user=user).order_by("name")


def members_of(group: Group) -> QuerySet[User]:
    """The users in a group, by name."""
    return User.objects.filter(memberships__group=group).order_by("username")


@transaction.atomic
def group_create(*, actor: Actor, name: str, description: str = "", reason: str = "") -> Group:
    """A new, empty group. Invalid, Conflict if the name is taken."""
    group = Group(name=name, description=description)
    save_new(group, f"there is a group '{name}' already")
    after = {"name": name, "description": description}
    audit(actor=actor, right=("auth:CreateGroup", group.arn), verb=Verb.CREATE, after=after, reason=reason)
    return group


@administrator_kept()
def group_delete(*, actor: Actor, group: Group, reason: str = "") -> None:
    """Remove a group; its members lose what it gave them."""
    locked(group)
    before = {
        "name": group.name,
        "members": list(group.members.values_list("username", flat=True)),
        "policies": list(Policy.objects.filter(attachments__group=group).values_list("name", flat=True)),
    }
    audit(actor=actor, right=("auth:DeleteGroup", group.arn), verb=Verb.DELETE, before=before, reason=reason)
    Group.objects.filter(pk=group.pk).delete()
    forget(None)


@administrator_kept()
def group_add(*, actor: Actor, group: Group, user: User, reason: str = "") -> bool:
    """Make a user a member; false if they were."""
    locked(user)
    _, created = Membership.objects.get_or_create(group=group, user=user)
    forget(user)
    if created:
        after = {"user": user.username}
        audit(actor=actor, right=("auth:AddGroupMember", group.arn), verb=Verb.ADD_MEMBER, after=after, reason=reason)
    return created


@administrator_kept()
def group_remove(*, actor: Actor, group: Group, user: User, reason: str = "") -> bool:
    """End a membership; false if there was none."""
    removed, _ = Membership.objects.filter(group=group, user=user).delete()
    forget(user)
    if removed:
        before = {"user": user.username}
        audit(
            actor=actor,
            right=("auth:RemoveGroupMember", group.arn),
            verb=Verb.REMOVE_MEMBER,
            before=before,
            reason=reason,
        )
    return bool(removed)
