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
from mirrors.models import Mirror
from mirrors.services.mirrors import repository_arn
from mirrors.status.mirror import mirror_statuses
from mirrors.views.tabs import find_visible, may_see, show_tab
from web.pages import page_of_rows, with_query

NAMING = ("mirror", "sync", "validate", "prioritise")
"""The fields of an event that hold the mirror's name: one source may have several mirrors."""
VERBS = {
    "sync": "synced",
    "validate": "had it validated",
    "prioritise": "put first",
    "retry_blockers": "had looked for at once",
    "reset_branch": "undid uncommitted changes",
    "waiver": "waived commits",
    "storage_namespace": "made it",
}


@dataclass(frozen=True, slots=True)
class Told:
    """An event, what was done in words, and what of it changed: field, before, after."""

    event: AuditEvent
    verb: str
    changes: list[tuple[str, str, str]]


@never_cache
@require_safe
@may_see
def audit(request: HttpRequest, name: str) -> HttpResponse:
    """What people did to a mirror, the last first."""
    mirror = find_visible(request, name)
    page = page_of_rows(request, events_of(mirror), "pk", newest=True)
    context = {"page": page, "told": [_tell(event) for event in page.rows], "first_page": with_query(request)}
    return show_tab(request, mirror_statuses([mirror])[0], "mirror_audit", context)


def events_of(mirror: Mirror) -> QuerySet[AuditEvent]:
    """Events about a mirror: they stand at its source's resource, or at its own when it is deleted."""
    named = Q()
    for field in NAMING:
        named |= Q(**{f"after__{field}": mirror.name}) | Q(**{f"before__{field}": mirror.name})
    return AuditEvent.objects.filter(named, arn__in=[repository_arn(mirror.source.name), repository_arn(mirror.name)])


def _tell(event: AuditEvent) -> Told:
    return Told(event, _verb(event.before or {}, event.after or {}), changes_of(event, leave_out=NAMING))


def _verb(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if "waiver" in before:
        return "withdrew a waiver"
    if before:
        return "changed settings" if after else "deleted it"
    return next((verb for field, verb in VERBS.items() if field in after), "changed it")
