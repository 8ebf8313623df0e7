"""Random lives of an export: commits, kills, faults, repairs, other paths; and somebody who looks after each write.

In the end the destination holds the branch's head byte for byte, objects of others are untouched, and at no instant
was there a marker above something that had not arrived.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db.models.functions import Now

from core.errors import Denied, LakeMirrorError, Throttled, Unreachable
from core.markers import MARKER
from exports.models import Export
from exports.services import Wish, export_pause, export_repair, export_run, export_set
from mirrors import duties
from mirrors.models import Duty
from mirrors.tasks import handlers
from tests.exports.memory_s3 import MemoryS3
from tests.fakes import Lake
from tests.mirrors.harness import Deployment, OneByOne

REGION = "us-east-1"
PATTERNS = ([], [".*"], [r"d\d/"], [r".*/_SUCCESS"], [r"d1/e\d/", "^$"])
KEYS = [
    f"{top}{name}" for top in ("", "d1/", "d2/", "d1/e1/", "d1/e2/", "d2//") for name in ("a", "b c", "ü", "_SUCCESS")
]
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
        self.torn: list[str] = []
        self.faults: list[Callable[[str, str, str], None]] = []
        self.kill_in = 0
        self.s3.before, self.s3.after = self._before, self._look
        self.denied = False

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    def _before(self, method: str, bucket: str, key: str) -> None:
        if method in ("PUT", "COPY", "DELETE", "DELETES") and bucket == "out":
            if self.denied and "d2" in key:
                raise Denied("403 AccessDenied")
            self.kill_in -= 1
            if self.kill_in == 0 or self.dead:
                self.dead = True
                raise Killed
            if self.chance(self.weather):
                raise self.random.choice([Throttled("503 SlowDown"), Unreachable("connection reset")])

    weather, dead = 0.0, False

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def _look(self) -> None:
        """A marker says that all below it has arrived: of the commit that is exported now, or of the last one."""
        export = Export.objects.get()
        run = export.runs.order_by("-pk").first()
        commits = {export.last_success_ref} | ({run.ref} if run else set())
        prefix = (run.path if run else export.path).removeprefix("s3://out/") + "/"
        bucket = self.s3.buckets["out"]
        for key in bucket:
            if key.startswith(prefix) and key.endswith(MARKER.decode()):
                directory = key[len(prefix) :].removesuffix(MARKER.decode())
                if not any(self._is_whole(prefix, directory, commit) for commit in commits if commit):
                    self.torn.append(f"{key}: not all below it has arrived")

    def _is_whole(self, prefix: str, directory: str, commit: str) -> bool:
        bucket = self.s3.buckets["out"]
        for path, entry in self.lake.trees[commit].items():
            if path.decode().startswith(directory):
                data = bucket.get(prefix + path.decode())
                if data is None or self.s3.buckets["src"].get(f"lake/{entry.address}") != data:
                    return False
        wanted = {path.decode() for path in self.lake.trees[commit]}
        there = (key[len(prefix) :] for key in bucket if key.startswith(prefix + directory))
        return all(key in wanted or key.endswith(MARKER.decode()) or prefix + key in FOREIGN for key in there)

    # --- what happens -------------------------------------------------------------------------------------------------

    def live(self, steps: int) -> list[str]:
        """So many steps, then peace; gives what is wrong in the end."""
        self.commit()
        self.configure()
        actions = [
            self.commit,
            self.commit,
            self.work,
            self.work,
            self.work,
            self.kill,
            self.storm,
            self.deny,
            self.repair,
            self.rerun,
            self.rewind,
            self.configure,
            self.pause,
        ]
        for _ in range(steps):
            self.random.choice(actions)()
        return self.peace()

    def commit(self) -> None:
        files: dict[str, bytes | None] = {}
        for key in self.random.sample(KEYS, self.random.randint(1, 6)):
            files[key] = None if self.chance(0.35) else b"%d" % self.random.randint(0, 5)
        self.lake.commit(files=files)

    def rewind(self) -> None:
        """Somebody resets the branch to an older commit."""
        commits = [sha for sha in self.lake.trees if sha]
        self.lake.repository.branches["main"] = self.random.choice(commits)

    def configure(self) -> None:
        path = "s3://out/other" if self.chance(0.15) else "s3://out/latest"
        wish = Wish(path, "s3://out/states", self.random.choice(PATTERNS), continuous=self.chance(0.8))
        self._try(lambda: export_set(actor=self.owner, region=REGION, repository="lake", branch="main", wish=wish))

    def pause(self) -> None:
        export = Export.objects.get()
        export_pause(actor=self.owner, export=export, paused=not export.paused)

    def repair(self) -> None:
        self._try(lambda: export_repair(actor=self.owner, export=Export.objects.get()))

    def rerun(self) -> None:
        self._try(lambda: export_run(actor=self.owner, export=Export.objects.get()))

    def _try(self, verb: Callable[[], object]) -> None:
        try:
            verb()
        except LakeMirrorError:
            return

    def deny(self) -> None:
        self.denied = not self.denied

    def storm(self) -> None:
        self.weather = 0.0 if self.weather else 0.2

    def kill(self) -> None:
        """The worker dies at one of its next writes, and its lease and its last writes run out."""
        self.kill_in = self.random.randint(1, 12)
        self.work()
        self.kill_in = 0

    def work(self) -> None:
        for duty in Duty.objects.filter(kind="export"):
            Duty.objects.filter(pk=duty.pk).update(due_at=Now(), until=None, holder="")
            Export.objects.update(writes_until=None)
            self.dead = False
            try:
                duties.run(duty.pk, handlers(), holder=f"worker-{self.random.random()}")
            except Killed:
                continue

    def peace(self) -> list[str]:
        """Nothing goes wrong any more, and everything that failed is repaired."""
        self.denied, self.weather, self.kill_in = False, 0.0, 0
        Export.objects.update(paused=False, continuous=True)
        for _ in range(30):
            self.repair()
            self.work()
        return self.problems()

    def problems(self) -> list[str]:
        export = Export.objects.get()
        head = self.lake.repository.branches["main"]
        found = list(self.torn)
        if (export.state, export.last_success_ref) != ("exported-successfully", head):
            found.append(f"{export.state}: {export.error}")
        prefix = export.path.removeprefix("s3://out/") + "/"
        if not self._is_whole(prefix, "", head):
            found.append("the destination is not the commit")
        found += [key for key, data in FOREIGN.items() if self.s3.buckets["out"].get(key) != data]
        return found


class Here(OneByOne):
    """Threads that are none, so that a seed always gives the same life."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing is on its way."""


@contextmanager
def soaking(lm: Deployment, owner: Any, seed: int) -> Iterator[Soak]:
    """A life with the wiring pointed at it; slices without pauses."""
    made = Soak(lm, owner, seed)
    with (
        mock.patch("lakemirror_site.wiring.export_store", lambda region, bucket: made.s3),
        mock.patch("lakemirror_site.wiring.objects", lambda region: made.s3),
        mock.patch("spark_jobs.export_settings.store_at", lambda *_: made.s3),
        mock.patch("spark_jobs.export_copy.ThreadPoolExecutor", Here),
        mock.patch("spark_jobs.jobs.ThreadPoolExecutor", Here),
        mock.patch("adapters.copying.ThreadPoolExecutor", Here),
        mock.patch("spark_jobs.export_markers.ThreadPoolExecutor", Here),
        mock.patch("core.slices.Deadline.pause", lambda self, seconds: self.check()),
    ):
        yield made
