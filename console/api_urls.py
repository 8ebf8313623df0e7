"""Addresses of the replication API that are about all apps, below /service/replication/v1/."""

from django.urls import path

from console import api_docs
from console.audit import api as audit_api
from console.jobs import api as jobs_api
from console.overview import api as overview_api
from console.search import api as search_api

urlpatterns = [
    path("openapi.json", api_docs.Document.as_view(), name="api-openapi"),
    path("overview", overview_api.Overview.as_view(), name="api-overview"),
    path("audit", audit_api.Audit.as_view(), name="api-audit"),
    path("jobs", jobs_api.Jobs.as_view(), name="api-jobs"),
    path("jobs/<str:job>", jobs_api.JobDetail.as_view(), name="api-job"),
    path("jobs/<str:job>/log", jobs_api.JobLog.as_view(), name="api-job-log"),
    path("jobs/<str:job>/stop", jobs_api.JobStop.as_view(), name="api-job-stop"),
    path("jobs/<str:job>/retry", jobs_api.JobRetry.as_view(), name="api-job-retry"),
    path("search", search_api.Search.as_view(), name="api-search"),
]
