"""The configuration: one YAML file, every field also `REPLICATION_...` in the environment, read into frozen values.

`current()` is what the processes use: the file that LAKEMIRROR_CONFIG names, under the environment. A missing or wrong
field is a ConfigError of one line that names it. The fields are those of lakeFS's replication service, so that its
file can be used as it is; docs/configuration.md tells each. Imports neither Django nor any SDK.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import os
import re
import secrets
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from core.store_access import DIRECT, StoreAccess
from deployment.reader import (
    ConfigError,
    Secret,
    env_name,
    overlay,
    parse_duration,
    parse_yaml,
    read_section,
    spec,
    sub,
)

__all__ = [
    "Config",
    "ConfigError",
    "Installation",
    "Secret",
    "Store",
    "current",
    "env_name",
    "load",
    "parse",
    "parse_duration",
]

BASE_DIR = Path(__file__).resolve().parent.parent
# The seed's Kubernetes secret carries these names into the environment without a prefix.
PLAIN_NAMES = ("source_lakefs_access_key_id", "source_lakefs_secret_access_key", "auth.encrypt.secret_key")


# --- checks: each returns "" or what is wrong -------------------------------------------------------------------------


def _named(value: str) -> str:
    return (
        "" if re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", value) else f"{value!r} is no region's name (a-z, 0-9, -)"
    )


def _filled(value: str) -> str:
    return "" if value.strip() else "is required and must not be empty"


def _url(value: str) -> str:
    parts = urlsplit(value)
    good = parts.scheme in ("http", "https") and parts.hostname
    return "" if good else f"{value!r} is no URL (http://host:port or https://host)"


def _url_or_empty(value: str) -> str:
    return _url(value) if value else ""


def _urls(value: Mapping[str, str]) -> str:
    return next((f"{region}: {text}" for region, url in value.items() if (text := _named(region) or _url(url))), "")


def _positive(value: int) -> str:
    return "" if value > 0 else f"must be more than 0, not {value}"


def _not_negative(value: int) -> str:
    return "" if value >= 0 else "must not be negative"


def _page(value: int) -> str:
    return "" if 0 < value <= 1000 else f"must be from 1 to 1000 (lakeFS gives no longer page), not {value}"


def _lasting(value: timedelta) -> str:
    return "" if value > timedelta(0) else "must be longer than 0s"


def _one_of(*choices: str) -> Callable[[str], str]:
    return lambda value: "" if value in choices else f"{value!r} is not one of {', '.join(choices)}"


def _scope(value: str) -> str:
    return "" if "openid" in value.split() else f"{value!r} lacks 'openid'"


def _authenticators(value: tuple[str, ...]) -> str:
    wrong = next((name for name in value if name not in ("keys", "api", "lakefs")), None)
    if wrong is not None:
        return f"{wrong!r} is not one of keys, api, lakefs"
    return "names one of them twice" if len(set(value)) < len(value) else ""


def _address(value: str) -> str:
    _host, colon, port = value.rpartition(":")
    good = colon and port.isdigit() and 0 < int(port) < 65536
    return "" if good else f"{value!r} is no host:port"


# --- the fields -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL (or CockroachDB) server that all deployments share."""

    connection_string: Secret = spec(Secret(""))
    max_connection_age: timedelta = spec(timedelta(minutes=1))


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A file for one machine; empty: lakemirror.sqlite3 in the folder for changing data."""

    path: str = spec("")


@dataclass(frozen=True, slots=True)
class MirrorsDatabase:
    """Where mirrors, users and duties are kept."""

    type: str = spec(check=_one_of("sqlite", "postgres"))
    postgres: Postgres = sub(Postgres)
    sqlite: Sqlite = sub(Sqlite)


@dataclass(frozen=True, slots=True)
class StoreCredentials:
    """Keys of an object store; empty: the usual AWS chain (environment, profile, instance role)."""

    access_key_id: str = spec("")
    secret_access_key: Secret = spec(Secret(""))
    session_token: Secret = spec(Secret(""))


@dataclass(frozen=True, slots=True)
class Store:
    """One region's S3-compatible object store; an empty endpoint is AWS's own."""

    region: str = spec("")
    endpoint: str = spec("", check=_url_or_empty)
    force_path_style: bool = spec(False)
    credentials: StoreCredentials = sub(StoreCredentials)


@dataclass(frozen=True, slots=True)
class Blockstore:
    """The object store as lakeFS's own configuration names it; `stores` overrides it per region."""

    type: str = spec(check=_one_of("s3"))
    s3: Store = sub(Store)


