"""Adapters from the configuration: the one place that knows which implementation serves a port."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.authorization import AuthorizationAPI, user_at
from adapters.disk_cache import LocalCache
from adapters.lakefs import LakeFSAdapter
from adapters.s3.store import S3ObjectStore, split_uri
from adapters.s3.store_keys import StoreKeys, remember_keys
from adapters.sealing import seal_keys
from core.errors import Invalid, Unreadable
from core.ports import LakeFS, ObjectStore
from core.store_access import DIRECT, StoreAccess
from deployment import config
from deployment.overlay import Together

if TYPE_CHECKING:
    from adapters.s3.fast_store import FastObjectStore
    from core.exporting.unit_work import Marked
    from spark_jobs.check.presence import BulkStore
    from spark_jobs.check.settings import CheckSettings, StoreLocation
    from spark_jobs.export.settings import ExportSettings

Rows = Callable[[Sequence[Mapping[str, Any]]], None]
StoreOptions = tuple[tuple[str, Any], ...]

CLIENTS = 128
QUICK_SECONDS = 4.0


def regions() -> list[str]:
    """The regions of which an installation is configured."""
    return list(config.current().regions)


def installation(region: str) -> config.Installation:
    """The installation of a region, or Invalid naming those that exist."""
    if region not in regions():
        raise Invalid(f"unknown region '{region}': this deployment knows {', '.join(regions())}", field="region")
    return config.current().installation(region)


def usable(region: str) -> config.Installation:
    """The installation, if we may ask it: Unreadable when its secrets can't be opened."""
    found, settings = installation(region), config.current()
    added = settings.added.get(region) if isinstance(settings, Together) else None
    if added and added.problem:
        raise Unreadable(added.problem, hint=added.remedy)
    return found


def store_identity(region: str) -> str:
    """Which store a region's objects are looked for at: what is proven of one says nothing of another."""
    store = installation(region).store
    return f"{store.endpoint.rstrip('/') or 'aws'} {store.region}".strip()


def lakefs(region: str) -> LakeFS:
    """The lakeFS of a region."""
    return _lakefs(*_lakefs_options(region), quick=False)


def quick_lakefs(region: str) -> LakeFS:
    """The same for somebody who waits: it asks once, and gives up soon."""
    return _lakefs(*_lakefs_options(region), quick=True)


def _lakefs_options(region: str) -> tuple[str, config.LakeFSKeys, str, str]:
    there = usable(region)
    return there.lakefs_url, there.lakefs_keys, there.access.ca_bundle, there.access.proxy


@functools.lru_cache(maxsize=CLIENTS)
def _lakefs(url: str, keys: config.LakeFSKeys, ca_bundle: str, proxy: str, *, quick: bool) -> LakeFS:
    """One client for each way to a lakeFS: another address or key makes another."""
    more: dict[str, Any] = {"tries": 1, "read_seconds": QUICK_SECONDS} if quick else {}
    secret = keys.secret_access_key.reveal()
    return LakeFSAdapter(url, keys.access_key_id, secret, ca_bundle=ca_bundle, proxy=proxy, **more)


@functools.cache
def authorization() -> AuthorizationAPI:
    """The configured authorization service."""
    api = config.current().auth.api
    return AuthorizationAPI(api.endpoint, api.token.reveal())


def lakefs_user(key_id: str, secret: str) -> str | None:
    """Whose key it is at the lakeFS that is asked for keys; None for one that it doesn't let in."""
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
    more: dict[str, Any] = {"read_seconds": QUICK_SECONDS, "tries": 1} if quick else {}
    return S3ObjectStore(**dict(options), **more)


def bulk_objects(region: str) -> BulkStore:
    """The same for looking at many objects in this process."""
    return _fast(_store_options(region))


