"""What no single field of a configuration can tell: which fields need each other, and what a file without any lakeFS
may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployment import config_checks as checks
from deployment.reader import ConfigError

if TYPE_CHECKING:
    from deployment.config import Config

_NO_LAKEFS: Mapping[str, Any] = {"regional_endpoint": "", "dst_endpoints": {}, "blockstore": {"type": "s3"}}
"""What stands for the fields that only a lakeFS needs."""
RESERVED = "new"
"""Names the page that adds installations."""


def without_lakefs(given: Mapping[str, Any]) -> bool:
    """Whether a file says that there is no lakeFS: by naming stores, be it none yet, and not one lakeFS."""
    told = given.get("regional_endpoint") or given.get("dst_endpoints")
    return given.get("replication_stores") is not None and not told


def completed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields, with those that a file without any lakeFS may leave out."""
    return {**_NO_LAKEFS, **_told(given)} if without_lakefs(given) else given


def _told(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def tell_whole_charts_and_other_databases(given: Mapping[str, Any]) -> None:
    """What comes from a replication service's set-up and can't be taken as it is: said with what to do, not by the
    first field in it that isn't known."""
    own = given.get("replication")
    if own is not None and (not isinstance(own, Mapping) or "config" in own):
        raise ConfigError(
            "replication", "is of a chart's values: the configuration is what stands in replication.config"
        )
    database = given.get("mirrors_database")
    kind = database.get("type") if isinstance(database, Mapping) else None
    if kind in ("dynamodb", "cosmosdb", "local"):
        instead = "use a PostgreSQL that every region's deployment can reach, or an sqlite file on a single machine"
        raise ConfigError("mirrors_database.type", f"{kind!r} is not one of sqlite, postgres: {instead}")


def held_together(config: Config, *, alone: bool) -> Config:
    """The configuration with what follows from several of its fields; ConfigError names the one that does not fit.
    `alone`: it has no lakeFS."""
    if not alone and not config.regional_endpoint:
        raise ConfigError("regional_endpoint", "is required where there is a lakeFS: it is that of this region")
    _hold_stores_together(config)
    for region in config.serve_regions:
        if region not in (*config.regions, config.region):
            raise ConfigError("serve_regions", f"{region!r} has no endpoint (known: {', '.join(config.regions)})")
    database = config.mirrors_database
    if database.type == "postgres" and not database.postgres.connection_string:
        raise ConfigError(
            "mirrors_database.postgres.connection_string", "is required when mirrors_database.type is postgres"
        )
    _hold_auth_together(config)
    state = config.replication.state
    if bool(state.uri) != bool(state.region):
        missing = "region" if state.uri else "uri"
        raise ConfigError(f"replication.state.{missing}", "is required with the other one: the place, and whose store")
    if bool(config.source_lakefs_access_key_id) != bool(config.source_lakefs_secret_access_key):
        missing = "secret_access_key" if config.source_lakefs_access_key_id else "access_key_id"
        raise ConfigError(f"source_lakefs_{missing}", "is required with the other half of the credentials")
    return _asking_no_lakefs(config) if alone else config


def _hold_stores_together(config: Config) -> None:
    for region in config.stores:
        if region not in config.lakefs_regions:
            known = ", ".join(config.lakefs_regions)
            raise ConfigError(f"stores.{region}", f"this region has no endpoint (known: {known})")
    for name, store in config.replication_stores.items():
        field = f"replication_stores.{name}"
        if problem := checks.named(name):
            raise ConfigError(field, problem)
        if name == RESERVED:
            raise ConfigError(field, "is the name of the page that adds installations: use another one")
        if name in config.lakefs_regions:
            raise ConfigError(field, f"this region has a lakeFS: what its store is stands in stores.{name}")
        if not store.endpoint and not store.region:
            raise ConfigError(f"{field}.endpoint", f"is required; for buckets of AWS give {field}.region instead")
        if bool(store.credentials.access_key_id) != bool(store.credentials.secret_access_key):
            missing = "secret_access_key" if store.credentials.access_key_id else "access_key_id"
            raise ConfigError(f"{field}.credentials.{missing}", "is required with the other half of the credentials")


def _hold_auth_together(config: Config) -> None:
    auth = config.auth
    if auth.api.endpoint and "api" not in auth.tried:
        raise ConfigError("auth.api.endpoint", "is set, but auth.authenticators leaves 'api' out")
    if "api" in auth.tried and not auth.api.endpoint:
        raise ConfigError("auth.api.endpoint", "is required when auth.authenticators names 'api'")
    if auth.openid.issuer and not auth.openid.client_id:
        raise ConfigError("auth.openid.client_id", "is required beside auth.openid.issuer")
    if auth.lakefs.region and auth.lakefs.region not in config.lakefs_regions:
        known = ", ".join(config.lakefs_regions)
        raise ConfigError("auth.lakefs.region", f"{auth.lakefs.region!r} has no endpoint (known: {known})")


def _asking_no_lakefs(config: Config) -> Config:
    """Without a lakeFS there is none that could know keys."""
    auth = config.auth
    if "lakefs" in auth.authenticators:
        raise ConfigError("auth.authenticators", "names 'lakefs', and no lakeFS is configured")
    if auth.authenticators:
        return config
    tried = tuple(name for name in auth.tried if name != "lakefs")
    return replace(config, auth=replace(auth, authenticators=tried))
