"""What becomes of the files at the destination on their way and later: arrival, loss, damage, archiving, refusal."""

from __future__ import annotations

import hashlib
import random

from tests.mirrors.harness import NAMESPACE
from tests.promise.source import Source
from tests.promise.stores import WatchedStore
from tests.promise.truth import Truth

SOURCE = "s3://src/lake"
HERE = f"{NAMESPACE}/"


class Troubles:
    """The destination's files. `kept_back`: keys that were lost there, which no replication brings a second time."""

    def __init__(self, chance: random.Random, truth: Truth, source: Source) -> None:
        self.random, self.truth, self.source = chance, truth, source
        self.here: WatchedStore = truth.here
        self.there: WatchedStore = truth.source
        self.kept_back: set[str] = set()
        self.steady = False

    def _new(self) -> list[str]:
        there, here = self.there.objects, self.here.objects
        keys = self.truth.originals.keys() - self.kept_back
        return sorted(key for key in keys if HERE + key not in here and f"{SOURCE}/{key}" in there)

    def _copy(self, keys: list[str]) -> None:
        for key in keys:
            self.here.objects[HERE + key] = self.truth.originals[key]
        self.truth.note_change()

    def arrive(self, but: str = "") -> None:
        """All that is on its way, or all but one."""
        self._copy([key for key in self._new() if key != but])

    def arrive_partly(self) -> None:
        """Some of it, in any order."""
        new = self._new()
        self._copy(self.random.sample(new, k=(len(new) + 1) // 2))

    def _some(self) -> list[str]:
        """Files that are there: often those that heads need, else any."""
        whole = sorted(key for key in self.truth.originals if self.truth.level(key))
        heads = sorted({*self.source.heads.values(), *self.source.tags.values()})
        needed = sorted(set(whole) & self.truth.parts(self.random.choice(heads)))
        pool = needed if needed and self.random.random() < 0.6 else whole
        metadata = [key for key in pool if key.startswith("_lakefs/")]
        pool = metadata if metadata and self.random.random() < 0.4 else pool
        return self.random.sample(pool, k=min(len(pool), self.random.choice([1, 1, 2])))

    def lose(self) -> None:
        """At the destination only."""
        for key in self._some():
            del self.here.objects[HERE + key]
            self.kept_back.add(key)

    def damage(self) -> None:
        """A byte flips, or the end is cut off."""
        for key in self._some():
            data = self.here.objects[HERE + key]
            cut = data[:-1] if self.random.random() < 0.3 else bytes([data[0] ^ 1]) + data[1:]
            self.here.objects[HERE + key] = cut
            self.here.rotten.pop(HERE + key, None)

    def rot(self) -> None:
        """A byte of an object flips, and a HEAD tells of it as before."""
        for key in self._some():
            self.rot_of(key)

    def rot_of(self, key: str) -> None:
        """Of this one, if it is an object that is there and whole."""
        data = self.here.objects.get(HERE + key)
        if data and not key.startswith("_lakefs/") and data == self.truth.originals[key]:
            self.here.rotten[HERE + key] = hashlib.md5(data).hexdigest()
            self.here.objects[HERE + key] = bytes([data[0] ^ 1]) + data[1:]

    def archive(self) -> None:
        """To a storage class of which nothing can be read."""
        self.here.archived.update(HERE + key for key in self._some())

    def forbid(self) -> None:
        """An ACL of somebody else's; of a file of metadata perhaps one that lets it be looked at, but not read."""
        for key in self._some():
            seal = key.startswith("_lakefs/") and self.random.random() < 0.5
            (self.here.sealed if seal else self.here.forbidden).add(HERE + key)

    def fail(self) -> None:
        """The store answers 500 for it, and for nothing else."""
        self.here.failing.update(HERE + key for key in self._some())

    def come_back(self) -> None:
        """Some of what was lost or damaged is there again, and right."""
        for key in sorted(key for key in self.truth.originals if self._is_troubled(key)):
            if self.random.random() < 0.6:
                self._repair(key)
        self.truth.note_change()

    def mend(self) -> None:
        """Everything arrives and is right, but for what neither side has."""
        for key in list(self.truth.originals):
            if not self.truth.is_gone(key):
                self._repair(key)
        self.truth.note_change()

    def _is_troubled(self, key: str) -> bool:
        lost = key in self.kept_back and not self.truth.is_gone(key)
        return (
            lost or HERE + key in self.here.failing or (HERE + key in self.here.objects and self.truth.level(key) < 3)
        )

    def _repair(self, key: str) -> None:
        self.kept_back.discard(key)
        self.here.archived.discard(HERE + key)
        self.here.forbidden.discard(HERE + key)
        self.here.sealed.discard(HERE + key)
        self.here.failing.discard(HERE + key)
        self.here.rotten.pop(HERE + key, None)
        self.here.objects[HERE + key] = self.truth.originals[key]

    def collect(self) -> None:
        """The source deletes what no head names, and perhaps the destination too."""
        at_both = self.random.random() < 0.5
        for key in self.source.unreferenced():
            if self.random.random() < 0.5:
                self.there.objects.pop(f"{SOURCE}/{key}", None)
                if at_both and self.here.objects.pop(HERE + key, None) is not None:
                    self.kept_back.add(key)
                    self.here.archived.discard(HERE + key)
                    self.here.forbidden.discard(HERE + key)
                    self.here.sealed.discard(HERE + key)
                    self.here.failing.discard(HERE + key)

    def collect_there(self) -> None:
        """The source deletes all that no head names."""
        for key in self.source.unreferenced():
            self.there.objects.pop(f"{SOURCE}/{key}", None)

    def wipe(self) -> None:
        """Everything below the namespace goes; what the source has is replicated again."""
        for uri in [uri for uri in self.here.objects if uri.startswith(HERE)]:
            del self.here.objects[uri]
        self.here.archived.clear()
        self.here.forbidden.clear()
        self.here.sealed.clear()
        self.here.failing.clear()
        self.here.rotten.clear()
        self.kept_back.clear()
        self.truth.note_change()