@functools.lru_cache(maxsize=CLIENTS)
def _fast(options: StoreOptions, *, quick: bool = False) -> FastObjectStore:
    from adapters.s3.fast_store import FastObjectStore

    more: dict[str, Any] = {"read_seconds": QUICK_SECONDS, "tries": 1} if quick else {}
    return FastObjectStore(**dict(options), **more)


def export_store(region: str, bucket: str) -> FastObjectStore:
    """The store of a bucket that branches of a region are exported to."""
    return _fast(_export_options(region, bucket))


def quick_export_store(region: str, bucket: str) -> FastObjectStore:
    """The same for somebody who waits: it asks once, and gives up soon."""
    return _fast(_export_options(region, bucket), quick=True)


def _export_options(region: str, bucket: str) -> StoreOptions:
    name, store = config.current().export_store(region, bucket)
    return _store_options(region) if name == region else _options_of(store, region)


def export_store_of(region: str, uri: str) -> FastObjectStore:
    """The same for an address."""
    return export_store(region, split_uri(uri)[0])


def export_settings(*, region: str, namespace: str, path: str, **more: Any) -> ExportSettings:
    """What the jobs of an export are told: places without secrets."""
    from spark_jobs.export.settings import ExportSettings

    name, there = config.current().export_store(region, split_uri(path)[0])
    own = usable(region)
    source = _place(namespace, region, own.store, own.access)
    access = own.access if name == region else DIRECT
    return ExportSettings(source=source, destination=_place(path, name, there, access), **more)


def _place(namespace: str, keys_of: str, store: config.Store, access: StoreAccess) -> StoreLocation:
    from spark_jobs.check.settings import StoreLocation

    return StoreLocation(
        namespace,
        region=keys_of,
        endpoint=store.endpoint,
        store_region=store.region,
        force_path_style=store.force_path_style,
        access=_for_executors(store.credentials, access),
    )


@functools.lru_cache(maxsize=CLIENTS)
def _for_executors(keys: config.StoreCredentials, access: StoreAccess) -> StoreAccess:
    """The same with the keys, sealed; made once for all jobs, so that executors keep their clients."""
    if not keys.access_key_id:
        return access
    secret, token = keys.secret_access_key.reveal(), keys.session_token.reveal()
    return replace(access, sealed=seal_keys(executors_key(), keys.access_key_id, secret, token))


def executors_key() -> str:
    """What opens the keys that travel with a job."""
    return config.current().derived_key("executors")


def export_diff(work: Sequence[Any], settings: ExportSettings, on_rows: Rows, *, here: bool, tag: str) -> None:
    """Plan units of an export: `here`, in this process, else by Spark. Rows of DIFF_COLUMNS."""
    if not here:
        from spark_jobs import runner
        from spark_jobs.export.job import ExportJob

        return runner.run_export(ExportJob(settings), work, on_rows, tag=tag)
    from spark_jobs.export.diff import diff_units

    _tell_keys()
    for batch in diff_units(work, settings):
        on_rows(batch.to_pylist())
    return None


def export_copy(
    work: Sequence[Any], settings: ExportSettings, phase: Any, on_rows: Rows, *, here: bool, tag: str
) -> None:
    """Work on units of an export in a phase, in the same way. Rows of COPY_COLUMNS."""
    if not here:
        from spark_jobs import runner
        from spark_jobs.export.job import ExportJob

        return runner.run_export(ExportJob(settings, phase), work, on_rows, tag=tag)
    from spark_jobs.export.copy import copy_units

    _tell_keys()
    for batch in copy_units(work, settings, phase):
        on_rows(batch.to_pylist())
    return None


def export_verify(work: Sequence[Any], settings: ExportSettings, on_rows: Rows, *, here: bool, tag: str) -> None:
    """Compare a commit's units with an export's destination, in the same way. Rows of VERIFY_COLUMNS."""
    from spark_jobs.export.verify import verify, verify_units

    if not here:
        from spark_jobs import runner

        return runner.run_export(functools.partial(verify, settings=settings), work, on_rows, tag=tag)
    _tell_keys()
    for batch in verify_units(work, settings):
        on_rows(batch.to_pylist())
    return None


