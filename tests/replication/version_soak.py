"""Random lives of a rule that copies all versions, to a plain target and to an exact one: versions and markers come and
are purged, somebody writes at the targets, writes that nobody answered are carried out late, and all that happens to
other rules.

Nothing that was ever at a target goes. In the end each has all that the source has, in its order, and the same latest;
and then nothing more is written.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from core.mirroring.states import State
from core.replicating.versions import Chain, Version, plan
from db import clock
from replication.models import Rule
from replication.status.rules import rule_reading
from replication.transitions import touching
from tests.replication.soak import Killed, Soak, _lies_in
from tests.replication.version_world import Kept, VersionedStore, VersionWorld
from tests.replication.world import AWAY, FAR, HOME

KEYS = ["a", "b/1", "b/2", "c é", "d"]
TARGETS = ((AWAY, "out"), (FAR, "two"))
OF = "x-amz-meta-lakemirror-source-version"


class VersionSoak(Soak):
    """One such life."""

    w: VersionWorld

    def __init__(self, w: VersionWorld, seed: int) -> None:
        self.w, self.random = w, random.Random(seed)
        self.steps_left: int | None = None
        self.known_from, self.judged = 1, 0
        self.faults: dict[str, Callable[[str, str], None]] = {}
        self._one = threading.Lock()
        self.kept: dict[str, set[tuple[str, str]]] = {region: set() for region, _ in TARGETS}
        for region, store in w.stores.items():
            store.before = self._before(region)
            store.after = lambda method, bucket, key: self.step()
        w.rule(*((region, f"s3://{bucket}/t") for region, bucket in TARGETS), uri="s3://src/p", pinned=False)
        for region, bucket in TARGETS:
            w.stores[region].add(bucket, "other", b"2")  # type: ignore[attr-defined]

    def _store(self, region: str) -> VersionedStore:
        store = self.w.stores[region]
        assert isinstance(store, VersionedStore)
        return store

    # --- what happens -------------------------------------------------------------------------------------------------

    def _move(self) -> None:
        kinds = [self._put, self._put, self._drop, self._purge, self._foreign, self._late, self._fault, self._kill]
        kinds += [self._event, self._pause, self._later, self._later, self._clock]
        self.random.choice(kinds)()
        for run in self.random.sample([self.w.scan, self.w.copy, self.w.copy], 2):
            with suppress(Killed):
                run()
            self.steps_left = None
        self._keep()

    def _keep(self) -> None:
        """What is at the targets now has to stay."""
        for region, bucket in TARGETS:
            chains = self._store(region).chains[bucket]
            exact = self._store(region).exact  # there a request for a marker that comes late takes it away again
            every = ((key, one) for key, chain in chains.items() for one in chain)
            self.kept[region] |= {(key, one.id) for key, one in every if not (one.marker and exact)}

    def _put(self) -> None:
        self._changed()
        for key in self.random.sample(KEYS, self.random.randint(1, 3)):
            for _ in range(self.random.randint(1, 3)):
                self.w.put(f"p/{key}", self.random.choice((b"", b"1", b"22", b"33")))
            if self.random.random() < 0.5:
                self._tell(key)

    def _drop(self) -> None:
        self._changed()
        key = self.random.choice(KEYS)
        if self.w.home.chains["src"].get(f"p/{key}"):
            self.w.drop(f"p/{key}")
            self._tell(key)

    def _purge(self) -> None:
        """A version, or a marker, is deleted at the source for good."""
        self._changed()
        chain = self.w.home.chains["src"].get(f"p/{self.random.choice(KEYS)}")
        if chain:
            chain.pop(self.random.randrange(len(chain)))

    def _foreign(self) -> None:
        """Somebody writes, or deletes, at a target."""
        self._changed()
        region, bucket = self.random.choice(TARGETS)
        self._store(region).add(bucket, f"t/{self.random.choice(KEYS)}", self.random.choice((b"theirs", b"1", None)))

    def _late(self) -> None:
        """What nobody answered is carried out after all."""
        self._changed()
        for region, _ in TARGETS:
            given_up, self._store(region).given_up = self._store(region).given_up, []
            for write in given_up:
                with suppress(Exception):
                    write.do()

    def _tell(self, key: str) -> None:
        touching.objects_changed(HOME, {("src", f"p/{key}")})

    def _refusing(self, method: str, key: str) -> None:
        if method in ("PUT", "GET", "DELETE"):
            super()._refusing("PUT", key)

    # --- what should be -----------------------------------------------------------------------------------------------

    def lacking(self, region: str, bucket: str) -> dict[str, Any]:
        """What the target lacks, by key."""
        found = {}
        store = self._store(region)
        for key, chain in self.w.home.chains["src"].items():
            name = key[2:]
            there = store.chains[bucket].get(f"t/{name}", [])
            made = plan(name, _chain(chain), _chain(there), exact=store.exact)
            if made.lacks:
                found[name] = made
        return found

    def unknown(self) -> list[str]:
        rule = Rule.objects.get()
        found = [f"{key} {one} is gone at {region}" for region, key, one in self._lost()]
        if rule.cycle < self.known_from:
            return found
        dirty = [(shard.low, shard.high) for shard in rule.shards.filter(dirty=True)]
        for reading, (region, bucket) in zip(rule_reading(rule, clock.now()).links, TARGETS, strict=True):
            noted = set(self.w.names(reading.link.number))
            for key in self.lacking(region, bucket):
                if key not in noted and not any(_lies_in(key.encode(), low, high) for low, high in dirty):
                    found.append(f"nobody knows what {region} lacks of {key}")
                if reading.told.state is State.UP_TO_DATE:
                    found.append(f"{region} is called up to date, and lacks of {key}")
        self.judged += 1
        return found

    def _lost(self) -> list[tuple[str, str, str]]:
        lost = []
        for region, bucket in TARGETS:
            chains = self._store(region).chains[bucket]
            now = {(key, one.id) for key, chain in chains.items() for one in chain}
            lost += [(region, key, one) for key, one in self.kept[region] - now]
        return lost

    def problems(self) -> list[str]:
        found = [f"{key} {one} is gone at {region}" for region, key, one in self._lost()]
        for number, (region, bucket) in enumerate(TARGETS, 1):
            found += [f"{key} at {region}: {made}" for key, made in self.lacking(region, bucket).items()]
            found += [f"open at {region}: {row.name} {row.code}" for row in self.w.rows(number)]
            found += self._wrong_latest(region, bucket)
            link = self.w.link(number)
            found += [f"{region} is {link.health}"] if link.health != "up" else []
        written = [len(self._store(region).written) for region, _ in TARGETS]
        self.w.later(90_000)
        self.w.look()
        if written != [len(self._store(region).written) for region, _ in TARGETS]:
            found.append("something was written although nothing lacked")
        return found

    def _wrong_latest(self, region: str, bucket: str) -> list[str]:
        chains, found = self._store(region).chains[bucket], []
        for key, chain in self.w.home.chains["src"].items():
            there = chains.get(f"t/{key[2:]}", [])
            if chain and there and (chain[-1].marker, chain[-1].data) != (there[-1].marker, there[-1].data):
                found.append(f"{key} shows something else at {region}")
        return found


def _chain(kept: list[Kept]) -> Chain:
    store = VersionedStore()
    return [
        Version(one.id, 0, "", True, one.listed)
        if one.marker
        else Version(one.id, len(one.data), store.etags(one.data), False, one.listed, one.told.get(OF, ""))
        for one in kept
    ]
