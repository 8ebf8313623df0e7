"""Random lives of rules that lead both ways, in a ring or from each of three places to all others, and follow
deletions: people put, overwrite and delete anywhere, also between two steps of a round, and often what the key has at
another place already, or had before; events are doubled, late or lost, places are down or refuse, and the worker is
killed between any two steps.

In the end all places have the same, and then nothing more is written or deleted. What was everywhere, and somebody
deleted anywhere, is nowhere; the newest that somebody wrote of a key is there, unless it was itself deleted.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from core.replicating.eligible import is_own
from db import clock
from replication.models import Link, OpenObject, Rule
from replication.transitions import touching
from tests.replication.soak import Killed, Soak
from tests.replication.world import AWAY, FAR, HOME, World

ENDS = {HOME: "src", AWAY: "out", FAR: "two"}
PAIR = [(HOME, AWAY), (AWAY, HOME)]
RING = [(HOME, AWAY), (AWAY, FAR), (FAR, HOME)]
MESH = [(one, other) for one in ENDS for other in ENDS if one != other]
KEYS = ["a", "b/1", "b/2", "c é", "d", "e", "f"]
STAYS = "z"
"""Nobody deletes it, so that no place is ever empty."""


class WaysSoak(Soak):
    """One such life."""

    def __init__(self, w: World, seed: int) -> None:
        self.w, self.random = w, random.Random(seed)
        self.steps_left: int | None = None
        self.faults: dict[str, Callable[[str, str], None]] = {}
        self._one = threading.Lock()
        self.puts, self.gone, self.deleted = 0, set[bytes](), set[bytes]()
        self.newest: dict[str, tuple[datetime, bytes]] = {}
        self.keys: dict[bytes, str] = {}
        self.anew: set[bytes] = set()
        """What somebody wrote more than once."""
        self.calm: dict[str, bytes] = {}
        self.judged = 0
        ways = self.random.choice([PAIR, RING, RING, MESH])
        self.round = ways == RING
        self.regions = sorted({one for way in ways for one in way})
        for region in self.regions:
            store = w.stores[region]
            store.before, store.after = self._before(region), lambda method, bucket, key: self.step()
            store.heeds_if_match = self.random.random() < 0.7
            targets = [(to, f"s3://{ENDS[to]}") for of, to in ways if of == region]
            more = {"conflict": "newest", "markers": True, "delete_percent": 100, "metadata": "all"}
            w.rule(*targets, name=region, region=region, uri=f"s3://{ENDS[region]}", pinned=False, **more)
        self._write(HOME, STAYS)

    def _before(self, region: str) -> Callable[[str, str, str], None]:
        def before(method: str, bucket: str, key: str) -> None:
            self.step()
            if region in self.faults:
                self.faults[region](method, key)

        return before

    # --- what happens -------------------------------------------------------------------------------------------------

    def live(self, moves: int) -> list[str]:
        """So many things happen; gives what is wrong in the end."""
        found: list[str] = []
        for at in range(moves):
            self._move()
            self.w.check_counts()
            if at and at % 20 == 0:
                found += self._heal()
        return found + self._heal()

    def _move(self) -> None:
        kinds = [self._put, self._put, self._go, self._go, self._event, self._fault, self._kill, self._pause]
        kinds += [self._later, self._later, self._confirm]
        self.random.choice(kinds)()
        for run in self.random.sample([self.w.scan, self.w.copy, self.w.copy], 2):
            with suppress(Killed):
                run()
            self.steps_left = None

    def _there(self, region: str) -> dict[str, bytes]:
        return {key: data for key, data in self.w.stores[region].buckets[ENDS[region]].items() if not is_own(key)}

    def _put(self) -> None:
        for key in self.random.sample(KEYS, self.random.randint(1, 3)):
            self._write(self.random.choice(self.regions), key)

    def _write(self, region: str, key: str) -> None:
        self.w.later(2)
        self.puts += 1
        store, bucket, data = self.w.stores[region], ENDS[region], self._some(key)
        self.deleted |= {there for at in self.regions if (there := self._there(at).get(key)) is not None}
        self.deleted.discard(data)
        self.gone -= {one for one in self.gone if self.keys[one] == key}  # nobody may have seen the gap
        store.put_plainly(bucket, key, data)
        store.modified[bucket, key] = at = clock.now()
        self.newest[key] = at, data
        self.keys[data] = key
        if self.random.random() < 0.4:
            self._tell(key)

    def _some(self, key: str) -> bytes:
        """New content, or some that the key has had."""
        had = sorted(data for data, of in self.keys.items() if of == key)
        if had and self.random.random() < 0.5:
            data = self.random.choice(had[-3:])
            self.anew.add(data)
            return data
        return f"{self.puts:04}".encode()

    def _go(self) -> None:
        region, key = self.random.choice(self.regions), self.random.choice(KEYS)
        data = self.w.stores[region].buckets[ENDS[region]].pop(key, None)
        if data is None:
            return
        self.deleted.add(data)
        if self.calm.get(key) == data and not (self.round and data in self.anew):
            self.gone.add(data)  # else a place that does not know how new it is elsewhere gets it back, once

    def _tell(self, key: str) -> None:
        for region in self.regions:
            touching.objects_changed(region, {(ENDS[region], key)})

    def _event(self) -> None:
        for key in self.random.choices(KEYS, k=3):
            self._tell(key)

    def _fault(self) -> None:
        region = self.random.choice(self.regions)
        if self.faults.pop(region, None) is None:
            self.faults[region] = self.random.choice([self._down, self._refusing, self._flaky])

    # --- the end ------------------------------------------------------------------------------------------------------

    def _heal(self) -> list[str]:
        """Nothing is wrong any more, and time goes by; gives what is not as it should be then."""
        self.faults.clear()
        self.steps_left = None
        Link.objects.update(paused=False)
        for _ in range(9):
            self.w.later(90_000)
            self.w.work(1)
            self._confirm()
        found = self.problems()
        self.calm = self._there(self.regions[0])
        self.judged += 1
        return found

    def problems(self) -> list[str]:
        """What should not be so."""
        first = self._there(self.regions[0])
        others = {region: self._there(region) for region in self.regions[1:]}
        found = [f"{region} has {there}, not {first}" for region, there in others.items() if there != first]
        found += [f"{key} is back: {data!r}" for key, data in first.items() if data in self.gone]
        for key, (_, data) in self.newest.items():
            if data not in self.deleted and first.get(key) != data:
                found.append(f"{key} has {first.get(key)!r}, and {data!r} was written later")
        found += [f"open: {row.name} {row.kind} {row.code}" for row in OpenObject.objects.all()]
        if Rule.objects.exclude(error="").exists():
            found.append("a rule is not through")
        before = self._done()
        for _ in range(2):
            self.w.later(4000)
            self.w.work(1)
        return found + ([f"it is not quiet: {self._done() - before}"] if self._done() != before else [])

    def _done(self) -> int:
        stores = [self.w.stores[region] for region in self.regions]
        return sum(len(store.written) + sum(not is_own(key) for _, key, _ in store.deleted) for store in stores)
