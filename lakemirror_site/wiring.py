"""Adapters from the configuration: the one place that knows which implementation serves a port."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adapters.lakefs import LakeFSAdapter
from adapters.local_cache import LocalCache
from adapters.objects import S3ObjectStore
from core.errors import Invalid
from core.ports import LakeFS, ObjectStore
from lakemirror_site import config


def regions() -> list[str]:
    """The regions of which an installation is configured."""
    return list(config.current().regions)


def installation(region: str) -> config.Installation:
    """The installation of a region, or Invalid naming those that exist."""
    if region not in regions():
        raise Invalid(f"unknown region '{region}': this deployment knows {', '.join(regions())}", field="region")
    return config.current().installation(region)


@functools.cache
def lakefs(region: str) -> LakeFS:
    """The lakeFS of a region."""
    settings = config.current()
    return LakeFSAdapter(
        installation(region).lakefs_url,
        settings.source_lakefs_access_key_id,
        settings.source_lakefs_secret_access_key,
    )


@functools.cache
def objects(region: str) -> ObjectStore:
    """The object store of a region."""
    store = installation(region).store
    return S3ObjectStore(
        endpoint=store.endpoint,
        region=store.region or region,
        force_path_style=store.force_path_style,
        access_key_id=store.credentials.access_key_id,
        secret_access_key=store.credentials.secret_access_key,
        session_token=store.credentials.session_token,
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
    from adapters import spark
    from spark_jobs.check import CheckSettings, Place

    store, source = installation(mirror.region).store, installation(mirror.source.region).store
    settings = CheckSettings(
        namespace=mirror.storage_namespace,
        region=mirror.region,
        endpoint=store.endpoint,
        store_region=store.region,
        force_path_style=store.force_path_style,
        depth=mirror.depth,
        imported=mirror.imported,
        source=Place(
            mirror.source.storage_namespace,
            region=mirror.source.region,
            endpoint=source.endpoint,
            store_region=source.region,
            force_path_style=source.force_path_style,
        ),
        sample=mirror.content_sample,
        # Each job reads others of the objects; within a job every try of a task reads the same.
        sample_seed=random.getrandbits(31),
    )
    spark.run_check(work, settings, on_rows)
