"""The sections of the configuration: a frozen class each, with its fields' defaults and what is checked of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from core.store_access import StoreAccess
from deployment import config_checks as checks
from deployment.reader import Secret, spec, sub, unused


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL (or CockroachDB) server that all deployments share."""

    connection_string: Secret = spec(Secret(""))
    max_connection_age: timedelta = spec(timedelta(minutes=1))
    max_open_connections: int = unused(25)
    max_idle_connections: int = unused(25)
    connection_max_lifetime: str = unused("5m")


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A file for one machine; empty: lakemirror.sqlite3 in the folder for changing data."""

    path: str = spec("")


@dataclass(frozen=True, slots=True)
class MirrorsDatabase:
    """Where mirrors, users and duties are kept."""

    type: str = spec(check=checks.one_of("sqlite", "postgres"))
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
    """One region's S3-compatible object store, by the fields of lakeFS's `blockstore.s3`; an empty endpoint is AWS's
    own. `profile` and `credentials_file` count where `credentials` are empty."""

    region: str = spec("")
    endpoint: str = spec("", check=checks.url_or_empty)
    force_path_style: bool = spec(False)
    credentials: StoreCredentials = sub(StoreCredentials)
    profile: str = spec("")
    credentials_file: str = spec("")
    max_retries: int = spec(3, check=checks.not_negative)
    discover_bucket_region: bool = unused(True)
    skip_verify_certificate_test_only: bool = unused(False)
    server_side_encryption: str = unused("")
    server_side_encryption_kms_key_id: str = unused("")
    client_log_request: bool = unused(False)
    client_log_retries: bool = unused(False)
    disable_pre_signed: bool = unused(False)
    disable_pre_signed_ui: bool = unused(True)
    disable_pre_signed_multipart: bool = unused(False)
    pre_signed_endpoint: str = unused("")
    pre_signed_expiry: str = unused("15m")
    web_identity: Mapping[str, Any] = unused(None)

    @property
    def access(self) -> StoreAccess:
        """How it is reached."""
        return StoreAccess(profile=self.profile, credentials_file=self.credentials_file)


@dataclass(frozen=True, slots=True)
class Blockstore:
    """The object store as lakeFS's own configuration names it; `stores` overrides it per region."""

    type: str = spec(check=checks.one_of("s3"))
    s3: Store = sub(Store)
    default_namespace_prefix: str = unused("")
    signing: Mapping[str, Any] = unused(None)


@dataclass(frozen=True, slots=True)
class Encrypt:
    """The key that signs sessions, seals secrets of installations and makes webhook secrets; the same in all
    deployments of an organization."""

    secret_key: Secret = spec(check=checks.filled)


@dataclass(frozen=True, slots=True)
class AuthApi:
    """A service that speaks lakeFS's authorization API, asked for keys that are not ours; empty: none."""

    endpoint: str = spec("", check=checks.url_or_empty)
    token: Secret = spec(Secret(""))


@dataclass(frozen=True, slots=True)
class AuthCache:
    """How long answers about a user's rights may be reused."""

    enabled: bool = spec(False)
    size: int = spec(1024, check=checks.positive)
    ttl: timedelta = spec(timedelta(seconds=20), check=checks.lasting)
    jitter: timedelta = spec(timedelta(seconds=3))


@dataclass(frozen=True, slots=True)
class AuthSession:
    """How long a browser stays signed in: without anybody there, and at most."""

    idle: timedelta = spec(timedelta(hours=24), check=checks.lasting)
    lifetime: timedelta = spec(timedelta(days=14), check=checks.lasting)


@dataclass(frozen=True, slots=True)
class AuthLakeFS:
    """The lakeFS that knows the keys of authenticator `lakefs`; an empty region is the deployment's own. Its users join
    the group when they first come; an empty one: they come without rights."""

    region: str = spec("")
    group: str = spec("")
    ttl: timedelta = spec(timedelta(minutes=1), check=checks.lasting)


