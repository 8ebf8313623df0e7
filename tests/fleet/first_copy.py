"""A managed mirror's first copy between two real regions, while all that takes part is killed again and again.

What must hold: at no moment lies a metarange without its ranges or a range without its data at the destination, no
head is shown that is not whole, and nothing is written twice but what was under way when something was killed.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import requests
import yaml

from adapters.s3.writes import Writer
from core.errors import LakeMirrorError
from core.exporting.deadline import Deadline
from graveler.entries import Entry, Timestamp
from sandbox.bulk import publish
from sandbox.lakefs.committed import Committed, FileCache
from sandbox.lakefs.names import AddressBook
from sandbox.lakefs_http import LakeFS, LakeFSError
from sandbox.lakemirror_yaml import configuration
from tests.fleet.destination_watch import DestinationWatch
from tests.fleet.fleet import ROOT, Member
from tests.fleet.real_sites import Site, layout_of, real_sites
from tests.postgres import quick_server
from tests.spark.server import free_port

NAME, MIRROR, FOLDER = "lake", "lake-eu", "lake"
DAY = 86400.0
NOT_THERE_YET = 404
LOOK_PAUSE = 0.2
WRITES_AT_ONCE = 24
SIZES = (16, 200, 4_000)
REST_SECONDS = {"spark": 1.0, "store": 1.5, "source store": 1.5}


@dataclass(frozen=True)
class Plan:
    """What is copied; the average seconds between two kills; the minutes that it may take."""

    objects: int
    commits: int
    seed: int
    kill_every: float
    minutes: float


@dataclass
class Report:
    """What a first copy came to. `twice`: keys of data that were written more than once."""

    seed: int
    objects: int
    seconds: float = 0.0
    looks: int = 0
    failed_looks: int = 0
    whole: int = 0
    written: int = 0
    twice: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A few lines for people."""
        killed = ", ".join(f"{number} {what}" for what, number in sorted(self.kills.items())) or "none"
        return [
            *(f"PROBLEM {problem}" for problem in self.problems[:20]),
            f"first copy of {self.objects:,} objects from seed {self.seed} in {self.seconds:.0f} s",
            f"{self.kills.total()} kills: {killed}",
            f"{self.looks} whole looks at the destination ({self.failed_looks} more met a store that was down), "
            f"{self.whole} metaranges and ranges found whole",
            f"{self.written:,} objects written, {self.twice} of them more than once; {len(self.problems)} problems",
        ]


