"""Is the place of an export still nobody else's? It was when it was given; but a region's store may be moved since.

Which store an address lies in says the configuration of now, so it is asked before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import Conflict
from core.installations.places import Place
from deployment.wiring import region_settings
from exports.models import Export
from mirrors.models import Mirror, Repository


def require_apart(export: Export) -> None:
    """Raises Conflict where its files would come to lie among somebody else's, or hold them."""
    place = region_settings.export_place(export.region, export.path)
    for other, whose in _others(export):
        if place.overlaps(other):
            raise Conflict(
                f"{place} and {other}, {whose}, overlap in the store that is configured now",
                hint="Nothing is written. Configure the former store again, or export to another place",
            )


def _others(export: Export) -> Iterator[tuple[Place, str]]:
    yield region_settings.place(export.region, export.storage_namespace), "the repository's own storage namespace"
    for region, namespace in Mirror.objects.order_by().values_list("region", "storage_namespace"):
        yield region_settings.place(region, namespace), "where a mirror lies"
    for region, namespace in Repository.objects.order_by().values_list("region", "storage_namespace"):
        yield region_settings.place(region, namespace), "the storage namespace of a repository that is mirrored"
    for region, path in Export.objects.exclude(pk=export.pk).order_by().values_list("region", "path"):
        yield region_settings.export_place(region, path), "where another branch is exported to"
