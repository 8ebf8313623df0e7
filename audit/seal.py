"""Old events go into a file, and the chain goes on behind a checkpoint.

In this order, so that nothing is lost wherever it ends: the file is written beside its place, synced, read back and
verified, put in its place; the checkpoint is written; then the events go. Those that a crash left are removed later.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet

from audit import chain, verify
from audit.models import AuditChain, AuditCheckpoint, AuditEvent
from audit.record import audit
from audit.verbs import Verb
from audit.verify import ChainPosition, Found
from core.errors import Conflict, Invalid, NotFound

AUDIT_ARN = "arn:lakefs:auth:::audit"
SEAL = "auth:SealAuditEvents"
FORMAT = 1
BATCH = 2000


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a sealed file: which events follow, and the digests before and of the last."""

    lakemirror_audit: int
    first: int
    last: int
    previous: str
    digest: str


def seal(*, before: datetime, out: Path, actor: Any) -> AuditCheckpoint | None:
    """Seal the events of the chain that are older than a time; None if there are none. Invalid, Conflict, NotFound."""
    chain.append_waiting()
    remove_sealed()
    if wrong := verify.verify().wrong:
        raise Conflict(f"nothing was sealed: the chain is broken: {wrong}")
    start, end = verify.start_of_chain(), _last_before(before)
    if end.number <= start.number:
        return None
    file_digest = _write(out, start, end)
    point = _checkpoint(out, start, end, file_digest, actor)
    remove_sealed()
    return point


def _last_before(before: datetime) -> ChainPosition:
    """The last event of those at the chain's beginning that are all older."""
    chained = AuditEvent.objects.filter(number__gt=0)
    young = chained.filter(at__gte=before).order_by("number").first()
    old = chained.filter(number__lt=young.number) if young else chained
    last = old.order_by("-number").first()
    return ChainPosition(last.number, last.digest) if last else ChainPosition()


# --- the file ---------------------------------------------------------------------------------------------------------


def _write(out: Path, start: ChainPosition, end: ChainPosition) -> str:
    """Write the file whole or not at all; gives its digest."""
    if out.exists():
        raise Conflict(f"{out} exists already: choose another file", field="out")
    part = out.with_name(f"{out.name}.part")
    try:
        with part.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(_lines(start, end))
            file.flush()
            os.fsync(file.fileno())
        result, header = verify_file(part)
        if result.wrong or result.place != end:
            raise Conflict(f"nothing was sealed: {part} could not be verified: {result.wrong or header}")
        digest = _digest_of(part)
        os.link(part, out)  # refused if somebody made it meanwhile
        part.unlink()
        _sync_folder(out.parent)
    except OSError as error:
        raise Invalid(f"{out} can't be written: {error.strerror or error}", field="out") from error
    return digest


def _lines(start: ChainPosition, end: ChainPosition) -> Iterator[str]:
    header = Header(FORMAT, start.number + 1, end.number, start.digest, end.digest)
    yield json.dumps(asdict(header)) + "\n"
    for row in verify.rows_between(start.number, end.number):
        yield json.dumps({**json.loads(chain.canonical(row)), "digest": row["digest"]}) + "\n"


def verify_file(path: Path, noted: ChainPosition | None = None) -> tuple[Found, Header]:
    """Read a sealed file: how far it is whole by itself, and its header. Raises Invalid, NotFound."""
    try:
        with path.open(encoding="ascii") as file:
            header = _header(file.readline(), path)
            result = verify.follow(ChainPosition(header.first - 1, header.previous), _rows(file), noted)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} can't be read: {error}", field="file") from error
    end = ChainPosition(header.last, header.digest)
    if not result.wrong and result.place != end:
        result = Found(result.place, f"event {result.place.number + 1} is missing: the file goes up to {header.last}")
    return result, header


def against_checkpoint(path: Path, header: Header) -> str:
    """What keeps a file that is whole from being the one that was sealed here, or ""."""
    point = AuditCheckpoint.objects.filter(number=header.last).first()
    if point is None:
        return f"no checkpoint here ends with event {header.last}"
    if (point.first, point.previous, point.digest) != (header.first, header.previous, header.digest):
        return f"the checkpoint at event {header.last} covers other events"
    return "" if point.file_digest == _digest_of(path) else "its bytes are not those that were sealed"


def _header(line: str, path: Path) -> Header:
    try:
        header = Header(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise Invalid(f"{path} is not a file of sealed events", field="file") from error
    if header.lakemirror_audit != FORMAT or not isinstance(header.first, int):
        raise Invalid(f"{path} is a file of sealed events of another version", field="file")
    return header


def _rows(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            row = json.loads(line)
            complete = {*row} == {*chain.PARTS, "digest"} and isinstance(row["number"], int)
        except (ValueError, TypeError):
            complete = False
        yield row if complete else verify.UNREADABLE


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- the rows ---------------------------------------------------------------------------------------------------------


@transaction.atomic
def _checkpoint(out: Path, start: ChainPosition, end: ChainPosition, file_digest: str, actor: Any) -> AuditCheckpoint:
    """The chain's lock is held, so that two who seal at once don't write checkpoints that overlap."""
    AuditChain.objects.select_for_update().get(pk=1)
    if verify.start_of_chain() != start:
        raise Conflict(f"events were sealed by somebody else meanwhile: discard {out}")
    point: AuditCheckpoint = AuditCheckpoint.objects.create(
        number=end.number,
        digest=end.digest,
        first=start.number + 1,
        previous=start.digest,
        file=str(out)[:1000],
        file_digest=file_digest,
    )
    after = {"first": point.first, "last": end.number, "digest": end.digest, "file": str(out), "sha256": file_digest}
    audit(actor=actor, right=(SEAL, AUDIT_ARN), verb=Verb.SEAL, after=after)
    return point


def remove_sealed(most: int | None = None) -> int:
    """Remove the events that are sealed; gives how many. In small transactions, so that nobody waits long."""
    number = AuditCheckpoint.objects.aggregate(last=Max("number"))["last"]
    removed = 0
    while number and (most is None or removed < most) and (rows := _sealed_rows(number)):
        removed += QuerySet(model=AuditEvent).filter(pk__in=rows).delete()[0]
    return removed


def _sealed_rows(number: int) -> list[int]:
    sealed = AuditEvent.objects.filter(number__gt=0, number__lte=number).order_by("number")
    return list(sealed.values_list("pk", flat=True)[:BATCH])
