"""A stand-in for bucket replication between the regions, in both directions, with adjustable delay, order and faults.

It follows each store's journal. As with S3, a replica is not replicated again, and `_lakemirror/` is left out.
"""

from __future__ import annotations

import heapq
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import requests

from sandbox.bundle import Stored
from sandbox.journal import DELETE, Write
from sandbox.layout import Region
from sandbox.rules import Action, Rule, corrupted, kind_of
from sandbox.side_door import SideDoor

EXCLUDED = "_lakemirror"
BATCH, BATCH_BYTES = 100, 8 << 20
WORKERS = 3
POLL_SECONDS = 25.0
RETRY_SECONDS = 0.5
LISTED = 100
ORDERS = ("fifo", "random", "reverse", "metadata-first", "data-first")
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Item:
    """A write on its way to the other region."""

    number: int
    write: Write
    seen: float
    spread: float
    kind: str = ""
    decided: bool = False  # rules look at an item once
    met: Rule | None = None


@dataclass(slots=True)
class Stopped:
    """An item that a rule met."""

    item: Item
    action: Action
    since: float = field(default_factory=time.time)


@dataclass(slots=True)
class Timing:
    """When writes are delivered: `delay` seconds after they were made, plus up to `jitter`; `order` among those due."""

    delay: float = 0.0
    jitter: float = 0.0
    order: str = "fifo"
    running: bool = True
    deletes: bool = True


