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
import secrets
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deployment import config_checks as checks
from deployment.config_sections import (
    Auth,
    Blockstore,
    CommitSensor,
    Exports,
    Hooks,
    LocalCache,
    Logging,
    MirrorsDatabase,
    MirrorsManager,
    Notifications,
    Replication,
    Store,
    Validator,
    Web,
    Workers,
)
from deployment.config_whole import completed, held_together, tell_whole_charts_and_other_databases, without_lakefs
from deployment.installation import Installation, LakeFSKeys, LakeFSServer
from deployment.reader import (
    ConfigError,
    Secret,
    env_name,
    overlay,
    parse_yaml,
    read_section,
    spec,
    sub,
    unused_fields,
)

BASE_DIR = Path(__file__).resolve().parent.parent
# The seed's Kubernetes secret carries these names into the environment without a prefix.
PLAIN_NAMES = ("source_lakefs_access_key_id", "source_lakefs_secret_access_key", "auth.encrypt.secret_key")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a deployment is told."""

    region: str = spec(check=checks.named)
    organization_id: str = spec(check=checks.filled)
    regional_endpoint: str = spec(check=checks.url_or_empty)
    dst_endpoints: Mapping[str, str] = spec(check=checks.urls)
    mirrors_database: MirrorsDatabase = spec()
    blockstore: Blockstore = spec()
    auth: Auth = spec()
    organization_name: str = spec("")
    serve_regions: tuple[str, ...] = spec(())
    source_lakefs_access_key_id: str = spec("")
    source_lakefs_secret_access_key: Secret = spec(Secret(""))
    stores: Mapping[str, Store] = field(default_factory=dict)
    replication_stores: Mapping[str, Store] = field(default_factory=dict)
    listen_address: str = spec("0.0.0.0:8008", check=checks.address)
    web: Web = sub(Web)
    list_mirrors_page_size: int = spec(1000, check=checks.page)
    list_repositories_page_size: int = spec(1000, check=checks.page)
    logging: Logging = sub(Logging)
    mirrors_manager: MirrorsManager = sub(MirrorsManager)
    commit_sensor: CommitSensor = sub(CommitSensor)
    validator: Validator = sub(Validator)
    local_cache: LocalCache = sub(LocalCache)
    refstore_database: Mapping[str, Any] = field(default_factory=dict, metadata={"unused": True})
    hooks: Hooks = sub(Hooks)
    workers: Workers = sub(Workers)
    exports: Exports = sub(Exports)
    export_stores: Mapping[str, Store] = field(default_factory=dict)
    notifications: Notifications = sub(Notifications)
    replication: Replication = sub(Replication)

    @property
    def own_regions(self) -> tuple[str, ...]:
        """The regions of the file, this deployment's own first if it is one."""
        return tuple(sorted((*self.own_lakefs_regions, *self.replication_stores), key=lambda name: name != self.region))

    @property
    def own_lakefs_regions(self) -> tuple[str, ...]:
        """Those of them that have a lakeFS."""
        here = (self.region,) if self.regional_endpoint else ()
        return (*here, *(name for name in self.dst_endpoints if name != self.region))

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region with an installation: with a store, and mostly a lakeFS."""
        return self.own_regions

    @property
    def lakefs_regions(self) -> tuple[str, ...]:
        """Every region with a lakeFS; only these may have mirrors and exports."""
        return self.own_lakefs_regions

    @property
    def own_served(self) -> tuple[str, ...]:
        """Those of the file that this deployment works for (default: its own, and the stores without a lakeFS)."""
        return self.serve_regions or tuple(dict.fromkeys((self.region, *self.replication_stores)))

    @property
    def served(self) -> tuple[str, ...]:
        """The regions whose mirrors, and whose rules, this deployment works for."""
        return self.own_served

    def lakefs(self, region: str) -> LakeFSServer | None:
        """The lakeFS of a region, if it has one."""
        url = self.regional_endpoint if region == self.region else self.dst_endpoints.get(region)
        keys = LakeFSKeys(self.source_lakefs_access_key_id, self.source_lakefs_secret_access_key)
        return LakeFSServer(url, keys) if url else None

    def lakefs_url(self, region: str) -> str:
        """The lakeFS endpoint of a region; ConfigError if it has none."""
        server = self.lakefs(region)
        if server is None:
            raise self._no_endpoint(region, self.lakefs_regions)
        return server.url

    def _no_endpoint(self, region: str, known: tuple[str, ...]) -> ConfigError:
        return ConfigError(f"dst_endpoints.{region}", f"no endpoint for this region (known: {', '.join(known)})")

    def store(self, region: str) -> Store:
        """The object store of a region: its own entry in `replication_stores`, which uses nothing of the rest, or in
        `stores`, else blockstore.s3 with that region's name."""
        if (alone := self.replication_stores.get(region)) is not None:
            return replace(alone, region=alone.region or region)
        own = self.stores.get(region)
        shared = self.blockstore.s3
        if own is None:
            return replace(shared, region=shared.region if region == self.region and shared.region else region)
        if not (own.credentials.access_key_id or own.profile or own.credentials_file):
            of_shared = {"profile": shared.profile, "credentials_file": shared.credentials_file}
            own = replace(own, credentials=shared.credentials, **of_shared)
        return replace(own, region=own.region or region)

    def export_store(self, region: str, bucket: str) -> tuple[str, Store]:
        """Where a bucket lies that a region's branches are exported to, and by which name executors know its keys: one
        of `export_stores`, else the region's own store."""
        own = self.export_stores.get(bucket)
        return (region, self.store(region)) if own is None else (bucket, own)

    def installation(self, region: str) -> Installation:
        """A region's store, and its lakeFS if there is one; ConfigError for a region that is not configured."""
        if region not in self.regions:
            raise self._no_endpoint(region, self.regions)
        store = self.store(region)
        return Installation(region, store, self.lakefs(region), store.access)

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


