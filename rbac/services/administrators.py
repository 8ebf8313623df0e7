"""Who can administer access, and that somebody always can.

An administrator is an active user with a password or a usable access key who may do every one of ADMINISTRATION
everywhere: allowed on `*` or on `arn:lakefs:auth:::*`, and denied nowhere. Such a person can give themselves, and
everybody else, all that is missing. A change that would leave none is refused; where there was none, none is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from core.access.policies import everywhere
from core.errors import Conflict
from rbac.models import AccessKey, Attachment, Policy, User
from rbac.services.authorize import policies_now

ADMINISTRATION = (
    "auth:AttachPolicy",
    "auth:DetachPolicy",
    "auth:CreatePolicy",
    "auth:UpdatePolicy",
    "auth:CreateUser",
    "auth:AddGroupMember",
)
EVERYWHERE = ("*", "arn:lakefs:auth:::*")

_asked_later: ContextVar[bool] = ContextVar("asked_later", default=False)


@contextmanager
def administrator_kept() -> Iterator[None]:
    """A transaction that Conflict undoes if it takes away the last administrator. Such transactions wait in line.

    The line is a lock on all policies: without a policy there is no administrator. It is taken before any other.
    Within another one it leaves the question to that one: several changes can be one.
    """
    if _asked_later.get():
        with transaction.atomic():
            yield
        return
    token = _asked_later.set(True)
    try:
        with _guarded_transaction():
            yield
    finally:
        _asked_later.reset(token)


@contextmanager
def _guarded_transaction() -> Iterator[None]:
    with transaction.atomic():
        list(Policy.objects.select_for_update().order_by("pk").values_list("pk"))
        before = administrator()
        yield
        if before and not administrator():
            raise Conflict(
                f"no one would be left who can administer access: {before.username} can now",
                hint="Make somebody else an administrator first: add an active user with a password or a working "
                "access key to a group like Admins",
            )


def administrator() -> User | None:
    """One of the administrators; None if there is none."""
    return next((user for user in _candidates() if is_administrator(user)), None)


def is_administrator(user: User) -> bool:
    """Whether an active user who can sign in may administer access everywhere, by what the database says now."""
    policies = policies_now(user)
    return all(everywhere(policies, action, EVERYWHERE) for action in ADMINISTRATION)


def can_sign_in() -> QuerySet[User]:
    """Active users with a password or a usable access key."""
    keys = AccessKey.objects.active(timezone.now()).filter(user=OuterRef("pk"))
    has_password = ~Q(password="") & ~Q(password__startswith="!")
    return User.objects.filter(has_password | Exists(keys), is_active=True)


def _candidates() -> QuerySet[User]:
    """Those who can sign in and have a policy that reaches them; administrators are among them."""
    own = Attachment.objects.filter(user=OuterRef("pk"))
    through_groups = Attachment.objects.filter(group__memberships__user=OuterRef("pk"))
    return can_sign_in().filter(Exists(own) | Exists(through_groups)).order_by("pk")
