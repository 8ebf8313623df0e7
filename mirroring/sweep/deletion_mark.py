"""A mark at the destination by which a database that comes back from a backup hears of deletions unknown to it.

Before anything is deleted what was proven of it is taken down, and the mirror's `facts_epoch` grows with that. The
number that it has come to is written to the destination first: books with a lower one hold proofs from before.
"""

from __future__ import annotations

import logging

from core.errors import NotFound
from core.mirroring.content_proof import OWN_FILES
from deployment.wiring import clients
from mirrors.models import Mirror

log = logging.getLogger("lakemirror.sweep")

STEP = 1_000_000
"""By so much it grows: by more than it may have grown for other reasons until somebody compares."""
_compared: dict[tuple[int, str, int | None], int] = {}
"""The highest `facts_epoch` with which this process has found a mirror's books newer than its mark."""


def leave_mark(mirror: Mirror) -> None:
    """As the books are now. Raises what the store answers: then nothing may be deleted."""
    clients.objects(mirror.region).put(_uri(mirror), str(_epoch(mirror)).encode())


def newer_mark(mirror: Mirror) -> int | None:
    """The mark of a deletion that came after these books, None if they know of all. Asked each time where objects are
    deleted: a database's standby that takes over lacks the last seconds, and no process hears of that. Otherwise once
    in each process, and again where the books have gone back. Raises what the store answers."""
    if not mirror.follow_gc and _is_compared(mirror):
        return None
    try:
        data = clients.objects(mirror.region).get(_uri(mirror))
    except NotFound:
        data = b"0"
    epoch = _epoch(mirror)
    if not data.isdigit():
        log.warning("%s: %s is not as it was written: nothing that was proven counts", mirror.name, _uri(mirror))
        return epoch
    if int(data) > epoch:
        return int(data)
    _compared[_key(mirror)] = epoch
    return None


def forget_compared() -> None:
    """As in a process that has just begun."""
    _compared.clear()


def _is_compared(mirror: Mirror) -> bool:
    known = _compared.get(_key(mirror))
    if known is None:
        return False
    epoch = mirror.facts_epoch if mirror.facts_epoch >= known else _epoch(mirror)
    if epoch >= known:
        _compared[_key(mirror)] = epoch
    return epoch >= known


def _key(mirror: Mirror) -> tuple[int, str, int | None]:
    return mirror.pk, mirror.namespace, mirror.pinned_creation_date


def _epoch(mirror: Mirror) -> int:
    return int(Mirror.objects.values_list("facts_epoch", flat=True).get(pk=mirror.pk))


def _uri(mirror: Mirror) -> str:
    """With the mirror's own name: where its source is a mirror too, the stores may bring the mark of that one."""
    return f"{mirror.namespace}/{OWN_FILES}sweeps/deleted-{mirror.name}-{mirror.pinned_creation_date}"
