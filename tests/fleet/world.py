"""The server that all processes of a fleet work with: two regions of stand-ins, the companies, the way in between.

Faults are made here: calls fail before or after they took place, connections are cut, answers are slow, objects are
late, missing for long, or damaged first. Every move of a mirror's branch is judged inside of the call that makes it.
"""

from __future__ import annotations

import heapq
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from core.errors import RemoteFailure
from core.types import ObjectInfo
from graveler.metarange import read_metarange
from graveler.ranges import read_range
from tests.company import Company
from tests.fakes import FakeLakeFS, FakeRepository, FakeStore, Lake
from tests.fleet.wire import Call, Cut, serve

REGIONS = ("us-east-1", "eu-west-1")
FORCED = {"create_mirror_repository", "delete_repository", "create_branch", "hard_reset_branch", "delete_branch"}
WRITES = FORCED | {"put_commit_record", "drop_uncommitted", "put"}
LAKEFS_FAULTS, STORE_FAULTS = 0.006, 0.002
SLOWEST = 1.0
"""Less than the longest call that the workers reckon with."""
PATIENCE = 0.95
"""So seldom does a company do something before its mirror has any branch of it: that is superseded, or late."""
NATIVE_AT_FIRST = 2
"""Of four routes, so many have a replication of their stores; to the others the mirror brings its objects itself."""
IN_FLIGHT = 4.0
"""So many seconds a call may be on its way that was decided on before something was known."""
LISTED = 10
"""Nobody who asks for a listing here wants more than to see whether there is anything."""


class Installation(FakeLakeFS):
    """A lakeFS that tells of each move of a branch while it makes it."""

    def __init__(self, moved: Callable[[str, str, str, str], None]) -> None:
        super().__init__()
        self._moved = moved

    def _move(self, there: FakeRepository, branch: str, commit_id: str) -> None:  # type: ignore[override]
        old = there.branches.get(branch, "")
        super()._move(there, branch, commit_id)
        self._moved(there.info.id, branch, old, commit_id)

    def delete_branch(self, repository: str, branch: str) -> None:
        old = self.repositories[repository].branches.get(branch, "")
        super().delete_branch(repository, branch)
        self._moved(repository, branch, old, "")


