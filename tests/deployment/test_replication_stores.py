"""`replication_stores`: stores without a lakeFS, beside installations that have one, or instead of any."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployment import config, known_secrets
from deployment.config import ConfigError, Secret
from deployment.config_sections import StoreCredentials
from deployment.overlay import Added, together

LANDING = {"endpoint": "http://minio:9000", "credentials": {"access_key_id": "AKIAL", "secret_access_key": "l-secret"}}
BESIDE = {
    "region": "us-east-1",
    "organization_id": "my-org",
    "regional_endpoint": "http://lakefs.internal",
    "dst_endpoints": {"us-west-2": "http://lakefs-dest.internal"},
    "mirrors_database": {"type": "sqlite"},
    "blockstore": {"type": "s3", "s3": {"credentials": {"access_key_id": "AKIAB", "secret_access_key": "b-secret"}}},
    "auth": {"encrypt": {"secret_key": "k"}},
    "source_lakefs_access_key_id": "AKIA",
    "source_lakefs_secret_access_key": "s3cret",
    "replication_stores": {"landing": LANDING, "models": {"region": "eu-central-1"}},
}
LAKEFS = ("regional_endpoint", "dst_endpoints", "blockstore", "source_lakefs_access_key_id")
ALONE = {name: value for name, value in BESIDE.items() if name not in (*LAKEFS, "source_lakefs_secret_access_key")}


def parsed(changes: Mapping[str, Any] = {}, of: Mapping[str, Any] = BESIDE) -> config.Config:
    return config.parse(dict(of) | dict(changes))


def test_a_store_is_a_region_without_a_lakefs() -> None:
    told = parsed()
    assert told.regions == ("us-east-1", "us-west-2", "landing", "models")
    assert told.lakefs_regions == ("us-east-1", "us-west-2")
    landing = told.installation("landing")
    assert (landing.lakefs, landing.store.endpoint, landing.store.region) == (None, "http://minio:9000", "landing")
    assert told.installation("us-west-2").lakefs is not None
    with pytest.raises(ConfigError, match="no endpoint for this region"):
        told.lakefs_url("landing")


def test_nothing_of_the_blockstore_is_used_for_it() -> None:
    models = parsed().store("models")
    assert (models.credentials, models.region, models.endpoint) == (StoreCredentials(), "eu-central-1", "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"replication_stores": {"landing": {"endpont": "http://minio:9000"}}},
            "replication_stores.landing.endpont: no such field: did you mean replication_stores.landing.endpoint?",
        ),
        (
            {"replication_stores": {"landing": {}}},
            "replication_stores.landing.endpoint: is required; for buckets of AWS give",
        ),
        ({"replication_stores": {"landing": {"endpoint": "minio:9000"}}}, "'minio:9000' is not a URL"),
        ({"replication_stores": {"Landing": LANDING}}, "replication_stores.Landing: 'Landing' is not a region name"),
        ({"replication_stores": {"new": LANDING}}, "replication_stores.new: is the name of the page"),
        ({"replication_stores": ["landing"]}, "replication_stores: expected a mapping, got a list"),
        ({"replication_stores": {"landing": "http://minio:9000"}}, "expected a mapping, got text"),
        (
            {"replication_stores": {"us-west-2": LANDING}},
            "replication_stores.us-west-2: this region has a lakeFS: what its store is stands in stores.us-west-2",
        ),
        ({"replication_stores": {"us-east-1": LANDING}}, "stands in stores.us-east-1"),
        (
            {"replication_stores": {"a": {"endpoint": "http://m", "credentials": {"access_key_id": "A"}}}},
            "replication_stores.a.credentials.secret_access_key: is required with the other half",
        ),
        ({"stores": {"landing": LANDING}}, "stores.landing: this region has no endpoint"),
        ({"auth": {"encrypt": {"secret_key": "k"}, "lakefs": {"region": "landing"}}}, "auth.lakefs.region"),
        ({"regional_endpoint": None}, "regional_endpoint: is required"),
        ({"regional_endpoint": ""}, "regional_endpoint: is required where there is a lakeFS"),
        ({"dst_endpoints": None}, "dst_endpoints: is required"),
        ({"blockstore": None}, "blockstore.type: is required"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(changes: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(changes)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_store_may_be_told_in_the_environment() -> None:
    environ = {
        "REPLICATION_REPLICATION_STORES_LANDING_CREDENTIALS_SECRET_ACCESS_KEY": "other",
        "REPLICATION_REPLICATION_STORES_COLD_DATA_ENDPOINT": "http://cold:9000",
    }
    told = config.parse(BESIDE, environ)
    assert told.store("landing").credentials.secret_access_key.reveal() == "other"
    assert told.store("cold-data").endpoint == "http://cold:9000"


def test_its_secrets_are_known_to_those_who_leave_them_out() -> None:
    assert "l-secret" in set(known_secrets.secrets_of(parsed()))
    assert "l-secret" not in repr(parsed())


def test_a_file_without_any_lakefs_is_a_good_one() -> None:
    told = parsed(of=ALONE)
    assert (told.regions, told.lakefs_regions) == (("landing", "models"), ())
    assert told.auth.tried == ("keys",)
    assert set(known_secrets.secrets_of(told)) >= {"l-secret"}
    everything = parsed({"replication_stores": {}}, ALONE)
    assert (everything.regions, everything.served) == ((), ("us-east-1",))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"replication_stores": None}, "regional_endpoint: is required"),
        ({"auth": {"encrypt": {"secret_key": "k"}, "authenticators": ["lakefs"]}}, "no lakeFS is configured"),
        ({"blockstore": {"type": "gs"}}, "not one of s3"),
        ({"dst_endpoints": {"us-west-2": "http://lakefs-dest.internal"}}, "regional_endpoint: is required"),
    ],
)
def test_what_such_a_file_can_not_say(changes: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parsed(changes, ALONE)


def test_the_deployments_own_region_may_be_such_a_store() -> None:
    told = parsed({"region": "models"}, ALONE)
    assert (told.regions, told.served) == (("models", "landing"), ("models", "landing"))


def test_a_deployment_works_for_its_stores_unless_told_otherwise() -> None:
    assert parsed().served == ("us-east-1", "landing", "models")
    assert parsed({"serve_regions": ["us-east-1", "models"]}).served == ("us-east-1", "models")


def test_what_is_added_is_beside_them_and_the_file_wins() -> None:
    mars = config.Installation("mars-1", config.Store("mars-1", "http://mars:9000"), None)
    lake = config.LakeFSServer("http://lakefs.landing", config.LakeFSKeys("A", Secret("s")))
    doubled = config.Installation("landing", config.Store("landing", "http://other:9000"), lake)
    whole = together(parsed(of=ALONE), [Added(mars, "us-east-1"), Added(doubled, "us-east-1")])
    assert (whole.regions, whole.lakefs_regions) == (("landing", "models", "mars-1"), ())
    assert whole.served == ("us-east-1", "landing", "models", "mars-1")
    assert whole.installation("landing").store.endpoint == "http://minio:9000"


def test_the_documented_example_is_complete(tmp_path: Path) -> None:
    path = config.BASE_DIR / "docs" / "examples" / "stores.yaml"
    assert config.load(path, {}).regions == ("landing", "archive")
    guide = (config.BASE_DIR / "docs" / "guide" / "two-stores.md").read_text()
    shown = yaml.safe_load(guide.split("```yaml\n")[1].split("```")[0])
    assert shown == yaml.safe_load(path.read_text())


def test_checking_such_a_file_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(ALONE))
    command = [sys.executable, "manage.py", "check_config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=config.BASE_DIR)
    assert (done.returncode, done.stderr) == (0, "")
    assert "region us-east-1, endpoints for landing, models; without a lakeFS: landing, models" in done.stdout