class Direction:
    """One way of the replication. Threads: one follows the journal, some deliver."""

    def __init__(self, source: Region, destination: Region, timing: Timing, rules: list[Rule], seed: int) -> None:
        self.source, self.destination = source, destination
        self.changed = threading.Condition()
        self.counts: Counter[str] = Counter()
        self.stopped: list[Stopped] = []
        self.last_error = ""
        self._timing, self._rules = timing, rules
        self._random = random.Random(seed)
        self._waiting: list[tuple[float, int, Item]] = []
        self._ready: list[tuple[float, int, Item]] = []
        self._position = self._length = self._in_flight = 0
        self._pause_until = 0.0

    def start(self) -> None:
        """Starts the threads."""
        for target in (self._follow, *[self._deliver] * WORKERS):
            name = f"replicate-{self.destination.name}"
            threading.Thread(target=target, name=name, daemon=True).start()

    # --- told from outside ------------------------------------------------------------------------------------------

    def retime(self) -> None:
        """Takes a changed timing to what waits already."""
        with self.changed:
            items = [item for _, _, item in self._waiting + self._ready]
            self._waiting, self._ready = [], []
            self._enqueue(items)

    def release(self, wanted: Rule) -> int:
        """Sends again, whole, what rules stopped or corrupted and what `wanted` meets; gives their number."""
        with self.changed:
            freed = [s for s in self.stopped if self._meets(wanted, s)]
            self.stopped = [s for s in self.stopped if s not in freed]
            now = time.monotonic()
            self._enqueue(replace(s.item, seen=now - self._timing.delay, spread=0.0, met=None) for s in freed)
            return len(freed)

    def behind(self) -> int:
        """How many writes are not delivered yet; those that a rule stopped do not count."""
        with self.changed:
            return self._length - self._position + len(self._waiting) + len(self._ready) + self._in_flight

    def look(self, door: SideDoor) -> None:
        """Learns how long the source's journal is by now."""
        _, length = door.journal(1 << 60, wait=0)
        with self.changed:
            self._length = max(self._length, length)

    def describe(self) -> dict[str, Any]:
        """For the status."""
        listed = [
            {"key": s.item.write.key, "kind": s.item.kind, "action": s.action, "since": s.since}
            for s in self.stopped[:LISTED]
        ]
        by_action = Counter(str(s.action) for s in self.stopped)
        return {
            "source": self.source.name,
            "destination": self.destination.name,
            "behind": self.behind(),
            "delivered": self.counts["delivered"],
            "deleted": self.counts["deleted"],
            "held": by_action["hold"],
            "lost": by_action["lose"],
            "corrupted": by_action["corrupt"],
            "stopped": listed,
            "last_error": self.last_error,
        }

    def _meets(self, wanted: Rule, stopped: Stopped) -> bool:
        return wanted.meets(stopped.item.write.key, stopped.item.kind, self.destination.name)

    # --- following --------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        door = SideDoor(self.source.s3_url)
        while True:
            try:
                writes, length = door.journal(self._position, wait=POLL_SECONDS)
            except requests.RequestException as problem:
                self._failed(problem)
                time.sleep(RETRY_SECONDS)
                continue
            self._take(writes, length)

    def _take(self, writes: Sequence[Write], length: int) -> None:
        now = time.monotonic()
        with self.changed:
            first = self._position
            self._length = max(self._length, length)
            self._position += len(writes)
            self._enqueue(
                Item(first + n, write, now, self._random.random())
                for n, write in enumerate(writes)
                if write.bucket == self.source.bucket and EXCLUDED not in write.key.split("/")
            )

    def _enqueue(self, items: Iterable[Item]) -> None:
        for item in items:
            due = item.seen + self._timing.delay + self._timing.jitter * item.spread
            heapq.heappush(self._waiting, (due, item.number, item))
        self.changed.notify_all()

    # --- delivering -------------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        doors = SideDoor(self.source.s3_url), SideDoor(self.destination.s3_url)
        while True:
            batch = self._next_batch()
            try:
                self._send(batch, *doors)
            except (requests.RequestException, ValueError) as problem:
                self._failed(problem)
                self._put_back(batch)
            with self.changed:
                self._in_flight -= len(batch)
                self.changed.notify_all()

    def _next_batch(self) -> list[Item]:
        with self.changed:
            while True:
                now = time.monotonic()
                wait = self._promote(now)
                if self._ready and self._timing.running and now >= self._pause_until:
                    return self._pop()
                self.changed.wait(max(wait or 0.0, self._pause_until - now) or None if self._timing.running else None)

    def _promote(self, now: float) -> float | None:
        """Makes ready what is due; gives the seconds until the next one is."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, item = heapq.heappop(self._waiting)
            heapq.heappush(self._ready, (self._rank(item), item.number, item))
        return self._waiting[0][0] - now if self._waiting else None

    def _rank(self, item: Item) -> float:
        metadata = "/_lakefs/" in f"/{item.write.key}"
        return {
            "fifo": 0.0,
            "random": self._random.random(),
            "reverse": -item.seen,
            "metadata-first": float(not metadata),
            "data-first": float(metadata),
        }[self._timing.order]

    def _pop(self) -> list[Item]:
        batch: list[Item] = []
        size = 0
        while self._ready and len(batch) < BATCH and size < BATCH_BYTES:
            batch.append(heapq.heappop(self._ready)[2])
            size += batch[-1].write.size
        self._in_flight += len(batch)
        return batch

    def _send(self, batch: Sequence[Item], source: SideDoor, destination: SideDoor) -> None:
        found = source.read([(item.write.bucket, item.write.key) for item in batch])
        pairs = [(item, self._there(stored)) for item, stored in zip(batch, found, strict=True)]
        sent = [self._meet(item, stored) for item, stored in pairs if self._wanted(item, stored)]
        self._write(destination, [parcel for parcel in sent if parcel])

    def _there(self, stored: Stored) -> Stored:
        return replace(stored, bucket=self.destination.bucket)

    def _wanted(self, item: Item, stored: Stored) -> bool:
        """A write that was overtaken (deleted since, or written again after a delete) is left to the later one."""
        return stored.op == item.write.op and (stored.op != DELETE or self._timing.deletes)

    def _meet(self, item: Item, stored: Stored) -> tuple[Stored, Stopped | None] | None:
        """What goes on the wire, or None; notes what a rule stopped."""
        item.kind = item.kind or (kind_of(stored) if stored.op != DELETE else "delete")
        rule = self._claim(item)
        if rule is None:
            return stored, None
        stopped = Stopped(item, rule.action)
        if rule.action is Action.CORRUPT and stored.op != DELETE:
            return corrupted(stored, silent=rule.silent), stopped
        with self.changed:
            self.stopped.append(stopped)
        return None

    def _claim(self, item: Item) -> Rule | None:
        with self.changed:
            if not item.decided:
                meeting = (r for r in self._rules if r.meets(item.write.key, item.kind, self.destination.name))
                item.met, item.decided = next(meeting, None), True
                if item.met and item.met.left > 0:
                    item.met.left -= 1
            return item.met

    def _write(self, door: SideDoor, parcels: Sequence[tuple[Stored, Stopped | None]]) -> None:
        if parcels:
            door.write([stored for stored, _ in parcels], journal=False)
        with self.changed:
            self.last_error = ""
            self.stopped += [stopped for _, stopped in parcels if stopped]
            for stored, _ in parcels:
                self.counts["deleted" if stored.op == DELETE else "delivered"] += 1

    def _put_back(self, batch: Sequence[Item]) -> None:
        with self.changed:
            known = {s.item.number for s in self.stopped}
            self._pause_until = time.monotonic() + RETRY_SECONDS
            for item in batch:
                if item.number not in known:
                    heapq.heappush(self._ready, (self._rank(item), item.number, item))

    def _failed(self, problem: Exception) -> None:
        if not self.last_error:
            logger.warning("replication %s to %s: %s", self.source.name, self.destination.name, problem)
        self.last_error = str(problem)


def pairs_of(regions: Sequence[Region], unreplicated: Collection[str] = ()) -> list[tuple[Region, Region]]:
    """From where to where is replicated; `unreplicated`: not between these, as FROM:TO."""
    return [(a, b) for a in regions for b in regions if a != b and f"{a.name}:{b.name}" not in unreplicated]


class Replicator:
    """All directions, and what they are told."""

    def __init__(
        self, regions: Sequence[Region], *, timing: Timing, seed: int = 0, unreplicated: Collection[str] = ()
    ) -> None:
        self.timing = timing
        self._rules: list[Rule] = []
        pairs = pairs_of(regions, unreplicated)
        self.directions = [Direction(a, b, timing, self._rules, seed + n) for n, (a, b) in enumerate(pairs)]

    def start(self) -> None:
        """Starts to replicate."""
        for direction in self.directions:
            direction.start()

    def arm(self, rule: Rule) -> None:
        """Adds a rule; the one armed first wins."""
        self._rules.append(rule)

    def release(self, wanted: Rule) -> int:
        """Ends the rules that the pattern covers and sends again what they stopped; gives the number of objects."""
        covered = [rule for rule in self._rules if wanted.pattern in ("*", rule.pattern)]
        for rule in covered:
            if wanted.kind in ("", rule.kind) and rule in self._rules:
                self._rules.remove(rule)
        return sum(direction.release(wanted) for direction in self.directions)

    def tell(self, **changes: Any) -> None:
        """Changes the timing (fields of Timing)."""
        for name, value in changes.items():
            if name == "order" and value not in ORDERS:
                raise ValueError(f"order is one of {', '.join(ORDERS)}")
            setattr(self.timing, name, type(getattr(self.timing, name))(value))
        for direction in self.directions:
            direction.retime()

    def wait(self, seconds: float) -> bool:
        """Waits until every write made so far is delivered or stopped by a rule; false if that takes longer."""
        deadline = time.monotonic() + seconds
        doors = [(direction, SideDoor(direction.source.s3_url)) for direction in self.directions]
        while True:
            for direction, door in doors:
                direction.look(door)
            if not any(direction.behind() for direction, _ in doors):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)

    def describe(self) -> dict[str, Any]:
        """For the status."""
        rules = [
            {"action": r.action, "pattern": r.pattern, "kind": r.kind, "left": r.left, "destination": r.destination}
            for r in self._rules
            if r.left
        ]
        timing = self.timing
        return {
            "running": timing.running,
            "delay": timing.delay,
            "jitter": timing.jitter,
            "order": timing.order,
            "deletes": timing.deletes,
            "rules": rules,
            "directions": [direction.describe() for direction in self.directions],
        }
