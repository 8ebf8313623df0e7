"""What of a stretch is a link's own, as far as a look has gone through it: read from the manifest's file and from what
came since, merged with what source and target list, and written anew when the look leaves the stretch.

Files are written whole, under names that nobody else ever uses: a worker that was held up for long can spoil nothing.
A file that is missing, can't be read, or is older than another one of its stretch (the database was restored from a
backup) is not believed: nothing is the link's own then but what this look sees to be equal.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from adapters.places.manifest_file import ManifestFile, packed
from adapters.places.state import StatePlace
from core.errors import LakeMirrorError, NotFound, RemoteFailure
from core.replicating.deletes import FIRST_FOREIGN, Merged, Own
from jobs.lease import Lease
from replication.models import Link, Shard, ShardManifest
from replication.transitions import ledger, manifests
from replication.transitions.manifests import Since

_NAME = re.compile(r"(.+/)(\d+)-[0-9a-f]+\.parquet")


def folder_of(link: Link) -> str:
    """Where the files of a link are, in its state place."""
    return f"rules/{link.rule_id}/{link.identity}/"


def generations(names: Sequence[str]) -> dict[str, int]:
    """The newest generation in each stretch's folder, by the names of files."""
    newest: dict[str, int] = {}
    for name in names:
        if found := _NAME.fullmatch(name):
            newest[found[1]] = max(newest.get(found[1], 0), int(found[2]))
    return newest


def is_believed(row: ShardManifest, folder: str, names: Sequence[str]) -> bool:
    """Whether the file that a row names is there, and is the newest of its stretch."""
    newest = generations(names).get(f"{folder}{row.shard_id}/", 0)
    return newest <= row.generation and (not row.file or row.file in names)


