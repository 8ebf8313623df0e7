"""Who did what to a mirror, on its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from audit.changes import changes_of
from audit.models import AuditEvent
from audit.verbs import Verb
from core.access.policies import ALL, auth_arn, repository_arn
from mirrors.models import Mirror
from mirrors.status.mirror import mirror_statuses
from mirrors.views.tabs import find_visible, may_see, show_tab
from rbac import services as rbac
from web.pages import page_of_rows, with_query

NAMING = ("mirror", "sync", "validate", "prioritise")
"""The fields of an event that hold the mirror's name: one source may have several mirrors."""
WORDS = {
    Verb.CREATE: "created it",
    Verb.REBUILD: "rebuilt it from the destination",
    Verb.CHANGE: "changed settings",
    Verb.DELETE: "deleted it",
    Verb.PAUSE: "paused it",
    Verb.RESUME: "resumed it",
    Verb.SYNC: "synced",
    Verb.VALIDATE: "started a validation",
    Verb.STOP: "stopped a validation",
    Verb.PRIORITISE: "prioritised a commit",
    Verb.RETRY: "retried what is missing",
    Verb.RESET_BRANCH: "undid uncommitted changes",
    Verb.WAIVE: "waived commits",
    Verb.WITHDRAW_WAIVER: "withdrew a waiver",
}
_FIELDS = {
    "sync": Verb.SYNC,
    "validate": Verb.VALIDATE,
    "prioritise": Verb.PRIORITISE,
    "retry_blockers": Verb.RETRY,
    "reset_branch": Verb.RESET_BRANCH,
    "waiver": Verb.WAIVE,
    "storage_namespace": Verb.CREATE,
}
"""What a field of an event's details says was done. Events from before there was `verb` have nothing better."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event, what was done in words, and what of it changed: field, before, after. `key`: by which access key, ""
    for none; the id of somebody else's only for who may list their keys."""

    event: AuditEvent
    verb: str
    key: str
    changes: list[tuple[str, str, str]]


@never_cache
@require_safe
@may_see
def audit(request: HttpRequest, name: str) -> HttpResponse:
    """What people did to a mirror, the last first."""
    mirror = find_visible(request, name)
    page = page_of_rows(request, events_of(mirror), "pk", newest=True)
    events = [_tell(event, request.user) for event in page.rows]
    context = {"page": page, "events": events, "first_page": with_query(request)}
    return show_tab(request, mirror_statuses([mirror])[0], "mirror_audit", context)


def events_of(mirror: Mirror) -> QuerySet[AuditEvent]:
    """Events about a mirror. Those from before there was `subject` stand at its source's resource, or at its own when
    it is deleted, and name it in their details."""
    named = Q()
    for field in NAMING:
        named |= Q(**{f"after__{field}": mirror.name}) | Q(**{f"before__{field}": mirror.name})
    arns = [repository_arn(mirror.source.name), repository_arn(mirror.name)]
    old = Q(named, subject="", arn__in=arns)
    return AuditEvent.objects.filter(Q(subject=mirror.audit_name) | old)


def _tell(event: AuditEvent, reader: Any) -> Told:
    verb = Verb(event.verb) if event.verb in Verb.values else _guessed(event.before or {}, event.after or {})
    return Told(event, WORDS.get(verb, verb.label), _key(event, reader), changes_of(event, leave_out=NAMING))


def _key(event: AuditEvent, reader: Any) -> str:
    if not event.key_id:
        return ""
    sees = rbac.allowed(reader, "auth:ListAuditEvents", ALL)
    sees = sees or rbac.allowed(reader, "auth:ListCredentials", auth_arn("user", event.actor))
    return f"key {event.key_id}" if sees else "an access key"


def _guessed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Verb:
    if "waiver" in before:
        return Verb.WITHDRAW_WAIVER
    if before:
        return Verb.CHANGE if after else Verb.DELETE
    return next((verb for field, verb in _FIELDS.items() if field in after), Verb.CHANGE)
