"""Addresses of installations in the replication API, below /service/replication/v1/."""

from django.urls import path

from installations import api

urlpatterns = [
    path("installations", api.Installations.as_view(), name="api-installations"),
    path("installations/<str:region>", api.InstallationDetail.as_view(), name="api-installation"),
    path("installations/<str:region>/policy", api.InstallationPolicies.as_view(), name="api-installation-policy"),
    path("installations/<str:region>/test", api.InstallationTested.as_view(), name="api-installation-test"),
]
