"""The configuration: what it accepts, what it overrides, and the one line that it says about what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployment import config
from deployment.config import ConfigError
from deployment.reader import parse_duration
from sandbox.lakemirror_yaml import write_configuration
from sandbox.layout import REGION_NAMES, Layout, Region

SOURCE = {
    "region": "us-east-1",
    "organization_id": "my-org",
    "regional_endpoint": "http://lakefs-source.internal:80",
    "dst_endpoints": {"us-west-2": "http://lakefs-dest.internal:80"},
    "mirrors_database": {"type": "postgres", "postgres": {"connection_string": "postgresql://lm:pw@db/lm"}},
    "blockstore": {"type": "s3", "s3": {"region": "us-east-1"}},
    "auth": {"encrypt": {"secret_key": "shared-secret"}},
}
KEYS = {"source_lakefs_access_key_id": "AKIA", "source_lakefs_secret_access_key": "s3cret"}
"""What a process needs beside it; the seed's secret has them in the environment."""
TABLE = {
    "listen_address": "0.0.0.0:8008",
    "list_mirrors_page_size": 1000,
    "list_repositories_page_size": 1000,
    "logging.level": "INFO",
    "logging.format": "text",
    "mirrors_manager.process_mirrors_interval_duration": timedelta(seconds=20),
    "commit_sensor.process_branches_duration": timedelta(minutes=1),
    "commit_sensor.branches_scanner_concurrency_limit": 10,
    "commit_sensor.list_branch_page_size": 1000,
    "commit_sensor.log_commit_page_size": 1000,
    "validator.run_interval": timedelta(minutes=1),
    "validator.num_workers": 3,
    "validator.small_check_entries": 200_000,
    "validator.cooldown_on_missing": timedelta(minutes=1),
    "validator.cooldown_on_error": timedelta(minutes=1),
    "validator.metarange_presence_cache.size": 5000,
    "validator.metarange_presence_cache.expiry": timedelta(hours=1440),
    "validator.metarange_presence_cache.cooldown": timedelta(seconds=30),
    "validator.range_presence_cache.size": 500_000,
    "validator.range_presence_cache.expiry": timedelta(hours=1440),
    "validator.range_presence_cache.cooldown": timedelta(seconds=10),
    "validator.object_presence_cache.size": 5_000_000,
    "validator.object_presence_cache.expiry": timedelta(hours=24),
    "validator.object_presence_cache.cooldown": timedelta(seconds=5),
    "validator.storage_namespace_cache.size": 1000,
    "validator.storage_namespace_cache.expiry": timedelta(seconds=17),
    "exports.small_files": 2000,
    "exports.small_bytes": 1_000_000_000,
    "exports.slice": timedelta(seconds=30),
    "exports.kept_manifests": 7,
    "notifications.after": timedelta(minutes=1),
    "notifications.site_url": "",
    "notifications.private_addresses": False,
    "notifications.heartbeat_url": "",
    "auth.api.endpoint": "",
    "auth.cache.enabled": False,
    "auth.api.token": "",
    "auth.authenticators": (),
    "auth.lakefs.region": "",
    "auth.lakefs.group": "",
    "auth.lakefs.ttl": timedelta(minutes=1),
    "auth.openid.issuer": "",
    "auth.openid.client_id": "",
    "auth.openid.client_secret": "",
    "auth.openid.name": "OpenID",
    "auth.openid.scope": "openid profile email",
    "auth.openid.claim": "preferred_username",
    "auth.openid.create_users": False,
    "auth.rate_limit.requests_per_second": 50,
    "auth.rate_limit.burst": 500,
    "auth.session.idle": timedelta(hours=24),
    "auth.session.lifetime": timedelta(days=14),
    "local_cache.base_dir": "cache",
    "local_cache.size_bytes": 512_000_000,
    "organization_name": "",
    "refstore_database": {},
    "serve_regions": (),
}
# An issuer stands beside a client's id: `tests/rbac/test_openid.py` sets both.
SETTABLE = [
    path for path, value in TABLE.items() if not isinstance(value, (dict, tuple)) and path != "auth.openid.issuer"
]
OTHER = {int: ("7", 7), timedelta: ("90s", timedelta(seconds=90)), bool: ("true", True)}
OTHER_TEXT = {
    "auth.api.endpoint": "https://auth.example.com/api/v1",
    "notifications.site_url": "https://lakemirror.example.com",
    "notifications.heartbeat_url": "https://beats.example.com/t0ken",
    "auth.lakefs.region": "us-west-2",
    "auth.openid.scope": "openid email",
    "listen_address": "127.0.0.1:9000",
    "logging.level": "DEBUG",
    "logging.format": "json",
}
LEFT_OUT = {"encrypt": {"secret_key": "k"}, "api": {"endpoint": "https://a"}, "authenticators": ["keys"]}