@dataclass
class StretchManifest:
    """Of one link and one stretch, from a key on. Raises what the state place answers, unless that only means that
    nothing is known."""

    link: Link
    shard: Shard
    state: StatePlace
    taken: Since
    low: str
    known: bool = True
    """Whether the file was believed."""
    own: list[Own] = field(default_factory=list)
    foreign: int = 0
    strangers: list[str] = field(default_factory=list)
    _old: str = ""

    def __post_init__(self) -> None:
        self.row = manifests.row_of(self.link.pk, self.shard)
        self.low_of_all = bytes(self.shard.low).decode()
        goes_on = self.low != self.low_of_all
        self.foreign = self.row.foreign_seen if goes_on else 0
        self.strangers = list(self.row.foreign_keys_seen) if goes_on else []
        self.folder = f"{folder_of(self.link)}{self.shard.pk}/"
        self.names = self._names()
        self._from, self.last = self.low, self.low
        self._file = self._opened()
        self.own = self._of_file(self.low)
        self._changed, self._listed = not self.known, list[Own]()

    @property
    def high(self) -> str | None:
        """Where the stretch ends; None: nowhere."""
        return None if self.shard.high is None else bytes(self.shard.high).decode()

    def _names(self) -> list[str]:
        """The files in the stretch's folder, but for one whose writer was lost."""
        try:
            names = self.state.names(self.folder)
        except NotFound:
            return []
        if self.row.writing in names and self.row.writing != self.row.file:
            self.state.delete([self.row.writing])
            names.remove(self.row.writing)
        return names

    def _opened(self) -> ManifestFile:
        """What the file lists; of one that is not believed nothing."""
        if not is_believed(self.row, folder_of(self.link), [*self.names, *self._of_another()]):
            self.known = False
            return ManifestFile()
        if not self.row.file:
            return ManifestFile()
        try:
            return ManifestFile.of(self.state.read(self.row.file))
        except NotFound:
            self.known = False
        except RemoteFailure:
            if self.state.has(self.row.file):  # it answers, so it is the file that is at fault
                self.known = False
            else:
                raise
        return ManifestFile()

    def _of_another(self) -> list[str]:
        """The file of the stretch that this one was cut off."""
        file = self.row.file
        return [file] if file and not file.startswith(self.folder) and self.state.has(file) else []

    def _of_file(self, last: str | None) -> list[Own]:
        """What it lists of this stretch up to a key: one that was cut off another has that one's file."""
        return [own for own in self._file.until(last) if own.key > self.low_of_all]

    def until(self, last: str | None) -> dict[str, Own]:
        """What is the link's own from where this stands up to a key, with it; None: to the end."""
        self._listed = self._of_file(last)
        known = {own.key: own for own in self._listed}
        if self.known:
            high = None if last is None else last.encode()
            for key, own in manifests.came(self.taken, self.last.encode(), high).items():
                if own is None:
                    known.pop(key, None)
                else:
                    known[key] = own
        return known

    def versions_until(self, last: str | None) -> dict[str, dict[str, Own]]:
        """The same where all versions are copied: by key, then by the id that the target gave."""
        self._listed = self._of_file(last)
        known: dict[tuple[str, str], Own | None] = {(own.key, own.version): own for own in self._listed}
        if self.known:
            high = None if last is None else last.encode()
            known |= manifests.came_versions(self.taken, self.last.encode(), high)
        found: dict[str, dict[str, Own]] = {}
        for (key, version), own in known.items():
            if own is not None:
                found.setdefault(key, {})[version] = own
        return found

    def take(self, last: str, merged: Merged) -> None:
        """The manifest has this of the keys up to `last`."""
        self._changed |= merged.own != self._listed
        self.own += merged.own
        self.foreign += merged.foreign
        named = [key.replace("\0", "\ufffd") for key in merged.strangers]  # which no column could hold
        self.strangers = [*self.strangers, *named][:FIRST_FOREIGN]
        self.last = last

    def leave(self, lease: Lease, *, ended: bool) -> None:
        """Write what has changed; what the look did not come to stays as the file has it. Raises Fenced and what the
        state place answers."""
        if self.last == self._from and not ended:
            return
        listed = self.own if ended else [*self.own, *self._of_file(self.high)]
        self.row.foreign_seen, self.row.foreign_keys_seen = self.foreign, self.strangers
        if ended:
            self.row.foreign_objects, self.row.foreign_seen = self.foreign, 0
            self.row.foreign_keys, self.row.foreign_keys_seen = self.strangers, []
        if self._changed or self.row.objects_listed != len(listed) or not self._is_ours():
            self._write(listed, lease)
        with lease.transaction():
            if ledger.hold(self.link.pk) is None:
                return
            manifests.wrote(self.row, self.taken, *self._merged(ended))
        self._remove_others()

    def _merged(self, ended: bool) -> tuple[bytes, bytes | None]:
        """Of which keys the file has what came before."""
        if not self.known:
            return self.low_of_all.encode(), None if self.high is None else self.high.encode()
        last = self.high if ended else self.last
        return self._from.encode(), None if last is None else last.encode()

    def _is_ours(self) -> bool:
        return not self.row.file or self.row.file.startswith(self.folder)

    def _write(self, listed: list[Own], lease: Lease) -> None:
        """The row says first which file it will be: so whoever finds one that no row names knows that the database is
        older than it."""
        newest = max(self.row.generation, generations(self.names).get(self.folder, 0)) + 1
        name = f"{self.folder}{newest}-{secrets.token_hex(8)}.parquet"
        with lease.transaction():
            if ledger.hold(self.link.pk) is None or manifests.is_forgotten(self.row):
                return
            self.row.writing = name
            self.row.save()
        self.state.write(name, packed(listed))
        self._old = self.row.file
        self.row.generation, self.row.file, self.row.objects_listed = newest, name, len(listed)
        self.row.writing = ""

    def _remove_others(self) -> None:
        """Files that nobody names any more."""
        others = {*self.names, self._old} - {"", self.row.file}
        going = [name for name in sorted(others) if not manifests.is_named(self.link.pk, name)]
        try:
            self.state.delete(going)
        except LakeMirrorError:
            return  # the next look removes them
