"""Who may do what: policies reach people by name and through groups."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from core.errors import Conflict, Denied, Invalid, NotSignedIn
from rbac import services
from rbac.models import Attachment, Group, Policy, User
from rbac.services import builtin
from tests.cast import person

LAKE = "arn:lakefs:fs:::repository/lake"
READ = ("fs:ReadRepository", LAKE)


def put(name: str, effect: str = "allow", action: str = "fs:ReadRepository", resource: str = LAKE) -> Policy:
    statement = {"effect": effect, "action": [action], "resource": resource}
    return services.policy_put(actor="system:tests", document={"id": name, "statement": [statement]})


def test_an_administrator_may_do_everything(owner: User) -> None:
    services.require(owner, READ, ("auth:CreateUser", "arn:lakefs:auth:::user/new"), ("fs:ListRepositories", "*"))


def test_a_viewer_sees_and_changes_nothing(teammate: User) -> None:
    assert services.allowed(teammate, *READ)
    assert services.allowed(teammate, "fs:ListRepositories", "*")
    assert not services.allowed(teammate, "fs:DeleteRepository", LAKE)


def test_a_viewer_manages_only_their_own_keys(teammate: User) -> None:
    assert services.allowed(teammate, "auth:CreateCredentials", teammate.arn)
    assert not services.allowed(teammate, "auth:CreateCredentials", "arn:lakefs:auth:::user/olga")


def test_an_outsider_may_nothing_and_is_told_what_is_missing(outsider: User) -> None:
    with pytest.raises(Denied, match="otto may not fs:ReadRepository on arn:lakefs:fs:::repository/lake") as caught:
        services.require(outsider, READ)
    assert (caught.value.action, caught.value.arn) == READ
    assert "None of their policies" in caught.value.hint


def test_the_first_need_that_is_missing_is_the_one_that_is_named(teammate: User) -> None:
    with pytest.raises(Denied) as caught:
        services.require(teammate, READ, ("fs:WriteObject", LAKE), ("fs:DeleteObject", LAKE))
    assert caught.value.action == "fs:WriteObject"


@pytest.mark.parametrize("nobody", [None, AnonymousUser()])
def test_nobody_may_nothing(nobody: Any) -> None:
    assert not services.allowed(nobody, *READ)
    with pytest.raises(NotSignedIn):
        services.require(nobody, READ)


def test_a_disabled_administrator_may_nothing(owner: User) -> None:
    person("ada", "Admins")
    assert services.user_set_active(actor="system:tests", user=owner, active=False)
    assert not services.allowed(owner, *READ)


def test_a_policy_counts_from_the_moment_it_is_attached_until_it_is_detached(outsider: User) -> None:
    policy = put("read-lake")
    assert services.policy_attach(actor="system:tests", policy=policy, user=outsider)
    assert services.allowed(outsider, *READ)
    assert services.policy_detach(actor="system:tests", policy=policy, user=outsider)
    assert not services.allowed(outsider, *READ)


def test_a_group_gives_what_it_has_to_its_members(outsider: User) -> None:
    group = services.group_create(actor="system:tests", name="readers")
    services.policy_attach(actor="system:tests", policy=put("read-lake"), group=group)
    assert services.group_add(actor="system:tests", group=group, user=outsider)
    assert services.allowed(outsider, *READ)
    assert services.group_remove(actor="system:tests", group=group, user=outsider)
    assert not services.allowed(outsider, *READ)


def test_a_deny_through_a_group_takes_what_a_person_was_given(teammate: User) -> None:
    group = services.group_create(actor="system:tests", name="suspended")
    services.policy_attach(actor="system:tests", policy=put("no-lake", effect="deny"), group=group)
    services.group_add(actor="system:tests", group=group, user=teammate)
    with pytest.raises(Denied, match="deny by statement 1 of policy 'no-lake'"):
        services.require(teammate, READ)


def test_attaching_twice_changes_nothing_the_second_time(outsider: User) -> None:
    policy = put("read-lake")
    assert services.policy_attach(actor="system:tests", policy=policy, user=outsider)
    assert not services.policy_attach(actor="system:tests", policy=policy, user=outsider)


def test_a_policy_hangs_on_one_user_or_one_group(outsider: User) -> None:
    policy, group = put("read-lake"), services.group_create(actor="system:tests", name="g")
    with pytest.raises(Invalid):
        services.policy_attach(actor="system:tests", policy=policy)
    with pytest.raises(Invalid):
        services.policy_attach(actor="system:tests", policy=policy, user=outsider, group=group)
    with pytest.raises(IntegrityError), transaction.atomic():
        Attachment.objects.create(policy=policy, user=outsider, group=group)


def test_putting_a_policy_again_replaces_its_statements(outsider: User) -> None:
    services.policy_attach(actor="system:tests", policy=put("p"), user=outsider)
    put("p", action="fs:WriteObject")
    services.forget(outsider)
    assert not services.allowed(outsider, *READ)
    assert services.allowed(outsider, "fs:WriteObject", LAKE)


def test_a_stored_policy_that_cannot_be_read_denies_everything_to_its_holders(owner: User) -> None:
    broken = Policy.objects.create(name="broken", statement=[{"effect": "allow", "condition": {}}])
    Attachment.objects.create(policy=broken, user=owner)
    with pytest.raises(Denied, match="policy 'broken'"):
        services.require(owner, READ)


def test_all_questions_about_one_user_cost_one_query(teammate: User, django_assert_num_queries: Any) -> None:
    fresh = User.objects.get(pk=teammate.pk)
    with django_assert_num_queries(1):
        for number in range(50):
            services.allowed(fresh, "fs:ReadRepository", f"arn:lakefs:fs:::repository/lake-{number}")


def test_names_are_taken_in_any_case(owner: User) -> None:
    with pytest.raises(Conflict, match="there is a user 'OLGA' already"):
        services.user_create(actor=owner, username="OLGA")


@pytest.mark.parametrize(
    "name", ["", "a b", "*", "o?", "${user}", "a/b", "a:b", "ünal", "x" * 129, "olga\n", ".hidden"]
)
def test_a_name_that_would_mean_something_in_an_arn_is_refused(db: None, name: str) -> None:
    with pytest.raises(Invalid) as caught:
        services.user_create(actor="system:tests", username=name)
    assert caught.value.field == "username"


def test_a_guessable_password_is_refused(db: None) -> None:
    with pytest.raises(Invalid) as caught:
        services.user_create(actor="system:tests", username="ann", password="password")
    assert caught.value.field == "password"
    assert not User.objects.exists()


def test_what_is_built_in_is_installed_once_and_what_was_changed_stays(owner: User) -> None:
    put("ReadAll", action="fs:ListRepositories", resource="*")
    builtin.install()
    assert Policy.objects.get(name="ReadAll").statement[0]["action"] == ["fs:ListRepositories"]
    assert Group.objects.count() == 3
