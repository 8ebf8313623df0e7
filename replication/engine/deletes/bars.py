"""What a round of a link that leads both ways must not bring back, and what it may delete: read by the main thread as
it hands rows out, asked by those that copy and delete.

What this link, or another one that begins or ends at the target, knows to have been there is in their manifests, and in
what came since these were written. No look needs to have found yet that it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from adapters.places.manifest_file import Picks
from core.bringing import Side
from core.errors import Conflict, LakeMirrorError, NotFound
from core.replicating.both_ways.tombstones import Have, Since, Tombstone, covers, is_barred, later
from core.replicating.deletes import Own
from core.replicating.outcomes import Judged, Kind
from core.replicating.states import Code, OpenKind
from db import clock
from deployment.wiring import replication_jobs
from replication.engine.deletes import ends
from replication.models import Link, OpenObject
from replication.transitions import manifests, tombstones

FILES = 8
"""So many files are held at a time."""
_UNREADABLE = "what LakeMirror knows of the target can't be read: {}"
_OTHERS = "the target had this object: the rule that copied it has to find out first whether it was deleted there"


class Bar(NamedTuple):
    """What is known of a key at the target. `error`: why nobody can tell."""

    tombstone: Tombstone | None = None
    known: str | None = None
    others: frozenset[tuple[int, str]] = frozenset()
    error: LakeMirrorError | None = None


@dataclass
class Bars:
    """Of one link, for one round."""

    link: Link
    _bars: dict[str, Bar] = field(default_factory=dict)
    _doomed: dict[str, Tombstone] = field(default_factory=dict)
    _files: dict[str, Picks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._source, self._target = ends.source_of(self.link.rule), ends.target_of(self.link)
        self._others = ends.others_at(self._target, self.link.pk)

    # --- the main thread ----------------------------------------------------------------------------------------------

    def load(self, rows: Sequence[OpenObject]) -> None:
        """These are handed out."""
        copies = [bytes(row.key) for row in rows if row.kind == OpenKind.COPY]
        deletes = [bytes(row.key) for row in rows if row.kind == OpenKind.DELETE]
        if copies:
            self._load_copies(copies)
        if deletes:
            self._load_deletes(deletes)

    def _load_copies(self, keys: Sequence[bytes]) -> None:
        buried = tombstones.of_keys(self._target, keys)
        try:
            known = self._known(self.link, keys)
            others = [self._known(link, keys) for link in self._others]
        except LakeMirrorError as error:
            self._bars |= {key.decode(): Bar(error=error) for key in keys}
            return
        for key in (key.decode() for key in keys):
            own, found = known.get(key), buried.get(key)
            also = frozenset((some[key].size, some[key].etag) for some in others if key in some)
            self._bars[key] = Bar(found.buried if found else None, own.source if own else None, also)

    def _load_deletes(self, keys: Sequence[bytes]) -> None:
        """What is about to be deleted is told first: whoever finds it gone knows that it was us."""
        doomed = {key: one.buried for key, one in tombstones.of_keys(self._source, keys).items()}
        there = tombstones.of_keys(self._target, keys)
        self._doomed |= doomed
        done: dict[str, Tombstone] = {}
        for key, one in doomed.items():
            found = later(there[key].buried if key in there else None, replace(one, since=Since.DONE))
            done[key] = replace(found or one, since=Since.DONE)
        tombstones.save(self._target, done, clock.now())

    # --- what links know ----------------------------------------------------------------------------------------------

    def _known(self, link: Link, keys: Sequence[bytes]) -> dict[str, Own]:
        """What a link knows to have been at both its ends, of some keys. Raises what the state place answers."""
        try:
            found = self._of_files(link, keys)
        except NotFound:  # a look has just written another one
            found = self._of_files(link, keys, lost=True)
        for key, own in manifests.came_of(link.pk, keys).items():
            if own is None:
                found.pop(key, None)
            else:
                found[key] = own
        return found

    def _of_files(self, link: Link, keys: Collection[bytes], *, lost: bool = False) -> dict[str, Own]:
        """By their files; of one that is `lost` nobody knows anything."""
        found: dict[str, Own] = {}
        for file, some in manifests.files_for(link.pk, keys).items():
            try:
                found |= self._file(link, file).of({key.decode() for key in some})
            except NotFound:
                if not lost:
                    raise
        return found

    def _file(self, link: Link, name: str) -> Picks:
        if name not in self._files:
            while len(self._files) >= FILES:
                self._files.pop(next(iter(self._files)))
            self._files[name] = Picks(replication_jobs.state_of(link.region, link.uri).read(name))
        return self._files[name]

    # --- threads ------------------------------------------------------------------------------------------------------

    def is_buried(self, key: str) -> bool:
        """Whether something was deleted there."""
        return self._bars.get(key, Bar()).tombstone is not None

    def is_barred(self, key: str, source: Have) -> bool:
        """Whether a source's object is not to be copied to the target, which lacks it. Raises Unbrought where nobody
        can tell."""
        bar = self._bars.get(key, Bar())
        if bar.error is not None:
            text = _UNREADABLE.format(bar.error)
            raise Judged(Side.DESTINATION, bar.error, Kind.RETRY, Code.TARGET_FAILED, text)
        if is_barred(source, bar.tombstone, bar.known):
            return True
        if is_barred(source, bar.tombstone, bar.known, bar.others):
            raise Judged(Side.DESTINATION, Conflict(_OTHERS), Kind.RETRY, Code.TARGET_FAILED, _OTHERS)
        return False

    def may_delete(self, key: str, there: Have) -> bool:
        """Whether what the target has is what was deleted at the source, or older."""
        return covers(self._doomed.get(key), there)


def bars_of(link: Link) -> Bars | None:
    """Of a link whose rule follows deletions both ways."""
    return Bars(link) if ends.follows(link.rule) else None
