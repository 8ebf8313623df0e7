"""Addresses of rules in the replication API, below /service/replication/v1/."""

from django.urls import path

from replication.api import approvals, costs, links, objects, overwritten, passes, rules, targets

_APPROVAL = "rules/<str:rule>/approvals/<int:approval>"
_LINK = "rules/<str:rule>/links/<int:number>"

urlpatterns = [
    path("rules", rules.Rules.as_view(), name="api-rules"),
    path("rules/preflight", rules.RulePreflight.as_view(), name="api-rule-preflight"),
    path("rules/estimate", costs.RuleEstimateOfWish.as_view(), name="api-rule-estimate-new"),
    path("rules/dry-run", passes.RuleDryRunOfWish.as_view(), name="api-rule-dry-run-new"),
    path("rules/<str:rule>", rules.RuleDetail.as_view(), name="api-rule"),
    path("rules/<str:rule>/pause", rules.RulePause.as_view(), name="api-rule-pause"),
    path("rules/<str:rule>/resume", rules.RuleResume.as_view(), name="api-rule-resume"),
    path("rules/<str:rule>/scan", rules.RuleScan.as_view(), name="api-rule-scan"),
    path("rules/<str:rule>/retry", rules.RuleRetry.as_view(), name="api-rule-retry"),
    path("rules/<str:rule>/objects", objects.RuleObjects.as_view(), name="api-rule-objects"),
    path("rules/<str:rule>/links", targets.RuleLinks.as_view(), name="api-links"),
    path("rules/<str:rule>/links/preflight", targets.LinkPreflight.as_view(), name="api-link-preflight"),
    path(_LINK, targets.LinkDetail.as_view(), name="api-link"),
    path("rules/<str:rule>/approvals", approvals.RuleApprovals.as_view(), name="api-rule-approvals"),
    path(_APPROVAL, approvals.RuleApproval.as_view(), name="api-rule-approval"),
    path(f"{_APPROVAL}/approve", approvals.RuleApprove.as_view(), name="api-rule-approve"),
    path(f"{_APPROVAL}/reject", approvals.RuleReject.as_view(), name="api-rule-reject"),
    path(f"{_LINK}/confirm-target", approvals.LinkConfirmTarget.as_view(), name="api-link-confirm-target"),
    path(f"{_LINK}/confirm-source", approvals.LinkConfirmSource.as_view(), name="api-link-confirm-source"),
    path(f"{_LINK}/pause", links.LinkPause.as_view(), name="api-link-pause"),
    path(f"{_LINK}/resume", links.LinkResume.as_view(), name="api-link-resume"),
    path(f"{_LINK}/limits", links.LinkLimited.as_view(), name="api-link-limits"),
    path(f"{_LINK}/retry", links.LinkRetry.as_view(), name="api-link-retry"),
    path(f"{_LINK}/open", links.LinkOpen.as_view(), name="api-link-open"),
    path(f"{_LINK}/overwritten", overwritten.LinkOverwritten.as_view(), name="api-link-overwritten"),
    path(f"{_LINK}/resync", passes.LinkResync.as_view(), name="api-link-resync"),
    path("rules/<str:rule>/dry-run", passes.RuleDryRun.as_view(), name="api-rule-dry-run"),
    path("rules/<str:rule>/estimate", costs.RuleEstimate.as_view(), name="api-rule-estimate"),
    path("rules/<str:rule>/passes", passes.RulePasses.as_view(), name="api-rule-passes"),
    path("passes/<int:number>", passes.PassDetail.as_view(), name="api-pass"),
    path("passes/<int:number>/report", passes.PassReport.as_view(), name="api-pass-report"),
]