class Store(FakeStore):
    """A store that keeps in mind what is written, for the replication to find."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh: list[str] = []

    def put(self, uri: str, data: bytes) -> None:
        super().put(uri, data)
        self.fresh.append(uri)

    def list(self, prefix_uri: str) -> Iterator[ObjectInfo]:
        """In no order."""
        return (found for uri in self.objects if uri.startswith(prefix_uri) and (found := self.head(uri)))


class Team(Company):
    """A company that mostly goes on with what its mirror has caught up with: so that most commits are promoted."""

    mirror: Callable[[], dict[str, str]]

    def found(self) -> None:
        """All the branches that it may have."""
        while len(self.heads) < self.most_branches:
            self.branch()
            self.note_heads()

    def _any(self) -> str:
        rested = self.rested()
        return self.random.choice(rested) if rested else super()._any()

    def rested(self) -> list[str]:
        """The branches that the mirror has."""
        there = self.mirror()
        return sorted(name for name, head in self.heads.items() if there.get(name) == head)

    def is_patient(self) -> bool:
        """Whether to do nothing now."""
        return not self.rested() and self.random.random() < PATIENCE


class Route:
    """A source repository with its company, and the mirror of it in the other region."""

    def __init__(self, world: World, number: int, chance: random.Random, most_branches: int) -> None:
        self.source, self.region = REGIONS[number % 2], REGIONS[1 - number % 2]
        self.name, self.mirror = f"lake-{number}", f"lake-{number}-mirror"
        self.namespace, self.mirrored = f"s3://{self.source}/{self.name}", f"s3://{self.region}/{self.name}"
        self.object_replication = "native" if number % 4 < NATIVE_AT_FIRST else "managed"
        self.store, self.there = world.stores[self.source], world.stores[self.region]
        self.lakefs = world.lakefs[self.region]
        lake = Lake(world.lakefs[self.source], self.store, self.name, self.namespace)
        self.company = Team(lake, chance, most_branches)
        self.company.mirror = lambda: self.heads
        self._whole: set[str] = set()
        self._arrived: set[str] = set()
        self.lost: Callable[[], set[str]] = set

    @property
    def heads(self) -> dict[str, str]:
        """The mirror's."""
        found = self.lakefs.repositories.get(self.mirror)
        return found.branches if found else {}

    def behind(self) -> list[str]:
        """Branches of the mirror that are not where the source's are."""
        ours, theirs = self.heads, self.company.heads
        differ = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        return [f"{self.mirror}/{n}: {ours.get(n, '')[:8] or '-'} not {theirs.get(n, '')[:8] or '-'}" for n in differ]

    def torn(self, head: str) -> list[str]:
        """What is missing or wrong in a commit and its history. What once was whole stays so."""
        ahead = [head]
        while ahead:
            commit = ahead.pop()
            if commit in self._whole:
                continue
            if problem := self._lacks(commit):
                return [f"{self.mirror} shows {head[:8]}, but of {commit[:8]} {problem}"]
            self._whole.add(commit)
            ahead.extend(self.company.lake.repository.commits[commit].parents)
        return []

    def needed_by(self, commit: str) -> set[str]:
        """The keys of all that a commit and its history need."""
        lake, ahead, seen, keys = self.company.lake, [commit], {commit}, set[str]()
        while ahead:
            one = ahead.pop()
            keys |= self._keys(one)
            ahead += (parents := [sha for sha in lake.repository.commits[one].parents if sha not in seen])
            seen.update(parents)
        return keys

    def out_of_order(self, key: str, data: bytes) -> list[str]:
        """What a file of metadata names that is not at the mirror yet, where the mirror brings it itself."""
        if self.object_replication == "native" or not key.startswith("_lakefs/"):
            return []
        name, commits = key.removeprefix("_lakefs/"), self.company.lake.repository.commits.values()
        if any(commit.metarange_id == name for commit in commits):
            named = {f"_lakefs/{ref.id}" for ref in read_metarange(data, expected_id=name)}
        else:
            named = {entry.address for entry in read_range(data, expected_id=name)}
        lacks = sorted(one for one in named - self.lost() if f"{self.mirrored}/{one}" not in self.there.objects)
        return [f"{self.mirror}: {key} was written before {one}" for one in lacks[:1]]

    def _keys(self, commit: str) -> set[str]:
        lake = self.company.lake
        files = lake.files_of(commit) if lake.repository.commits[commit].metarange_id else []
        return {f"_lakefs/{name}" for name in files} | {entry.address for entry in lake.trees[commit].values()}

    def _lacks(self, commit: str) -> str:
        if commit not in self.lakefs.repositories[self.mirror].commits:
            return "the record is not there"
        for key in sorted(self._keys(commit) - self._arrived - self.lost()):
            if self.there.objects.get(f"{self.mirrored}/{key}") != self.store.objects[f"{self.namespace}/{key}"]:
                return f"{key} is not there, or damaged"
            self._arrived.add(key)
        return ""


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
            data, place = route.store.objects[f"{route.namespace}/{key}"], f"{route.mirrored}/{key}"
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
                self._last[loss.route.mirror] = now
                del self.open[name]

    def excuse(self, mirror: str, now: float) -> bool:
        """Whether a reader may have met a loss there a moment ago."""
        return any(name == mirror for name, _ in self.open) or now - self._last.get(mirror, -9.0) < 2.0

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


