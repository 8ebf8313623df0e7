"""What is read of one moment, by however many queries: figures of a page agree, whatever is written meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import connection, transaction


@contextmanager
def one_moment() -> Iterator[None]:
    """All that is read inside is as it was at the first query; nothing may be written there. Within a transaction that
    has begun already, what is read is what that one sees."""
    with ExitStack() as stack:
        if not connection.in_atomic_block:
            _begin(stack)
        yield


def _begin(stack: ExitStack) -> None:
    if connection.vendor == "postgresql":
        stack.enter_context(transaction.atomic())
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return
    connection.ensure_connection()
    usual = connection.transaction_mode  # one that takes the write lock at once: who only reads needs none
    connection.transaction_mode = "DEFERRED"
    try:
        stack.enter_context(transaction.atomic())
    finally:
        connection.transaction_mode = usual
