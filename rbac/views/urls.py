"""Addresses of the pages of access."""

from __future__ import annotations

from django.urls import path

from rbac.views import groups, keys, policies, simulate, users

_USER, _GROUP, _POLICY = "access/users/<str:name>/", "access/groups/<str:name>/", "access/policies/<str:name>/"
_KEY = f"{_USER}keys/<str:key>/"

urlpatterns = [
    path("access/", keys.access, name="access"),
    path("access/users/", users.user_list, name="users"),
    path("access/new-user/", users.user_new, name="user_new"),
    path(_USER, users.user_detail, name="user"),
    path(f"{_USER}edit/", users.user_edit, name="user_edit"),
    path(f"{_USER}disable/", users.user_active, {"active": False}, name="user_disable"),
    path(f"{_USER}enable/", users.user_active, {"active": True}, name="user_enable"),
    path(f"{_USER}delete/", users.user_delete, name="user_delete"),
    path(f"{_USER}group/", users.user_group, name="user_group"),
    path(f"{_USER}policy/", users.user_policy, name="user_policy"),
    path(f"{_USER}keys/", keys.user_keys, name="user_keys"),
    path(f"{_USER}new-key/", keys.key_create, name="key_create"),
    path(f"{_KEY}rotate/", keys.key_rotate, name="key_rotate"),
    path(f"{_KEY}disable/", keys.key_end, {"forever": False}, name="key_disable"),
    path(f"{_KEY}delete/", keys.key_end, {"forever": True}, name="key_delete"),
    path("access/groups/", groups.group_list, name="groups"),
    path("access/new-group/", groups.group_new, name="group_new"),
    path(_GROUP, groups.group_detail, name="group"),
    path(f"{_GROUP}add/", groups.group_add, name="group_add"),
    path(f"{_GROUP}policy/", groups.group_policy, name="group_policy"),
    path(f"{_GROUP}delete/", groups.group_delete, name="group_delete"),
    path("access/policies/", policies.policy_list, name="policies"),
    path("access/new-policy/", policies.policy_new, name="policy_new"),
    path("access/update-policies/", policies.policies_update, name="policies_update"),
    path(_POLICY, policies.policy_detail, name="policy"),
    path(f"{_POLICY}attach/", policies.policy_attached, name="policy_attach"),
    path(f"{_POLICY}edit/", policies.policy_edit, name="policy_edit"),
    path(f"{_POLICY}delete/", policies.policy_delete, name="policy_delete"),
    path("access/keys/", keys.my_keys, name="keys"),
    path("access/simulate/", simulate.simulate_page, name="simulate"),
]
