"""The stores of the fleet's regions, the way of objects between them, and what is lost there."""

from __future__ import annotations

import hashlib
import heapq
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from adapters.s3.fast_store import ListedPage
from core.sweeping import Standing
from core.types import ObjectInfo
from tests.fakes import FakeStore

if TYPE_CHECKING:
    from tests.fleet.routes import Route

IN_FLIGHT = 4.0
"""So many seconds a call may be on its way that was decided on before something was known."""
PAGE = 500


class Store(FakeStore):
    """A store that keeps in mind what is written, for the replication to find, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh: list[str] = []
        self.away_until = 0.0
        self._began, self._written = time.time(), dict[str, float]()

    def put(self, uri: str, data: bytes) -> None:
        super().put(uri, data)
        self.fresh.append(uri)
        self.note_written(uri)

    def note_written(self, uri: str) -> None:
        """It was written now."""
        self._written[uri] = time.time()

    def list(self, prefix_uri: str) -> Iterator[ObjectInfo]:
        """In no order."""
        return (found for uri in self.objects if uri.startswith(prefix_uri) and (found := self.head(uri)))

    def page(self, prefix_uri: str, after: str = "") -> ListedPage:
        """The next keys after one, in their order."""
        bucket = prefix_uri.split("/", 3)[2]
        start = len(f"s3://{bucket}/")
        keys = sorted(uri for uri in self.objects if uri.startswith(prefix_uri) and uri[start:] > after)
        found = [(uri[start:], self.objects[uri]) for uri in keys[:PAGE]]
        sizes, etags = [len(data) for _, data in found], [hashlib.md5(data).hexdigest() for _, data in found]
        return ListedPage([key for key, _ in found], sizes, etags, ["" for _ in found], more=len(keys) > PAGE)

    def standing(self, uri: str) -> Standing | None:
        """As adapters/s3/remover.py tells of an object."""
        info = self.head(uri)
        at = self._written.get(uri, self._began)
        return info and Standing(info.size, info.etag, datetime.fromtimestamp(at, UTC))

    def delete(self, uri: str) -> None:
        """What is not there is deleted."""
        self.objects.pop(uri, None)


class Transit:
    """The replication of objects: soon, late, after long, or damaged first. In order of nothing but chance.

    A file of metadata is written again by each commit that has it. What arrived whole stays so: a store that damages
    what was checked before is found by checking again, not by promotion.
    """

    def __init__(self, routes: list[Route], chance: random.Random) -> None:
        self.routes, self.random = routes, chance
        self.faulty = False
        self.counts: Counter[str] = Counter()
        self._way: list[tuple[float, int, Route, str, bool]] = []
        self._number = 0

    def step(self, now: float) -> None:
        """Take up what was written, hand over what is due."""
        for route in self.routes:
            ours, route.store.fresh = route.store.fresh, []
            for uri in ours:
                self._send(now, uri)
        while self._way and (self._way[0][0] <= now or not self.faulty):
            _, _, route, key, damaged = heapq.heappop(self._way)
            data, place = route.original(key), f"{route.mirrored}/{key}"
            if damaged and route.there.objects.get(place) == data:
                self.counts["whole already"] += 1
                continue
            route.there.objects[place] = bytes([data[0] ^ 1]) + data[1:] if damaged else data

    def _send(self, now: float, uri: str) -> None:
        route = next((one for one in self.routes if uri.startswith(f"{one.namespace}/")), None)
        if route is None or route.object_replication == "managed" or "/_lakemirror/" in uri:
            return
        key, fate = uri.removeprefix(f"{route.namespace}/"), self.random.random()
        if fate < 0.004:
            self.counts["damaged at first"] += 1
            self._put(now + 0.02, route, key, damaged=True)
            self._put(now + self.random.uniform(1, 4), route, key)
        elif fate < 0.008:
            self.counts["missing for long"] += 1
            self._put(now + self.random.uniform(4, 8), route, key)
        elif fate < 0.08:
            self.counts["late"] += 1
            self._put(now + self.random.uniform(0.5, 3), route, key)
        else:
            self._put(now + self.random.uniform(0, 0.1), route, key)

    def _put(self, due: float, route: Route, key: str, *, damaged: bool = False) -> None:
        self._number += 1
        heapq.heappush(self._way, (due, self._number, route, key, damaged))


class Losses:
    """What a destination's store has lost or damaged after it had arrived, until somebody brings it back.

    A branch may be moved to what needs it until that is known: `known` since a blocker is in the database. A call that
    was decided on a moment before may still be on its way.
    """

    def __init__(self, routes: list[Route], chance: random.Random) -> None:
        self.routes, self.random = routes, chance
        self.counts: Counter[str] = Counter()
        self.open: dict[tuple[str, str], Loss] = {}
        self._last: dict[str, float] = {}

    def lose(self, now: float) -> tuple[str, str]:
        """Take something away, or damage it: (mirror, key)."""
        route = self.random.choice(self.routes)
        keys = sorted(route._arrived)
        key = self.random.choice(keys) if keys else ""
        place = f"{route.mirrored}/{key}"
        if not key or (route.mirror, key) in self.open or place not in route.there.objects:
            return "", ""
        data = route.there.objects.pop(place)
        if self.random.random() < 0.3:
            route.there.objects[place] = bytes([data[0] ^ 1]) + data[1:]
        self.open[route.mirror, key] = Loss(route, place, data, now + self.random.uniform(3, 9))
        self.counts["lost after it had arrived"] += 1
        return route.mirror, key

    def step(self, now: float, *, all_: bool = False) -> None:
        """Bring back what is due."""
        for name, loss in list(self.open.items()):
            if all_ or loss.back_at <= now or loss.route.there.objects.get(loss.place) == loss.data:
                loss.route.there.objects[loss.place] = loss.data
                loss.route.there.note_written(loss.place)
                self._last[loss.route.mirror] = now
                del self.open[name]

    def excuse(self, mirror: str, now: float) -> bool:
        """Whether a reader may have met a loss there a moment ago."""
        return any(name == mirror for name, _ in self.open) or now - self._last.get(mirror, -9.0) < 2.0

    def swept(self, mirror: str, key: str) -> None:
        """It was deleted there meanwhile: nobody brings it back."""
        self.open.pop((mirror, key), None)

    def at(self, mirror: str) -> set[str]:
        """The keys that a mirror's store lacks now, or has damaged."""
        return {key for name, key in self.open if name == mirror}

    def known(self, mirror: str, key: str, now: float) -> None:
        """Somebody has seen it in the books."""
        loss = self.open.get((mirror, key))
        if loss and not loss.known_at:
            loss.known_at = now
            self.counts["losses known while they lasted"] += 1

    def against(self, route: Route, commit: str, now: float) -> list[str]:
        """What speaks against a move to a commit: what it or its history needs, and what was known to be lost."""
        bad = {
            key
            for (mirror, key), loss in self.open.items()
            if mirror == route.mirror and loss.known_at and now - loss.known_at > IN_FLIGHT
        }
        needed = bad & route.needed_by(commit) if bad else set()
        return [f"{route.mirror} was moved to {commit[:8]}, which needs {key}, known to be lost" for key in needed]


@dataclass
class Loss:
    """What is not there as it should be, and when it comes back. `known_at` is 0 until then."""

    route: Route
    place: str
    data: bytes
    back_at: float
    known_at: float = 0.0