def at(settings: Any, path: str) -> Any:
    """The value of a dotted path."""
    for name in path.split("."):
        settings = getattr(settings, name)
    return settings


def changed(path: str, value: Any) -> dict[str, Any]:
    """SOURCE with one field set; None takes it out."""
    data: dict[str, Any] = deepcopy(SOURCE)
    *above, last = path.split(".")
    node = data
    for name in above:
        node = node.setdefault(name, {})
    node[last] = value
    return data


def problem(data: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config.parse(data, environ or {})
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(("path", "value"), TABLE.items())
def test_every_field_of_the_table_has_its_default(path: str, value: Any) -> None:
    assert at(config.parse(SOURCE), path) == value


@pytest.mark.parametrize("path", SETTABLE)
def test_every_field_of_the_table_can_be_set_in_the_file_and_in_the_environment(path: str) -> None:
    text, value = OTHER.get(type(TABLE[path]), (OTHER_TEXT.get(path, "other"),) * 2)
    assert at(config.parse(changed(path, text)), path) == value
    name = "REPLICATION_" + path.replace(".", "_").upper()
    assert at(config.parse(SOURCE, {name: text}), path) == value


@pytest.mark.parametrize(
    "path",
    [
        "region",
        "organization_id",
        "regional_endpoint",
        "dst_endpoints",
        "mirrors_database.type",
        "blockstore.type",
        "auth.encrypt.secret_key",
        "mirrors_database.postgres.connection_string",
    ],
)
def test_a_missing_required_field_is_named(path: str) -> None:
    error = problem(changed(path, None))
    assert error.field == path
    assert "is required" in str(error)


@pytest.mark.parametrize("section", ["mirrors_database", "blockstore", "auth"])
def test_a_missing_required_section_names_the_field_in_it(section: str) -> None:
    assert problem(changed(section, None)).field.startswith(f"{section}.")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("region", "US East", "not a region name"),
        ("regional_endpoint", "lakefs:80", "is not a URL"),
        ("dst_endpoints", {"us-west-2": "nowhere"}, "us-west-2"),
        ("dst_endpoints", ["us-west-2"], "expected a mapping, got a list"),
        ("mirrors_database.type", "mysql", "not one of sqlite, postgres"),
        (
            "mirrors_database",
            {"type": "dynamodb", "dynamodb": {"table_name": "t"}},
            "use a PostgreSQL that every region",
        ),
        ("replication", {"config": SOURCE}, "the configuration is what stands in replication.config"),
        ("replication", {"state": {"uri": "s3://lakemirror"}}, "replication.state.region: is required"),
        ("replication", {"state": {"region": "us-east-1"}}, "replication.state.uri: is required"),
        ("replication.state.uri", "lm/state", "is not an address of S3"),
        ("blockstore.type", "gs", "not one of s3"),
        ("listen_address", "8008", "not host:port"),
        ("listen_address", "0.0.0.0:99999", "not host:port"),
        ("list_mirrors_page_size", 0, "from 1 to 1000"),
        ("commit_sensor.list_branch_page_size", 5000, "from 1 to 1000"),
        ("commit_sensor.branches_scanner_concurrency_limit", "many", "not a whole number"),
        ("validator.run_interval", 60, "is not a duration"),
        ("validator.run_interval", "0s", "longer than 0s"),
        ("validator.run_interval", "1 minute", "is not a duration"),
        ("validator.num_workers", True, "not a whole number"),
        ("validator.small_check_entries", -1, "must not be negative"),
        ("validator", "fast", "expected a mapping, got text"),
        ("auth.cache.enabled", "perhaps", "neither true nor false"),
        ("auth.encrypt.secret_key", "  ", "must not be empty"),
        ("auth.api.endpoint", "auth.example.com", "is not a URL"),
        ("auth.authenticators", ["keys", "ldap"], "'ldap' is not one of keys, api, lakefs"),
        ("auth.authenticators", ["keys", "keys"], "twice"),
        ("auth.authenticators", ["keys", "api"], "is required when auth.authenticators names 'api'"),
        ("auth", LEFT_OUT, "leaves 'api' out"),
        ("auth.lakefs.region", "mars-1", "has no endpoint"),
        ("notifications.heartbeat_url", "beats.example.com/t0ken", "this is not a URL"),
        ("auth.openid", {"issuer": "https://login.example.com"}, "is required beside auth.openid.issuer"),
        ("auth.openid.scope", "profile", "lacks 'openid'"),
        ("auth.rate_limit.burst", 0, "more than 0"),
        ("logging.format", "xml", "not one of text, json"),
        ("serve_regions", ["mars-1"], "has no endpoint"),
        ("source_lakefs_access_key_id", "AKIA", "other half"),
        ("validater", {}, "did you mean validator?"),
        ("validator.run_intervall", "1m", "did you mean validator.run_interval?"),
        ("stores", {"mars-1": {}}, "no endpoint"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(path: str, value: Any, words: str) -> None:
    error = problem(changed(path, value))
    assert words in str(error)
    assert error.field.split("_")[0] in str(error)


def test_the_environment_wins_over_the_file() -> None:
    assert config.parse(SOURCE, {"REPLICATION_REGION": "eu-west-1"}).region == "eu-west-1"


def test_an_error_in_the_environment_names_the_field_too() -> None:
    assert problem(SOURCE, {"REPLICATION_VALIDATOR_NUM_WORKERS": "x"}).field == "validator.num_workers"


def test_the_environment_alone_is_enough() -> None:
    environ = {
        "REPLICATION_REGION": "us-east-1",
        "REPLICATION_ORGANIZATION_ID": "o",
        "REPLICATION_REGIONAL_ENDPOINT": "http://a",
        "REPLICATION_DST_ENDPOINTS": "{us-west-2: 'http://b'}",
        "REPLICATION_MIRRORS_DATABASE_TYPE": "sqlite",
        "REPLICATION_BLOCKSTORE_TYPE": "s3",
        "REPLICATION_AUTH_ENCRYPT_SECRET_KEY": "k",
    }
    assert config.parse({}, environ).dst_endpoints == {"us-west-2": "http://b"}


def test_a_regions_endpoint_can_be_set_in_the_environment() -> None:
    environ = {"REPLICATION_DST_ENDPOINTS_US_WEST_2": "http://x", "REPLICATION_DST_ENDPOINTS_EU_WEST_1": "http://y"}
    assert config.parse(SOURCE, environ).dst_endpoints == {"us-west-2": "http://x", "eu-west-1": "http://y"}


def test_a_regions_store_can_be_set_in_the_environment() -> None:
    environ = {
        "REPLICATION_STORES_US_WEST_2_ENDPOINT": "http://s3",
        "REPLICATION_STORES_US_WEST_2_CREDENTIALS_ACCESS_KEY_ID": "key",
    }
    store = config.parse(SOURCE, environ).store("us-west-2")
    assert (store.endpoint, store.credentials.access_key_id) == ("http://s3", "key")


def test_variables_that_kubernetes_makes_for_a_service_of_our_name_do_no_harm() -> None:
    assert config.parse(SOURCE, {"REPLICATION_SERVICE_HOST": "10.0.0.1", "REPLICATION_PORT": "tcp://10.0.0.1:80"})


def test_the_seeds_secret_reaches_us_without_a_prefix() -> None:
    environ = {
        "source_lakefs_access_key_id": "AKIA",
        "source_lakefs_secret_access_key": "s3cret",
        "auth_encrypt_secret_key": "k2",
    }
    settings = config.parse(SOURCE, environ)
    assert settings.source_lakefs_secret_access_key.reveal() == "s3cret"
    assert settings.auth.encrypt.secret_key == "k2"


def test_secrets_do_not_show_in_representations() -> None:
    text = repr(config.parse(SOURCE, {"source_lakefs_access_key_id": "A", "source_lakefs_secret_access_key": "s3cret"}))
    assert "s3cret" not in text
    assert "shared-secret" not in text
    assert "postgresql://" not in text


def test_a_region_without_its_own_store_uses_the_shared_one_under_its_own_name() -> None:
    data = changed("blockstore.s3", {"endpoint": "http://minio:9000", "force_path_style": True})
    store = config.parse(data).installation("us-west-2").store
    assert (store.region, store.endpoint, store.force_path_style) == ("us-west-2", "http://minio:9000", True)


def test_a_region_without_an_endpoint_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"dst_endpoints\.mars-1"):
        config.parse(SOURCE).installation("mars-1")


def test_a_deployment_serves_its_own_region_unless_told_otherwise() -> None:
    assert config.parse(SOURCE).served == ("us-east-1",)
    assert config.parse(changed("serve_regions", "us-east-1,us-west-2")).served == ("us-east-1", "us-west-2")


def test_queues_are_named_for_the_region() -> None:
    settings = config.parse(SOURCE)
    assert (settings.worker_queue, settings.spark_queue) == ("us-east-1", "us-east-1-spark")


def test_hook_secrets_differ_by_installation_and_can_be_given() -> None:
    settings = config.parse(SOURCE, {"REPLICATION_HOOKS_SECRETS_US_WEST_2": "given"})
    assert settings.hook_secret("us-west-2") == "given"
    assert len({settings.hook_secret("us-east-1"), settings.hook_secret("eu-west-1"), "given"}) == 3


@pytest.mark.parametrize(
    ("text", "seconds"), [("20s", 20), ("1m", 60), ("1h30m", 5400), ("500ms", 0.5), ("7d", 604800), ("1.5h", 5400)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "1m ", "-1m", "1m20", "1w"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [("region: [", "this is not YAML at line 1"), ("- a", "expected a mapping"), ("", "expected a mapping")],
)
def test_a_file_that_is_no_configuration_is_said_to_be_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        config.load(path, {})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't read .*gone\.yaml: No such file"):
        config.load(tmp_path / "gone.yaml", {})


def test_without_a_file_the_demo_stands_with_a_secret_of_this_machines_own(tmp_path: Path) -> None:
    first = config.development({"LAKEMIRROR_VAR": str(tmp_path / "a")})
    assert (
        first.auth.encrypt.secret_key
        == config.development({"LAKEMIRROR_VAR": str(tmp_path / "a")}).auth.encrypt.secret_key
    )
    assert (
        first.auth.encrypt.secret_key
        != config.development({"LAKEMIRROR_VAR": str(tmp_path / "b")}).auth.encrypt.secret_key
    )
    assert (tmp_path / "a" / "secret.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["source.yaml", "destination.yaml"])
def test_the_documented_example_is_complete(name: str) -> None:
    settings = config.load(config.BASE_DIR / "docs" / "examples" / name, KEYS)
    assert len(settings.regions) == 2


def run_check(path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command, str(path)], capture_output=True, text=True, cwd=config.BASE_DIR)


@pytest.mark.parametrize("command", [("manage.py", "check_config"), ("-m", "deployment.check")])
def test_checking_a_file_says_one_line_and_fails(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(changed("validator.run_interval", "soon")))
    done = run_check(path, *command)
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "validator.run_interval: 'soon' is not a duration" in done.stderr


def test_checking_a_good_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(changed("mirrors_database", {"type": "sqlite"}) | KEYS))
    done = run_check(path, "manage.py", "check_config")
    assert (done.returncode, done.stderr) == (0, "")
    assert "region us-east-1" in done.stdout and "not used" not in done.stdout


LAKEFS_FILE = """
blockstore:
  type: s3
  default_namespace_prefix: s3://lake/
  s3:
    region: us-east-1
    profile: lake
    credentials_file: /etc/lakefs/credentials
    max_retries: 5
    discover_bucket_region: false
logging: {level: warn, format: json, output: "-"}
mirrors_database:
  type: postgres
  postgres: {connection_string: "postgresql://lm:pw@db/lm", max_open_connections: 20}
"""


def test_a_file_of_lakefs_is_a_good_one_and_what_is_not_used_of_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(SOURCE | KEYS | yaml.safe_load(LAKEFS_FILE)))
    done = run_check(path, "manage.py", "check_config")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().partition("; accepted, not used: ")[2].split(", ") == [
        "mirrors_database.postgres.max_open_connections",
        "blockstore.s3.discover_bucket_region",
        "blockstore.default_namespace_prefix",
        "logging.output",
    ]


def test_without_the_replication_users_key_nothing_starts(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(changed("mirrors_database", {"type": "sqlite"})))
    for command in (("manage.py", "check_config"), ("-m", "deployment.check")):
        done = run_check(path, *command)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert "source_lakefs_access_key_id: is required, with its secret" in done.stderr


def test_what_stands_without_a_file_is_what_the_sandbox_writes(tmp_path: Path) -> None:
    """scripts/run starts the pages before the sandbox, so both must know the same regions."""
    ports = {region: (8101 + number, 8111 + number) for number, region in enumerate(REGION_NAMES)}
    layout = Layout("http://127.0.0.1:8100", tuple(Region(name, *pair) for name, pair in ports.items()))
    written = config.load(write_configuration(tmp_path, layout, hook_secret="h"), {})
    stands = config.development({"LAKEMIRROR_VAR": str(tmp_path)})
    assert stands.regions == written.regions
    assert stands.served == written.served
    assert [stands.installation(region) for region in stands.regions] == [
        written.installation(region) for region in written.regions
    ]
    assert stands.source_lakefs_secret_access_key == written.source_lakefs_secret_access_key
    assert stands.listen_address == written.listen_address
