"""A store double for all tests that check; the Spark server is in tests/conftest.py, one for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_jobs.check.settings import CheckSettings
from tests.s3_double import KEYS, S3Double
from tests.spark.ranges import settings_for


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
