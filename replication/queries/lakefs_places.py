"""Where repositories of lakeFS lie, as far as LakeMirror knows them."""

from __future__ import annotations

from collections.abc import Iterator

from core.installations.places import Place
from deployment.wiring import region_settings
from mirrors.models import Mirror, Repository


def places_of_lakefs() -> Iterator[tuple[Place, str]]:
    """The storage namespaces of mirrors and of their sources, each with whose it is."""
    for name, at, namespace in Mirror.objects.order_by().values_list("name", "region", "storage_namespace"):
        yield region_settings.place(at, namespace), f"where the mirror '{name}' lies"
    for name, at, namespace in Repository.objects.order_by().values_list("name", "region", "storage_namespace"):
        yield region_settings.place(at, namespace), f"the storage namespace of '{name}'"
