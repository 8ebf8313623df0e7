"""The server that all processes of a fleet work with: two regions of stand-ins, the companies, the way in between.

Faults are made here: calls fail before or after they took place, connections are cut, answers are slow, a store or the
moves of one mirror's branches fail for seconds, objects are late, missing for long, damaged first, or lost. Every move,
write and deletion at a mirror is judged inside of the call that makes it, and every answer about a held merge.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from core.errors import RemoteFailure
from tests.fakes import FakeLakeFS, FakeRepository
from tests.fleet import REGIONS
from tests.fleet.routes import Route, Team
from tests.fleet.stores import Losses, Store, Transit
from tests.fleet.wire import Call, Cut, serve

FORCED = {
    *("create_mirror_repository", "delete_repository", "create_branch", "hard_reset_branch", "delete_branch"),
    "delete",
}
WRITES = FORCED | {"put_commit_record", "drop_uncommitted", "put"}
MOVES = {"hard_reset_branch", "delete_branch"}
LAKEFS_FAULTS, STORE_FAULTS = 0.006, 0.002
SLOWEST = 1.0
"""Less than the longest call that the workers reckon with."""
COLLECTED_EACH, AWAY_EACH, STUCK_EACH = 1.5, 12.0, 20.0
"""Seconds between two rounds of garbage collection, two times that a store does not answer, and two that a mirror's
branches can't be moved."""
AWAY_FOR, STUCK_FOR = (0.3, 2.5), (5.0, 14.0)
LISTED = 10
"""Nobody who asks for a listing here wants more than to see whether there is anything; sweeps ask for pages."""


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
        self._stuck: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._working = self._faulty = False
        self._newest: dict[tuple[str, int], int] = {}
        self._counts: Counter[str] = Counter()
        self._moves: list[tuple[str, str, str, str]] = []
        self._problems: list[str] = []

    # What the conductor and the reader say

    def mirrors(self) -> list[dict[str, str]]:
        """What is to be mirrored, and where to."""
        names = ("name", "source", "mirror", "region", "mirrored", "settings")
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
        self._stuck.clear()
        for store in self.stores.values():
            store.away_until = 0.0

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
        deeds: Counter[str] = Counter()
        for route in self.routes:
            deeds += route.collection.counts + route.merges.counts
        return {
            "promotions": len(self._moves),
            "reads": self._counts["heads opened"],
            "overlaps": self._counts["overlaps"],
            "faults": faults | dict(self._transit.counts) | dict(self._losses.counts),
            "deeds": dict(deeds),
            "problems": self._problems[:100],
        }

    def left_over(self) -> dict[str, int]:
        """How many objects mirrors that follow the collection still have, although nothing leads to them."""
        return {route.mirror: len(route.collection.left_over()) for route in self.routes if route.follows}

    def deleted(self) -> dict[str, int]:
        """How many objects went at each mirror."""
        counted = "objects deleted by sweeps"
        return {route.mirror: route.collection.counts[counted] for route in self.routes}

    def released(self) -> list[tuple[str, str]]:
        """(source repository, commit) of each held merge that a branch was moved to."""
        return [(route.name, commit) for route in self.routes for commit in route.merges.made]

    def excuses(self, mirror: str, head: str, address: str) -> bool:
        """Whether a reader of a head may find this of its history missing."""
        return next(one for one in self.routes if one.mirror == mirror).excuses(head, address)

    # What people ask, who are asked by lakeFS

    def next_merge(self, region: str) -> dict[str, Any] | None:
        """A merge at a source of this region that waits for an answer; None: nobody merges now."""
        routes = [route for route in self.routes if route.holds and route.source == region]
        if not (self._working and routes):
            return None
        return self._random.choice(routes).merges.ask(time.monotonic())

    def answer_merge(self, repository: str, commit: str, goes_on: bool, complete_in: list[str]) -> None:
        """What was answered to that."""
        route = next(one for one in self.routes if one.name == repository)
        route.merges.expire(time.monotonic())
        self._problems += route.merges.answer(commit, goes_on=goes_on, complete_in=complete_in)
        route.company.note_heads()

    def tell(self, problem: str) -> None:
        """Somebody has met what must not be."""
        self._problems.append(problem)

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
        if not (self._faulty and call.deployment):
            return ""
        chance = LAKEFS_FAULTS if call.target.startswith("lakefs") else STORE_FAULTS
        fault = self._lasting(call)
        if not fault and random.random() <= chance:
            fault = random.choice(("slow", "500 before", "500 after", "cut before", "cut after"))
            with self._lock:
                self._counts[f"{fault} at a {call.target.split(' ')[0]}"] += 1
        return fault

    def _lasting(self, call: Call) -> str:
        """A store that does not answer for a while, a mirror whose branches can't be moved."""
        kind, region = call.target.split(" ")
        with self._lock:
            if kind == "store" and self.stores[region].away_until > time.monotonic():
                self._counts["calls to a store that was away"] += 1
                return "500 before"
            if call.name in MOVES and self._stuck.get(call.args[0], 0.0) > time.monotonic():
                self._counts["moves of a mirror that was stuck"] += 1
                return "500 before"
        return ""

    def _act(self, call: Call) -> Any:
        kind, region = call.target.split(" ")
        target = (self.lakefs if kind == "lakefs" else self.stores)[region]
        with self._lock:
            self._check_right(call, region)
            if call.name == "put":
                self._check_order(*call.args)
            elif call.name == "delete":
                self._check_deletion(*call.args)
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

    def _check_deletion(self, uri: str) -> None:
        """Of an object that is just going: nothing leads to it, and the source does not have it."""
        route = next((one for one in self.routes if uri.startswith(f"{one.mirrored}/")), None)
        if route is None:
            self._problems.append(f"{uri} was deleted, which is no mirror's")
            return
        key = uri.removeprefix(f"{route.mirrored}/")
        self._problems += route.collection.problems(key)
        if uri in route.there.objects:
            route.collection.went(key)
        route.forget(key)
        self._losses.swept(route.mirror, key)

    def _moved(self, mirror: str, branch: str, old: str, new: str) -> None:
        route = next(one for one in self.routes if one.mirror == mirror)
        self._moves.append((mirror, branch, old, new))
        if new:
            self._problems += [f"{mirror}: {told}" for told in route.company.misled(branch, old, new)]
            self._problems += route.torn(new)
            self._problems += self._losses.against(route, new, time.monotonic())

    # What goes on by itself

    def live(self) -> None:
        """The companies work, objects travel, garbage is collected, and what lasts begins and ends, for ever."""
        while True:
            time.sleep(self._pause)
            with self._lock:
                if self._working:
                    self._let_work(self._random.choice(self.routes).company)
                    self._go_on(time.monotonic())
                self._transit.step(time.monotonic())
                self._losses.step(time.monotonic())

    def _go_on(self, now: float) -> None:
        if self._is_due("collect", now, COLLECTED_EACH):
            self._random.choice(self.routes).collection.collect(now)
        for route in self.routes:
            route.merges.expire(now)
        if not self._faulty:
            return
        if self._is_due("away", now, AWAY_EACH):
            region = self._random.choice(REGIONS)
            self.stores[region].away_until = now + self._random.uniform(*AWAY_FOR)
            self._counts["times that a store was away"] += 1
        if self._is_due("stick", now, STUCK_EACH):
            self._stuck[self._random.choice(self.routes).mirror] = now + self._random.uniform(*STUCK_FOR)
            self._counts["times that a mirror was stuck"] += 1

    def _is_due(self, what: str, now: float, each: float) -> bool:
        due = self._due.setdefault(what, now + each)
        if now < due:
            return False
        self._due[what] = now + self._random.uniform(0.5, 1.5) * each
        return True

    def _let_work(self, company: Team) -> None:
        if company.is_patient():
            return
        often = {
            company.commit: 160,
            company.commit_many: 20,
            company.merge: 30,
            company.branch: 36,
            company.unbranch: 14,
            company.rewind: 16,
            company.come_and_go: 40,
        }
        self._random.choices(list(often), list(often.values()))[0]()
        company.note_heads()


def main(address: str, seed: str, routes: str, pause: str, most_branches: str) -> None:
    """Serve until killed."""
    world = World(int(seed), int(routes), float(pause), int(most_branches))
    threading.Thread(target=world.live, daemon=True).start()
    serve(address, world.handle)


if __name__ == "__main__":
    main(*sys.argv[1:])
