"""What Spark's executors are told of a store: its place, and its keys, sealed."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from adapters.s3.store_keys import StoreKeys, remember_keys, remember_proof_key
from adapters.sealing import seal_keys
from core.proof_of_parts import PURPOSE
from core.store_access import StoreAccess
from deployment import config
from deployment.config_sections import StoreCredentials
from deployment.wiring.clients import CLIENTS

if TYPE_CHECKING:
    from spark_jobs.check.settings import StoreLocation


def executors_key() -> str:
    """What opens the keys that travel with a job."""
    return config.current().derived_key("executors")


def location(namespace: str, keys_of: str, store: config.Store, access: StoreAccess) -> StoreLocation:
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
def _for_executors(keys: StoreCredentials, access: StoreAccess) -> StoreAccess:
    """The same with the keys, sealed; made once for all jobs, so that executors keep their clients."""
    if not keys.access_key_id:
        return access
    secret, token = keys.secret_access_key.reveal(), keys.session_token.reveal()
    return replace(access, sealed=seal_keys(executors_key(), keys.access_key_id, secret, token))


@functools.lru_cache(maxsize=8)
def sealed_text(purpose: str, secret: str) -> str:
    """A secret for executors."""
    return seal_keys(executors_key(), purpose, secret, "")


@functools.lru_cache(maxsize=4)
def sealed_proof_key(key: str) -> str:
    """What signs proofs of parts, for executors."""
    return seal_keys(executors_key(), PURPOSE, key, "")


def tell_keys() -> None:
    """What runs in this process finds the keys that executors get with their job."""
    settings = config.current()
    remember_proof_key(settings.derived_key(PURPOSE))
    stores = {region: settings.store(region) for region in settings.regions} | dict(settings.export_stores)
    for name, store in stores.items():
        keys = store.credentials
        secrets = keys.secret_access_key.reveal(), keys.session_token.reveal()
        remember_keys(name, StoreKeys(keys.access_key_id, *secrets) if keys.access_key_id else None)
