"""Several queries of one moment: what somebody writes in between is not seen, and who writes does not wait."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Thread

import pytest
from django.db import connection

from db.snapshot import one_moment
from mirrors.models import Repository
from tests.mirrors.factories import make_repository

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def write_elsewhere() -> None:
    """Another process adds a row, and is done before this returns."""

    def write() -> None:
        make_repository("other", now=NOON)
        connection.close()

    thread = Thread(target=write)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.mark.django_db(transaction=True)
def test_what_is_written_meanwhile_is_not_seen() -> None:
    make_repository("lake", now=NOON)
    with one_moment():
        assert Repository.objects.count() == 1
        write_elsewhere()
        assert Repository.objects.count() == 1
    assert Repository.objects.count() == 2
    make_repository("third", now=NOON)  # transactions are what they were


@pytest.mark.django_db
def test_within_a_transaction_it_is_that_one() -> None:
    with one_moment():
        make_repository("lake", now=NOON)
        assert Repository.objects.count() == 1
