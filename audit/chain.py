"""The chain over the audit's events: each digest is made of the one before and of the event. Format: docs/audit.md.

Events get their place after they are committed, in batches, by whoever holds the lock of the chain's row: nobody who
does something waits for it, what is rolled back leaves no gap, and two who append can't fork it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from audit.models import AuditChain, AuditEvent

log = logging.getLogger("lakemirror.audit")

BATCH = 500
PARTS = (
    "number",
    "id",
    "at",
    "actor",
    "key_id",
    "action",
    "arn",
    "before",
    "after",
    "reason",
    "request_id",
    "address",
    "refused",
    "times",
)
"""What of an event goes into its digest: all but the digest."""
Row = Mapping[str, Any]


def canonical(row: Row) -> str:
    """An event as the chain reads it: JSON in ASCII, keys sorted, no spaces, times in UTC to the microsecond."""
    event = {part: row[part] for part in PARTS} | {"at": _moment(row["at"])}
    return json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _moment(at: datetime | str) -> str:
    return at if isinstance(at, str) else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def digest_of(previous: str, row: Row) -> str:
    """SHA-256 over the digest before, a line feed, and the event."""
    return hashlib.sha256(f"{previous}\n{canonical(row)}".encode("ascii")).hexdigest()


def head() -> AuditChain:
    """The chain as it stands."""
    return AuditChain.objects.filter(pk=1).first() or AuditChain(pk=1)


def waiting() -> int:
    """How many events have no place in the chain yet; of very many some."""
    return AuditEvent.objects.filter(number=None).order_by()[: 20 * BATCH].count()


def rows_after(number: int, amount: int) -> Iterator[dict[str, Any]]:
    """Events of the chain that follow a number, in order."""
    rows = AuditEvent.objects.filter(number__gt=number).order_by("number")
    return iter(rows.values(*PARTS, "digest")[:amount])


def append_waiting(most: int = 20 * BATCH) -> int:
    """Give the events that have none their place in the chain; gives how many. Nothing while another does it."""
    done = 0
    while done < most and (number := _append_some()):
        done += number
    if done:
        now = head()
        log.info("the audit's chain has %d events", now.number, extra={"head": f"{now.number}:{now.digest}"})
    return done


def _append_some() -> int:
    if not AuditEvent.objects.filter(number=None).order_by().exists():
        return 0
    AuditChain.objects.get_or_create(pk=1)
    skips = connection.features.has_select_for_update_skip_locked
    with transaction.atomic():
        chain = AuditChain.objects.select_for_update(skip_locked=skips).filter(pk=1).first()
        return _append_to(chain) if chain else 0


def _append_to(chain: AuditChain) -> int:
    rows = AuditEvent.objects.filter(number=None).order_by("pk").values(*PARTS)[:BATCH]
    placed = list(_placed(chain.number, chain.digest, rows))
    if placed:
        _write(placed)
        chain.digest, chain.number = placed[-1][:2]
        chain.at = timezone.now()
        chain.save(update_fields=["number", "digest", "at"])
    return len(placed)


def _placed(number: int, digest: str, rows: Iterable[Row]) -> Iterator[tuple[str, int, int]]:
    """Digest, number and id of each row."""
    for row in rows:
        number += 1
        digest = digest_of(digest, {**row, "number": number})
        yield digest, number, row["id"]


def _write(placed: list[tuple[str, int, int]]) -> None:
    """The one change that an event ever sees; the database refuses any other (audit/db_triggers.py)."""
    table = AuditEvent._meta.db_table
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table} SET digest = %s, number = %s WHERE id = %s AND number IS NULL", placed)
