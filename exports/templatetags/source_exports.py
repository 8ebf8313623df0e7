"""The exports of a repository, on the page of a mirror of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse

from exports.models import Export
from exports.status.export import export_statuses
from rbac import services as rbac

register = template.Library()

MOST = 5


@dataclass(frozen=True, slots=True)
class Link:
    """An export, to be led to; `which`: branch, or branch and name."""

    which: str
    path: str
    url: str
    word: str


@register.inclusion_tag("exports/_of_source.html")
def exports_of_source(user: Any, region: str, repository: str, now: datetime) -> dict[str, Any]:
    """Some exports of a repository's branches, the worst first, of those that the user may read."""
    return {"repository": repository, "links": links_of(user, region, repository, now)}


def links_of(user: Any, region: str, repository: str, now: datetime) -> Sequence[Link]:
    """The same as links."""
    rows = Export.objects.filter(region=region, repository=repository, deleting=False).order_by("branch", "name")
    exports = [export for export in rows[: 10 * MOST] if rbac.allowed(user, "fs:ReadBranch", export.arn)]
    readings = export_statuses(exports, now)[:MOST] if exports else []
    return [
        Link(reading.export.which, reading.export.path, reverse("export", args=[reading.export.pk]), reading.told.word)
        for reading in readings
    ]
