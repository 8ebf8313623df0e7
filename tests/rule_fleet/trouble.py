"""kill -9, now of this and now of that, and stores that do not answer for a while; what was killed comes back soon."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from tests.rule_fleet.deployment import Deployment
from tests.rule_fleet.gate import MODES

REST = {"spark": (1.0, 4.0), "web": (0.3, 3.0), "controller": (0.3, 3.0)}
STORE_DOWN = ((1.0, 8.0), (15.0, 40.0))
GATE_FOR = (2.0, 15.0)
WHAT = (
    *("worker", "worker", "worker", "process", "process", "controller", "web", "spark"),
    *("store", "store", "store", "gate", "gate", "gate"),
)


class Trouble:
    """`every`: seconds between two things that go wrong, on the average."""

    def __init__(self, deployment: Deployment, chance: random.Random, every: float) -> None:
        self.deployment, self.stores = deployment, deployment.stores
        self.random, self.every = chance, every
        self.counts: Counter[str] = Counter()
        self.kills: list[float] = []
        """When a worker, or a process of one, was killed."""
        self._next = time.monotonic() + every
        self._down: dict[str, float] = {}
        self._turned: dict[str, float] = {}
        self._starting: list[threading.Thread] = []

    def step(self) -> None:
        """Called often: something goes wrong when its time has come, and what is due comes back."""
        now = time.monotonic()
        self._bring_back(now)
        self.deployment.revive(now)
        if now >= self._next:
            self._next = now + self.random.uniform(0.4, 1.6) * self.every
            self._break(self.random.choice(WHAT), now)

    def _bring_back(self, now: float) -> None:
        for name in [name for name, due in self._down.items() if due <= now]:
            del self._down[name]
            thread = threading.Thread(target=self.stores.minios[name].start, daemon=True)
            thread.start()
            self._starting.append(thread)
        for region in [region for region, due in self._turned.items() if due <= now]:
            del self._turned[region]
            self.stores.gates[region].turn("open")

    def _break(self, what: str, now: float) -> None:
        if what == "store" and self.stores.real:
            name = self.random.choice(sorted(self.stores.minios))
            if name not in self._down and not any(one.is_alive() for one in self._starting):
                self.stores.minios[name].stop()
                self._down[name] = now + self.random.uniform(*STORE_DOWN[self.random.random() < 0.2])
                self.counts["kill -9 of a store"] += 1
        elif what in ("gate", "store"):
            region = self.random.choice(sorted(self.stores.gates))
            mode = self.random.choice(MODES[1:])
            self.stores.gates[region].turn(mode)
            self._turned[region] = now + self.random.uniform(*GATE_FOR)
            self.counts[f"a store that is {mode} to us"] += 1
        else:
            self._kill(what, now)

    def _kill(self, what: str, now: float) -> None:
        members = {"spark": self.deployment.spark, "web": self.deployment.web, "controller": self.deployment.controller}
        member = members.get(what) or self.random.choice(self.deployment.workers)
        self.kills += [] if what in members else [time.time()]
        if what == "process" and member.kill_child(self.random):
            self.deployment.shaken[member.name] = now
            self.counts[f"kill -9 of one process of a {member.name.partition('-')[0]}"] += 1
        elif member.alive:
            member.kill()
            member.due = now + self.random.uniform(*REST.get(what, (0.2, 2.0)))
            self.counts[f"kill -9 of a {member.name.rstrip('-0123456789')}"] += 1

    def end(self) -> None:
        """Everything runs again."""
        self._bring_back(float("inf"))
        for thread in self._starting:
            thread.join(120)
        self.deployment.revive(float("inf"))
