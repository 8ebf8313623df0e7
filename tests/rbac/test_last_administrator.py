"""Somebody can always administer access: whatever would take away the last one is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from audit.models import AuditEvent
from core.errors import Conflict
from rbac import services
from rbac.models import AccessKey, Group, Policy, User
from rbac.services import builtin
from tests.cast import person

SYSTEM: dict[str, Any] = {"actor": "system:tests"}


def admins() -> Group:
    return services.group_find(builtin.ADMINS)


def deny(action: str = "auth:AttachPolicy", resource: str = "arn:lakefs:auth:::user/tom") -> Policy:
    statement = [{"effect": "deny", "action": [action], "resource": resource}]
    return services.policy_put(**SYSTEM, document={"id": "deny", "statement": statement})


CHANGES: dict[str, Callable[[User], Any]] = {
    "disable": lambda olga: services.user_set_active(**SYSTEM, user=olga, active=False),
    "delete": lambda olga: services.user_delete(**SYSTEM, user=olga),
    "password": lambda olga: services.user_set_password(**SYSTEM, user=olga, password=""),
    "leave": lambda olga: services.group_remove(**SYSTEM, group=admins(), user=olga),
    "group": lambda olga: services.group_delete(**SYSTEM, group=admins()),
    "detach": lambda olga: services.policy_detach(**SYSTEM, policy=services.policy_find("AllAccess"), group=admins()),
    "policy": lambda olga: services.policy_delete(**SYSTEM, policy=services.policy_find("AllAccess")),
    "edit": lambda olga: services.policy_update(
        **SYSTEM,
        policy=services.policy_find("AllAccess"),
        statement=[{"effect": "allow", "action": ["auth:Attach*", "fs:*"], "resource": "*"}],
    ),
    "narrow": lambda olga: services.policy_update(
        **SYSTEM,
        policy=services.policy_find("AllAccess"),
        statement=[{"effect": "allow", "action": ["auth:*"], "resource": "arn:lakefs:auth:::user/*"}],
    ),
    "deny": lambda olga: services.policy_attach(**SYSTEM, policy=deny(), user=olga),
    "deny in a group": lambda olga: services.policy_attach(**SYSTEM, policy=deny("auth:*"), group=admins()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_would_leave_nobody_is_refused_and_undone(owner: User, teammate: User, change: Any) -> None:
    deny()
    events = AuditEvent.objects.count()
    with pytest.raises(
        Conflict, match=r"no one would be left .* olga can now.* Make somebody else an administrator first"
    ):
        change(owner)
    assert services.administrator() == owner
    assert AuditEvent.objects.filter(action__startswith="auth:").count() - events in (0, 1)  # 1: `deny` itself again


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_with_another_administrator_it_is_done(owner: User, change: Any) -> None:
    ada = person("ada")
    own = {"id": "Own", "statement": [{"effect": "allow", "action": ["auth:*"], "resource": "arn:lakefs:auth:::*"}]}
    services.policy_attach(**SYSTEM, policy=services.policy_put(**SYSTEM, document=own), user=ada)
    change(owner)
    assert services.administrator() == ada


@pytest.mark.parametrize("end", [services.key_disable, services.key_delete])
def test_the_last_key_of_an_administrator_without_a_password_stays(owner: User, end: Any) -> None:
    issued = services.key_create(**SYSTEM, user=owner)
    services.user_set_password(**SYSTEM, user=owner, password="")
    with pytest.raises(Conflict, match="no one would be left"):
        end(**SYSTEM, key=issued.key)
    successor = services.key_rotate(**SYSTEM, key=issued.key, overlap=timedelta(0))
    end(**SYSTEM, key=issued.key)
    assert services.key_check(key_id=successor.key.key_id, secret=successor.secret) is not None


def test_who_cannot_sign_in_is_no_administrator(owner: User) -> None:
    ghost = services.user_create(**SYSTEM, username="ghost")
    expired = services.key_create(**SYSTEM, user=ghost)
    AccessKey.objects.filter(pk=expired.key.pk).update(expires_at=timezone.now())
    services.group_add(**SYSTEM, group=admins(), user=ghost)
    with pytest.raises(Conflict):
        services.user_set_active(**SYSTEM, user=owner, active=False)


def test_a_denial_of_something_else_makes_nobody_less_of_an_administrator(owner: User) -> None:
    services.policy_attach(**SYSTEM, policy=deny("fs:*", "*"), user=owner)
    assert services.is_administrator(owner)


def test_where_nobody_was_an_administrator_nothing_is_refused(teammate: User) -> None:
    services.user_delete(**SYSTEM, user=teammate)
    services.group_delete(**SYSTEM, group=admins())
    assert not User.objects.exists()


def test_the_guard_costs_few_questions(owner: User, teammate: User, django_assert_max_num_queries: Any) -> None:
    for number in range(20):
        services.user_create(**SYSTEM, username=f"u{number}")
    with django_assert_max_num_queries(16):
        services.user_set_active(**SYSTEM, user=teammate, active=False)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_disable_each_other_at_once_one_stays() -> None:
    olga, ada = person("olga", "Admins"), person("ada", "Admins")
    answers: list[object] = []

    def disable_olga() -> None:
        try:
            answers.append(services.user_set_active(**SYSTEM, user=olga, active=False))
        except Conflict as error:
            answers.append(error)
        finally:
            connection.close()

    second = Thread(target=disable_olga)
    with services.administrator_kept():
        services.user_set_active(**SYSTEM, user=ada, active=False)
        second.start()
        second.join(timeout=0.5)
        assert second.is_alive(), "it waits in line"
    second.join(timeout=10)
    assert "no one would be left" in str(answers[0])
    assert services.administrator() == olga
