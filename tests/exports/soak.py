"""Random lives of an export: commits, kills, faults, refusals, repairs, other paths; writes that nobody answered and
that are carried out later; others who put files of their own at the branch's keys, also over ours, or want the place;
and a watcher.

In the end the destination holds the branch's head byte for byte, objects of others are untouched, and at no instant
was there a marker above something that had not arrived. No success in between was a lie, and no place was two people's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any
from unittest import mock

from django.db.models import Q
from django.db.models.functions import Now

from adapters.s3.refusals import answer_error
from core.errors import Denied, LakeMirrorError, NotFound, Throttled, Unreachable
from core.exporting.deadline import Deadline, Late
from db import clock
from exports.engine.time_slice import Slice
from exports.models import Export, ExportVerification
from exports.services.exports import (
    Wish,
    export_pause,
    export_repair,
    export_repair_drift,
    export_run,
    export_set,
    export_verify,
)
from jobs import duties, kinds
from jobs.models import Duty
from mirrors.models import Mirror
from mirrors.services.mirrors import mirror_create
from tests.exports.memory_s3 import WRITES, MemoryS3
from tests.exports.watcher import Watcher
from tests.fakes import Lake
from tests.mirrors.harness import Deployment, OneByOne

REGION = "us-east-1"
PATTERNS = ([], [".*"], [r"d\d/"], [r".*/_SUCCESS"], [r"d1/e\d/", "^$"])
NAMES = ("a", "b c", "ü", "_SUCCESS")
KEYS = [f"{top}{name}" for top in ("", "d1/", "d2/", "d1/e1/", "d1/e2/", "d2//") for name in NAMES]
KEYS += ["d1/_lakefs_success", "_lakefs_success"]
RIVALS = [
    f"s3://out{place}"
    for place in ("", "/latest", "/latest/d1", "/other", "/other/x", "/states/lake", "/told", "/free")
]
LAST_OF_EXPORTS = "exports.services.exports.destinations.check_reached"
LAST_OF_MIRRORS = "mirrors.services.mirrors.placement.check_unused"
FOREIGN = {
    "latest/theirs": b"x",
    "latest/d1/theirs": b"y",
    "latest/d1/e1/zz": b"z",
    "latestelse": b"e",
    "other/f": b"f",
}


class Killed(BaseException):
    """The worker is gone, in the middle of something."""


class Soak:
    """One life; the same seed gives the same one."""

    def __init__(self, lm: Deployment, owner: Any, seed: int) -> None:
        self.random, self.lm, self.owner = random.Random(seed), lm, owner
        self.s3 = MemoryS3()
        lm.us.repositories.pop("lake", None)
        self.lake = Lake(lm.us, self.s3)  # type: ignore[arg-type]
        self.s3.buckets["out"] |= FOREIGN
        self.watcher = Watcher(self.lake, self.s3.buckets["out"], FOREIGN)
        self.s3.before, self.s3.after = self._before, self._after
        self.denied, self.full, self.weather = "", False, 0.0
        self.collected: dict[str, bytes] = {}
        self.log: list[tuple[str, str]] = []
        self.gone_head = ""
        self.kill_in, self.late_in, self.dead, self.late = 0, 0, False, False
        self.hasty, self.counted, self.silent = False, 0, 0

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    def _before(self, method: str, bucket: str, key: str) -> None:
        if self.dead:
            raise Killed
        if method not in WRITES or bucket != "out":
            return
        if self.denied and self.denied in key:
            raise Denied("403 AccessDenied")
        if self.full and method in ("PUT", "COPY"):
            raise answer_error(507, "InsufficientStorage", "", f"put {key}", "the store")
        self._die()
        if self.silent:
            self.silent -= 1
            raise Unreachable("no answer in time")
        self._blow("503 SlowDown")

    def _after(self, method: str, bucket: str, key: str) -> None:
        """It is done, and seen. Whoever asked for it may be dead by now, or the answer lost."""
        if method in WRITES and bucket == "out":
            self.log.append((method, key))
            if method in ("PUT", "COPY"):
                self.watcher.judge_write(key)
            self.watcher.look(key if method in ("PUT", "COPY") else "")
            if self.hasty and self.chance(0.1):
                self.carry_out(0.3)
            self._die()
            self._blow("the answer is lost")

    def _die(self) -> None:
        self.kill_in -= 1
        if self.kill_in == 0:
            self.dead = True
            raise Killed

    def _blow(self, told: str) -> None:
        if self.chance(self.weather):
            raise self.random.choice([Throttled, Unreachable])(told)

    def check_deadline(self) -> None:
        """In place of a look at the clock."""
        self.late_in -= 1
        self.late = self.late or self.late_in == 0
        if self.late:
            raise Late

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # --- what happens -------------------------------------------------------------------------------------------------

    def live(self, steps: int) -> list[str]:
        """So many steps, then peace; gives what is wrong in the end."""
        self.commit()
        for _ in range(self.random.randint(0, 4)):
            self.intrude()
        self.configure()
        actions = [self.commit, self.work, self.work, self.kill, self.hurry, self.repair]
        actions += [self.commit, self.work, self.storm, self.deny, self.fill, self.rerun, self.rewind, self.configure]
        actions += [self.pause, self.collect, self.unbranch, self.verify, self.intrude, self.intrude, self.tidy]
        actions += [self.rival, self.surprise, self.silence, self.silence, self.usurp, self.mend]
        self.hasty = True
        for _ in range(steps):
            self.random.choice(actions)()
            self.watcher.judge_places()
            if self.chance(0.2):
                self.carry_out(0.5)
        return self.peace()

    def commit(self) -> None:
        self._rebranch()
        files: dict[str, bytes | None] = {}
        for key in self.random.sample(KEYS, self.random.randint(1, 6)):
            files[key] = None if self.chance(0.35) else b"%d" % self.random.randint(0, 5)
        self.lake.commit(files=files)

    def rewind(self) -> None:
        """Somebody resets the branch to an older commit."""
        self.lake.repository.branches["main"] = self.random.choice([sha for sha in self.lake.trees if sha])
        self.gone_head = ""
        self._let_it_be_looked_for()

    def unbranch(self) -> None:
        """Somebody deletes the branch, until it is committed to again."""
        self.gone_head = self.lake.repository.branches.pop("main", self.gone_head)

    def _rebranch(self) -> None:
        if self.gone_head:
            self.lake.repository.branches["main"], self.gone_head = self.gone_head, ""
        self._let_it_be_looked_for()

    def _let_it_be_looked_for(self) -> None:
        """The minute is over in which nobody asks for a branch that was gone."""
        Export.objects.update(gone_looked_at=None)

    def configure(self, path: str = "") -> None:
        path = path or ("s3://out/other" if self.chance(0.15) else "s3://out/latest")
        patterns = self.random.choice(PATTERNS)
        continuous = self.chance(0.8)
        status_path = "s3://out/told" if self.chance(0.15) else "s3://out/states"
        self._try(lambda: self.set(path, patterns, continuous, status_path=status_path))

    def intrude(self) -> None:
        """Somebody puts a file of their own where nothing is, at a key that the branch has, had or may have."""
        key = f"{self.random.choice(['latest', 'latest', 'other'])}/{self.random.choice(KEYS)}"
        if key not in self.s3.buckets["out"]:
            self.counted += 1
            self.s3.buckets["out"][key] = self.watcher.theirs[key] = own = b"own %d" % self.counted
            if key in self.watcher.drifted:  # ours lay there until they put something in its place and took it away
                self.watcher.drifted[key] = own

    def usurp(self) -> None:
        """Somebody puts a file of their own in place of one of ours."""
        places = ("latest/", "other/")
        taken = {*FOREIGN, *self.watcher.theirs}
        ours = [key for key in self.s3.buckets["out"] if key.startswith(places) and key not in taken]
        if files := [key for key in ours if not key.endswith("_lakefs_success")]:
            key, self.counted = self.random.choice(files), self.counted + 1
            own = b"%d" % self.random.randint(10, 15) if self.chance(0.5) else b"own %d" % self.counted
            self.s3.buckets["out"][key] = self.watcher.theirs[key] = self.watcher.drifted[key] = own

    def tidy(self, name: str = "") -> None:
        """Who put them there takes some of them away; those of a name all."""
        for key in [key for key in self.watcher.theirs if key.endswith(name) if name or self.chance(0.3)]:
            del self.s3.buckets["out"][key], self.watcher.theirs[key]
            if key in self.watcher.drifted:
                self.watcher.drifted[key] = None

    def rival(self, namespace: str = "") -> None:
        """Somebody wants a mirror at a place that may be taken; the one that they had goes."""
        Mirror.objects.all().delete()
        self.counted += 1
        namespace = namespace or self.random.choice(RIVALS)
        self._try(
            lambda: mirror_create(
                actor=self.owner,
                source_repository="lake",
                name=f"lake-{self.counted}",
                region="eu-west-1",
                storage_namespace=namespace,
            )
        )
        if Mirror.objects.exists():
            self.watcher.give_up(namespace)

    def surprise(self) -> None:
        """Two want a place in the same moment: one is through while the other one has looked, and stored nothing."""
        place = "s3://out/other" if Export.objects.get().path == "s3://out/latest" else "s3://out/latest"
        rival = partial(self.rival, place + self.random.choice(["", "/x"]))
        one, other = partial(self.configure, place), rival
        first, second, look = (one, other, LAST_OF_EXPORTS) if self.chance(0.5) else (other, one, LAST_OF_MIRRORS)
        with mock.patch(look, lambda *_: second()):
            first()

    def set(
        self,
        path: str = "s3://out/latest",
        patterns: Sequence[str] = (),
        continuous: bool = True,
        branch: str = "main",
        status_path: str = "s3://out/states",
    ) -> Export:
        """Configure an export; also of another branch."""
        wish = Wish(path, status_path, patterns, continuous=continuous)
        return export_set(actor=self.owner, region=REGION, repository="lake", branch=branch, wish=wish)[0]

    def pause(self) -> None:
        export = Export.objects.get()
        export_pause(actor=self.owner, export=export, paused=not export.paused)

    def repair(self) -> None:
        self._try(lambda: export_repair(actor=self.owner, export=Export.objects.get()))

    def rerun(self) -> None:
        self._try(lambda: export_run(actor=self.owner, export=Export.objects.get()))

    def verify(self) -> None:
        self._try(lambda: export_verify(actor=self.owner, export=Export.objects.get()))

    def mend(self) -> None:
        """Somebody puts a file in place of one of ours, verifies the destination, and has repaired what drifted."""
        self._rebranch()
        self.repair()
        for _ in range(3):
            self.work()
        self.usurp()
        self.verify()
        self.work()
        remove = self.chance(0.5)
        self._try(lambda: export_repair_drift(actor=self.owner, export=Export.objects.get(), remove=remove))

    def _try(self, verb: Callable[[], object]) -> None:
        try:
            verb()
        except LakeMirrorError:
            return

    def deny(self) -> None:
        """Some keys, or the status path, may not be written any more; or again."""
        self.denied = "" if self.denied else self.random.choice(["d2", "d1/e1", "_lakefs_success", "states", "ü"])

    def fill(self) -> None:
        """The store is full; or has room again."""
        self.full = not self.full

    def storm(self) -> None:
        self.weather = 0.0 if self.weather else 0.15

    def collect(self) -> None:
        """Garbage collection takes what it should not have taken."""
        objects = self.s3.buckets["src"]
        if found := [key for key in objects if "/data/" in key]:
            key = self.random.choice(found)
            self.collected[key] = objects.pop(key)

    def kill(self) -> None:
        """The worker dies right before or after one of its next writes; its lease and its last writes run out."""
        self.kill_in = self.random.randint(1, 24)
        self.work()
        self.kill_in = 0

    def hurry(self) -> None:
        """A slice that is soon over."""
        self.late_in = self.random.randint(1, 15)
        self.work()
        self.late_in = 0

    def silence(self) -> None:
        """Some of the next writes get no answer."""
        self.silent = self.random.randint(1, 4)
        self.work()
        self.silent = 0

    def work(self) -> None:
        for duty in Duty.objects.filter(kind="export"):
            Duty.objects.filter(pk=duty.pk).update(due_at=Now(), until=None, holder="")
            if not (self.hasty and self.chance(0.5)):
                self.let_time_pass()
            self.dead = self.late = False
            try:
                duties.run(duty.pk, holder=f"worker-{self.random.random()}")
            except Killed:
                continue
            finally:
                self.dead = self.late = False
            self.watcher.judge_success()

    def let_time_pass(self) -> None:
        """Until nothing can be written any more of what was begun, as far as the export knows of it: what nobody
        answered is carried out by then, or never. Of what it does not know no time is too late."""
        if Export.objects.filter(writes_until__isnull=False).exists():
            self.carry_out(0.5)
            self.s3.given_up.clear()
            Export.objects.update(writes_until=None)

    def carry_out(self, share: float = 1.0) -> None:
        """The store gets to some of the writes that nobody waits for any more."""
        waiting, self.s3.given_up[:] = list(self.s3.given_up), []
        for one in waiting:
            if not self.chance(share):
                self.s3.given_up.append(one)
                continue
            theirs = {key: data for key, data in self.watcher.theirs.items() if self.s3.buckets["out"].get(key) == data}
            with suppress(NotFound):  # its source may be gone by now
                one.do()
                self.watcher.judge_write(one.key)
            self.s3.buckets["out"] |= theirs  # they came later than what was asked for
            self.watcher.look()

    def peace(self) -> list[str]:
        """Nothing goes wrong any more, and everything that failed is repaired."""
        self.denied, self.full, self.weather, self.kill_in, self.late_in = "", False, 0.0, 0, 0
        self.hasty = False
        self.tidy("_lakefs_success")  # a marker waits for its place, as its failure says
        Mirror.objects.all().delete()
        self.s3.buckets["src"] |= self.collected
        self._rebranch()
        Export.objects.update(paused=False, continuous=True)
        for _ in range(30):
            self.repair()
            self.work()
        self.carry_out()
        self.watcher.judge_success(again=True)
        self.verify()
        self.work()
        return self.problems()

    def rounds(self, number: int | None = None) -> None:
        """Let the duties of all exports run so many times; without a number until none has a reason to run before its
        usual time, 6 times at most."""
        for _ in range(number or 6):
            self.work()
            if number is None and self._rests():
                return

    def _rests(self) -> bool:
        """Whether no duty failed, was woken or asked for another turn, and nothing written may still be carried out."""
        [kind] = [kind for kind in kinds.registered() if kind.name == "export"]
        soon = clock.now() + timedelta(seconds=kind.interval() / 2)
        duty_rests = not Duty.objects.filter(Q(failures__gt=0) | Q(due_at__lt=soon), kind="export").exists()
        return duty_rests and not Export.objects.filter(writes_until__isnull=False).exists()

    def problems(self) -> list[str]:
        export = Export.objects.get()
        found = list(self.watcher.problems)
        if (export.state, export.last_success_ref) != ("exported-successfully", self.lake.repository.branches["main"]):
            return [*found, f"{export.state}: {export.error}"]
        if (run := export.runs.latest("pk")).pk != self.watcher.succeeded:
            found.append(f"run {run.pk} was never seen to succeed")
        seen = ExportVerification.objects.latest("pk")
        if not seen.ended_at or seen.missing + seen.different > len(self.watcher.adrift()):
            found.append(
                f"verification: {seen.outcome} {seen.error}, {seen.missing} missing, {seen.different} different"
            )
        theirs = FOREIGN | self.watcher.theirs
        return found + [key for key, data in theirs.items() if self.s3.buckets["out"].get(key) != data]


class Here(OneByOne):
    """Threads that are none, so that a seed always gives the same life."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing is on its way."""


@contextmanager
def soaking(lm: Deployment, owner: Any, seed: int) -> Iterator[Soak]:
    """A life with the wiring pointed at it; slices without pauses, that end when the life says so."""
    made = Soak(lm, owner, seed)
    with (
        mock.patch("deployment.wiring.clients.export_store", lambda region, uri: made.s3),
        mock.patch("deployment.wiring.clients.objects", lambda region: made.s3),
        mock.patch("spark_jobs.export.settings.store_at", lambda *_: made.s3),
        mock.patch("spark_jobs.export.copy.ThreadPoolExecutor", Here),
        mock.patch("spark_jobs.tasks.ThreadPoolExecutor", Here),
        mock.patch("adapters.s3.copier.ThreadPoolExecutor", Here),
        mock.patch("spark_jobs.export.markers.ThreadPoolExecutor", Here),
        mock.patch.object(Deadline, "check", lambda self: made.check_deadline()),
        mock.patch.object(Deadline, "pause", lambda self, seconds: made.check_deadline()),
        mock.patch.object(Slice, "over", property(lambda self: made.late)),
    ):
        yield made
