"""Who did what to a mirror, on its page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from mirrors.models import Mirror
from mirrors.page_parts import find_visible, may_see, show_tab
from mirrors.readings import mirror_readings
from mirrors.services import repository_arn
from rbac.models import AuditEvent
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
    return show_tab(request, mirror_readings([mirror])[0], "mirror_audit", context)


def events_of(mirror: Mirror) -> QuerySet[AuditEvent]:
    """Events about a mirror: they stand at its source's resource, or at its own when it is deleted."""
    named = Q()
    for field in NAMING:
        named |= Q(**{f"after__{field}": mirror.name}) | Q(**{f"before__{field}": mirror.name})
    return AuditEvent.objects.filter(named, arn__in=[repository_arn(mirror.source.name), repository_arn(mirror.name)])


def _tell(event: AuditEvent) -> Told:
    return Told(event, _verb(event.before or {}, event.after or {}), changes_of(event, leave_out=NAMING))


def changes_of(event: AuditEvent, leave_out: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """What an event tells of before and after: field, before, after."""
    before, after = event.before or {}, event.after or {}
    fields = [name for name in dict.fromkeys([*before, *after]) if name not in leave_out]
    changes = [(name.replace("_", " "), _shown(before, name), _shown(after, name)) for name in fields]
    return [change for change in changes if change[1] or change[2]]


def _verb(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if "waiver" in before:
        return "withdrew a waiver"
    if before:
        return "changed settings" if after else "deleted it"
    return next((verb for field, verb in VERBS.items() if field in after), "changed it")


def _shown(values: Mapping[str, Any], name: str) -> str:
    """A value as text, short enough for a row."""
    if name not in values or values[name] == "":
        return ""
    value = values[name]
    if value is None:
        return "none"
    return (value if isinstance(value, str) else json.dumps(value))[:200]
