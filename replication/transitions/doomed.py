"""What a rule that copies all versions is to hide, and to delete for good, at a target: noted while a look goes on, as
other deletions are; each is a row of its own, beside that of its key, if that is to be copied, too. Whatever is called
here is inside of a transaction that holds the link.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from core.replicating.deletes import Own
from core.replicating.states import OpenStatus
from db.chunks import chunks
from replication.models import Arrived, Link, OpenObject
from replication.transitions import ledger, manifests
from replication.transitions.ledger import HIDE, PURGE, ROWS_AT_ONCE, Tally

WAITING = OpenStatus.WAITING.value
FAR = timedelta(days=3650)
"""What waits for somebody is not due by itself."""
_KINDS = (HIDE, PURGE)


class Doomed(NamedTuple):
    """What is to go at a target: of kind `hide` what it shows, so many bytes, by the source's marker `version`; of kind
    `purge` its own `version`, a copy `of` one that the source has no more."""

    kind: str
    key: str
    version: str
    size: int = 0
    etag: str = ""
    of: str = ""

    def is_of(self, row: OpenObject) -> bool:
        """Whether a row says the same."""
        return (row.etag, row.of) == (self.etag, self.of)


def noted_in(link_id: int, low: bytes, high: bytes | None) -> dict[tuple[str, str, str], OpenObject]:
    """What is noted of a stretch, by kind, key and version."""
    rows = OpenObject.objects.filter(link=link_id, key__gt=low, kind__in=_KINDS)
    rows = rows if high is None else rows.filter(key__lte=high)
    return {(row.kind, row.name, row.doomed): row for row in rows}


def note(link: Link, stretch: tuple[bytes, bytes | None], found: Sequence[Doomed], now: datetime) -> None:
    """These of a stretch are to go at the target, and no others."""
    tally, noted = Tally(), noted_in(link.pk, *stretch)
    wanted = {(one.kind, one.key, one.version): one for one in _asked_for(link, stretch, found)}
    going = [row for which, row in noted.items() if which not in wanted or not wanted[which].is_of(row)]
    remove(going, tally)
    kept = noted.keys() - {(row.kind, row.name, row.doomed) for row in going}
    _make(link, [one for which, one in wanted.items() if which not in kept], tally, now)
    tally.save(link.pk)


def add(link: Link, hidden: Sequence[Doomed], now: datetime) -> None:
    """These, of kind `hide`, are to go as well, unless that was noted, or rejected, before."""
    keys, tally = [one.key.encode() for one in hidden], Tally()
    known = set[tuple[str, str]]()
    for some in chunks(keys, ROWS_AT_ONCE):
        rows = OpenObject.objects.filter(link=link.pk, kind=HIDE, key__in=some).values_list("key", "doomed")
        stay = Arrived.objects.filter(link=link.pk, of=manifests.HIDES, key__in=some).values_list("key", "version")
        known |= {(bytes(key).decode(), version) for key, version in (*rows, *stay)}
    _make(link, [one for one in hidden if (one.key, one.version) not in known], tally, now)
    tally.save(link.pk)


def _asked_for(link: Link, stretch: tuple[bytes, bytes | None], found: Sequence[Doomed]) -> list[Doomed]:
    """But for what somebody has rejected. A marker that was rejected, and has nothing to hide by now, is forgotten."""
    rejected = manifests.rejected(link.pk, *stretch)
    hiding = {(one.key, one.version) for one in found if one.kind == HIDE}
    settled = [pk for which, pk in rejected.items() if which not in hiding]
    for some in chunks(settled, ROWS_AT_ONCE):
        Arrived.objects.filter(pk__in=some).delete()
    purges = sorted({one.key.encode() for one in found if one.kind == PURGE})
    disowned = manifests.disowned_versions(link.pk, purges)
    return [one for one in found if (one.key, one.version) not in (rejected if one.kind == HIDE else disowned)]


def _make(link: Link, new: Sequence[Doomed], tally: Tally, now: datetime) -> None:
    # Half of the rows are left to copies, as with other deletions.
    room = max(0, ledger.MOST_OPEN // 2 - ledger.open_number(link.pk)) if new else 0
    made = [
        OpenObject(
            link_id=link.pk,
            key=one.key.encode(),
            kind=one.kind,
            doomed=one.version,
            size=one.size,
            etag=one.etag,
            of=one.of,
            status=WAITING,
            since=now,
            next_try=now + FAR,
        )
        for one in new[:room]
    ]
    for row in made:
        tally.add(row.status, row.code, row.size)
    OpenObject.objects.bulk_create(made, batch_size=ROWS_AT_ONCE)
    if len(new) > room:
        Link.objects.filter(pk=link.pk).update(unnoted_deletes=True)


def remove(rows: Iterable[OpenObject], tally: Tally) -> None:
    """They are not to go any more. What is under way, or may yet be carried out, the next look sees in the chain."""
    gone = list[int]()
    for row in rows:
        tally.take(row.status, row.code, row.size)
        gone.append(row.pk)
    for some in chunks(gone, ROWS_AT_ONCE):
        OpenObject.objects.filter(pk__in=some).delete()


def reject(link: Link, rows: Sequence[OpenObject]) -> None:
    """Somebody wants them to stay: a marker hides nothing, as long as it is the same; a version is not the link's."""
    said = [
        Own(row.name, 0, "", version=row.doomed, of=manifests.HIDES if row.kind == HIDE else row.of)
        for row in rows
        if row.kind in _KINDS
    ]
    manifests.note_versions(link.pk, said)