class SourceBlobs:
    """lakeFS's view of the source's bucket, for what writes commits past its API."""

    def __init__(self, site: Site) -> None:
        self._s3 = site.minio.s3

    def has_bucket(self, bucket: str) -> bool:
        return True

    def stamp(self, bucket: str, key: str) -> str:
        with suppress(self._s3.exceptions.ClientError):
            return str(self._s3.head_object(Bucket=bucket, Key=key)["ETag"])
        return ""

    def get(self, bucket: str, key: str) -> bytes | None:
        with suppress(self._s3.exceptions.NoSuchKey):
            return bytes(self._s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        return None

    def put(self, bucket: str, key: str, data: bytes, metadata: Mapping[str, str] = {}) -> str:
        return str(self._s3.put_object(Bucket=bucket, Key=key, Body=data)["ETag"]).strip('"')


@dataclass
class SourceLake:
    """The repository at the source: its objects, and its commits one on top of the other."""

    site: Site
    chance: random.Random
    addresses: AddressBook = field(default_factory=AddressBook)

    @property
    def namespace(self) -> str:
        return f"s3://{self.site.region.bucket}/{FOLDER}"

    def fill(self, objects: int, commits: int, tell: Callable[[str], None]) -> None:
        """So many objects in so many commits to main; a branch stays at every tenth of them."""
        lakefs = LakeFS(self.site.region.lakefs_url)
        lakefs.create_repository(NAME, self.namespace)
        committed = Committed(SourceBlobs(self.site), self.site.region.bucket, FOLDER, FileCache())
        metarange = ""
        for number in range(commits):
            share = objects // commits + (number < objects % commits)
            entries = {entry.path: entry for entry in self._written(number, share)}
            metarange = committed.apply(metarange, entries)
            head = publish(lakefs, NAME, "main", metarange, f"part {number + 1}")
            if number % 10 == 9:
                lakefs.create_branch(NAME, f"after-{number + 1}", head)
            tell(f"commit {number + 1} of {commits} at the source")

    def _written(self, commit: int, objects: int) -> Iterator[Entry]:
        writer = Writer(self.site.store(), Deadline(time.time() + DAY))
        made = [self._entry(commit, number) for number in range(objects)]
        with ThreadPoolExecutor(WRITES_AT_ONCE) as pool:
            list(pool.map(lambda one: writer.put(f"{self.namespace}/{one[0].address}", one[1]), made))
        return (entry for entry, _ in made)

    def _entry(self, commit: int, number: int) -> tuple[Entry, bytes]:
        path = f"part-{commit:03d}/{number // 500:04d}/{number:07d}.bin"
        body = self.chance.randbytes(self.chance.choice(SIZES))
        etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
        now = Timestamp(int(time.time()))
        blank = Entry(path.encode(), "", len(body), etag, now, {}, "application/octet-stream")
        return replace(blank, address=self.addresses.next()), body


class Deployment:
    """The processes of LakeMirror on PostgreSQL, as the launcher starts them, and Spark."""

    def __init__(self, folder: Path, database: str, sites: tuple[Site, Site]) -> None:
        self.folder, self.sites = folder, sites
        self.env = self._environment(database)
        manage = [sys.executable, str(ROOT / "manage.py")]
        queue = sites[0].region.name
        self.spark = self._member("spark", [sys.executable, "-m", "deployment.spark_server"], {})
        self.workers = [
            self._member("controller", [*manage, "controller"], {}),
            self._member("worker", [*manage, "qcluster"], {"Q_CLUSTER_NAME": queue}),
            self._member("spark-worker", [*manage, "qcluster"], {"Q_CLUSTER_NAME": f"{queue}-spark"}),
        ]

    @property
    def members(self) -> list[Member]:
        return [self.spark, *self.workers]

    def _environment(self, database: str) -> dict[str, str]:
        values = configuration(layout_of(*self.sites), secret_key="a key that only tests use")
        values["mirrors_database"] = {"type": "postgres", "postgres": {"connection_string": database}}
        values["logging"] = {"level": "WARNING"}
        file = self.folder / "lakemirror.yaml"
        file.write_text(yaml.safe_dump(values))
        port = str(free_port())
        return {
            "DJANGO_SETTINGS_MODULE": "lakemirror_site.settings",
            "LAKEMIRROR_CONFIG": str(file),
            "LAKEMIRROR_VAR": str(self.folder / "var"),
            "LAKEMIRROR_SPARK_PORT": port,
            "SPARK_REMOTE": f"sc://127.0.0.1:{port}",
            "PYSPARK_PYTHON": sys.executable,
            "LAKEMIRROR_ADMIN_USERNAME": "ada",
            "LAKEMIRROR_ADMIN_PASSWORD": "a password that only tests use",
        }

    def _member(self, name: str, command: list[str], told: Mapping[str, str]) -> Member:
        return Member(name, command, self.env | told, self.folder / f"{name}.log")

    def found(self) -> None:
        """The tables and the managed mirror, made in this process."""
        os.environ.update(self.env)
        import django
        from django.core.management import call_command

        django.setup()
        from mirrors.services.mirrors import mirror_create
        from rbac.management.commands.ensure_admin import administrators

        call_command("migrate", verbosity=0)
        call_command("ensure_admin", verbosity=0)
        mirror_create(
            actor=administrators().get(),
            source_repository=NAME,
            name=MIRROR,
            region=self.sites[1].region.name,
            storage_namespace=self.mirrored,
            settings={"object_replication": "managed"},
        )

    @property
    def mirrored(self) -> str:
        return f"s3://{self.sites[1].region.bucket}/{FOLDER}"

    def close(self) -> None:
        for member in self.members:
            member.kill()


class Trouble:
    """kill -9, now of this and now of that; what was killed comes back soon."""

    def __init__(self, deployment: Deployment, chance: random.Random, every: float, kills: Counter[str]) -> None:
        self.deployment, self.random, self.every, self.kills = deployment, chance, every, kills
        self._next = time.monotonic() + every
        self._stores = {"source store": deployment.sites[0].minio, "store": deployment.sites[1].minio}
        self._down: dict[str, float] = {}

    def step(self) -> None:
        """Called often: one kill when its time has come, and what is due comes back."""
        now = time.monotonic()
        for name in [name for name, due in self._down.items() if due <= now]:
            del self._down[name]
            self._stores[name].start()
        for member in self.deployment.members:
            if not member.alive and member.due <= now:
                member.kill()
                member.start()
        if now >= self._next:
            self._next = now + self.random.uniform(0.5, 1.5) * self.every
            self._kill(self.random.choice(["spark", "store", "source store", "worker", "worker", "process"]))

    def _kill(self, what: str) -> None:
        if what in self._stores:
            if what not in self._down:
                self._stores[what].stop()
                self._down[what] = time.monotonic() + REST_SECONDS[what]
                self.kills[what] += 1
            return
        member = self.deployment.spark if what == "spark" else self.random.choice(self.deployment.workers)
        if what == "process" and member.kill_child(self.random):
            self.kills[f"one process of a {member.name}"] += 1
        elif member.alive:
            member.kill()
            member.due = time.monotonic() + REST_SECONDS.get(what, 0.5)
            self.kills[member.name] += 1

    def end(self) -> None:
        """Everything runs again."""
        for name in list(self._down):
            self._stores[name].start()
        for member in self.deployment.members:
            if not member.alive:
                member.kill()
                member.start()


def shown_at(site: Site) -> set[str]:
    """The metaranges of the commits that the mirror's branches point to; the empty one is not among them. Raises
    LakeMirrorError where its lakeFS does not answer."""
    lakefs = LakeFS(site.region.lakefs_url)
    try:
        commits = set(lakefs.branches(MIRROR).values())
        found = {str(lakefs.commit_record(MIRROR, commit)["meta_range_id"]) for commit in commits}
    except (LakeFSError, requests.RequestException) as error:
        if isinstance(error, LakeFSError) and error.status == NOT_THERE_YET:
            return set()
        raise LakeMirrorError(str(error)) from error
    return found - {""}


@contextmanager
def watched(watch: DestinationWatch, report: Report) -> Iterator[None]:
    """Somebody looks all the time; what else goes wrong with a look is a problem, too."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            try:
                watch.look()
                over.wait(LOOK_PAUSE)
            except LakeMirrorError:
                report.failed_looks += 1
                over.wait(1.0)
            except Exception as error:
                report.problems.append(f"the watcher failed: {error!r}")
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(120)


def first_copy(folder: Path, plan: Plan, tell: Callable[[str], None]) -> Report:
    """Fills a repository, mirrors it, makes trouble until all has arrived, and looks at what lies there then."""
    report, chance = Report(plan.seed, plan.objects), random.Random(plan.seed)
    with real_sites(folder) as sites, quick_server() as database:
        SourceLake(sites[0], chance).fill(plan.objects, plan.commits, tell)
        deployment = Deployment(folder, database, sites)
        deployment.found()
        watch = DestinationWatch(sites[1].store(), deployment.mirrored, lambda: shown_at(sites[1]))
        trouble = Trouble(deployment, chance, plan.kill_every, report.kills)
        began = time.monotonic()
        try:
            with watched(watch, report):
                arrived = _until_arrived(sites, trouble, 60 * plan.minutes, watch, tell)
                report.seconds = time.monotonic() - began
                trouble.end()
            watch.look()
        finally:
            deployment.close()
        report.problems += [] if arrived else ["not everything had arrived in time"]
        _conclude(report, watch, sites)
    return report


def _until_arrived(
    sites: tuple[Site, Site], trouble: Trouble, seconds: float, watch: DestinationWatch, tell: Callable[[str], None]
) -> bool:
    began, told = time.monotonic(), 0.0
    while (passed := time.monotonic() - began) < seconds:
        trouble.step()
        if _caught_up(sites):
            return True
        if passed - told >= 30:
            told = passed
            tell(f"{passed:.0f} s: {watch.looks} looks, {watch.whole} files whole, {trouble.kills.total()} kills")
        time.sleep(0.3)
    return False


def _caught_up(sites: tuple[Site, Site]) -> bool:
    with suppress(LakeFSError, requests.RequestException):
        source, mirror = (LakeFS(site.region.lakefs_url) for site in sites)
        return mirror.branches(MIRROR) == source.branches(NAME)
    return False


def _conclude(report: Report, watch: DestinationWatch, sites: tuple[Site, Site]) -> None:
    report.looks, report.whole = watch.looks, watch.whole
    report.problems += watch.problems
    theirs, ours = (_data(site.versions()) for site in sites)
    report.written = len(ours)
    report.twice = sum(number > 1 for number in ours.values())
    for key in sorted(theirs.keys() ^ ours.keys())[:5]:
        report.problems.append(f"{key} is at one side only")


def _data(versions: dict[str, int]) -> dict[str, Any]:
    return {key: number for key, number in versions.items() if key.startswith(f"{FOLDER}/data/")}