@dataclass(frozen=True, slots=True)
class OpenID:
    """A provider by which people may sign in to the pages; an empty issuer: none."""

    issuer: str = spec("", check=checks.url_or_empty)
    client_id: str = spec("")
    client_secret: Secret = spec(Secret(""))
    name: str = spec("OpenID")
    scope: str = spec("openid profile email", check=checks.scope)
    claim: str = spec("preferred_username", check=checks.filled)
    create_users: bool = spec(False)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How much one access key may ask of one web process; 0 requests per second: no limit."""

    requests_per_second: int = spec(50, check=checks.not_negative)
    burst: int = spec(500, check=checks.positive)


@dataclass(frozen=True, slots=True)
class Auth:
    encrypt: Encrypt = spec()
    api: AuthApi = sub(AuthApi)
    cache: AuthCache = sub(AuthCache)
    session: AuthSession = sub(AuthSession)
    authenticators: tuple[str, ...] = spec((), check=checks.authenticators)
    lakefs: AuthLakeFS = sub(AuthLakeFS)
    rate_limit: RateLimit = sub(RateLimit)
    openid: OpenID = sub(OpenID)

    @property
    def tried(self) -> tuple[str, ...]:
        """Who is asked for a key, in this order. lakeFS would ask the authorization service too: it is asked itself."""
        return self.authenticators or ("keys", "api" if self.api.endpoint else "lakefs")


@dataclass(frozen=True, slots=True)
class Logging:
    level: str = spec("INFO", check=checks.one_of("TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", any_case=True))
    format: str = spec("text", check=checks.one_of("text", "json"))
    output: str = unused("-")
    file_max_size_mb: int = unused(102400)
    files_keep: int = unused(100)
    audit_log_level: str = unused("DEBUG")
    trace_request_headers: bool = unused(False)


@dataclass(frozen=True, slots=True)
class Web:
    """The names by which browsers may come (`lakemirror.example.com`; `.example.com`: all below it; none: any name),
    and for how long a browser that came by https has to come by it again."""

    allowed_hosts: tuple[str, ...] = spec((), check=checks.hosts)
    hsts: timedelta = spec(timedelta(0))


@dataclass(frozen=True, slots=True)
class MirrorsManager:
    process_mirrors_interval_duration: timedelta = spec(timedelta(seconds=20), check=checks.lasting)


@dataclass(frozen=True, slots=True)
class CommitSensor:
    process_branches_duration: timedelta = spec(timedelta(minutes=1), check=checks.lasting)
    branches_scanner_concurrency_limit: int = spec(10, check=checks.positive)
    list_branch_page_size: int = spec(1000, check=checks.page)
    log_commit_page_size: int = spec(1000, check=checks.page)


@dataclass(frozen=True, slots=True)
class MetarangePresenceCache:
    size: int = spec(5_000, check=checks.positive)
    expiry: timedelta = spec(timedelta(hours=1440), check=checks.lasting)
    cooldown: timedelta = spec(timedelta(seconds=30), check=checks.lasting)


@dataclass(frozen=True, slots=True)
class RangePresenceCache:
    size: int = spec(500_000, check=checks.positive)
    expiry: timedelta = unused(timedelta(hours=1440), check=checks.lasting)
    cooldown: timedelta = spec(timedelta(seconds=10), check=checks.lasting)


@dataclass(frozen=True, slots=True)
class ObjectPresenceCache:
    size: int = unused(5_000_000, check=checks.positive)
    expiry: timedelta = unused(timedelta(hours=24), check=checks.lasting)
    cooldown: timedelta = spec(timedelta(seconds=5), check=checks.lasting)


@dataclass(frozen=True, slots=True)
class StorageNamespaceCache:
    size: int = unused(1_000, check=checks.positive)
    expiry: timedelta = unused(timedelta(seconds=17), check=checks.lasting)


@dataclass(frozen=True, slots=True)
class Validator:
    run_interval: timedelta = spec(timedelta(minutes=1), check=checks.lasting)
    num_workers: int = spec(3, check=checks.positive)
    small_check_entries: int = spec(200_000, check=checks.not_negative)
    cooldown_on_missing: timedelta = spec(timedelta(minutes=1), check=checks.lasting)
    cooldown_on_error: timedelta = spec(timedelta(minutes=1), check=checks.lasting)
    reverify_after: timedelta = spec(timedelta(days=7), check=checks.lasting)
    metarange_presence_cache: MetarangePresenceCache = sub(MetarangePresenceCache)
    range_presence_cache: RangePresenceCache = sub(RangePresenceCache)
    object_presence_cache: ObjectPresenceCache = sub(ObjectPresenceCache)
    storage_namespace_cache: StorageNamespaceCache = sub(StorageNamespaceCache)


@dataclass(frozen=True, slots=True)
class LocalCache:
    """Metadata files kept on disk; a relative folder lies in the folder for changing data."""

    base_dir: str = spec("cache", check=checks.filled)
    size_bytes: int = spec(512_000_000, check=checks.positive)


@dataclass(frozen=True, slots=True)
class Hooks:
    """Bearer secrets of the webhooks by installation; one that is not given is derived from auth.encrypt.secret_key."""

    secrets: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workers:
    """How many tasks a deployment runs at a time; spark 0: as many as validator.num_workers, two at most per core."""

    io: int = spec(4, check=checks.positive)
    spark: int = spec(0, check=checks.not_negative)


@dataclass(frozen=True, slots=True)
class Exports:
    """How exports work: what a worker copies by itself, and for how long one export has a worker at a time."""

    small_files: int = spec(2000, check=checks.not_negative)
    small_bytes: int = spec(1_000_000_000, check=checks.not_negative)
    slice: timedelta = spec(timedelta(seconds=30), check=checks.lasting)
    kept_manifests: int = spec(7, check=checks.positive)


@dataclass(frozen=True, slots=True)
class ReplicationState:
    """Where what is known of rules beside the database lies; an empty uri: below the place of each target."""

    uri: str = spec("", check=checks.s3_or_empty)
    region: str = spec("")


@dataclass(frozen=True, slots=True)
class Prices:
    """What stores charge, in one currency, for estimates: of 1,000 requests, of a GB that leaves the source's store, of
    a GB kept for a month. An empty one is not known."""

    currency: str = spec("USD")
    put: str = spec("", check=checks.price_or_empty)
    get: str = spec("", check=checks.price_or_empty)
    list: str = spec("", check=checks.price_or_empty)
    head: str = spec("", check=checks.price_or_empty)
    egress: str = spec("", check=checks.price_or_empty)
    storage: str = spec("", check=checks.price_or_empty)

    @property
    def known(self) -> Mapping[str, float]:
        """Those that are given, by name."""
        names = ("put", "get", "list", "head", "egress", "storage")
        return {name: float(price) for name in names if (price := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class Replication:
    """How replication rules work. A link that has no more to copy than that is the worker's own; 0: everything is
    Spark's."""

    state: ReplicationState = sub(ReplicationState)
    small_objects: int = spec(10_000, check=checks.not_negative)
    small_bytes: int = spec(10_000_000_000, check=checks.not_negative)
    prices: Prices = sub(Prices)


@dataclass(frozen=True, slots=True)
class Notifications:
    """Alerts: after how long one opens, where links lead, whether messages may go to our own network, and what is asked
    for every minute while all is at work."""

    after: timedelta = spec(timedelta(minutes=1), check=checks.lasting)
    site_url: str = spec("", check=checks.url_or_empty)
    private_addresses: bool = spec(False)
    heartbeat_url: Secret = spec(Secret(""), check=checks.secret_url_or_empty)
