"""Random lives of a rule that copies all versions, to a plain target and to an exact one: versions and markers come and
are purged, get other tags, are locked for longer or let go, somebody writes at the targets, writes that nobody answered
are carried out late, somebody approves what waits, and all that happens to other rules. Half of the rules follow
purges; of these no version is locked, for what is locked is not purged.

Nothing that was ever at a target goes but copies of what was purged, where the rule follows that, and never what
somebody else has put there. In the end each has all that the source has, in its order, and the same latest, and each
version's copies have its tags and its lock; and then nothing more is written. Of a life in which no worker is lost, and
nothing late, the targets have no copy left of what was purged.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from core.mirroring.states import State
from core.replicating.eligible import is_own
from core.replicating.versions import Chain, Version, name_of, plan
from core.travelling.describing import LOCK_HOLD, LOCK_MODE, LOCK_UNTIL, timestamp
from db import clock
from replication.models import Rule
from replication.status.rules import rule_reading
from replication.transitions import touching
from tests.replication.soak import Killed, Soak, _lies_in
from tests.replication.version_world import Kept, VersionedStore, VersionWorld
from tests.replication.world import AWAY, FAR, HOME, etag

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
        self.kept: dict[str, dict[tuple[str, str], Kept]] = {region: {} for region, _ in TARGETS}
        self.purges, self.calm = self.random.random() < 0.5, self.random.random() < 0.3
        self.purged: dict[str, set[str]] = {}
        for region, store in w.stores.items():
            store.before = self._before(region)
            store.after = lambda method, bucket, key: self.step()
            store.locking = {"src", *(bucket for _, bucket in TARGETS)}
            store.loses_locks, store.drops_tags = self.random.random() < 0.5, self.random.random() < 0.5
        targets = [(region, f"s3://{bucket}/t") for region, bucket in TARGETS]
        told = {"metadata": "all", "sweep_heads_per_second": 10_000}
        told |= {"purges": self.purges, "delete_percent": self.random.choice((100, 100, 10))}
        w.rule(*targets, uri="s3://src/p", pinned=False, **told)
        for region, bucket in TARGETS:
            w.stores[region].add(bucket, "other", b"2")  # type: ignore[attr-defined]

    def _store(self, region: str) -> VersionedStore:
        store = self.w.stores[region]
        assert isinstance(store, VersionedStore)
        return store

    # --- what happens -------------------------------------------------------------------------------------------------

    def _move(self) -> None:
        kinds = [self._put, self._put, self._drop, self._purge, self._foreign]
        kinds += [] if self.calm else [self._late, self._fault, self._kill, self._clock]
        kinds += [self._retag, self._retag] + ([] if self.purges else [self._lock, self._lock])
        kinds += [self._event, self._pause, self._later, self._later, self._confirm]
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
            every = ((key, one) for key, chain in chains.items() if not is_own(key[2:]) for one in chain)
            self.kept[region] |= {(key, one.id): one for key, one in every if not (one.marker and exact)}

    def _put(self) -> None:
        self._changed()
        for key in self.random.sample(KEYS, self.random.randint(1, 3)):
            for _ in range(self.random.randint(1, 3)):
                data = self.random.choice((b"", b"1", b"22", b"33"))
                self.w.home.add("src", f"p/{key}", data, tags=self._tags(), lock=self._some_lock())
            if self.random.random() < 0.5:
                self._tell(key)

    def _some_lock(self) -> dict[str, str]:
        if self.purges or self.random.random() < 0.7:
            return {}
        until = timestamp(clock.now() + timedelta(days=self.random.choice((1000, 2000, 3000))))
        return self.random.choice(({LOCK_HOLD: "ON"}, {LOCK_MODE: "GOVERNANCE", LOCK_UNTIL: until}))

    def _a_version(self) -> tuple[str, Kept] | None:
        """Any one that is no marker, be it hidden or old."""
        chains = self.w.home.chains["src"].items()
        every = [(key[2:], one) for key, chain in chains for one in chain if key.startswith("p/") and not one.marker]
        return self.random.choice(every) if every else None

    def _retag(self) -> None:
        """Tags of a version change, and perhaps somebody tells."""
        if (found := self._a_version()) is not None:
            found[1].tags = self._tags()
            self._tell_of(found[0])

    def _lock(self) -> None:
        """A version is locked, for longer say, or let go."""
        if (found := self._a_version()) is not None:
            key, one = found
            if LOCK_HOLD in one.lock and self.random.random() < 0.5:
                one.lock = {**one.lock, LOCK_HOLD: "OFF"}
            else:
                one.lock = {**one.lock, **self._some_lock()}
            self._tell_of(key)

    def _tell_of(self, key: str) -> None:
        if self.random.random() < 0.5:
            changed = {("src", f"p/{key}")}
            touching.objects_changed(HOME, changed, changed)

    def _drop(self) -> None:
        self._changed()
        key = self.random.choice(KEYS)
        if self.w.home.chains["src"].get(f"p/{key}"):
            self.w.drop(f"p/{key}")
            self._tell(key)

    def _purge(self) -> None:
        """A version, or a marker, is deleted at the source for good."""
        self._changed()
        key = self.random.choice(KEYS)
        chain = self.w.home.chains["src"].get(f"p/{key}")
        for _ in range(self.random.choice((1, 1, len(chain or ())))):
            if chain:
                one = chain.pop(self.random.randrange(len(chain)))
                self.purged.setdefault(key, set()).update((one.id, one.data.hex() if not one.marker else "marker"))
                if self.random.random() < 0.5:
                    self._tell(key)

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

    def lacking(self, region: str, bucket: str, *, hides: bool = True) -> dict[str, Any]:
        """What the target lacks, by key; without `hides`, markers that have something to hide are none of it."""
        found = {}
        store = self._store(region)
        for key, chain in self.w.home.chains["src"].items():
            name = key[2:]
            there = store.chains[bucket].get(f"t/{name}", [])
            made = plan(name, _chain(chain), _chain(there), exact=store.exact, hides=hides)
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
            copies = self.lacking(region, bucket, hides=False) if reading.link.unnoted_deletes else None
            for key in self.lacking(region, bucket):
                if copies is not None and key not in copies:
                    noted.add(key)  # the link says that it could not note all of these
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
            gone = [(key, one) for (key, _), one in self.kept[region].items() if (key, one.id) not in now]
            lost += [(region, key, one.id) for key, one in gone if not self._may_go(region, key, one)]
        return lost

    def _may_go(self, region: str, key: str, one: Kept) -> bool:
        """Whether it is a copy of what was purged. At a plain target what is equal to a version counts as its copy."""
        if not self.purges:
            return False
        purged = self.purged.get(key.removeprefix("t/"), set())
        content = "marker" if one.marker else one.data.hex()
        told_by_content = not self._store(region).exact or OF in one.told
        return one.id in purged or (told_by_content and content in purged)

    def _left_over(self, region: str, bucket: str) -> list[str]:
        """Copies of what was purged that are still there."""
        found = []
        for key, chain in self._store(region).chains[bucket].items():
            source = {one.id for one in self.w.home.chains["src"].get(f"p/{key[2:]}", [])}
            purged = self.purged.get(key[2:], set()) - source
            found += [f"{key} {one.id} is left at {region}" for one in chain if {one.id, one.told.get(OF)} & purged]
        return found

    def problems(self) -> list[str]:
        found = [f"{key} {one} is gone at {region}" for region, key, one in self._lost()]
        for number, (region, bucket) in enumerate(TARGETS, 1):
            found += [f"{key} at {region}: {made}" for key, made in self.lacking(region, bucket).items()]
            found += [f"open at {region}: {row.name} {row.code}" for row in self.w.rows(number)]
            found += self._wrong_latest(region, bucket) + self._described_otherwise(region, bucket)
            found += self._left_over(region, bucket) if self.purges and self.calm else []
            link = self.w.link(number)
            found += [f"{region} is {link.health}"] if link.health != "up" else []
        written = [len(self._store(region).written) for region, _ in TARGETS]
        self.w.later(90_000)
        self.w.look()
        if written != [len(self._store(region).written) for region, _ in TARGETS]:
            found.append("something was written although nothing lacked")
        return found

    def _described_otherwise(self, region: str, bucket: str) -> list[str]:
        """Copies that have not the tags or the lock of the version that they name, or whose id they have; and what
        readers see that has not. With purges that may be a copy of what is gone."""
        found = []
        for key, chain in self.w.home.chains["src"].items():
            own = {name: one for one in chain for name in (one.id, name_of(_version(one))) if not one.marker}
            there = self._store(region).chains[bucket].get(f"t/{key[2:]}", [])
            for copy in there:
                one = own.get(copy.told.get(OF, copy.id))
                if one is not None and not copy.marker and (copy.tags, _in_force(copy)) != (one.tags, _in_force(one)):
                    found.append(f"{key} {one.id} has {copy.tags} {copy.lock} at {region}, and {one.tags} {one.lock}")
            shown = bool(chain and there) and not (self.purges or chain[-1].marker or there[-1].marker)
            if shown and chain[-1].tags != there[-1].tags:
                found.append(f"{key} shows other tags at {region}")
        return found

    def _wrong_latest(self, region: str, bucket: str) -> list[str]:
        chains, found = self._store(region).chains[bucket], []
        for key, chain in self.w.home.chains["src"].items():
            there = chains.get(f"t/{key[2:]}", [])
            if chain and there and (chain[-1].marker, chain[-1].data) != (there[-1].marker, there[-1].data):
                found.append(f"{key} shows something else at {region}")
        return found


def _chain(kept: list[Kept]) -> Chain:
    return [_version(one) for one in kept]


def _version(one: Kept) -> Version:
    if one.marker:
        return Version(one.id, 0, "", True, one.listed)
    return Version(one.id, len(one.data), etag(one.data), False, one.listed, one.told.get(OF, ""))


def _in_force(one: Kept) -> tuple[str, bool]:
    """Until when it is retained, and whether it is held."""
    return one.lock.get(LOCK_UNTIL, ""), one.lock.get(LOCK_HOLD) == "ON"
