"""One Spark Connect server for all tests that need Spark, and a store double for all that check."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_jobs.check import CheckSettings
from tests.s3_double import KEYS, S3Double
from tests.spark.ranges import settings_for
from tests.spark.server import ConnectServer


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    server = ConnectServer(tmp_path_factory.mktemp("spark"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret_access_key"])


@pytest.fixture(scope="module")
def double() -> Iterator[S3Double]:
    with S3Double() as running:
        yield running


@pytest.fixture
def store(double: S3Double) -> S3Double:
    double.reset()
    return double


@pytest.fixture
def settings(store: S3Double) -> CheckSettings:
    return settings_for(store.endpoint)
