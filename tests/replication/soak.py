"""Random lives of a rule with two targets: objects come, change and go, events are doubled, late or lost, targets are
down, refuse everything or one key, fail now and then; passes are begun and canceled; links are paused, limits change,
the ledger is small; and the worker is killed between any two steps.

In the end both targets have what the source has, the ledger is empty and its counts say so; nothing was deleted
anywhere, and nothing was written to a key twice in a row with the same bytes.

Of a rule that follows deletions both targets have nothing else in the end, but what is somebody else's; and nothing was
deleted that was at the source then, or somebody else's.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

from django.db import transaction

from core.errors import Denied, Full, Invalid, LakeMirrorError, RemoteFailure, Throttled, Unreachable
from core.mirroring.states import State
from core.replicating.eligible import is_own
from core.replicating.passes import PassKind, PassState
from core.replicating.states import ApprovalState, Order
from db import clock
from replication.engine import looking, piece, settling
from replication.models import Approval, Link, OpenObject, Pass, RetryRequest, Rule, StoreLimit
from replication.status.rules import rule_reading
from replication.transitions import deletions, freezing, ledger, manifests, passes, retrying, shards, touching
from tests.replication.world import AWAY, FAR, HOME, Store, World

KEYS = ["a", "a/", "b/1", "b/2", "c é", "d", "e/\U0001f600", "f", "g", "h"]
TARGETS = ((AWAY, "out"), (FAR, "two"))
TRAVELS = {"metadata": "all", "sweep_heads_per_second": 10_000}


class Killed(BaseException):
    """The worker is gone."""


class Soak:
    """One life. `steps_left`: so many steps until the worker is killed; None: it lives."""

    def __init__(self, w: World, seed: int, *, markers: bool = False) -> None:
        self.w, self.random, self.markers = w, random.Random(seed), markers
        self.foreign: dict[tuple[str, str], bytes] = {}
        self.wrong: list[str] = []
        self.steps_left: int | None = None
        self.known_from, self.judged = 1, 0
        self.faults: dict[str, Callable[[str, str], None]] = {}
        self._one = threading.Lock()
        for region, store in w.stores.items():
            store.before = self._before(region)
            store.after = self._after(region)
            store.conditional = self.random.random() < 0.5
        more = {"markers": True, "delete_percent": 100} if markers else {}
        more |= {"order": self.random.choice(list(Order)).value, "priority": self.random.randint(0, 2)}
        StoreLimit.objects.create(region=AWAY, bytes_per_second=10**9)
        targets = [(region, f"s3://{bucket}/t") for region, bucket in TARGETS]
        w.rule(*targets, uri="s3://src/p", pinned=False, **TRAVELS, **more)
        for number in (1, 2):
            w.stores[TARGETS[number - 1][0]].buckets[TARGETS[number - 1][1]] = {"t/foreign": b"1", "other": b"2"}

    def _before(self, region: str) -> Callable[[str, str, str], None]:
        def before(method: str, bucket: str, key: str) -> None:
            self.step()
            if region in self.faults:
                self.faults[region](method, key)

        return before

    def _after(self, region: str) -> Callable[[str, str, str], None]:
        def after(method: str, bucket: str, key: str) -> None:
            name = key.removeprefix("t/")
            if method in ("DELETE", "DELETES") and key and not is_own(name):
                if f"p/{name}" in self.w.home.buckets["src"]:
                    self.wrong.append(f"{key} was deleted at {region}, and is at the source")
                if name in ("foreign", "other") or (region, key) in self.foreign:
                    self.wrong.append(f"{key} at {region} is somebody else's, and was deleted")
            self.step()

        return after

    def step(self) -> None:
        """Something happens: perhaps it is the end of the worker."""
        with self._one:
            if self.steps_left is None:
                return
            self.steps_left -= 1
            if self.steps_left < 0:
                raise Killed

    # --- what happens -------------------------------------------------------------------------------------------------

    def live(self, moves: int) -> list[str]:
        """So many things happen; gives what is wrong in the end."""
        for _ in range(moves):
            self._move()
            self.w.check_counts()
            if unknown := self.unknown():
                return unknown
        return self._heal() or self.problems()

    def unknown(self) -> list[str]:
        """What a target lacks, and neither the ledger nor a stretch that is to be looked through again says so, once
        all has been looked through since something changed at the source."""
        rule = Rule.objects.get()
        if rule.cycle < self.known_from:
            return []
        dirty = [(shard.low, shard.high) for shard in rule.shards.filter(dirty=True)]
        source = {key[2:]: data for key, data in self.w.home.buckets["src"].items() if key.startswith("p/")}
        found = []
        for reading, (region, bucket) in zip(rule_reading(rule, clock.now()).links, TARGETS, strict=True):
            number, there = reading.link.number, self.w.stores[region].buckets[bucket]
            noted, skipped = set(self.w.names(number)), set(self.w.names(number, status="skipped"))
            for key, data in source.items():
                if there.get(f"t/{key}") == data:
                    continue
                if key not in noted and not any(_lies_in(key.encode(), low, high) for low, high in dirty):
                    found.append(f"nobody knows that {region} lacks {key}")
                if reading.told.state is State.UP_TO_DATE and key not in skipped:
                    found.append(f"{region} is called up to date, and lacks {key}")
        self.judged += 1
        return found

    def _move(self) -> None:
        kinds = [self._put, self._go, self._event, self._fault, self._pause, self._later, self._later, self._kill]
        kinds += [self._clock, self._retag, self._pass, self._retry]
        kinds += [self._go, self._go_all, self._theirs, self._confirm] if self.markers else []
        self.random.choice(kinds)()
        for run in self.random.sample([self.w.scan, self.w.copy, self.w.copy, self.w.look], 2):
            with suppress(Killed):
                run()
            self.steps_left = None

    def _changed(self) -> None:
        """The next look that begins knows of it, and none that goes on need."""
        rule = Rule.objects.get()
        self.known_from = rule.cycle + 1 + (rule.cycle_began_at is not None)

    def _put(self) -> None:
        self._changed()
        for key in self.random.sample(KEYS, self.random.randint(1, 4)):
            size = self.random.choice((0, 1, 5))
            data = self.random.randbytes(size) if size else b""
            self.w.put(f"p/{key}", data, tags=self._tags())
            if self.random.random() < 0.5:
                self._tell(key)

    def _tags(self) -> dict[str, str]:
        return self.random.choice(({}, {"t": "1"}, {"t": "2"}, {"t": "2", "u": "x y"}))

    def _retag(self) -> None:
        """Tags alone change, and perhaps somebody tells."""
        key = self.random.choice(KEYS)
        if f"p/{key}" in self.w.home.buckets["src"]:
            self.w.home.tags["src", f"p/{key}"] = self._tags()
            if self.random.random() < 0.5:
                self._tell(key)

    def _go(self) -> None:
        self._changed()
        key = self.random.choice(KEYS)
        self.w.home.buckets["src"].pop(f"p/{key}", None)

    def _go_all(self) -> None:
        """All of it, now and then."""
        if self.random.random() < 0.2:
            self._changed()
            for key in KEYS:
                self.w.home.buckets["src"].pop(f"p/{key}", None)

    def _theirs(self) -> None:
        """Somebody else writes to a target."""
        region, bucket = self.random.choice(TARGETS)
        key = f"t/{self.random.choice('abcdefgh')}/theirs"
        self.foreign[region, key] = self.random.randbytes(4)
        self.w.stores[region].buckets[bucket][key] = self.foreign[region, key]

    def _confirm(self) -> None:
        """Somebody approves what waits, and confirms sources."""
        for link in Link.objects.exclude(frozen_since=None):
            freezing.thaw(link)
        for approval in Approval.objects.filter(state="waiting"):
            deletions.decide(approval, ApprovalState.APPROVED, "olga", clock.now())

    def _event(self) -> None:
        """Of anything, whether it happened or not."""
        for key in self.random.choices(KEYS, k=3):
            self._tell(key)

    def _tell(self, key: str) -> None:
        touching.objects_changed(HOME, {("src", f"p/{key}"), ("src", key), ("other", f"p/{key}")})

    def _later(self) -> None:
        self.w.later(self.random.choice((1, 20, 100, 4000, 90_000)))

    def _clock(self) -> None:
        """It was ahead until now."""
        self.w.later(-self.random.choice((1, 200, 90_000)))

    def _pass(self) -> None:
        """Somebody begins a pass, or cancels one."""
        link = self.random.choice(list(Link.objects.order_by("pk")))
        going = Pass.objects.filter(ended_at=None)
        if (made := going.filter(link=link).first()) is not None:
            passes.end(made, PassState.CANCELED, "", clock.now())
        elif self.random.random() < 0.3 and not going.filter(kind=PassKind.DRY_RUN.value).exists():
            self._begin_pass(PassKind.DRY_RUN, None)
        else:
            self._begin_pass(PassKind.RESYNC, link)

    def _begin_pass(self, kind: PassKind, link: Link | None) -> None:
        told = {"who": "olga", "region": HOME, "began_at": clock.now(), "prefix": self.random.choice(("", "", "b/"))}
        passes.begin(Pass(kind=kind.value, rule=Rule.objects.get(), link=link, **told))

    def _kill(self) -> None:
        self.steps_left = self.random.randint(0, 25)

    def _fault(self) -> None:
        region = self.random.choice([HOME, AWAY, FAR, AWAY, FAR])
        if region in self.faults:
            del self.faults[region]
            return
        self.faults[region] = self.random.choice([self._down, self._refusing, self._one_key, self._flaky])

    def _down(self, method: str, key: str) -> None:
        raise Unreachable("nobody answers")

    def _refusing(self, method: str, key: str) -> None:
        if method in ("PUT", "GET"):
            raise self.random.choice([Denied("403"), Full("507")])

    def _one_key(self, method: str, key: str) -> None:
        if key.endswith("b/1") and method in ("PUT", "GET"):
            raise Invalid("400")

    def _flaky(self, method: str, key: str) -> None:
        if self.random.random() < 0.3:
            errors: list[LakeMirrorError] = [RemoteFailure("500"), Throttled("slow", retry_after=3), Unreachable("?")]
            raise self.random.choice(errors)

    def _pause(self) -> None:
        link = self.random.choice(list(Link.objects.order_by("pk")))
        limit = self.random.choice((None, 1_000_000))
        Link.objects.filter(pk=link.pk).update(paused=not link.paused, bytes_per_second=limit)

    def _retry(self) -> None:
        """Somebody wants all of a link, or what failed for a reason, tried again."""
        with transaction.atomic():
            link = ledger.hold(self.random.choice(list(Link.objects.order_by("pk"))).pk)
            assert link is not None
            codes = ["", *OpenObject.objects.filter(link=link.pk).values_list("code", flat=True)[:1]]
            retrying.retry(link, self.random.choice(codes), clock.now())

    # --- the end ------------------------------------------------------------------------------------------------------

    def _heal(self) -> list[str]:
        """Nothing is wrong any more, and time goes by; gives what nobody knew of before the copying went on."""
        self.faults.clear()
        self.steps_left = None
        Link.objects.update(paused=False)
        self.w.later(90_000)
        for _ in range(4):
            self.w.scan()
        unknown = self.unknown()
        for _ in range(8):
            self.w.later(90_000)
            self.w.work(3)
            self.w.look()
            self._confirm()
        return unknown

    def _has_tags(self, store: Store, bucket: str, key: str) -> bool:
        return store.tags.get((bucket, f"t/{key}"), {}) == self.w.home.tags.get(("src", f"p/{key}"), {})

    def problems(self) -> list[str]:
        """What should not be so."""
        found = list(self.wrong)
        source = {key[2:]: data for key, data in self.w.home.buckets["src"].items() if key.startswith("p/")}
        for number, (region, bucket) in enumerate(TARGETS, 1):
            store = self.w.stores[region]
            there = store.buckets[bucket]
            found += [f"{key} at {region}" for key, data in source.items() if there.get(f"t/{key}") != data]
            found += [f"tags of {key} at {region}" for key in source if not self._has_tags(store, bucket, key)]
            if there.get("t/foreign") != b"1" or there.get("other") != b"2":
                found.append(f"somebody else's objects at {region}")
            if not self.markers and (store.asked["DELETE"] or store.asked["DELETES"]):
                found.append(f"something was deleted at {region}")
            found += self._not_as_it_should_be(region, there, source) if self.markers else []
            found += [f"open at {region}: {row.name} {row.code}" for row in self.w.rows(number)]
            found += [] if self.markers else list(_written_twice(store, region))
            link = self.w.link(number)
            found += [f"{region} is {link.health}"] if link.health != "up" else []
        found += [f"a retry of '{one.code}' has not ended" for one in RetryRequest.objects.all()]
        found += [told for made in Pass.objects.order_by("pk") for told in _wrong_with(made)]
        rule = Rule.objects.get()
        if rule.shards.filter(dirty=True).exists() or rule.touched.exists() or rule.error:
            found.append(f"the rule is not through: {rule.error}")
        if rule.full_objects != len(source):
            found.append(f"{rule.full_objects} counted of {len(source)}")
        return found

    def _not_as_it_should_be(self, region: str, there: dict[str, bytes], source: dict[str, bytes]) -> Iterator[str]:
        theirs = {key: data for (at, key), data in self.foreign.items() if at == region}
        yield from (f"{key} of somebody else at {region}" for key in theirs if there.get(key) != theirs[key])
        names = {key[2:] for key in there if key.startswith("t/") and key not in theirs and key != "t/foreign"}
        yield from (f"{key} is still at {region}" for key in sorted(names - source.keys()) if not is_own(key))


def _wrong_with(made: Pass) -> Iterator[str]:
    """What should not be so of a pass in the end."""
    if made.ended_at is None:
        yield f"{made} goes on: {made.message}"
    if made.state == PassState.COMPLETED and made.noted != made.copied + made.found_equal + made.gone:
        yield f"{made} is called completed: {made.noted} noted, {made.copied}, {made.found_equal}, {made.gone}"
    if made.state == PassState.WITH_FAILURES and made.failed != made.rows:
        yield f"{made} names {made.rows} of {made.failed} failures"


def _lies_in(key: bytes, low: bytes, high: bytes | None) -> bool:
    return key > bytes(low) and (high is None or key <= bytes(high))


def _written_twice(store: Store, region: str) -> Iterator[str]:
    last: dict[tuple[str, str], bytes] = {}
    for bucket, key, data in store.written:
        if last.get((bucket, key)) == data and not is_own(key):
            yield f"{key} was written twice at {region}"
        last[bucket, key] = data


@contextmanager
def soaking(w: Any, seed: int, kind: type[Soak] | None = None, *, markers: bool = False) -> Iterator[Soak]:
    """A life in which each write to the tables is a step, too, and the ledger takes few rows."""
    life = kind(w, seed) if kind else Soak(w, seed, markers=markers)

    def stepping(act: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **named: Any) -> Any:
            life.step()
            told = act(*args, **named)
            life.step()
            return told

        return stepped

    with (
        mock.patch.object(ledger, "MOST_OPEN", 6),
        mock.patch.object(shards, "SPLIT_AT", 4),
        mock.patch.object(shards, "PARTS", life.random.choice((2, 16))),
        mock.patch.object(shards, "JOIN_BELOW", life.random.choice((0, 3))),
        mock.patch.object(shards, "JOINED_AT_MOST", 4),
        mock.patch.object(piece, "MARK_EVERY", 1),
        mock.patch.multiple(retrying, AT_ONCE=1, CHUNK=1, RETRYING_SECONDS=0.0),
        mock.patch.object(ledger, "note", stepping(ledger.note)),
        mock.patch.object(ledger, "settle", stepping(ledger.settle)),
        mock.patch.object(manifests, "wrote", stepping(manifests.wrote)),
        mock.patch.object(deletions, "note", stepping(deletions.note)),
        mock.patch.object(deletions, "end_look", stepping(deletions.end_look)),
        mock.patch.object(shards, "ended", stepping(shards.ended)),
        mock.patch.object(shards, "cut", stepping(shards.cut)),
        mock.patch.object(passes, "note", stepping(passes.note)),
        mock.patch.object(passes, "gather", stepping(passes.gather)),
        mock.patch.object(passes, "end", stepping(passes.end)),
        mock.patch.object(looking, "note_unlisted", stepping(looking.note_unlisted)),
        mock.patch.object(settling, "note_standing", stepping(settling.note_standing)),
    ):
        yield life
