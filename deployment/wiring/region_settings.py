"""What is configured of a region: its installation, and whether we may ask it."""

from __future__ import annotations

from core.errors import Invalid, Unreadable
from core.exporting.route import Route
from core.installations.places import Place, store_at
from deployment import config
from deployment.config_sections import Store
from deployment.overlay import Together


def names() -> list[str]:
    """The regions of which an installation is configured: each has a store."""
    return list(config.current().regions)


def lakefs_names() -> list[str]:
    """Those of them that have a lakeFS: where mirrors and exports may be."""
    return list(config.current().lakefs_regions)


def require_lakefs(region: str, field: str = "region") -> None:
    """Raises Invalid for a region that there is not, and for one whose installation has no lakeFS; `field`: which one
    names it."""
    known = lakefs_names()
    if region in names() and region not in known:
        raise _without(region, field)
    if region not in known:
        text = f"unknown region '{region}': this deployment knows {', '.join(known) or 'no lakeFS'}"
        raise Invalid(text, field=field)


def _without(region: str, field: str) -> Invalid:
    known = ", ".join(lakefs_names())
    others = f"Choose one that has a lakeFS ({known}), or give" if known else "Give"
    return Invalid(
        f"the installation '{region}' has no lakeFS: it is a store, for replication rules alone",
        field=field,
        hint=f"{others} this one the address of its lakeFS",
    )


def installation(region: str) -> config.Installation:
    """The installation of a region, or Invalid naming those that exist."""
    if region not in names():
        known = ", ".join(names()) or "none yet"
        raise Invalid(f"unknown region '{region}': this deployment knows {known}", field="region")
    return config.current().installation(region)


def usable(region: str) -> config.Installation:
    """The installation, if we may ask it: Unreadable when its secrets can't be opened."""
    own, settings = installation(region), config.current()
    added = settings.added.get(region) if isinstance(settings, Together) else None
    if added and added.problem:
        raise Unreadable(added.problem, hint=added.remedy)
    return own


def lakefs(region: str) -> config.LakeFSServer:
    """Where the lakeFS of a region answers, and who we are there. Raises Invalid for one that has none, and Unreadable
    when its secrets can't be opened."""
    own = usable(region)
    if own.lakefs is None:
        raise _without(region, "region")
    return own.lakefs


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


def export_route(region: str, uri: str) -> Route | None:
    """Which way files go from a repository of a region to an address; None for a region that is not configured."""
    settings = config.current()
    if region not in names():
        return None
    bucket = uri.partition("://")[2].partition("/")[0]
    source, (name, store) = settings.store(region), settings.export_store(region, bucket)
    one_endpoint = store.endpoint.rstrip("/") == source.endpoint.rstrip("/")
    same_keys = store.credentials.access_key_id == source.credentials.access_key_id
    return Route(
        region=region,
        bucket=bucket,
        bucket_region=region if name == region else _region_of(store),
        within=one_endpoint and same_keys,
        workers=settings.region,
    )


def _region_of(store: Store) -> str:
    """The region whose store this is, else the one that it is configured with; "": nobody knows."""
    own = store.endpoint.rstrip("/"), store.region
    stores = {name: config.current().store(name) for name in names()}
    same = (name for name, other in stores.items() if (other.endpoint.rstrip("/"), other.region) == own)
    return next(same, store.region)


def store_identity(region: str) -> str:
    """Which store a region's objects are looked for at: what is proven of one says nothing of another."""
    store = installation(region).store
    return f"{store.endpoint.rstrip('/') or 'aws'} {store.region}".strip()
