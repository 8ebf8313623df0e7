"""One sandbox for the tests that only need some sandbox, healed before each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from sandbox.client import Sandbox
from sandbox.fixture import running_sandbox
from sandbox.lakefs_http import LakeFS
from sandbox.layout import Region


@pytest.fixture(scope="package")
def shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox"), lakefs="") as running:
        yield running


@pytest.fixture
def sandbox(shared_sandbox: Sandbox) -> Sandbox:
    shared_sandbox.heal()
    shared_sandbox.delay(0)
    shared_sandbox.order("fifo")
    return shared_sandbox


@pytest.fixture
def lakefs(sandbox: Sandbox) -> LakeFS:
    """The source's API."""
    return LakeFS(sandbox.source.lakefs_url)


@pytest.fixture
def repo(sandbox: Sandbox, lakefs: LakeFS, request: pytest.FixtureRequest) -> str:
    """A repository at the source, named after the test."""
    name = request.node.name.replace("_", "-")[-60:].strip("-")
    lakefs.create_repository(name, f"s3://{sandbox.source.bucket}/{name}")
    return name


def s3(region: Region, **options: Any) -> Any:
    """A boto3 client of a region's store."""
    return boto3.client(
        "s3",
        endpoint_url=region.s3_url,
        region_name=region.name,
        aws_access_key_id=options.pop("key", Sandbox.access_key_id),
        aws_secret_access_key=Sandbox.secret_access_key,
        config=Config(retries={"max_attempts": 1}, connect_timeout=2, read_timeout=options.pop("timeout", 5)),
    )