class World:
    """Everything outside of LakeMirror. Its public methods may be called from any process."""

    def __init__(self, seed: int, routes: int, pause: float, most_branches: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.RLock()
        self.lakefs = {region: Installation(self._moved) for region in REGIONS}
        self.stores = {region: Store() for region in REGIONS}
        self.routes = [Route(self, n, random.Random(f"{seed}-{n}"), most_branches) for n in range(routes)]
        self._transit = Transit(self.routes, self._random)
        self._losses = Losses(self.routes, random.Random(f"{seed}-losses"))
        for route in self.routes:
            route.lost = partial(self._losses.at, route.mirror)
        self._pause = pause
        self._working = self._faulty = False
        self._newest: dict[tuple[str, int], int] = {}
        self._counts: Counter[str] = Counter()
        self._moves: list[tuple[str, str, str, str]] = []
        self._problems: list[str] = []

    # What the conductor and the reader say

    def mirrors(self) -> list[dict[str, str]]:
        """What is to be mirrored, and where to."""
        names = ("name", "source", "mirror", "region", "mirrored", "object_replication")
        return [{name: getattr(route, name) for name in names} for route in self.routes]

    def begin(self, *, faulty: bool) -> None:
        """The companies work from now on."""
        for route in self.routes:
            route.company.found()
        self._working, self._faulty, self._transit.faulty = True, faulty, faulty

    def end(self) -> None:
        """No more work, no more faults; all that is on its way arrives, and what was lost is back."""
        self._losses.step(time.monotonic(), all_=True)
        self._working = self._faulty = self._transit.faulty = False

    def behind(self) -> list[str]:
        """Branches of mirrors that are not where the source's are."""
        return [line for route in self.routes for line in route.behind()]

    def lose(self) -> tuple[str, str]:
        """Something that had arrived is lost at a mirror's store: (mirror, key), both empty if there was nothing."""
        return self._losses.lose(time.monotonic()) if self._working else ("", "")

    def lost(self) -> list[tuple[str, str]]:
        """(mirror, key) of what is lost now."""
        return list(self._losses.open)

    def known(self, mirror: str, key: str) -> None:
        """The books say that it is missing or wrong."""
        self._losses.known(mirror, key, time.monotonic())

    def read(self, mirror: str, heads: int, problems: list[str]) -> None:
        """What the reader has opened."""
        self._counts["heads opened"] += heads
        if not self._losses.excuse(mirror, time.monotonic()):
            self._problems += problems
        elif problems:
            self._counts["losses that a reader met"] += 1

    def report(self) -> dict[str, Any]:
        """What has happened so far."""
        faults = {name: n for name, n in self._counts.items() if name not in ("heads opened", "overlaps")}
        return {
            "promotions": len(self._moves),
            "reads": self._counts["heads opened"],
            "overlaps": self._counts["overlaps"],
            "faults": faults | dict(self._transit.counts) | dict(self._losses.counts),
            "problems": self._problems[:100],
        }

    def moves(self) -> list[tuple[str, str, str, str]]:
        """(mirror, branch, from, to) of each move, in their order."""
        return self._moves

    # What the processes of LakeMirror call

    def handle(self, call: Call) -> Any:
        """Answer a call, or fail."""
        if call.target == "world":
            with self._lock:
                return getattr(self, call.name)(*call.args, **call.options)
        fault = self._fault(call)
        if fault == "slow":
            time.sleep(random.uniform(0.1, SLOWEST))
        if fault in ("500 before", "cut before"):
            raise RemoteFailure("500") if fault == "500 before" else Cut
        answer = self._act(call)
        if fault in ("500 after", "cut after"):
            raise RemoteFailure("500") if fault == "500 after" else Cut
        return answer

    def _fault(self, call: Call) -> str:
        chance = LAKEFS_FAULTS if call.target.startswith("lakefs") else STORE_FAULTS
        if not (self._faulty and call.deployment) or random.random() > chance:
            return ""
        fault = random.choice(("slow", "500 before", "500 after", "cut before", "cut after"))
        with self._lock:
            self._counts[fault] += 1
        return fault

    def _act(self, call: Call) -> Any:
        kind, region = call.target.split(" ")
        target = (self.lakefs if kind == "lakefs" else self.stores)[region]
        with self._lock:
            self._check_right(call, region)
            if call.name == "put":
                self._check_order(*call.args)
            answer = getattr(target, call.name)(*call.args, **call.options)
            return list(islice(answer, LISTED)) if isinstance(answer, Iterator) else answer

    def _check_right(self, call: Call, region: str) -> None:
        """Writes are for the region's own deployment; after a lease's successor nobody forces anything by it."""
        if call.name in WRITES and call.deployment != region:
            self._problems.append(f"the deployment of {call.deployment} wrote to {region}: {call.name}{call.args}")
        if call.lease is None:
            return
        duty = (call.lease.kind, call.lease.subject)
        newest = self._newest[duty] = max(call.lease.attempt, self._newest.get(duty, 0))
        if call.lease.attempt < newest:
            self._counts["overlaps"] += 1
            if call.name in FORCED:
                self._problems.append(f"{duty} was held by two: {call.name} of attempt {call.lease.attempt} < {newest}")

    def _check_order(self, uri: str, data: bytes) -> None:
        """Of what a mirror brings itself: data first, then what names it. Each object once, but for what was being
        written when its writer was killed."""
        route = next((one for one in self.routes if uri.startswith(f"{one.mirrored}/")), None)
        if route is not None and route.object_replication == "managed":
            key = uri.removeprefix(f"{route.mirrored}/")
            self._problems += route.out_of_order(key, data)
            self._counts["objects brought again"] += key.startswith("data/") and uri in route.there.objects

    def _moved(self, mirror: str, branch: str, old: str, new: str) -> None:
        route = next(one for one in self.routes if one.mirror == mirror)
        self._moves.append((mirror, branch, old, new))
        if new:
            self._problems += [f"{mirror}: {told}" for told in route.company.misled(branch, old, new)]
            self._problems += route.torn(new)
            self._problems += self._losses.against(route, new, time.monotonic())

    # What goes on by itself

    def live(self) -> None:
        """The companies work and objects travel, for ever."""
        while True:
            time.sleep(self._pause)
            with self._lock:
                if self._working:
                    self._let_work(self._random.choice(self.routes).company)
                self._transit.step(time.monotonic())
                self._losses.step(time.monotonic())

    def _let_work(self, company: Team) -> None:
        if company.is_patient():
            return
        actions = [company.commit, company.commit_many, company.merge, company.branch, company.unbranch, company.rewind]
        self._random.choices(actions, [160, 20, 30, 30, 8, 12])[0]()
        company.note_heads()


def main(address: str, seed: str, routes: str, pause: str, most_branches: str) -> None:
    """Serve until killed."""
    world = World(int(seed), int(routes), float(pause), int(most_branches))
    threading.Thread(target=world.live, daemon=True).start()
    serve(address, world.handle)


if __name__ == "__main__":
    main(*sys.argv[1:])
