"""Two real MinIO servers, and a configuration file that knows no lakeFS at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from deployment import config
from tests import minio_pair
from tests.api import Api
from tests.mirrors.harness import forget_installations
from tests.replication.world import World

real_minio = pytest.mark.skipif(not minio_pair.BINARY, reason="LAKEMIRROR_TEST_MINIO names no binary")
V1 = "/service/replication/v1"
pytestmark = [pytest.mark.django_db, real_minio]


def as_told(server: minio_pair.Minio) -> dict[str, Any]:
    keys = {"access_key_id": minio_pair.KEY, "secret_access_key": minio_pair.SECRET}
    return {"endpoint": server.endpoint, "force_path_style": True, "credentials": keys}


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[minio_pair.Minio, minio_pair.Minio]]:
    """Each has a bucket of the same name; the process knows them by its file."""
    with minio_pair.minio_pair(tmp_path) as (one, two):
        told = {
            "region": "here",
            "organization_id": "my-org",
            "replication_stores": {"landing": as_told(one), "archive": as_told(two)},
            "mirrors_database": {"type": "sqlite"},
            "auth": {"encrypt": {"secret_key": "a-long-random-text"}},
        }
        own = config.parse(told)
        monkeypatch.setattr(config, "from_file", lambda: own)
        forget_installations()
        for server in (one, two):
            server.bucket("logs", versions=False)
        with mock.patch("jobs.duties.async_task"):
            yield one, two
    forget_installations()


class OfTheFile(World):
    """What is done to rules, with the stores that the process is configured with."""

    def __init__(self) -> None:
        """None of its own."""


def keys(server: minio_pair.Minio) -> list[str]:
    found = server.s3.list_objects_v2(Bucket="logs").get("Contents", [])
    return [one["Key"] for one in found if not one["Key"].startswith("_lakemirror/")]


def test_objects_arrive_between_two_servers_of_a_file_without_any_lakefs(
    db: None, owner: Any, servers: tuple[minio_pair.Minio, minio_pair.Minio]
) -> None:
    one, two = servers
    for at in range(20):
        one.s3.put_object(Bucket="logs", Key=f"k{at:02}", Body=b"%d" % at)
    api = Api(owner)
    body = {
        "name": "logs",
        "source": {"region": "landing", "uri": "s3://logs"},
        "targets": [{"region": "archive", "uri": "s3://logs"}],
    }
    status, told = api.call("POST", f"{V1}/rules/preflight", body)
    assert (status, told["ok"]) == (200, True), told
    status, told = api.call("POST", f"{V1}/rules", body)
    assert status == 201, told
    OfTheFile().work()
    assert keys(two) == keys(one) and len(keys(two)) == 20
    assert api.call("GET", f"{V1}/rules/logs")[1]["word"] == "Up to date"
    for region, place in (("landing", "s3://logs"), ("archive", "s3://logs/below")):
        assert api.call("POST", f"{V1}/installations/{region}/test", {"namespace": place})[1]["ok"] is True
    two.stop()
    assert api.call("POST", f"{V1}/installations/archive/test", {"namespace": "s3://logs"})[1]["ok"] is False