@dataclass(frozen=True, slots=True)
class Encrypt:
    """The key that signs sessions, seals secrets of installations and makes webhook secrets; the same in all
    deployments of an organization."""

    secret_key: Secret = spec(check=_filled)


@dataclass(frozen=True, slots=True)
class AuthApi:
    """A service that speaks lakeFS's authorization API, asked for keys that are not ours; empty: none."""

    endpoint: str = spec("", check=_url_or_empty)
    token: Secret = spec(Secret(""))


@dataclass(frozen=True, slots=True)
class AuthCache:
    """How long answers about a user's rights may be reused."""

    enabled: bool = spec(False)
    size: int = spec(1024, check=_positive)
    ttl: timedelta = spec(timedelta(seconds=20), check=_lasting)
    jitter: timedelta = spec(timedelta(seconds=3))


@dataclass(frozen=True, slots=True)
class AuthSession:
    """How long a browser stays signed in: without anybody there, and at most."""

    idle: timedelta = spec(timedelta(hours=24), check=_lasting)
    lifetime: timedelta = spec(timedelta(days=14), check=_lasting)


@dataclass(frozen=True, slots=True)
class AuthLakeFS:
    """The lakeFS that knows the keys of authenticator `lakefs`; an empty region is the deployment's own."""

    region: str = spec("")
    ttl: timedelta = spec(timedelta(minutes=1), check=_lasting)


