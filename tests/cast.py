"""The people of every test: one who may do everything, one who may only look, one who may do nothing."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

if TYPE_CHECKING:
    from rbac.models import User

PASSWORD = "correct horse battery staple"


def person(name: str, *groups: str) -> User:
    """A user with the cast's password in the built-in groups of those names."""
    from rbac import services
    from rbac.models import Group

    _install()
    user = services.user_create(actor="system:tests", username=name, password=PASSWORD)
    for group in Group.objects.filter(name__in=groups):
        services.group_add(actor="system:tests", group=group, user=user)
    return user


def _install() -> None:
    """What is built in: made by its service the first time, and then copied, which is quicker."""
    from audit.models import AuditEvent
    from rbac.models import Attachment, Group, Policy
    from rbac.services import builtin

    models = (Policy, Group, Attachment, AuditEvent)
    if connection.vendor != "sqlite" or any(model.objects.exists() for model in models):
        builtin.install()
    elif not _BUILT_IN:
        builtin.install()
        _BUILT_IN.extend((model, list(model.objects.order_by("pk"))) for model in models)
    else:
        for model, rows in _BUILT_IN:
            model.objects.bulk_create([copy(row) for row in rows])


_BUILT_IN: list[tuple[Any, list[Any]]] = []


@pytest.fixture
def owner(db: None) -> User:
    """Olga is an administrator."""
    return person("olga", "Admins")


@pytest.fixture
def teammate(db: None) -> User:
    """Tom may look at everything and change nothing."""
    return person("tom", "Viewers")


@pytest.fixture
def outsider(db: None) -> User:
    """Otto has an account and no policy at all."""
    return person("otto")
