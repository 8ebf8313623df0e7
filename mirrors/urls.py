"""Addresses of the pages of mirrors."""

from __future__ import annotations

from django.urls import path

from mirrors.views import (
    audit,
    backlog,
    commits,
    create,
    held,
    metrics,
    mirror,
    objects,
    repair,
    runs,
    settings,
    waivers,
)
from mirrors.views import list as list_views
from mirrors.views.sweeps import sweeps

urlpatterns = [
    path("mirrors/", list_views.mirror_list, name="mirrors"),
    path("mirrors/_change/", list_views.mirrors_change, name="mirrors_change"),
    path("mirrors/new/", create.mirror_new, name="mirror_new"),
    path("mirrors/<str:name>/", mirror.mirror_detail, name="mirror"),
    path("mirrors/<str:name>/commits/", commits.commit_list, name="mirror_commits"),
    path("mirrors/<str:name>/commits/<str:commit>/", commits.commit_detail, name="mirror_commit"),
    path("mirrors/<str:name>/commits/<str:commit>/repair/", repair.commit_repaired, name="commit_repair"),
    path("mirrors/<str:name>/commits/<str:commit>/waive/", waivers.commit_waive, name="commit_waive"),
    path("mirrors/<str:name>/object/", objects.missing_object, name="mirror_object"),
    path("mirrors/<str:name>/waivers/", waivers.waiver_list, name="mirror_waivers"),
    path("mirrors/<str:name>/waivers/<int:waiver>/withdraw/", waivers.waiver_withdrawn, name="waiver_withdraw"),
    path("mirrors/<str:name>/prioritise/", commits.commit_prioritise, name="commit_prioritise"),
    path("mirrors/<str:name>/backlog/", backlog.backlog, name="mirror_backlog"),
    path("mirrors/<str:name>/backlog/retry/", backlog.blockers_retried, name="blockers_retry"),
    path("mirrors/<str:name>/unreplicated/", backlog.mirror_unreplicated, name="mirror_unreplicated"),
    path("mirrors/<str:name>/runs/", runs.runs, name="mirror_runs"),
    path("mirrors/<str:name>/held/", held.held_merges, name="mirror_held"),
    path("mirrors/<str:name>/sweeps/", sweeps.sweeps, name="mirror_sweeps"),
    path("mirrors/<str:name>/sweeps/now/", sweeps.mirror_sweep, name="mirror_sweep"),
    path("mirrors/<str:name>/sweeps/<int:sweep>/approve/", sweeps.sweep_approved, name="sweep_approve"),
    path("mirrors/<str:name>/sweeps/<int:sweep>/reject/", sweeps.sweep_rejected, name="sweep_reject"),
    path("mirrors/<str:name>/validate/", runs.mirror_validate, name="mirror_validate"),
    path("mirrors/<str:name>/metrics/", metrics.metrics, name="mirror_metrics"),
    path("mirrors/<str:name>/settings/", settings.mirror_settings, name="mirror_settings"),
    path("mirrors/<str:name>/audit/", audit.audit, name="mirror_audit"),
    path("mirrors/<str:name>/sync/", mirror.mirror_sync, name="mirror_sync"),
    path("mirrors/<str:name>/pause/", mirror.mirror_pause, {"paused": True}, name="mirror_pause"),
    path("mirrors/<str:name>/resume/", mirror.mirror_pause, {"paused": False}, name="mirror_resume"),
    path("mirrors/<str:name>/copying/", mirror.mirror_copying, name="mirror_copying"),
    path("mirrors/<str:name>/reset-branch/", mirror.branch_reset, name="branch_reset"),
    path("mirrors/<str:name>/delete/", mirror.mirror_delete, name="mirror_delete"),
]
