"""Addresses of the pages: overview, jobs, installations, mirrors."""

from __future__ import annotations

from django.urls import path

from installations import views as installation_views
from mirrors import audit_list_views, jobs_views, overview_views, search_views
from mirrors.views import audit, backlog, commits, create, metrics, mirror, repair, runs, settings, waivers
from mirrors.views import list as list_views

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
    path("mirrors/new/", create.mirror_new, name="mirror_new"),
    path("mirrors/<str:name>/", mirror.mirror_detail, name="mirror"),
    path("mirrors/<str:name>/commits/", commits.commit_list, name="mirror_commits"),
    path("mirrors/<str:name>/commits/<str:commit>/", commits.commit_detail, name="mirror_commit"),
    path("mirrors/<str:name>/commits/<str:commit>/repair/", repair.commit_repaired, name="commit_repair"),
    path("mirrors/<str:name>/commits/<str:commit>/waive/", waivers.commit_waive, name="commit_waive"),
    path("mirrors/<str:name>/waivers/", waivers.waiver_list, name="mirror_waivers"),
    path("mirrors/<str:name>/waivers/<int:waiver>/withdraw/", waivers.waiver_withdrawn, name="waiver_withdraw"),
    path("mirrors/<str:name>/prioritise/", commits.commit_prioritise, name="commit_prioritise"),
    path("mirrors/<str:name>/backlog/", backlog.backlog, name="mirror_backlog"),
    path("mirrors/<str:name>/backlog/retry/", backlog.blockers_retried, name="blockers_retry"),
    path("mirrors/<str:name>/runs/", runs.runs, name="mirror_runs"),
    path("mirrors/<str:name>/validate/", runs.mirror_validate, name="mirror_validate"),
    path("mirrors/<str:name>/metrics/", metrics.metrics, name="mirror_metrics"),
    path("mirrors/<str:name>/settings/", settings.mirror_settings, name="mirror_settings"),
    path("mirrors/<str:name>/audit/", audit.audit, name="mirror_audit"),
    path("mirrors/<str:name>/sync/", mirror.mirror_sync, name="mirror_sync"),
    path("mirrors/<str:name>/pause/", mirror.mirror_pause, {"paused": True}, name="mirror_pause"),
    path("mirrors/<str:name>/resume/", mirror.mirror_pause, {"paused": False}, name="mirror_resume"),
    path("mirrors/<str:name>/reset-branch/", mirror.branch_reset, name="branch_reset"),
    path("mirrors/<str:name>/delete/", mirror.mirror_delete, name="mirror_delete"),
]
