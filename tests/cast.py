"""The people of every test: one who may do everything, one who may only look, one who may do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rbac.models import User

PASSWORD = "correct horse battery staple"


def person(name: str, *groups: str) -> User:
    """A user with the cast's password in the built-in groups of those names."""
    from rbac import services
    from rbac.models import Group
    from rbac.services import builtin

    builtin.install()
    user = services.user_create(actor="system:tests", username=name, password=PASSWORD)
    for group in Group.objects.filter(name__in=groups):
        services.group_add(actor="system:tests", group=group, user=user)
    return user


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
