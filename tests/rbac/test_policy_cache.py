"""Policies that are reused for a while, when the configuration says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import pytest
from django.db import transaction

from deployment import config
from rbac import services
from rbac.models import Attachment, Policy, User
from rbac.services import policy_cache
from tests.cast import person
from tests.deployment.test_config import changed

pytestmark = pytest.mark.django_db(transaction=True)

READ = ("fs:ReadRepository", "arn:lakefs:fs:::repository/lake")
EVERYTHING = [{"effect": "allow", "action": ["fs:*"], "resource": "*"}]
NOTHING = [{"effect": "deny", "action": ["fs:*"], "resource": "*"}]
ACTOR = "system:tests"


@pytest.fixture
def policy() -> Policy:
    return services.policy_put(actor=ACTOR, document={"id": "p", "statement": EVERYTHING})


@pytest.fixture
def holder(policy: Policy) -> User:
    """Someone who may do everything."""
    user = person("holly")
    services.policy_attach(actor=ACTOR, policy=policy, user=user)
    return user


@pytest.fixture
def tell() -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Make this process one with these settings of `auth.cache`."""
    with pytest.MonkeyPatch.context() as patch:

        def told(settings: Mapping[str, Any]) -> None:
            data = changed("auth.cache", settings)
            patch.setattr(config, "current", lambda: config.parse(data))
            policy_cache.shared.cache_clear()

        yield told
    policy_cache.shared.cache_clear()


def may(user: User) -> bool:
    """What a request of theirs is answered now."""
    return services.allowed(User.objects.get(pk=user.pk), *READ)


def another_process_denies() -> None:
    Policy.objects.update(statement=NOTHING)


def queries_of(user: User, count: Any, number: int) -> None:
    fresh = User.objects.get(pk=user.pk)
    with count(number):
        services.allowed(fresh, *READ)


def test_nothing_is_reused_unless_it_is_enabled(holder: User) -> None:
    assert may(holder)
    another_process_denies()
    assert not may(holder)


def test_policies_are_reused_for_their_time_and_no_longer(holder: User, tell: Any) -> None:
    tell({"enabled": True, "ttl": "10s", "jitter": "0s"})
    with mock.patch("rbac.services.policy_cache.time") as clock:
        clock.monotonic.return_value = 1000.0
        assert may(holder)
        another_process_denies()
        clock.monotonic.return_value = 1009.9
        assert may(holder)
        clock.monotonic.return_value = 1010.1
        assert not may(holder)


def test_jitter_is_the_most_that_is_added(holder: User, tell: Any) -> None:
    tell({"enabled": True, "ttl": "10s", "jitter": "4s"})
    with (
        mock.patch("rbac.services.policy_cache.time") as clock,
        mock.patch("rbac.services.policy_cache.random.uniform") as draw,
    ):
        draw.side_effect = lambda least, most: most
        clock.monotonic.return_value = 1000.0
        assert may(holder)
        another_process_denies()
        clock.monotonic.return_value = 1013.9
        assert may(holder)
        clock.monotonic.return_value = 1014.1
        assert not may(holder)


def test_so_many_users_are_kept_as_size_says(holder: User, tell: Any, django_assert_num_queries: Any) -> None:
    tell({"enabled": True, "size": 2})
    people = [holder, person("anna"), person("bert")]
    for user in people:
        queries_of(user, django_assert_num_queries, 1)
    queries_of(people[1], django_assert_num_queries, 0)
    queries_of(people[2], django_assert_num_queries, 0)
    queries_of(people[0], django_assert_num_queries, 1)


def _replace(policy: Policy, user: User) -> None:
    services.policy_put(actor=ACTOR, document={"id": "p", "statement": NOTHING})


def _delete(policy: Policy, user: User) -> None:
    services.policy_delete(actor=ACTOR, policy=policy)


def _detach(policy: Policy, user: User) -> None:
    services.policy_detach(actor=ACTOR, policy=policy, user=user)


def _suspend(policy: Policy, user: User) -> None:
    group = services.group_create(actor=ACTOR, name="suspended")
    deny = services.policy_put(actor=ACTOR, document={"id": "deny", "statement": NOTHING})
    services.policy_attach(actor=ACTOR, policy=deny, group=group)
    assert may(user)
    services.group_add(actor=ACTOR, group=group, user=user)


def _disable(policy: Policy, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize("change", [_replace, _delete, _detach, _suspend, _disable])
def test_a_change_by_this_process_counts_at_once(holder: User, policy: Policy, tell: Any, change: Any) -> None:
    tell({"enabled": True, "ttl": "1h"})
    assert may(holder)
    change(policy, holder)
    assert not may(holder)


def test_leaving_or_losing_a_group_counts_at_once(policy: Policy, tell: Any) -> None:
    tell({"enabled": True, "ttl": "1h"})
    user = person("gina")
    group = services.group_create(actor=ACTOR, name="readers")
    services.policy_attach(actor=ACTOR, policy=policy, group=group)
    services.group_add(actor=ACTOR, group=group, user=user)
    assert may(user)
    services.group_remove(actor=ACTOR, group=group, user=user)
    assert not may(user)
    services.group_add(actor=ACTOR, group=group, user=user)
    assert may(user)
    services.group_delete(actor=ACTOR, group=group)
    assert not may(user)


def test_what_was_read_before_a_change_is_not_kept_after_it(holder: User, tell: Any) -> None:
    """Another thread read the old policies, and comes to keep them when the change is through."""
    tell({"enabled": True, "ttl": "1h"})
    cache = policy_cache.shared()
    assert cache is not None
    old = services.policies_of(User.objects.get(pk=holder.pk))

    def read_slowly() -> Any:
        services.policy_put(actor=ACTOR, document={"id": "p", "statement": NOTHING})
        return old

    cache.clear()
    assert cache.of(holder.pk, read_slowly) == old
    assert not may(holder)


def test_what_a_transaction_took_back_was_never_kept(policy: Policy, tell: Any) -> None:
    tell({"enabled": True, "ttl": "1h"})
    user = person("rolf")
    assert not may(user)
    with transaction.atomic():
        services.policy_attach(actor=ACTOR, policy=policy, user=user)
        assert may(user)
        transaction.set_rollback(True)
    assert not Attachment.objects.filter(user=user).exists()
    assert not may(user)
