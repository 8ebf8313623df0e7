"""What would bring the files that a commit lacks, as commands that somebody can paste into a shell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.installations.copy_command import CopyCommand, Store, copy_command
from deployment import config
from mirrors.models import Blocker, Mirror
from mirrors.queries.missing import blockers_of

AMOUNT = 10


@dataclass(frozen=True, slots=True)
class FileCommand:
    """A file that is missing or wrong at a mirror, and the command that copies it again from its source."""

    path: str
    address: str
    copy: CopyCommand


def copy_commands(mirror: Mirror, commit: str) -> Sequence[FileCommand]:
    """For the first files that keep a commit back and that the source still has; each once. None where LakeMirror does
    that itself."""
    if mirror.brings:
        return []
    rows = blockers_of(mirror, commit=commit).exclude(kind=Blocker.Kind.RECORD).filter(gone_at_source=False)
    return list(_commands(mirror, rows.order_by("first_seen", "pk")[: 10 * AMOUNT]))[:AMOUNT]


def _commands(mirror: Mirror, rows: Iterable[Blocker]) -> Iterable[FileCommand]:
    regions = config.current().regions
    if mirror.region not in regions or mirror.source.region not in regions:
        return
    source, destination = _store(mirror.source.region), _store(mirror.region)
    base, told = mirror.source.storage_namespace.rstrip("/"), set[str]()
    for row in rows:
        if "://" in row.address or row.address in told:  # imported: it lies where no mirror writes
            continue
        told.add(row.address)
        made = copy_command(
            f"{base}/{row.address}",
            f"{mirror.namespace}/{row.address}",
            source=source,
            destination=destination,
            size=row.size,
            etag=row.etag,
        )
        yield FileCommand(row.path, row.address, made)


def _store(region: str) -> Store:
    store = config.current().installation(region).store
    return Store(store.endpoint, store.region)
