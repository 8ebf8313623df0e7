"""What is configured of a region: its installation, and whether we may ask it."""

from __future__ import annotations

from core.errors import Invalid, Unreadable
from core.installations.places import Place, store_at
from deployment import config
from deployment.overlay import Together


def names() -> list[str]:
    """The regions of which an installation is configured."""
    return list(config.current().regions)


def installation(region: str) -> config.Installation:
    """The installation of a region, or Invalid naming those that exist."""
    if region not in names():
        raise Invalid(f"unknown region '{region}': this deployment knows {', '.join(names())}", field="region")
    return config.current().installation(region)


def usable(region: str) -> config.Installation:
    """The installation, if we may ask it: Unreadable when its secrets can't be opened."""
    own, settings = installation(region), config.current()
    added = settings.added.get(region) if isinstance(settings, Together) else None
    if added and added.problem:
        raise Unreadable(added.problem, hint=added.remedy)
    return own


def place(region: str, uri: str) -> Place:
    """An address in the store of a region; of one that is not configured any more nobody knows in which store."""
    if region not in names():
        return Place(uri, None)
    return Place(uri, store_at(config.current().installation(region).store.endpoint))


def export_place(region: str, uri: str) -> Place:
    """An address that branches of a region are exported to, in the store where that is looked for."""
    settings = config.current()
    bucket = uri.partition("://")[2].partition("/")[0]
    if region not in names() and bucket not in settings.export_stores:
        return Place(uri, None)
    return Place(uri, store_at(settings.export_store(region, bucket)[1].endpoint))


def store_identity(region: str) -> str:
    """Which store a region's objects are looked for at: what is proven of one says nothing of another."""
    store = installation(region).store
    return f"{store.endpoint.rstrip('/') or 'aws'} {store.region}".strip()
