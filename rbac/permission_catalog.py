"""What people do, by part of the site, and what each step needs: the apps register theirs when they are loaded.

`tests/rbac/test_permission_catalog.py` holds that every right that the code asks for is in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from core.access.policies import ALL, Right, auth_arn
from core.access.policy_analysis import Need, PermissionStep, Place
from rbac.models import Group, Policy, User


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the site. `places` gives what there is, at most so many."""

    title: str
    steps: tuple[PermissionStep, ...]
    places: Callable[[int], Iterable[Place]]


_areas: dict[str, Area] = {}


def register(area: Area) -> None:
    """Make the steps of a part known; again replaces them."""
    _areas[area.title] = area


def areas() -> tuple[Area, ...]:
    """All parts that are known."""
    return tuple(_areas.values())


def a_step(key: str, title: str, *needs: Right | tuple[Right, ...]) -> PermissionStep:
    """A step from pairs of action and ARN with blanks; several in the place of one: each of them serves."""
    return PermissionStep(key, title, tuple(a_need(*each_of(need)) for need in needs))


def a_need(right: Right, *instead: Right) -> Need:
    """A right, and others that would serve as well."""
    return Need(*right, tuple(Need(*other) for other in instead))


def each_of(need: Right | tuple[Right, ...]) -> tuple[Right, ...]:
    """One right, or several."""
    return (need,) if isinstance(need[0], str) else need  # type: ignore[return-value]


# --- access itself ----------------------------------------------------------------------------------------------------

_USER, _GROUP, _POLICY = (auth_arn(kind, f"{{{kind}}}") for kind in ("user", "group", "policy"))

ACCESS = (
    a_step("audit", "See the audit log", ("auth:ListAuditEvents", ALL)),
    a_step("access.users", "List users", ("auth:ListUsers", ALL)),
    a_step("access.user", "See a user and what they may do", ("auth:ReadUser", _USER)),
    a_step("access.user-create", "Create a user", ("auth:CreateUser", _USER)),
    a_step("access.user-change", "Edit, disable and enable a user", ("auth:UpdateUser", _USER)),
    a_step("access.user-delete", "Delete a user", ("auth:DeleteUser", _USER)),
    a_step("access.user-policies", "Attach policies to a user", ("auth:AttachPolicy", _USER)),
    a_step("access.user-policies-less", "Detach policies from a user", ("auth:DetachPolicy", _USER)),
    a_step("access.keys", "List a user's access keys", ("auth:ListCredentials", _USER)),
    a_step("access.key", "See one access key through the API", ("auth:ReadCredentials", _USER)),
    a_step("access.key-create", "Create access keys for a user", ("auth:CreateCredentials", _USER)),
    a_step("access.key-delete", "Disable and delete a user's access keys", ("auth:DeleteCredentials", _USER)),
    a_step("access.groups", "List groups", ("auth:ListGroups", ALL)),
    a_step("access.group", "See a group", ("auth:ReadGroup", _GROUP)),
    a_step("access.group-create", "Create a group", ("auth:CreateGroup", _GROUP)),
    a_step("access.group-delete", "Delete a group", ("auth:DeleteGroup", _GROUP)),
    a_step("access.members", "Add users to a group", ("auth:AddGroupMember", _GROUP)),
    a_step("access.members-less", "Remove users from a group", ("auth:RemoveGroupMember", _GROUP)),
    a_step("access.group-policies", "Attach policies to a group", ("auth:AttachPolicy", _GROUP)),
    a_step("access.group-policies-less", "Detach policies from a group", ("auth:DetachPolicy", _GROUP)),
    a_step("access.policies", "List policies", ("auth:ListPolicies", ALL)),
    a_step("access.policy", "See a policy and what a change of it would do", ("auth:ReadPolicy", _POLICY)),
    a_step("access.policy-create", "Create a policy", ("auth:CreatePolicy", _POLICY)),
    a_step("access.policy-change", "Edit a policy", ("auth:UpdatePolicy", _POLICY)),
    a_step("access.policy-delete", "Delete a policy", ("auth:DeletePolicy", _POLICY)),
)


def _places(most: int) -> Iterable[Place]:
    for kind, model, field in (("user", User, "username"), ("group", Group, "name"), ("policy", Policy, "name")):
        names = model.objects.order_by(field).values_list(field, flat=True)[:most]
        yield from ({kind: name} for name in names)


def register_access() -> None:
    """The steps of this app."""
    register(Area("Access", ACCESS, _places))
