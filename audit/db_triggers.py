"""What the database itself refuses: to change or remove an event, except to give it its place and to seal it.

The triggers are made anew after each `migrate`. On SQLite they go before one that has something to do: it rebuilds
tables, takes the triggers of a rebuilt one with it, and stumbles over those of others that name it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.db import DatabaseError, connection, transaction

from audit.models import AuditCheckpoint, AuditEvent

log = logging.getLogger("lakemirror.audit")

EVENTS, CHECKPOINTS = AuditEvent._meta.db_table, AuditCheckpoint._meta.db_table
NAMES = ("audit_is_not_changed", "audit_is_not_deleted", "checkpoint_is_not_changed", "checkpoint_is_not_deleted")
_NOT_CHANGED, _NOT_DELETED, _POINT_NOT_CHANGED, _POINT_NOT_DELETED = NAMES
_EMPTIED = "audit_is_not_emptied"
TOLD = "audit events can only be added"
_PLACE = ("number", "digest")
_SEALED = f"(SELECT COALESCE(MAX(number), 0) FROM {CHECKPOINTS})"
_IS_SEALED = f"OLD.number IS NOT NULL AND OLD.number <= {_SEALED}"


def install(**_: Any) -> None:
    """Make the triggers, in place of those that there are. A database that has none of the kind goes without."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in (*_removal(), *_creation()):
                cursor.execute(statement)
    except DatabaseError as error:
        log.warning("the database can't refuse changes of the audit by itself: %s", error)


def make_way(*, plan: Sequence[Any], **_: Any) -> None:
    """Let a migration rebuild tables."""
    if plan and connection.vendor == "sqlite":
        remove()


def remove() -> None:
    """Take the triggers away: tests empty their tables."""
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in _removal():
            cursor.execute(statement)


def is_installed() -> bool:
    """Whether the database refuses by itself."""
    table, column = ("sqlite_master", "name") if connection.vendor == "sqlite" else ("pg_trigger", "tgname")
    marks = ", ".join(["%s"] * len(NAMES))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(DISTINCT {column}) FROM {table} WHERE {column} IN ({marks})", NAMES)
        return bool(cursor.fetchone()[0] == len(NAMES))


def _removal() -> list[str]:
    if connection.vendor == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {name}" for name in NAMES]
    tables = dict(zip(NAMES, (EVENTS, EVENTS, CHECKPOINTS, CHECKPOINTS), strict=True)) | {_EMPTIED: EVENTS}
    return [f"DROP TRIGGER IF EXISTS {name} ON {table}" for name, table in tables.items()]


def _creation() -> list[str]:
    return _for_sqlite() if connection.vendor == "sqlite" else _for_postgresql()


def _only_placed(same: str) -> str:
    """That an update gives an event its place and leaves all else, in the database's word for "the same"."""
    columns = [field.column for field in AuditEvent._meta.fields if field.column not in _PLACE]
    unchanged = " AND ".join(f"OLD.{name} {same} NEW.{name}" for name in columns)
    return f"OLD.number IS NULL AND NEW.number IS NOT NULL AND {unchanged}"


def _for_sqlite() -> list[str]:
    def trigger(name: str, verb: str, table: str, unless: str = "0") -> str:
        refuse = f"BEGIN SELECT RAISE(ABORT, '{TOLD}'); END"
        return f"CREATE TRIGGER {name} BEFORE {verb} ON {table} WHEN NOT ({unless}) {refuse}"

    return [
        trigger(_NOT_CHANGED, "UPDATE", EVENTS, _only_placed("IS")),
        trigger(_NOT_DELETED, "DELETE", EVENTS, _IS_SEALED),
        trigger(_POINT_NOT_CHANGED, "UPDATE", CHECKPOINTS),
        trigger(_POINT_NOT_DELETED, "DELETE", CHECKPOINTS),
    ]


def _for_postgresql() -> list[str]:
    def function(name: str, body: str) -> str:
        return f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"

    def trigger(name: str, verb: str, table: str, calls: str, each: str = "FOR EACH ROW") -> str:
        return f"CREATE TRIGGER {name} BEFORE {verb} ON {table} {each} EXECUTE FUNCTION {calls}()"

    refuse = f"RAISE EXCEPTION '{TOLD}';"
    return [
        function("audit_refuses", refuse),
        function("audit_places", f"IF {_only_placed('IS NOT DISTINCT FROM')} THEN RETURN NEW; END IF; {refuse}"),
        function("audit_seals", f"IF {_IS_SEALED} THEN RETURN OLD; END IF; {refuse}"),
        trigger(_NOT_CHANGED, "UPDATE", EVENTS, "audit_places"),
        trigger(_NOT_DELETED, "DELETE", EVENTS, "audit_seals"),
        trigger(_POINT_NOT_CHANGED, "UPDATE", CHECKPOINTS, "audit_refuses"),
        trigger(_POINT_NOT_DELETED, "DELETE", CHECKPOINTS, "audit_refuses"),
        trigger(_EMPTIED, "TRUNCATE", EVENTS, "audit_refuses", "FOR EACH STATEMENT"),
    ]
