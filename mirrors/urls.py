"""Addresses of the pages: overview, jobs, installations, mirrors."""

from __future__ import annotations

from django.urls import path

from installations import views as installation_views
from mirrors import (
    audit_list_views,
    audit_views,
    backlog_views,
    commit_views,
    creation_views,
    jobs_views,
    list_views,
    metrics_views,
    overview_views,
    repair_views,
    runs_views,
    search_views,
    settings_views,
    views,
    waiver_views,
)

urlpatterns = [
    path("", overview_views.overview, name="home"),
    path("search/", search_views.search_page, name="search"),
    path("audit/", audit_list_views.audit_list, name="audit"),
    path("jobs/", jobs_views.jobs, name="jobs"),
    path("jobs/<int:duty>/retry/", jobs_views.duty_retry, name="duty_retry"),
    path("jobs/<str:job>/log/", jobs_views.job_log, name="job_log"),
    path("jobs/<str:job>/stop/", jobs_views.job_stopped, name="job_stop"),
    path("jobs/<str:job>/again/", jobs_views.job_again, name="job_again"),
    path("installations/", installation_views.installation_list, name="installations"),
    path("installations/new/", installation_views.installation_new, name="installation_new"),
    path("installations/<str:region>/", installation_views.installation_detail, name="installation"),
    path("installations/<str:region>/edit/", installation_views.installation_edit, name="installation_edit"),
    path("installations/<str:region>/test/", installation_views.installation_tested, name="installation_test"),
    path("installations/<str:region>/delete/", installation_views.installation_deleted, name="installation_delete"),
    path("mirrors/", list_views.mirror_list, name="mirrors"),
    path("mirrors/_change/", list_views.mirrors_change, name="mirrors_change"),
    path("mirrors/new/", creation_views.mirror_new, name="mirror_new"),
    path("mirrors/<str:name>/", views.mirror_detail, name="mirror"),
    path("mirrors/<str:name>/commits/", commit_views.commit_list, name="mirror_commits"),
    path("mirrors/<str:name>/commits/<str:commit>/", commit_views.commit_detail, name="mirror_commit"),
    path("mirrors/<str:name>/commits/<str:commit>/repair/", repair_views.commit_repaired, name="commit_repair"),
    path("mirrors/<str:name>/commits/<str:commit>/waive/", waiver_views.commit_waive, name="commit_waive"),
    path("mirrors/<str:name>/waivers/", waiver_views.waiver_list, name="mirror_waivers"),
    path("mirrors/<str:name>/waivers/<int:waiver>/withdraw/", waiver_views.waiver_withdrawn, name="waiver_withdraw"),
    path("mirrors/<str:name>/prioritise/", commit_views.commit_prioritise, name="commit_prioritise"),
    path("mirrors/<str:name>/backlog/", backlog_views.backlog, name="mirror_backlog"),
    path("mirrors/<str:name>/backlog/retry/", backlog_views.blockers_retried, name="blockers_retry"),
    path("mirrors/<str:name>/runs/", runs_views.runs, name="mirror_runs"),
    path("mirrors/<str:name>/validate/", runs_views.mirror_validate, name="mirror_validate"),
    path("mirrors/<str:name>/metrics/", metrics_views.metrics, name="mirror_metrics"),
    path("mirrors/<str:name>/settings/", settings_views.mirror_settings, name="mirror_settings"),
    path("mirrors/<str:name>/audit/", audit_views.audit, name="mirror_audit"),
    path("mirrors/<str:name>/sync/", views.mirror_sync, name="mirror_sync"),
    path("mirrors/<str:name>/pause/", views.mirror_pause, {"paused": True}, name="mirror_pause"),
    path("mirrors/<str:name>/resume/", views.mirror_pause, {"paused": False}, name="mirror_resume"),
    path("mirrors/<str:name>/reset-branch/", views.branch_reset, name="branch_reset"),
    path("mirrors/<str:name>/delete/", views.mirror_delete, name="mirror_delete"),
]
