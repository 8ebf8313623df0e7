"""Somebody puts, overwrites and deletes at random while a rule copies; at every moment at which something was written
down, what pages and API say to be open is held against a listing of both sides.

A change is *untold* until its event came, or a comparison that began after it has ended; an object is *in hand* while a
round copies it. What lacks has to be open, named by an event, or untold; what is open has to lack, unless it is one of
these or in hand, or is gone at the source, which its turn finds out. So the numbers differ by no more than what is in
flight.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from unittest import mock

from core.mirroring.states import State
from core.replicating.states import OpenKind
from db import clock
from jobs.lease import Lease
from replication.engine.round import Round
from replication.models import OpenObject, Rule, Touched
from replication.status.rules import LinkReading, rule_reading
from replication.transitions import touching
from tests.api import Api
from tests.replication.world import HOME, World

KEYS = [f"k/{number:03}" for number in range(120)]


class Sides(Protocol):
    """A source that somebody writes to, and what both sides list: ETags by key."""

    bucket: str

    def put(self, key: str, data: bytes) -> None: ...
    def drop(self, key: str) -> None: ...
    def source(self) -> dict[str, str]: ...
    def target(self) -> dict[str, str]: ...


class Load:
    """One life. `lost`: so many of the events never come."""

    def __init__(self, w: World, sides: Sides, api: Api, seed: int, *, lost: float, moves: int) -> None:
        self.w, self.sides, self.api, self.moves, self.lost = w, sides, api, moves, lost
        self.random, self.writing = random.Random(seed), threading.RLock()
        self.changes, self.there = 0, frozenset[str]()
        self.untold: dict[str, tuple[int, int | None]] = {}
        """By key the number of its last change, and which comparison tells it at the latest, once that is known."""
        self.events: list[tuple[str, int]] = []
        self.in_hand: dict[int, OpenObject] = {}
        self.moments, self.busy = 0, 0
        self.wrong: list[str] = []
        self._depth, self._main = 0, threading.get_ident()

    # --- somebody -----------------------------------------------------------------------------------------------------

    def somebody(self, pace: float) -> None:
        """Writes, in a thread of its own."""
        for _ in range(self.moves):
            with self.writing:
                key = self.random.choice(KEYS)
                gone = key in self.there and len(self.there) > 20 and self.random.random() < 0.2
                self.there = self.there - {key} if gone else self.there | {key}
                self.changes += 1
                self.untold[key] = (self.changes, None)
                if gone:
                    self.sides.drop(key)
                else:
                    self.sides.put(key, self.random.randbytes(self.random.choice((1, 5, 900))))
                if not gone and self.random.random() >= self.lost:
                    self.events.append((key, self.changes))
            time.sleep(self.random.random() * pace)

    # --- every moment -------------------------------------------------------------------------------------------------

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Each end of a transaction is a moment."""
        transaction, run, load = Lease.transaction, Round.run, self

        @contextmanager
        def told(lease: Lease) -> Iterator[None]:
            load._depth += 1
            try:
                with transaction(lease):
                    yield
            finally:
                load._depth -= 1
            if not load._depth and threading.get_ident() == load._main:
                load.moment()

        def running(made: Round) -> Any:
            load.in_hand = made._in_hand
            try:
                return run(made)
            finally:
                load.in_hand = {}

        with mock.patch.object(Lease, "transaction", told), mock.patch.object(Round, "run", running):
            yield

    def moment(self) -> None:
        """Some events come, and what is told is held against what is there."""
        with self.writing:
            self._deliver()
            rule = Rule.objects.get()
            self._forget_told(rule)
            reading = rule_reading(rule, clock.now()).links[0]
            self.moments += 1
            self._judge(reading)
        if self.moments % 15 == 0:
            link = self.api.call("GET", "/service/replication/v1/rules/r")[1]["links"][0]
            if link["pending_objects"] != reading.pending:
                self.wrong.append(f"the API says {link['pending_objects']}, the page {reading.pending}")

    def _deliver(self) -> None:
        some = self.random.randint(0, len(self.events))
        coming, self.events = self.events[:some], self.events[some:]
        if coming:
            touching.objects_changed(HOME, {(self.sides.bucket, key) for key, _ in coming})
        for key, number in coming:
            if key in self.untold and self.untold[key][0] == number:
                del self.untold[key]

    def _forget_told(self, rule: Rule) -> None:
        later = rule.cycle + 1 + (rule.cycle_began_at is not None)
        for key, (number, known_from) in list(self.untold.items()):
            if known_from is None:
                self.untold[key] = (number, later)
            elif rule.cycle >= known_from:
                del self.untold[key]

    def _judge(self, reading: LinkReading) -> None:
        rows = {row.name: row for row in OpenObject.objects.all()}
        named = {bytes(key).decode() for key in Touched.objects.values_list("key", flat=True)}
        in_hand = {row.name for row in list(self.in_hand.values())}
        source, target = self.sides.source(), self.sides.target()
        lacks = {key for key, etag in source.items() if target.get(key) != etag}
        copies = {key for key, row in rows.items() if row.kind == OpenKind.COPY}
        flight = named | in_hand | set(self.untold) | (copies - source.keys())
        self.busy += bool(copies) and bool(lacks)
        for key in lacks - set(rows) - named - set(self.untold):
            self.wrong.append(f"nobody knows that {key} lacks")
        for key in copies - lacks - flight:
            self.wrong.append(f"{key} is there, and called open: {rows[key].__dict__}")
        if reading.pending != len(copies):
            self.wrong.append(f"{reading.pending} are said to be pending, {len(copies)} are")
        if abs(reading.pending - len(lacks)) > len(flight):
            self.wrong.append(f"{reading.pending} pending, {len(lacks)} lack, {len(flight)} in flight")
        if reading.told.state is State.UP_TO_DATE and lacks - set(self.untold):
            self.wrong.append(f"called up to date, and {len(lacks)} lack")

    # --- a life -------------------------------------------------------------------------------------------------------

    def live(self, pace: float) -> list[str]:
        """All of it; gives what was wrong."""
        writer = threading.Thread(target=self.somebody, args=(pace,))
        writer.start()
        with self.watched():
            while writer.is_alive() and not self.wrong:
                if self.random.random() < 0.3:
                    Rule.objects.update(scan_wanted=True)
                self.w.work(1)
            writer.join()
            self._settle()
        return self.wrong or self._left()

    def _settle(self) -> None:
        self.lost = 0.0
        for _ in range(3):
            Rule.objects.update(scan_wanted=True)
            self.w.work(2)
            self.w.later(61)  # deletions are looked at again
        self.w.work(1)

    def _left(self) -> list[str]:
        source, target = self.sides.source(), self.sides.target()
        reading = rule_reading(Rule.objects.get(), clock.now()).links[0]
        if any(target.get(key) != etag for key, etag in source.items()) or reading.pending:
            return [f"{reading.pending} are open in the end"]
        return [] if reading.told.state is State.UP_TO_DATE else [f"{reading.told.word} in the end"]
