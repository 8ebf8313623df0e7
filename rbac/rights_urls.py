"""Addresses of the API of what people may do, below /api/v1/auth/."""

from django.urls import path

from rbac import rights_api

urlpatterns = [
    path(
        "users/<str:user_id>/effective-permissions",
        rights_api.EffectivePermissions.as_view(),
        name="api-effective-permissions",
    ),
    path("simulate", rights_api.Simulate.as_view(), name="api-simulate"),
    path("policies/<str:policy_id>/impact", rights_api.PolicyImpact.as_view(), name="api-policy-impact"),
]
