"""Which part of the documents belongs to a page, an error or a reason: address below /help/, anchor included."""

from __future__ import annotations

from django.urls import reverse

from console.help.documents import document
from core.errors import NotFound

TROUBLESHOOTING = "guide/troubleshooting"
PAGES = {
    "home": "guide/troubleshooting#overview-and-jobs",
    "search": "pages#search",
    "locate": "guide/tasks#read-an-object-when-its-region-is-down",
    "jobs": "pages#jobs",
    "job_log": "how-it-works#what-workers-said",
    "audit": "audit#reading-it",
    "api-docs": "api",
    "mirrors": "pages",
    "mirror_new": "guide/tasks#create-a-mirror",
    "mirror": "guide/troubleshooting#states",
    "mirror_commits": "guide/concepts#the-life-of-a-commit",
    "mirror_commit": "pages#a-commit",
    "mirror_backlog": "guide/troubleshooting#what-a-commit-lacks",
    "mirror_runs": "guide/tasks#check-on-demand",
    "map": "pages#the-map",
    "mirror_held": "guide/held-merges",
    "mirror_sweeps": "guide/garbage-collection",
    "mirror_metrics": "pages#metrics",
    "mirror_settings": "how-it-works#changing-a-mirror",
    "mirror_audit": "audit#reading-it",
    "mirror_delete": "guide/tasks#delete-a-mirror",
    "mirror_waivers": "guide/tasks#waive-old-history",
    "mirror_object": "guide/tasks#waive-old-history",
    "commit_waive": "guide/tasks#waive-old-history",
    "commit_repair": "guide/tasks#repair-it",
    "exports": "exports#the-pages",
    "export": "guide/troubleshooting#states-of-an-export",
    "export_new": "guide/tasks#export-a-branch",
    "export_edit": "exports#before-it-is-saved",
    "export_delete": "guide/tasks#export-a-branch",
    "export_repair-drift": "exports#repairing-drift",
    "rules": "replication-rules#the-pages",
    "rule": "replication-rules#states",
    "rule_new": "replication-rules#before-it-is-created",
    "target_new": "replication-rules#targets-that-come-and-go",
    "target_remove": "replication-rules#targets-that-come-and-go",
    "rule_edit": "replication-rules#fields",
    "rule_open": "replication-rules#open-objects",
    "rule_delete": "replication-rules#deleting-one",
    "notifications": "notifications#alerts",
    "channel": "notifications#channels",
    "channel_new": "notifications#channels",
    "channel_edit": "notifications#channels",
    "channel_delete": "notifications#channels",
    "installations": "installations",
    "installation": "installations",
    "installation_new": "installations#adding-one",
    "installation_edit": "installations#secrets",
    "installation_delete": "installations",
    "access": "access",
    "users": "access#pages",
    "user": "access#pages",
    "user_new": "access#pages",
    "user_edit": "access#pages",
    "user_delete": "access#pages",
    "user_keys": "access#access-keys",
    "keys": "access#access-keys",
    "groups": "access#pages",
    "group": "access#pages",
    "group_new": "access#pages",
    "group_delete": "access#pages",
    "policies": "access#how-rights-work",
    "policy": "access#how-rights-work",
    "policy_new": "access#how-rights-work",
    "policy_edit": "access#how-rights-work",
    "policy_delete": "access#simulate-and-impact",
    "simulate": "access#simulate-and-impact",
    "login": "signing-in#people",
    "openid_return": "signing-in#openid",
    "password": "signing-in#people",
    "password_reset_confirm": "signing-in#people",
    "sessions": "signing-in#people",
    "user_sessions": "signing-in#people",
}
"""By the name of the page's address; a page that is not here leads to the first page of help."""
_REASONS = ("reasons", "what-a-commit-lacks", "files-that-an-export-could-not-copy")


def address(topic: str) -> str:
    """The page of a topic ("guide/tasks#repair-it")."""
    name, hash_, anchor = topic.partition("#")
    return reverse("help-document", args=[name]) + hash_ + anchor


def of_page(url_name: str | None) -> str:
    """Where Help in the header leads from the page of that name."""
    topic = PAGES.get(url_name or "")
    return address(topic) if topic else reverse("help")


def of_status(status: int) -> str:
    """The row of an HTTP status in "Answers of the API"; "" if it has none."""
    return _row(f"answers-of-the-api-{status}")


def of_reason(code: str) -> str:
    """The row of a reason of a mirror, a branch, a commit or a failed file; "" if it has none."""
    rows = (_row(f"{section}-{code.replace('-', '_')}") or _row(f"{section}-{code}") for section in _REASONS)
    return next(filter(None, rows), "")


def of_state(word: str, of_export: bool = False) -> str:
    """The row of a state, by the word that pages show; "" if it has none."""
    section = "states-of-an-export" if of_export else "states"
    return _row(f"{section}-{word.lower().replace(' ', '-')}")


def _row(anchor: str) -> str:
    try:
        anchors = document(TROUBLESHOOTING).rendered.anchors
    except NotFound:  # an installation without its documents: pages still work
        return ""
    return address(f"{TROUBLESHOOTING}#{anchor}") if anchor in anchors else ""
