"""What stores tell of their objects: some of it is lost, doubled, late, or comes in another order."""

from __future__ import annotations

import heapq
import json
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import requests

from tests.rule_fleet.deployment import Deployment
from tests.rule_fleet.layout import Place
from tests.rule_fleet.traffic import OWN, key_of

LOST, DOUBLED, LATE, SWAPPED = 0.25, 0.15, 0.15, 0.1
ECHOED = 0.5
"""So much is told of what LakeMirror itself has written."""


class Events(threading.Thread):
    """Tells until it is stopped."""

    def __init__(self, deployment: Deployment, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.deployment, self.random = deployment, chance
        self.counts: Counter[str] = Counter()
        self.over = threading.Event()
        self._queue: list[tuple[float, int, str, str, str, str]] = []
        self._lock, self._number = threading.Lock(), 0
        self._read: dict[Path, int] = {}

    def add(self, place: Place, key: str, event: str) -> None:
        """Something happened to an object."""
        with self._lock:
            fate, now = self.random.random(), time.monotonic()
            if fate < LOST:
                self.counts["lost"] += 1
                return
            late = fate < LOST + LATE
            swapped = not late and fate < LOST + LATE + SWAPPED
            wait = self.random.uniform(2, 20) if late else self.random.uniform(0.2, 1.0) if swapped else 0.0
            self.counts["late"] += late
            self.counts["in another order"] += swapped
            self._push(now + wait, place.region, place.bucket, key, event)
            if self.random.random() < DOUBLED:
                self.counts["doubled"] += 1
                self._push(now + self.random.uniform(0, 5), place.region, place.bucket, key, event)

    def _push(self, due: float, region: str, bucket: str, key: str, event: str) -> None:
        self._number += 1
        heapq.heappush(self._queue, (due, self._number, region, bucket, key, event))

    def run(self) -> None:
        """As they come due."""
        while not self.over.wait(0.1):
            self._echo()
            with self._lock:
                due = []
                while self._queue and self._queue[0][0] <= time.monotonic():
                    due.append(heapq.heappop(self._queue))
            for _, _, region, bucket, key, event in due:
                told = {"bucket": {"name": bucket}, "object": {"key": quote(key, safe="/")}}
                with suppress(requests.RequestException):
                    self.deployment.tell(region, [{"eventSource": "aws:s3", "eventName": event, "s3": told}])
                    self.counts["told"] += 1

    def _echo(self) -> None:
        """Stores tell of what LakeMirror writes, too."""
        for region, gate in self.deployment.stores.gates.items():
            if not gate.log.exists():
                continue
            with gate.log.open() as lines:
                lines.seek(self._read.get(gate.log, 0))
                whole = lines.read()
            whole = whole[: whole.rfind("\n") + 1]
            self._read[gate.log] = self._read.get(gate.log, 0) + len(whole.encode())
            for line in map(json.loads, whole.splitlines()):
                bucket, key = key_of(line)
                whole = line["method"] == "PUT" and key and "partNumber" not in line["query"]
                if whole and not key.startswith(OWN) and self.random.random() < ECHOED:
                    self.add(Place(region, bucket), key, "ObjectCreated:Put")
