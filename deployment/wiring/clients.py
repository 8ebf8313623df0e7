"""Clients of the lakeFS, stores and services that are configured: one for each address, key and way."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.authorization import AuthorizationAPI, user_at
from adapters.disk_cache import LocalCache
from adapters.lakefs import LakeFSAdapter
from adapters.s3.store import S3ObjectStore, split_uri
from adapters.server_certificates import read_certificate
from core.installations.server_certificates import ServerCertificate
from core.ports import LakeFS, ObjectStore, Replication
from core.store_access import StoreAccess
from deployment import config
from deployment.wiring import region_settings

if TYPE_CHECKING:
    from adapters.s3.fast_store import FastObjectStore
    from spark_jobs.check.presence import BulkStore

StoreOptions = tuple[tuple[str, Any], ...]

CLIENTS = 128
_QUICK: Mapping[str, Any] = {"tries": 1, "read_seconds": 4.0}
"""For somebody who waits: what is asked once, and given up soon."""


def lakefs(region: str) -> LakeFS:
    """The lakeFS of a region. Raises Invalid where there is none, Unreadable where its secrets can't be opened."""
    return _lakefs(*_lakefs_options(region), quick=False)


def quick_lakefs(region: str) -> LakeFS:
    """The same for somebody who waits: it asks once, and gives up soon."""
    return _lakefs(*_lakefs_options(region), quick=True)


def _lakefs_options(region: str) -> tuple[str, config.LakeFSKeys, str, str]:
    server, access = region_settings.lakefs(region), region_settings.usable(region).access
    return server.url, server.keys, access.ca_bundle, access.proxy


@functools.lru_cache(maxsize=CLIENTS)
def _lakefs(url: str, keys: config.LakeFSKeys, ca_bundle: str, proxy: str, *, quick: bool) -> LakeFS:
    """One client for each way to a lakeFS: another address or key makes another."""
    secret = keys.secret_access_key.reveal()
    options = _QUICK if quick else {}
    return LakeFSAdapter(url, keys.access_key_id, secret, ca_bundle=ca_bundle, proxy=proxy, **options)


def lakefs_certificate(region: str) -> ServerCertificate | None:
    """The TLS certificate of a region's lakeFS; None where that is not asked by https. Raises Unreachable."""
    url, _, ca_bundle, proxy = _lakefs_options(region)
    return read_certificate(url, ca_bundle=ca_bundle, proxy=proxy)


def store_certificate(region: str) -> ServerCertificate | None:
    """The same of its store, but for AWS's own S3, whose certificates nobody here renews."""
    if not region_settings.usable(region).store.endpoint.startswith("https:"):
        return None
    store = quick_bulk_objects(region)
    return read_certificate(store.base_url, ca_bundle=store.ca_bundle, proxy=store.proxy)


@functools.cache
def authorization() -> AuthorizationAPI:
    """The configured authorization service."""
    api = config.current().auth.api
    return AuthorizationAPI(api.endpoint, api.token.reveal())


def lakefs_user(key_id: str, secret: str) -> tuple[str, int] | None:
    """Whose key it is at the lakeFS that is asked for keys, and since when there is such a user; None for one that it
    doesn't let in."""
    settings = config.current()
    return user_at(settings.lakefs_url(settings.auth.lakefs.region or settings.region), key_id, secret)


def objects(region: str) -> ObjectStore:
    """The object store of a region."""
    return _objects(_store_options(region), quick=False)


def quick_objects(region: str) -> ObjectStore:
    """The same for somebody who waits: it asks once, and gives up soon."""
    return _objects(_store_options(region), quick=True)


@functools.lru_cache(maxsize=CLIENTS)
def _objects(options: StoreOptions, *, quick: bool) -> ObjectStore:
    return S3ObjectStore(**dict(options) | (_QUICK if quick else {}))


def bulk_objects(region: str) -> BulkStore:
    """The same for looking at many objects in this process."""
    return fast_objects(region)


def fast_objects(region: str) -> FastObjectStore:
    """The same with all that it can do."""
    return _fast(_store_options(region))


def quick_bulk_objects(region: str) -> FastObjectStore:
    """The same for somebody who waits: it asks once, and gives up soon."""
    return _fast(_store_options(region), quick=True)


@functools.lru_cache(maxsize=CLIENTS)
def _fast(options: StoreOptions, *, quick: bool = False) -> FastObjectStore:
    from adapters.s3.fast_store import FastObjectStore

    return FastObjectStore(**dict(options) | (_QUICK if quick else {}))


def replication(region: str) -> Replication:
    """What a region's store tells of the copies that it makes by itself, for somebody who waits."""
    from adapters.s3.replication import StoreReplication

    return StoreReplication(quick_bulk_objects(region))


def require_writable(region: str, namespace: str, seconds: float = 5.0) -> None:
    """Return if a region's store takes objects below a namespace: an upload is begun there and cancelled. Raises what
    the store answers."""
    from adapters.s3.write_probe import probe_upload

    for error in probe_upload(quick_bulk_objects(region), namespace, seconds=seconds).values():
        if error is not None:
            raise error


def export_store(region: str, uri: str) -> FastObjectStore:
    """The store of an address that branches of a region are exported to."""
    return _fast(_export_options(region, uri))


def quick_export_store(region: str, uri: str) -> FastObjectStore:
    """The same for somebody who waits: it asks once, and gives up soon."""
    return _fast(_export_options(region, uri), quick=True)


def _export_options(region: str, uri: str) -> StoreOptions:
    name, store = config.current().export_store(region, split_uri(uri)[0])
    return _store_options(region) if name == region else _options_of(store, region, store.access)


def store_options(region: str) -> StoreOptions:
    """How a region's store is reached, as a value that tells one way from another."""
    return _store_options(region)


def _store_options(region: str) -> StoreOptions:
    installation = region_settings.usable(region)
    return _options_of(installation.store, region, installation.access)


def _options_of(store: config.Store, region: str, access: StoreAccess) -> StoreOptions:
    """As a value that tells one store, and one way to it, from another."""
    return (
        ("endpoint", store.endpoint),
        ("region", store.region or region),
        ("force_path_style", store.force_path_style),
        ("access_key_id", store.credentials.access_key_id),
        ("secret_access_key", store.credentials.secret_access_key),
        ("session_token", store.credentials.session_token),
        ("access", access),
        ("tries", store.max_retries + 1),
    )


@functools.cache
def local_cache() -> LocalCache:
    """The metadata that this machine keeps on its disk."""
    settings = config.current().local_cache
    return LocalCache(config.var_dir() / Path(settings.base_dir).expanduser(), settings.size_bytes)