def export_held(keys: Mapping[str, Sequence[bytes]], settings: ExportSettings) -> set[bytes]:
    """Which keys ranges hold."""
    from spark_jobs.export.diff import held_keys

    _tell_keys()
    return held_keys(keys, settings)


def export_markers(directories: Sequence[bytes], settings: ExportSettings, *, write: bool) -> Marked:
    """Write or remove the markers of directories at an export's destination."""
    from spark_jobs.export.markers import remove_markers, write_markers

    _tell_keys()
    return (write_markers if write else remove_markers)(directories, settings)


def export_uploads(settings: ExportSettings) -> Mapping[bytes, Sequence[str]]:
    """The unfinished uploads at an export's destination, by key; those of others too."""
    from spark_jobs.export.uploads import unfinished

    _tell_keys()
    return unfinished(settings)


def export_abort(uploads: Mapping[bytes, Sequence[str]], settings: ExportSettings) -> None:
    """Give uploads up."""
    from spark_jobs.export.uploads import abort

    _tell_keys()
    abort(uploads, settings)


def _tell_keys() -> None:
    """What runs in this process finds the keys that executors get with their job."""
    settings = config.current()
    stores = {region: settings.store(region) for region in settings.regions} | dict(settings.export_stores)
    for name, store in stores.items():
        keys = store.credentials
        secrets = keys.secret_access_key.reveal(), keys.session_token.reveal()
        remember_keys(name, StoreKeys(keys.access_key_id, *secrets) if keys.access_key_id else None)


def _store_options(region: str) -> StoreOptions:
    there = usable(region)
    return _options_of(there.store, region, there.access)


def _options_of(store: config.Store, region: str, access: StoreAccess = DIRECT) -> StoreOptions:
    """As a value that tells one store, and one way to it, from another."""
    return (
        ("endpoint", store.endpoint),
        ("region", store.region or region),
        ("force_path_style", store.force_path_style),
        ("access_key_id", store.credentials.access_key_id),
        ("secret_access_key", store.credentials.secret_access_key),
        ("session_token", store.credentials.session_token),
        ("access", access),
    )


@functools.cache
def local_cache() -> LocalCache:
    """The metadata that this machine keeps on its disk."""
    settings = config.current().local_cache
    return LocalCache(config.var_dir() / Path(settings.base_dir).expanduser(), settings.size_bytes)


def run_check(
    mirror: Any, work: Sequence[tuple[str, list[str]]], on_rows: Callable[[Iterable[Mapping[str, Any]]], None]
) -> None:
    """Run the Spark `check` job for ranges of a mirror; rows of CHECK_COLUMNS arrive in batches."""
    from spark_jobs import runner

    runner.run_check(work, _check_settings(mirror), on_rows)


def check_small(mirror: Any, work: Sequence[tuple[str, list[str]]]) -> list[Mapping[str, Any]] | None:
    """The same rows from this process, at once; None where that needs Spark after all."""
    from spark_jobs.check.job import check_small as check

    return check(work, _check_settings(mirror), bulk_objects(mirror.region))


def _check_settings(mirror: Any) -> CheckSettings:
    from spark_jobs.check.settings import CheckSettings

    here, source = usable(mirror.region), usable(mirror.source.region)
    place = _place(mirror.storage_namespace, mirror.region, here.store, here.access)
    return CheckSettings(
        namespace=place.namespace,
        region=place.region,
        endpoint=place.endpoint,
        store_region=place.store_region,
        force_path_style=place.force_path_style,
        access=place.access,
        depth=mirror.depth,
        imported=mirror.imported,
        source=_place(mirror.source.storage_namespace, mirror.source.region, source.store, source.access),
        sample=mirror.content_sample,
        # Each job reads others of the objects; within a job every try of a task reads the same.
        sample_seed=random.getrandbits(31),
    )
