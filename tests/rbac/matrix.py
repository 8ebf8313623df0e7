"""Who gets where, as the documents tell it: what each call needs, and which of these steps each person may do.

A call is a method and the name of its address. It needs steps (see the `steps.py` of mirrors, exports and rbac), or
is for `anyone`, for who is `signed-in`, for who may manage their `own-keys`, for who sees `some-mirror`, whichever,
for who sees `every-mirror`, or has a secret of its own (`hook`).
"""

from __future__ import annotations

ANYONE, SIGNED_IN, OWN_KEYS, HOOK = "anyone", "signed-in", "own-keys", "hook"
SOME_MIRROR, EVERY_MIRROR = "some-mirror", "every-mirror"

_CALLS = """
anyone: GET healthz, GET readyz, GET version, GET login, POST login, PUT login, POST logout, POST openid
anyone: GET openid_return, GET password_reset_confirm, POST password_reset_confirm, PUT password_reset_confirm
hook: POST lakefs-hook, POST s3-hook, POST api-lakefs-hook, POST api-s3-hook, POST hold-hook, POST api-hold-hook

signed-in: GET api-docs, GET api-openapi, GET api-current-user, POST api-simulate, GET api-exports
signed-in: GET sessions, POST sessions_end, POST session_end, GET password, POST password, GET simulate
signed-in: GET help, GET help-document, GET help-file
signed-in: GET access, GET exports, POST exports_change

own-keys: GET keys

audit: GET api-audit, GET audit
access.users: GET api-users, GET users, GET user_new
access.users access.user-create: POST user_new
access.user-create: POST api-users
access.user: GET api-user, GET api-user-groups, GET api-user-policies, GET api-effective-permissions, GET user
access.user: GET api-sessions, GET user_sessions
access.user-change: PATCH api-user, GET user_edit, POST user_edit, POST user_disable, POST user_enable
access.user-change: DELETE api-sessions, DELETE api-session, POST api-password-reset-link
access.user-change: POST user_sessions_end, POST user_session_end
access.user-delete: DELETE api-user, GET user_delete, POST user_delete
access.user-policies: PUT api-user-policy, POST user_policy
access.user-policies-less: DELETE api-user-policy, POST user_policy out
access.keys: GET api-credentials, GET user_keys
access.key: GET api-credential
access.key-create: POST api-credentials, POST key_create
access.key-delete: DELETE api-credential, POST api-credential-disable, POST key_disable, POST key_delete
access.key-create access.key-delete: POST api-credential-rotate, POST key_rotate
access.groups: GET api-groups, GET groups, GET group_new
access.groups access.group-create: POST group_new
access.group-create: POST api-groups
access.group: GET api-group, GET api-group-members, GET api-group-policies, GET group
access.group-delete: DELETE api-group, GET group_delete, POST group_delete
access.members: PUT api-group-member, POST group_add, POST user_group
access.members-less: DELETE api-group-member, POST user_group out
access.group-policies: PUT api-group-policy, POST group_policy
access.group-policies-less: DELETE api-group-policy, POST group_policy out
access.policies: GET api-policies, GET policies, GET policy_new
access.policies access.policy-create: POST policy_new
access.policy-create: POST api-policies
access.policy: GET api-policy, POST api-policy-impact, GET policy
access.policy-change: PUT api-policy
access.policy access.policy-change: GET policy_edit, POST policy_edit
access.policies access.policy-change: POST policies_update
access.user-policies: POST policy_attach
access.policy-delete: DELETE api-policy, GET policy_delete, POST policy_delete

alerts.answer: POST api-alert-acknowledge, POST api-alert-snooze
some-mirror alerts.answer: POST alert_acknowledge, POST alert_snooze

every-mirror: GET api-maintenance-windows
maintenance.manage: POST api-maintenance-windows, POST api-maintenance-end
some-mirror: GET maintenance_new
some-mirror maintenance.manage: POST maintenance_new, POST maintenance_end

channels.see: GET api-channels, GET api-channel, GET api-deliveries
channels.see: GET channel, GET channel_new, GET channel_edit, GET channel_delete
channels.create: POST api-channels
channels.see channels.create: POST channel_new
channels.change: PUT api-channel
channels.see channels.change: POST channel_edit
channels.delete: DELETE api-channel
channels.see channels.delete: POST channel_delete
channels.test: POST api-channel-test
channels.see channels.test: POST channel_test

installations.see: GET api-installations, GET api-installation, GET installations, GET installation
installations.see: GET api-installation-policy
installations.see: GET installation_new, GET installation_edit, GET installation_delete
installations.add: POST api-installations
installations.see installations.add: POST installation_new
installations.change: PUT api-installation
installations.see installations.change: POST installation_edit
installations.delete: DELETE api-installation
installations.see installations.delete: POST installation_delete
installations.test: POST api-installation-test
installations.see installations.test: POST installation_test

some-mirror: GET api-alerts, GET notifications, GET metrics, GET api-overview, GET api-jobs, GET api-search
some-mirror: GET api-all-mirrors, GET api-commit-regions, GET api-mirrors
some-mirror: GET home, GET map, GET search, GET commit, GET jobs, GET mirrors, POST mirrors_change
mirrors.see: GET api-job, GET api-job-log, GET api-mirror, GET api-branches
mirrors.see: GET api-commits, GET api-commit, GET api-runs, GET api-run, GET api-promotions, GET api-tags, GET api-lag
mirrors.see: GET api-metrics, GET api-gc-safety, GET api-loss, GET api-certificate, GET api-blockers
mirrors.see: GET api-validations, GET api-validation, GET api-waivers, GET api-waiver
mirrors.see: GET api-mirror-policy
mirrors.see: GET job_log, GET mirror, GET mirror_commits
mirrors.see: GET mirror_commit, GET commit_repair, GET mirror_waivers, GET mirror_backlog, GET mirror_runs
mirrors.see: GET mirror_held, GET api-held-merges
mirrors.see: GET mirror_sweeps, GET api-sweeps, GET api-sweep
mirrors.approve: POST api-sweep-approve, POST api-sweep-reject
mirrors.see mirrors.approve: POST sweep_approve, POST sweep_reject
mirrors.see: GET mirror_object, GET api-copying
mirrors.see: GET mirror_metrics, GET mirror_settings, GET mirror_audit
every-mirror: GET api-preflight, GET api-preview, GET api-planned-unreplicated
mirrors.create: POST api-mirrors, POST api-preflight, POST api-preview, POST api-planned-unreplicated
some-mirror mirrors.create: GET mirror_new, POST mirror_new
mirrors.change: PATCH api-mirror, PATCH api-preflight, PATCH api-preview, PATCH api-planned-unreplicated
mirrors.see mirrors.change: POST mirror_settings
mirrors.delete: DELETE api-mirror, DELETE api-preflight, DELETE api-preview, DELETE api-planned-unreplicated
mirrors.see mirrors.delete: GET mirror_delete, POST mirror_delete
mirrors.pause: POST api-pause, POST api-resume
mirrors.see mirrors.pause: POST mirror_pause, POST mirror_resume
mirrors.copying: POST api-copying-pause, POST api-copying-resume, POST api-copying-limits
mirrors.see mirrors.copying: POST mirror_copying
mirrors.sync: POST api-sync
mirrors.see mirrors.sync: POST mirror_sync
mirrors.validate: POST api-validate
mirrors.see mirrors.validate: POST mirror_validate, POST api-job-stop, POST job_stop, POST api-job-retry, POST job_again
mirrors.see mirrors.sync: POST duty_retry
mirrors.see mirrors.services.repair: POST api-repair, POST commit_repair, POST commit_prioritise, POST blockers_retry
mirrors.services.repair: POST api-prioritise, POST api-blockers-retry, POST api-bring, POST api-bring-stop
mirrors.sweep: POST api-sweeps
mirrors.see mirrors.sweep: POST mirror_sweep
mirrors.unreplicated: GET api-unreplicated
mirrors.preflight: GET api-mirror-preflight
mirrors.see mirrors.unreplicated: POST mirror_unreplicated
mirrors.waive: POST api-waivers, DELETE api-waiver
mirrors.see mirrors.waive: GET commit_waive, POST commit_waive, POST waiver_withdraw, POST mirror_object
mirrors.reset: POST api-reset-branch
objects.locate: GET api-locate
some-mirror objects.locate: POST locate
mirrors.see mirrors.reset: POST branch_reset

exports.see: GET api-export, GET api-export-status, GET api-export-runs, GET api-export-skipped
exports.see: GET api-export-failures, GET api-export-verification, GET api-export-drift, GET export
exports.see: GET export_edit, GET export_delete
exports.configure: PUT api-export, POST api-export-check, POST api-export-limits, POST api-export-labels
exports.configure: GET export_new, POST export_new
exports.see exports.configure: POST export_edit, POST export_limits, POST export_label
exports.delete: DELETE api-export
exports.see exports.delete: POST export_delete
exports.pause: POST api-export-pause, POST api-export-resume
exports.see exports.pause: POST export_pause, POST export_resume
exports.run: POST api-export-hook
exports.see exports.run: POST export_run
exports.repair: POST api-export-repair
exports.see exports.repair: POST export_repair
exports.verify: POST api-export-verify
exports.repair-drift: POST api-export-repair-drift
exports.see exports.verify: POST export_verify
exports.see exports.repair-drift: GET export_repair-drift
exports.see exports.repair-drift: POST export_repair-drift

rules.list: GET api-rules, GET rules
rules.create: POST api-rules, POST api-rule-preflight, GET rule_new, POST rule_new
rules.see: GET api-rule-approvals, GET api-rule-approval, GET rule_deletes
rules.approve: POST api-rule-approve, POST api-rule-reject, POST api-link-confirm-source
rules.see rules.approve: POST rule_approve, POST rule_reject, POST link_confirm_source
rules.operate: POST api-link-confirm-target
rules.see rules.operate: POST link_confirm_target
rules.see: GET api-rule, GET api-link-open, GET api-link-overwritten, GET api-rule-objects, GET rule, GET rule_open
rules.change: PATCH api-rule, DELETE api-link
rules.change rules.targets: POST api-links, POST api-link-preflight
rules.see rules.change: GET rule_edit, POST rule_edit, GET target_new, GET target_remove, POST target_remove
rules.see rules.change rules.targets: POST target_new
rules.see: GET api-rule-passes, GET api-pass, GET api-pass-report, GET rule_passes, GET pass
rules.see rules.operate: POST rule_pass_begin, POST pass_cancel
rules.see rules.operate: DELETE api-pass
rules.operate: POST api-link-resync, POST api-rule-dry-run
rules.create: POST api-rule-dry-run-new, POST api-rule-estimate-new
rules.see: POST api-rule-estimate
rules.delete: DELETE api-rule
rules.see rules.delete: GET rule_delete, POST rule_delete
rules.operate: POST api-rule-pause, POST api-rule-resume, POST api-rule-scan, POST api-rule-retry
rules.operate: POST api-link-pause, POST api-link-resume, POST api-link-limits, POST api-link-retry
rules.see rules.operate: POST rule_pause, POST rule_resume, POST rule_scan, POST rule_retry, POST rule_open_retry
rules.see rules.operate: POST link_pause, POST link_resume, POST link_limits, POST link_retry
"""


