"""Addresses of the pages of access."""

from __future__ import annotations

from django.urls import path

from rbac import group_views, key_views, policy_views, simulate_views, user_views

_USER, _GROUP, _POLICY = "access/users/<str:name>/", "access/groups/<str:name>/", "access/policies/<str:name>/"
_KEY = f"{_USER}keys/<str:key>/"

urlpatterns = [
    path("access/", key_views.access, name="access"),
    path("access/users/", user_views.user_list, name="users"),
    path("access/new-user/", user_views.user_new, name="user_new"),
    path(_USER, user_views.user_detail, name="user"),
    path(f"{_USER}edit/", user_views.user_edit, name="user_edit"),
    path(f"{_USER}disable/", user_views.user_active, {"active": False}, name="user_disable"),
    path(f"{_USER}enable/", user_views.user_active, {"active": True}, name="user_enable"),
    path(f"{_USER}delete/", user_views.user_delete, name="user_delete"),
    path(f"{_USER}group/", user_views.user_group, name="user_group"),
    path(f"{_USER}policy/", user_views.user_policy, name="user_policy"),
    path(f"{_USER}keys/", key_views.user_keys, name="user_keys"),
    path(f"{_USER}new-key/", key_views.key_create, name="key_create"),
    path(f"{_KEY}rotate/", key_views.key_rotate, name="key_rotate"),
    path(f"{_KEY}disable/", key_views.key_end, {"forever": False}, name="key_disable"),
    path(f"{_KEY}delete/", key_views.key_end, {"forever": True}, name="key_delete"),
    path("access/groups/", group_views.group_list, name="groups"),
    path("access/new-group/", group_views.group_new, name="group_new"),
    path(_GROUP, group_views.group_detail, name="group"),
    path(f"{_GROUP}add/", group_views.group_add, name="group_add"),
    path(f"{_GROUP}policy/", group_views.group_policy, name="group_policy"),
    path(f"{_GROUP}delete/", group_views.group_delete, name="group_delete"),
    path("access/policies/", policy_views.policy_list, name="policies"),
    path("access/new-policy/", policy_views.policy_new, name="policy_new"),
    path(_POLICY, policy_views.policy_detail, name="policy"),
    path(f"{_POLICY}edit/", policy_views.policy_edit, name="policy_edit"),
    path(f"{_POLICY}delete/", policy_views.policy_delete, name="policy_delete"),
    path("access/keys/", key_views.my_keys, name="keys"),
    path("access/simulate/", simulate_views.simulate_page, name="simulate"),
]
