"""An installation: an object store, and the lakeFS that writes to it, if there is one."""

from __future__ import annotations

from dataclasses import dataclass

from core.store_access import DIRECT, StoreAccess
from deployment.config_sections import Store
from deployment.reader import Secret


@dataclass(frozen=True, slots=True)
class LakeFSKeys:
    """Who we are at a lakeFS."""

    access_key_id: str
    secret_access_key: Secret


@dataclass(frozen=True, slots=True)
class LakeFSServer:
    """Where a lakeFS answers (without /api/v1), and who we are there."""

    url: str
    keys: LakeFSKeys


@dataclass(frozen=True, slots=True)
class Installation:
    """One region's store, the lakeFS that writes to it, and how both are reached. `lakefs` None: a store alone, for
    replication rules."""

    region: str
    store: Store
    lakefs: LakeFSServer | None
    access: StoreAccess = DIRECT