def calls() -> dict[str, frozenset[str]]:
    """What each call needs."""
    found: dict[str, frozenset[str]] = {}
    for line in filter(None, _CALLS.splitlines()):
        needs, _, names = line.partition(": ")
        for name in names.split(", "):
            assert name not in found, name
            found[name] = frozenset(needs.split())
    return found


VIEWS = frozenset(
    {
        *(SOME_MIRROR, EVERY_MIRROR, "mirrors.see", "exports.see", "installations.see", "objects.locate", OWN_KEYS),
        *("rules.list", "rules.see"),
    }
)
RUNS_MIRRORS = frozenset(
    {
        *("mirrors.pause", "mirrors.copying", "mirrors.sync", "mirrors.validate"),
        *("mirrors.services.repair", "mirrors.unreplicated", "mirrors.preflight", "mirrors.sweep"),
    }
)
RUNS_EXPORTS = frozenset({"exports.run", "exports.repair", "exports.verify", "exports.repair-drift"})
MAY: dict[str, frozenset[str]] = {
    "nobody": frozenset(),
    "viewer": VIEWS,
    "operator": VIEWS
    | RUNS_MIRRORS
    | RUNS_EXPORTS
    | {"exports.pause", "alerts.answer", "maintenance.manage", "rules.operate"},
    # lakeFS's fs:CreateCommit, of which running an export is a part, and its fs:DeleteRepository.
    "replicator": frozenset(
        {SOME_MIRROR, EVERY_MIRROR, "mirrors.see", "mirrors.delete", "exports.see", "objects.locate"}
    )
    | RUNS_EXPORTS,
    "viewer-of-this": frozenset({SOME_MIRROR, "mirrors.see"}),
    "operator-of-this": RUNS_MIRRORS | {SOME_MIRROR, "mirrors.see", "alerts.answer"},
    "operator-of-another": frozenset({SOME_MIRROR, "alerts.answer"}),
    "mirror-admin": RUNS_MIRRORS
    | {
        SOME_MIRROR,
        EVERY_MIRROR,
        "mirrors.see",
        "mirrors.create",
        "mirrors.change",
        "mirrors.waive",
        "mirrors.reset",
        "mirrors.api.webhooks",
        "mirrors.delete",
    },
}
"""Steps by person. An administrator may all; who isn't let in (no key, one that ended, a disabled user) none."""
