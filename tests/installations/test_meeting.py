"""Who takes a lakeFS, or an installation, away meets who stores something that needs it: one sees the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Thread

import pytest
from django.db import connection, transaction

from core.errors import Conflict
from core.installations.settings import Secrets, Wish
from installations import services
from mirrors.models import Mirror
from mirrors.services.placement import hold_places
from rbac.models import User
from replication.models import Rule
from tests.cast import person
from tests.mirrors.harness import deployment, forget_installations
from tests.replication.factories import a_rule

pytestmark = pytest.mark.django_db(transaction=True)

WISH = Wish("landing", "http://lakefs.landing", "AKIALAKE", store_endpoint="http://landing:9000")
WISH = replace(WISH, store_access_key_id="AKIALAND")
SECRETS = Secrets(lakefs="lakefs-of-landing", store="store-of-landing")


@pytest.fixture
def olga() -> Iterator[User]:
    """An administrator of a deployment with a mirror in eu-west-1, and a lakeFS in landing."""
    with deployment() as made:
        made.add_mirror()
        forget_installations()
        user = person("olga", "Admins")
        services.installation_create(actor=user, wish=WISH, secrets=SECRETS)
        yield user


def meanwhile(call: Callable[[], object]) -> tuple[Thread, list[object]]:
    """Somebody else does this, and waits in line; what came of it."""
    came: list[object] = []

    def told() -> None:
        try:
            came.append(call())
        except Conflict as error:
            came.append(error.message)
        finally:
            connection.close()

    second = Thread(target=told)
    second.start()
    second.join(timeout=0.5)
    assert second.is_alive() and not came, came
    return second, came


def taken_away(olga: User) -> None:
    alone = replace(WISH, lakefs_endpoint="", lakefs_access_key_id="")
    services.installation_update(actor=olga, region="landing", wish=alone, secrets=Secrets())


def deleted(olga: User) -> None:
    services.installation_delete(actor=olga, region="landing")


def mirror_stored() -> None:
    with transaction.atomic():
        hold_places()
        services.hold_lakefs("landing")
        Mirror.objects.update(region="landing")


def rule_stored() -> None:
    with transaction.atomic():
        hold_places()
        services.hold("landing")
        a_rule(region="landing")


@pytest.mark.parametrize("take", [taken_away, deleted])
def test_who_takes_it_away_sees_the_mirror_that_is_just_being_stored(olga: User, take: Callable[[User], None]) -> None:
    with transaction.atomic():
        hold_places()
        services.hold_lakefs("landing")
        Mirror.objects.update(region="landing")
        second, came = meanwhile(lambda: take(olga))
    second.join(timeout=10)
    assert "is used by 1 mirror" in str(came)


@pytest.mark.parametrize("take", [taken_away, deleted])
def test_who_stores_a_mirror_sees_that_it_has_just_gone(olga: User, take: Callable[[User], None]) -> None:
    with transaction.atomic():
        take(olga)
        second, came = meanwhile(mirror_stored)
    second.join(timeout=10)
    assert "has just been deleted, or has lost its lakeFS" in str(came)
    assert not Mirror.objects.filter(region="landing").exists()


def test_who_deletes_it_sees_the_rule_that_is_just_being_stored(olga: User) -> None:
    with transaction.atomic():
        hold_places()
        services.hold("landing")
        a_rule(region="landing")
        second, came = meanwhile(lambda: deleted(olga))
    second.join(timeout=10)
    assert "is used by 1 replication rule" in str(came)


def test_who_stores_a_rule_sees_that_it_has_just_been_deleted(olga: User) -> None:
    with transaction.atomic():
        deleted(olga)
        second, came = meanwhile(rule_stored)
    second.join(timeout=10)
    assert "the installation 'landing' has just been deleted" in str(came) and not Rule.objects.exists()