@dataclass(frozen=True, slots=True)
class OpenID:
    """A provider by which people may sign in to the pages; an empty issuer: none."""

    issuer: str = spec("", check=_url_or_empty)
    client_id: str = spec("")
    client_secret: Secret = spec(Secret(""))
    name: str = spec("OpenID")
    scope: str = spec("openid profile email", check=_scope)
    claim: str = spec("preferred_username", check=_filled)
    create_users: bool = spec(False)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How much one access key may ask of one web process; 0 requests per second: no limit."""

    requests_per_second: int = spec(50, check=_not_negative)
    burst: int = spec(500, check=_positive)


@dataclass(frozen=True, slots=True)
class Auth:
    encrypt: Encrypt = spec()
    api: AuthApi = sub(AuthApi)
    cache: AuthCache = sub(AuthCache)
    session: AuthSession = sub(AuthSession)
    authenticators: tuple[str, ...] = spec((), check=_authenticators)
    lakefs: AuthLakeFS = sub(AuthLakeFS)
    rate_limit: RateLimit = sub(RateLimit)
    openid: OpenID = sub(OpenID)

    @property
    def tried(self) -> tuple[str, ...]:
        """Who is asked for a key, in this order."""
        return self.authenticators or (("keys", "api") if self.api.endpoint else ("keys",))


@dataclass(frozen=True, slots=True)
class Logging:
    level: str = spec("INFO", check=_one_of("TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR"))
    format: str = spec("text", check=_one_of("text", "json"))


@dataclass(frozen=True, slots=True)
class MirrorsManager:
    process_mirrors_interval_duration: timedelta = spec(timedelta(seconds=20), check=_lasting)


@dataclass(frozen=True, slots=True)
class CommitSensor:
    process_branches_duration: timedelta = spec(timedelta(minutes=1), check=_lasting)
    branches_scanner_concurrency_limit: int = spec(10, check=_positive)
    list_branch_page_size: int = spec(1000, check=_page)
    log_commit_page_size: int = spec(1000, check=_page)


@dataclass(frozen=True, slots=True)
class MetarangePresenceCache:
    size: int = spec(5_000, check=_positive)
    expiry: timedelta = spec(timedelta(hours=1440), check=_lasting)
    cooldown: timedelta = spec(timedelta(seconds=30), check=_lasting)


@dataclass(frozen=True, slots=True)
class RangePresenceCache:
    size: int = spec(500_000, check=_positive)
    expiry: timedelta = spec(timedelta(hours=1440), check=_lasting)
    cooldown: timedelta = spec(timedelta(seconds=10), check=_lasting)


@dataclass(frozen=True, slots=True)
class ObjectPresenceCache:
    size: int = spec(5_000_000, check=_positive)
    expiry: timedelta = spec(timedelta(hours=24), check=_lasting)
    cooldown: timedelta = spec(timedelta(seconds=5), check=_lasting)


@dataclass(frozen=True, slots=True)
class StorageNamespaceCache:
    size: int = spec(1_000, check=_positive)
    expiry: timedelta = spec(timedelta(seconds=17), check=_lasting)


@dataclass(frozen=True, slots=True)
class Validator:
    run_interval: timedelta = spec(timedelta(minutes=1), check=_lasting)
    num_workers: int = spec(3, check=_positive)
    small_check_entries: int = spec(200_000, check=_not_negative)
    cooldown_on_missing: timedelta = spec(timedelta(minutes=1), check=_lasting)
    cooldown_on_error: timedelta = spec(timedelta(minutes=1), check=_lasting)
    reverify_after: timedelta = spec(timedelta(days=7), check=_lasting)
    metarange_presence_cache: MetarangePresenceCache = sub(MetarangePresenceCache)
    range_presence_cache: RangePresenceCache = sub(RangePresenceCache)
    object_presence_cache: ObjectPresenceCache = sub(ObjectPresenceCache)
    storage_namespace_cache: StorageNamespaceCache = sub(StorageNamespaceCache)


@dataclass(frozen=True, slots=True)
class LocalCache:
    """Metadata files kept on disk; a relative folder lies in the folder for changing data."""

    base_dir: str = spec("cache", check=_filled)
    size_bytes: int = spec(512_000_000, check=_positive)


@dataclass(frozen=True, slots=True)
class Hooks:
    """Bearer secrets of the webhooks by installation; one that is not given is derived from auth.encrypt.secret_key."""

    secrets: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workers:
    """How many tasks a deployment runs at a time; spark 0: as many as validator.num_workers, two at most per core."""

    io: int = spec(4, check=_positive)
    spark: int = spec(0, check=_not_negative)


@dataclass(frozen=True, slots=True)
class Exports:
    """How exports work: what a worker copies by itself, and for how long one export has a worker at a time."""

    small_files: int = spec(2000, check=_not_negative)
    small_bytes: int = spec(1_000_000_000, check=_not_negative)
    slice: timedelta = spec(timedelta(seconds=30), check=_lasting)


@dataclass(frozen=True, slots=True)
class LakeFSKeys:
    """Who we are at a lakeFS."""

    access_key_id: str
    secret_access_key: Secret


@dataclass(frozen=True, slots=True)
class Installation:
    """One region's lakeFS and the store that it writes to, and how both are reached."""

    region: str
    lakefs_url: str
    store: Store
    lakefs_keys: LakeFSKeys
    access: StoreAccess = DIRECT


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a deployment is told."""

    region: str = spec(check=_named)
    organization_id: str = spec(check=_filled)
    regional_endpoint: str = spec(check=_url)
    dst_endpoints: Mapping[str, str] = spec(check=_urls)
    mirrors_database: MirrorsDatabase = spec()
    blockstore: Blockstore = spec()
    auth: Auth = spec()
    organization_name: str = spec("")
    serve_regions: tuple[str, ...] = spec(())
    source_lakefs_access_key_id: str = spec("")
    source_lakefs_secret_access_key: Secret = spec(Secret(""))
    stores: Mapping[str, Store] = field(default_factory=dict)
    listen_address: str = spec("0.0.0.0:8008", check=_address)
    list_mirrors_page_size: int = spec(1000, check=_page)
    list_repositories_page_size: int = spec(1000, check=_page)
    logging: Logging = sub(Logging)
    mirrors_manager: MirrorsManager = sub(MirrorsManager)
    commit_sensor: CommitSensor = sub(CommitSensor)
    validator: Validator = sub(Validator)
    local_cache: LocalCache = sub(LocalCache)
    refstore_database: Mapping[str, Any] = field(default_factory=dict)
    hooks: Hooks = sub(Hooks)
    workers: Workers = sub(Workers)
    exports: Exports = sub(Exports)
    export_stores: Mapping[str, Store] = field(default_factory=dict)

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region with an endpoint, this deployment's own first."""
        return (self.region, *(name for name in self.dst_endpoints if name != self.region))

    @property
    def served(self) -> tuple[str, ...]:
        """The destinations that this deployment works for (default: its own region)."""
        return self.serve_regions or (self.region,)

    def lakefs_url(self, region: str) -> str:
        """The lakeFS endpoint of a region; ConfigError if it has none."""
        url = self.regional_endpoint if region == self.region else self.dst_endpoints.get(region)
        if url is None:
            raise ConfigError(
                f"dst_endpoints.{region}", f"no endpoint for this region (known: {', '.join(self.regions)})"
            )
        return url

    def store(self, region: str) -> Store:
        """The object store of a region: its own entry in `stores`, else blockstore.s3 with that region's name."""
        own = self.stores.get(region)
        shared = self.blockstore.s3
        if own is None:
            name = shared.region if region == self.region and shared.region else region
            return Store(name, shared.endpoint, shared.force_path_style, shared.credentials)
        keys = own.credentials if own.credentials.access_key_id else shared.credentials
        return Store(own.region or region, own.endpoint, own.force_path_style, keys)

    def export_store(self, region: str, bucket: str) -> tuple[str, Store]:
        """Where a bucket lies that a region's branches are exported to, and by which name executors know its keys: one
        of `export_stores`, else the region's own store."""
        own = self.export_stores.get(bucket)
        return (region, self.store(region)) if own is None else (bucket, own)

    def installation(self, region: str) -> Installation:
        """Where a region's lakeFS and store are; ConfigError for a region without an endpoint."""
        keys = LakeFSKeys(self.source_lakefs_access_key_id, self.source_lakefs_secret_access_key)
        return Installation(region, self.lakefs_url(region), self.store(region), keys)

    def hook_secret(self, region: str) -> Secret:
        """The Bearer secret of an installation's webhooks: the configured one, else one derived from the key."""
        return self.hooks.secrets.get(region) or Secret(self.derived_key(f"hook:{region}")[:40])

    def derived_key(self, purpose: str) -> str:
        """64 hexadecimal digits for one purpose, the same wherever auth.encrypt.secret_key is the same."""
        return derived(self.auth.encrypt.secret_key, purpose)

    @property
    def spark_workers(self) -> int:
        """How many Spark jobs this deployment launches at a time."""
        return self.workers.spark or min(self.validator.num_workers, 2 * (os.cpu_count() or 1))

    @property
    def worker_queue(self) -> str:
        """The queue of the I/O-bound duties."""
        return self.region

    @property
    def spark_queue(self) -> str:
        """The queue of the duties that launch Spark jobs."""
        return f"{self.region}-spark"


