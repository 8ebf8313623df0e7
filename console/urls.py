"""Addresses of the pages that look over all apps: overview, search, audit, jobs, the API's document, help."""

from __future__ import annotations

from django.urls import path

from console import api_docs
from console.audit import views as audit_views
from console.help import views as help_views
from console.jobs import views as jobs_views
from console.overview import region_map
from console.overview import views as overview_views
from console.search import commit_page, locate
from console.search import views as search_views

urlpatterns = [
    path("", overview_views.overview, name="home"),
    path("map/", region_map.region_map, name="map"),
    path("commits/<str:commit>/", commit_page.commit_page, name="commit"),
    path("search/", search_views.search_page, name="search"),
    path("search/locate/", locate.locate, name="locate"),
    path("audit/", audit_views.audit_list, name="audit"),
    path("jobs/", jobs_views.jobs, name="jobs"),
    path("jobs/<int:duty>/retry/", jobs_views.duty_retry, name="duty_retry"),
    path("jobs/<str:job>/log/", jobs_views.job_log, name="job_log"),
    path("jobs/<str:job>/stop/", jobs_views.job_stopped, name="job_stop"),
    path("jobs/<str:job>/again/", jobs_views.job_again, name="job_again"),
    path("help/", help_views.help_index, name="help"),
    path("help/files/<path:name>", help_views.help_file, name="help-file"),
    path("help/<path:name>/", help_views.help_document, name="help-document"),
    path("docs/api", api_docs.api_docs, name="api-docs"),
]
