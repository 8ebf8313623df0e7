"""Addresses of the API of access, below /api/v1/: lakeFS's, and of keys and rights some of our own."""

from django.urls import path

from rbac.api import credentials, groups, permissions, policies, users

_USER, _GROUP = "auth/users/<str:user_id>", "auth/groups/<str:group_id>"
_KEY = f"{_USER}/credentials/<str:access_key_id>"

urlpatterns = [
    path("user", users.CurrentUser.as_view(), name="api-current-user"),
    path("auth/users", users.Users.as_view(), name="api-users"),
    path(_USER, users.OneUser.as_view(), name="api-user"),
    path(f"{_USER}/groups", users.UserGroups.as_view(), name="api-user-groups"),
    path(f"{_USER}/policies", users.UserPolicies.as_view(), name="api-user-policies"),
    path(f"{_USER}/policies/<str:policy_id>", users.UserPolicy.as_view(), name="api-user-policy"),
    path(f"{_USER}/credentials", credentials.Credentials.as_view(), name="api-credentials"),
    path(_KEY, credentials.OneCredential.as_view(), name="api-credential"),
    path(f"{_KEY}/disable", credentials.Disable.as_view(), name="api-credential-disable"),
    path(f"{_KEY}/rotate", credentials.Rotate.as_view(), name="api-credential-rotate"),
    path(
        f"{_USER}/effective-permissions", permissions.EffectivePermissions.as_view(), name="api-effective-permissions"
    ),
    path("auth/simulate", permissions.Simulate.as_view(), name="api-simulate"),
    path("auth/policies/<str:policy_id>/impact", permissions.PolicyImpact.as_view(), name="api-policy-impact"),
    path("auth/groups", groups.Groups.as_view(), name="api-groups"),
    path(_GROUP, groups.OneGroup.as_view(), name="api-group"),
    path(f"{_GROUP}/members", groups.Members.as_view(), name="api-group-members"),
    path(f"{_GROUP}/members/<str:user_id>", groups.Member.as_view(), name="api-group-member"),
    path(f"{_GROUP}/policies", groups.GroupPolicies.as_view(), name="api-group-policies"),
    path(f"{_GROUP}/policies/<str:policy_id>", groups.GroupPolicy.as_view(), name="api-group-policy"),
    path("auth/policies", policies.Policies.as_view(), name="api-policies"),
    path("auth/policies/<str:policy_id>", policies.OnePolicy.as_view(), name="api-policy"),
]