def derived(secret_key: str, purpose: str) -> str:
    """64 hexadecimal digits that follow from a key, for one purpose."""
    return hmac.new(secret_key.encode(), purpose.encode(), hashlib.sha256).hexdigest()


# --- the whole -------------------------------------------------------------------------------------------------------


def parse(data: Mapping[str, Any], environ: Mapping[str, str] = types.MappingProxyType({})) -> Config:
    """A configuration from parsed YAML under an environment; ConfigError names what is missing or wrong."""
    config = read_section(Config, overlay(data, Config, environ, plain=PLAIN_NAMES), "")
    _hold_together(config)
    return config


def _hold_together(config: Config) -> None:
    """What no single field can tell."""
    for region in config.serve_regions:
        if region not in config.regions:
            raise ConfigError("serve_regions", f"{region!r} has no endpoint (known: {', '.join(config.regions)})")
    database = config.mirrors_database
    if database.type == "postgres" and not database.postgres.connection_string:
        raise ConfigError(
            "mirrors_database.postgres.connection_string", "is required when mirrors_database.type is postgres"
        )
    _hold_auth_together(config)
    for region in config.stores:
        if region not in config.regions:
            raise ConfigError(f"stores.{region}", f"this region has no endpoint (known: {', '.join(config.regions)})")
    if bool(config.source_lakefs_access_key_id) != bool(config.source_lakefs_secret_access_key):
        missing = "secret_access_key" if config.source_lakefs_access_key_id else "access_key_id"
        raise ConfigError(f"source_lakefs_{missing}", "is required beside the other half of the credentials")


