"""The implementations that contract tests run on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from adapters.lakefs import LakeFSAdapter
from core.ports import LakeFS
from sandbox.client import Sandbox
from sandbox.fixture import running_sandbox
from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from tests.fakes import FakeLakeFS

REAL = os.environ.get("LAKEMIRROR_SANDBOX_LAKEFS", "")


@pytest.fixture(scope="session")
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox with stand-in servers, whatever the environment says."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox"), lakefs="") as running:
        yield running


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox with real lakeFS servers: LAKEMIRROR_SANDBOX_LAKEFS names the binary."""
    with running_sandbox(tmp_path_factory.mktemp("real"), lakefs=REAL) as running:
        yield running


@pytest.fixture(params=["fake", "sandbox", *(["real"] if REAL else [])])
def lakefs(request: pytest.FixtureRequest) -> LakeFS:
    """A destination installation."""
    if request.param == "fake":
        return FakeLakeFS()
    running: Sandbox = request.getfixturevalue(f"{request.param}_server")
    return LakeFSAdapter(running.destination.lakefs_url, ACCESS_KEY_ID, SECRET_ACCESS_KEY)