def parse(data: Mapping[str, Any], environ: Mapping[str, str] = types.MappingProxyType({})) -> Config:
    """A configuration from parsed YAML under an environment; ConfigError names what is missing or wrong."""
    given = overlay(data, Config, environ, plain=PLAIN_NAMES)
    tell_whole_charts_and_other_databases(given)
    config = read_section(Config, completed(given), "")
    return held_together(config, alone=without_lakefs(given))


def load(path: str | Path, environ: Mapping[str, str] | None = None) -> Config:
    """The configuration in a file under an environment (default: the process's)."""
    return _complete(parse(_read(path), os.environ if environ is None else environ))


def unused_in_use(environ: Mapping[str, str] | None = None) -> list[str]:
    """The fields of lakeFS's that this process was given, and of which nothing comes."""
    environ = os.environ if environ is None else environ
    path = environ.get("LAKEMIRROR_CONFIG")
    return list(unused_fields(Config, overlay(_read(path) if path else {}, Config, environ, plain=PLAIN_NAMES)))


def _complete(config: Config) -> Config:
    """What a process can't work without, although a plan of one can be read without it."""
    if config.regional_endpoint and not config.source_lakefs_access_key_id:
        raise ConfigError(
            "source_lakefs_access_key_id",
            "is required, with its secret: an access key of the replication user, alike on every lakeFS"
            " (in the file, or by that name in the environment)",
        )
    return config


def _read(path: str | Path) -> Mapping[str, Any]:
    """The fields in a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError("", f"can't read the configuration file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError("", f"{path}: this is not UTF-8 text") from None
    data = parse_yaml(text, str(path))
    if not isinstance(data, dict):
        raise ConfigError("", f"{path}: expected a mapping of fields")
    return data


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
        "notifications": {"private_addresses": True},
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
    return _complete(parse({}, os.environ)) if configured(os.environ) else development()


_put_together: Config | None = None
_of_this_work: ContextVar[Config | None] = ContextVar("configuration", default=None)


def current() -> Config:
    """The configuration that holds now: the file's, with the installations of the database once they were read.

    Within `snapshot` it stays the same, whatever other threads of this process read meanwhile.
    """
    return _of_this_work.get() or _put_together or from_file()


@contextmanager
def snapshot() -> Iterator[None]:
    """One request, or one round of a duty: what holds at its beginning holds to its end, but for its own changes."""
    token = _of_this_work.set(current())
    try:
        yield
    finally:
        _of_this_work.reset(token)


@contextmanager
def trying(whole: Config) -> Iterator[None]:
    """This work alone sees another configuration, to try what nobody has saved yet."""
    token = _of_this_work.set(whole)
    try:
        yield
    finally:
        _of_this_work.reset(token)


def put_together(whole: Config | None) -> None:
    """Let this hold from now on in this process; None: what it was started with."""
    global _put_together
    _put_together = whole
    if _of_this_work.get() is not None:
        _of_this_work.set(whole or from_file())