def _hold_auth_together(config: Config) -> None:
    auth = config.auth
    if auth.api.endpoint and "api" not in auth.tried:
        raise ConfigError("auth.api.endpoint", "is set, but auth.authenticators leaves 'api' out")
    if "api" in auth.tried and not auth.api.endpoint:
        raise ConfigError("auth.api.endpoint", "is required when auth.authenticators names 'api'")
    if auth.openid.issuer and not auth.openid.client_id:
        raise ConfigError("auth.openid.client_id", "is required beside auth.openid.issuer")
    if auth.lakefs.region and auth.lakefs.region not in config.regions:
        known = ", ".join(config.regions)
        raise ConfigError("auth.lakefs.region", f"{auth.lakefs.region!r} has no endpoint (known: {known})")


def load(path: str | Path, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration in a file under an environment (default: the process's)."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError("", f"can't read the configuration file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError("", f"{path}: this is no UTF-8 text") from None
    data = parse_yaml(text, str(path))
    if not isinstance(data, dict):
        raise ConfigError("", f"{path}: expected a mapping of fields")
    return parse(data, os.environ if environ is None else environ)


def var_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for changing data: LAKEMIRROR_VAR, else var/ in the checkout."""
    return Path((os.environ if environ is None else environ).get("LAKEMIRROR_VAR") or BASE_DIR / "var")


def _machine_key(var: Path) -> str:
    """A random key kept in the folder for changing data, made at the first call, readable by its owner alone."""
    path = var / "secret.key"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as file:
        key = secrets.token_hex(32)
        file.write(key)
    return key


def development(environ: Mapping[str, str] | None = None) -> Config:
    """What stands without a file: the demo's regions on this machine, with a secret of this machine's own."""
    environ = os.environ if environ is None else environ
    base = int(environ.get("LAKEMIRROR_PORT_BASE") or 8000)
    var = var_dir(environ)
    var.mkdir(parents=True, exist_ok=True)
    keys = {"access_key_id": "AKIALAKEMIRRORDEMO", "secret_access_key": "lakemirror-demo-secret"}
    regions = {"us-east-1": 1, "eu-west-1": 2, "ap-southeast-2": 3}
    lakefs = {name: f"http://127.0.0.1:{base + 100 + number}" for name, number in regions.items()}
    stores = {
        name: {"endpoint": f"http://127.0.0.1:{base + 110 + number}", "force_path_style": True, "credentials": keys}
        for name, number in regions.items()
    }
    data = {
        "region": "us-east-1",
        "organization_id": "demo",
        "regional_endpoint": lakefs.pop("us-east-1"),
        "dst_endpoints": lakefs,
        "serve_regions": list(regions),
        "mirrors_database": {"type": "sqlite"},
        "blockstore": {"type": "s3"},
        "stores": stores,
        "validator": {"cooldown_on_missing": "5s"},
        "auth": {"encrypt": {"secret_key": _machine_key(var)}},
        "source_lakefs_access_key_id": keys["access_key_id"],
        "source_lakefs_secret_access_key": keys["secret_access_key"],
        "listen_address": f"127.0.0.1:{base + 8}",
    }
    return parse(data, environ)


def configured(environ: Mapping[str, str]) -> bool:
    """Was this deployment told anything: a file, or its region in the environment?"""
    return bool(environ.get("LAKEMIRROR_CONFIG") or environ.get(env_name("region")))


@functools.cache
def from_file() -> Config:
    """What this process was started with: LAKEMIRROR_CONFIG under the environment, else the development one."""
    path = os.environ.get("LAKEMIRROR_CONFIG")
    if path:
        return load(path)
    return parse({}, os.environ) if configured(os.environ) else development()


_put_together: Config | None = None


def current() -> Config:
    """The configuration that holds now: the file's, with the installations of the database once they were read."""
    return _put_together or from_file()


def put_together(whole: Config | None) -> None:
    """Let this hold from now on in this process; None: what it was started with."""
    global _put_together
    _put_together = whole
