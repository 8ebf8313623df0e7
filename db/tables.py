"""Whether the tables are those of this version: until they are, a process has nothing to work on, and waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import Error, connection, connections
from django.db.migrations.executor import MigrationExecutor

log = logging.getLogger("lakemirror.tables")

LOOK_SECONDS = 1.0
"""As old may be what a process knows of tables that are not there yet: looking is dear."""

NOT_YET = "the tables are not there yet, or are an older version's: waiting for the migrations"


class Watch:
    """What a process has seen of the tables. Once they were there it looks no more: they stay so for this code."""

    def __init__(self) -> None:
        self._missing = -1
        self._looked_at = -1e9
        self._told = ""

    def missing(self) -> int:
        """How many migrations are not applied. Raises django.db.Error when the database doesn't answer."""
        if self._missing != 0 and time.monotonic() - self._looked_at >= LOOK_SECONDS:
            self._missing = _pending()
            self._looked_at = time.monotonic()
            self._tell()
        return self._missing

    def wait(self, stopped: Callable[[float], bool]) -> bool:
        """True once they are there, False once `stopped`, which waits so many seconds, says so. Leaves no connection
        open."""
        try:
            while self._absent():
                if stopped(LOOK_SECONDS):
                    return False
            return True
        finally:
            connections.close_all()

    def _absent(self) -> bool:
        try:
            return self.missing() > 0
        except Error as error:
            self._say(logging.WARNING, f"the database doesn't answer: {str(error).strip()}; trying again until it does")
            connection.close()
            return True

    def _tell(self) -> None:
        if self._missing:
            self._say(logging.INFO, NOT_YET)
        elif self._told:
            self._say(logging.INFO, "the tables are there")

    def _say(self, level: int, text: str) -> None:
        if text != self._told:
            log.log(level, "%s", text)
            self._told = text


watch = Watch()
"""This process's own."""


def _pending() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
