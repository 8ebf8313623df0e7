"""What exports need of the region that their branches are in."""

from __future__ import annotations

from typing import Any

from adapters.s3.store import split_uri
from core.installations.replication_rights import Need, Side
from deployment import config
from exports.models import Export
from installations.needed_rights import Known
from rbac import services as rbac


def needs(actor: Any, region: str) -> Known:
    """Of each branch that is exported from there, as far as somebody may read it. A place in a store of its own is not
    in them: that has other keys."""
    exports = list(Export.objects.filter(region=region, deleting=False).order_by("pk"))
    known = [export for export in exports if rbac.allowed(actor, "fs:ReadBranch", export.arn)]
    return [need for export in known for need in _needs_of(export)], len(exports) - len(known)


def _needs_of(export: Export) -> list[Need]:
    places = [place for place in (export.path, export.status_path) if place and _is_here(export.region, place)]
    namespace = export.storage_namespace.rstrip("/")
    return [Need(Side.EXPORTED, export.repository, namespace, place=place) for place in places or [""]]


def _is_here(region: str, place: str) -> bool:
    return config.current().export_store(region, split_uri(place)[0])[0] == region
