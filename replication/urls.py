"""Addresses of the pages of replication rules."""

from django.urls import path

from replication.views import deletes, form_page, passes, rule, target_page
from replication.views import list as list_views
from replication.views import open as open_views

_RULE = "replication/<str:rule>"
_DELETES = f"{_RULE}/deletes/<int:approval>"
_LINK = f"{_RULE}/links/<int:link>"

urlpatterns = [
    path("replication/", list_views.rule_list, name="rules"),
    path("replication/new/", form_page.rule_new, name="rule_new"),
    path("replication/passes/<int:number>/", passes.pass_detail, name="pass"),
    path("replication/passes/<int:number>/cancel/", passes.pass_cancel, name="pass_cancel"),
    path(f"{_RULE}/", rule.rule_detail, name="rule"),
    path(f"{_RULE}/passes/", passes.rule_passes, name="rule_passes"),
    path(f"{_RULE}/passes/begin/", passes.rule_pass_begin, name="rule_pass_begin"),
    path(f"{_RULE}/edit/", form_page.rule_edit, name="rule_edit"),
    path(f"{_RULE}/delete/", rule.rule_delete, name="rule_delete"),
    path(f"{_RULE}/pause/", rule.rule_pause, {"paused": True}, name="rule_pause"),
    path(f"{_RULE}/resume/", rule.rule_pause, {"paused": False}, name="rule_resume"),
    path(f"{_RULE}/scan/", rule.rule_scan, name="rule_scan"),
    path(f"{_RULE}/retry/", rule.rule_retry, name="rule_retry"),
    path(f"{_RULE}/open/", open_views.rule_open, name="rule_open"),
    path(f"{_RULE}/open/retry/", open_views.rule_open_retry, name="rule_open_retry"),
    path(f"{_RULE}/links/new/", target_page.target_new, name="target_new"),
    path(f"{_LINK}/remove/", target_page.target_remove, name="target_remove"),
    path(f"{_RULE}/deletes/", deletes.rule_deletes, name="rule_deletes"),
    path(f"{_DELETES}/approve/", deletes.rule_deletes_decide, {"approved": True}, name="rule_approve"),
    path(f"{_DELETES}/reject/", deletes.rule_deletes_decide, {"approved": False}, name="rule_reject"),
    path(f"{_LINK}/confirm-target/", deletes.link_confirm_target, name="link_confirm_target"),
    path(f"{_LINK}/confirm-source/", deletes.link_confirm_source, name="link_confirm_source"),
    path(f"{_LINK}/pause/", rule.link_pause, {"paused": True}, name="link_pause"),
    path(f"{_LINK}/resume/", rule.link_pause, {"paused": False}, name="link_resume"),
    path(f"{_LINK}/limits/", rule.link_limits, name="link_limits"),
    path(f"{_LINK}/retry/", rule.link_retry, name="link_retry"),
]
