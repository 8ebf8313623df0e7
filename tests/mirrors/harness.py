"""A deployment in one process: fake installations and stores, real tables, real loops, no queue and no Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from django.db.models.functions import Now

from adapters.disk_cache import LocalCache
from core.errors import Unreachable
from core.installations.places import AWS
from core.types import Page, ReplicationRule, RepositoryInfo
from db import clock
from deployment import config
from deployment.wiring import check_jobs, region_settings
from installations import refresh
from jobs import duties, kinds
from jobs.models import Duty
from mirroring.sweep.deletion_mark import forget_compared
from mirrors.models import Blocker, Mirror, MirrorCommit, MirrorDuty, Repository
from mirrors.queries.metaranges import remembered
from mirrors.transitions import duties as mirror_duties
from spark_jobs.check.job import check_batch
from tests.fakes import (
    BulkStandIn,
    EmptyPlace,
    EmptyRulePlace,
    FakeLakeFS,
    FakeMover,
    FakeRemover,
    FakeReplication,
    FakeStore,
    Lake,
    SweptStandIn,
    carried_or_taken,
    check_plainly,
    described_or_empty,
    replicate,
    takes_everything,
)

NAMESPACE = "s3://dst/lake"


class Deployment:
    """us-east-1 with the repository `lake`, eu-west-1 with its mirror `lake-eu`, and ap-southeast-2 with nothing."""

    def __init__(self, folder: Path) -> None:
        self.us, self.eu, self.ap = FakeLakeFS(), FakeLakeFS(), FakeLakeFS()
        self.added: dict[str, FakeLakeFS] = {}
        self.local_cache = LocalCache(folder, 64_000_000)
        self.us_store, self.eu_store, self.ap_store = FakeStore(), FakeStore(), FakeStore()
        self.lake = Lake(self.us, self.us_store)
        self.replication = FakeReplication(self.us_store)
        self.checked: list[tuple[str, list[str]]] = []
        self.check_error: Exception | None = None
        self.small_checks = False
        self.woken: set[tuple[str, int]] = set()
        self.make_mover: Callable[[FakeStore, FakeStore], FakeMover] = FakeMover
        self._mover = FakeMover(self.us_store, self.eu_store)
        self.remover = FakeRemover(self.eu_store)

    def lakefs(self, region: str) -> FakeLakeFS:
        """As the real one, which refuses an installation without a lakeFS."""
        if region in region_settings.names():
            region_settings.require_lakefs(region)
        known = {"us-east-1": self.us, "eu-west-1": self.eu, "ap-southeast-2": self.ap}
        return known.get(region) or self.added.setdefault(region, FakeLakeFS())

    def quick_lakefs(self, region: str) -> FakeLakeFS:
        """As the real one, which refuses a region that isn't configured."""
        region_settings.require_lakefs(region)
        return self.lakefs(region)

    def objects(self, region: str) -> FakeStore:
        return {"us-east-1": self.us_store, "eu-west-1": self.eu_store, "ap-southeast-2": self.ap_store}.get(
            region, self.us_store
        )

    def quick_export_store(self, region: str, uri: str) -> EmptyPlace:
        """Every bucket is there, and empty."""
        return EmptyPlace()

    def require_writable(self, region: str, namespace: str) -> None:
        """Its store takes what it gives."""
        if self.objects(region).down is not None:
            raise self.objects(region).down

    def mover(self, settings: Any) -> FakeMover:
        """What a mirror that brings its objects brings them with."""
        if (self._mover.source, self._mover.store) != (self.us_store, self.eu_store):
            self._mover = self.make_mover(self.us_store, self.eu_store)
        self._mover.stopped = False
        return self._mover

    def remover_of(self, region: str) -> FakeRemover:
        """What deletes objects of the mirror's store."""
        self.remover.store = self.eu_store
        return self.remover

    def source_of(self, settings: Any) -> BulkStandIn:
        return BulkStandIn(self.us_store)

    def run_check(self, mirror: Mirror, work: Any, on_rows: Any) -> None:
        self.checked.extend(work)
        if mirror.brings:
            self._run_bringing_check(mirror, work, on_rows)
            return
        rows = list(check_plainly(self.eu_store, mirror.storage_namespace, mirror.depth, work))
        half = len(rows) // 2
        on_rows(rows[:half])
        if self.check_error is not None:
            raise self.check_error
        on_rows(rows[half:])

    def _run_bringing_check(self, mirror: Mirror, work: Any, on_rows: Any) -> None:
        """The real one, which has no second implementation."""
        with mock.patch("spark_jobs.check.job.source_of", self.source_of):
            for batch in check_batch(work, check_jobs.settings_of(mirror), BulkStandIn(self.eu_store)):
                on_rows(batch.to_pylist())

    def check_small(self, mirror: Mirror, work: Any, on_bringing: Any) -> Any:
        """The real one, if the test wants it: others watch what is given to Spark."""
        return self._check_small(mirror, work, on_bringing) if self.small_checks else None

    _check_small = staticmethod(check_jobs.check_small)

    # What a test does

    def add_mirror(self, **settings: Any) -> Mirror:
        """The mirror's rows, as the API's verb writes them."""
        info = self.lake.repository.info
        source, _ = Repository.objects.get_or_create(
            region="us-east-1",
            name="lake",
            defaults={
                "storage_namespace": info.storage_namespace,
                "creation_date": info.creation_date,
                "default_branch": "main",
            },
        )
        place = {"region": "eu-west-1", "storage_namespace": NAMESPACE}
        mirror = Mirror.objects.create(name="lake-eu", source=source, **place, **settings)
        mirror_duties.ensure_mirror_duties(mirror)
        return mirror

    def arrive(self, *but: str) -> None:
        """Replicate everything; what is under the keys `but` is held back until the next call."""
        replicate(self.us_store, self.eu_store)
        self.eu_store.hidden = {f"{NAMESPACE}/{key}" for key in but}

    def work(self, rounds: int | None = None, *, look: bool = True) -> None:
        """Let every duty run, due or not, so many times over; with 2 or without a number once, and after that what has
        a reason to: it was woken, failed, asked for another turn, or waits for something."""
        for number in range(rounds or 3):
            if look:
                Blocker.objects.update(look_at=Now())
            for kind in ("manage", "sense", "copy", "validate", "promote"):
                for duty in Duty.objects.filter(kind=kind):
                    if (rounds or 0) > 2 or not number or self._has_a_reason(duty):
                        self.woken.discard((duty.kind, duty.subject))
                        self._run_now(duty.pk)

    def _has_a_reason(self, duty: Duty) -> bool:
        kind = kinds.kind_of(duty)
        early = kind is not None and duty.due_at < clock.now() + timedelta(seconds=kind.interval() * 0.8)
        waits = duty.kind == MirrorDuty.VALIDATE and Blocker.objects.filter(mirror=duty.subject).exists()
        return (duty.kind, duty.subject) in self.woken or duty.failures > 0 or early or waits

    def wake(self, kind: str, subject: int) -> None:
        """As the real one, whose wake-ups are sent when a test's transaction is through: never."""
        self.woken.add((kind, subject))
        self._wake(kind, subject)

    _wake = staticmethod(duties.wake)

    def run(self, duty_id: int, holder: str = "worker-1") -> str:
        self.woken -= set(Duty.objects.filter(pk=duty_id).values_list("kind", "subject"))
        return self._run_now(duty_id, holder)

    def _run_now(self, duty_id: int, holder: str = "worker-1") -> str:
        Duty.objects.filter(pk=duty_id).update(due_at=Now())
        return duties.run(duty_id, holder=holder)

    def head(self, branch: str = "main") -> str:
        """What the mirror's branch points at, at the destination; "" if there is none."""
        return self.eu.repositories["lake-eu"].branches.get(branch, "")

    def torn(self) -> list[str]:
        """Problems that a reader of any of the mirror's heads would meet, in the head itself or in its history."""
        found: list[str] = []
        for branch, head in self.eu.repositories["lake-eu"].branches.items():
            found += [f"{branch}: {problem}" for problem in self._torn_commit(head)]
        return found

    def _torn_commit(self, head: str) -> Iterator[str]:
        commits = self.eu.repositories["lake-eu"].commits
        ahead, seen = [head], set()
        while ahead:
            commit = ahead.pop()
            if commit in seen:
                continue
            seen.add(commit)
            if commit not in commits:
                yield f"the record of {commit[:8]} is not there"
                continue
            ahead.extend(commits[commit].parents)
            yield from self._torn_data(commit)

    def _torn_data(self, commit: str) -> Iterator[str]:
        metarange_id = self.lake.repository.commits[commit].metarange_id
        if not metarange_id:
            return
        for key in [f"_lakefs/{name}" for name in self.lake.files_of(commit)]:
            if self.eu_store.head(f"{NAMESPACE}/{key}") is None:
                yield f"{key} of {commit[:8]} is not there"
        for entry in self.lake.trees[commit].values():
            there = self.eu_store.objects.get(f"{NAMESPACE}/{entry.address}")
            if f"{NAMESPACE}/{entry.address}" in self.eu_store.hidden or there is None or len(there) != entry.size:
                yield f"{entry.path!r} of {commit[:8]} is not there"


class OneByOne:
    """In place of threads: each call is over when it was sent, so that a seed always gives the same run."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *raised: object) -> None:
        """Nothing is on its way."""

    def map(self, call: Callable[..., Any], *lists: Iterable[Any]) -> Iterator[Any]:
        return map(call, *lists)

    def submit(self, call: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*args, **options))
        except BaseException as error:
            done.set_exception(error)
        return done

    def shutdown(self, *, wait: bool = True) -> None:
        """Nothing is on its way."""


@contextmanager
def one_by_one() -> Iterator[None]:
    """Calls side by side become calls one after the other."""
    with (
        mock.patch("jobs.concurrent_calls.ThreadPoolExecutor", OneByOne),
        mock.patch("spark_jobs.check.job.ThreadPoolExecutor", OneByOne),
        mock.patch("spark_jobs.check.lanes.ThreadPoolExecutor", OneByOne),
        mock.patch("mirroring.native_replication.ThreadPoolExecutor", OneByOne),
        mock.patch("mirroring.validate.bring_asked.ThreadPoolExecutor", OneByOne),
    ):
        yield


def replicate_in_order(lm: Deployment) -> None:
    """A commit at the source, and buckets that are set up as replication wants them: no check of a plan fails."""
    lm.lake.commit()
    lm.us_store.bucket_versioning["src"] = lm.eu_store.bucket_versioning["dst"] = "Enabled"
    lm.us_store.rules["src"] = [ReplicationRule("to-eu", True, "", "dst")]


@contextmanager
def empty_places_of_rules() -> Iterator[None]:
    """Every place that a replication rule may have is there, empty, and takes what is tried there."""
    with (
        mock.patch("deployment.wiring.replication_jobs.quick_place_of", EmptyRulePlace),
        mock.patch("replication.preflight.checks.probe", takes_everything),
        mock.patch("replication.preflight.travelling.probe_travel", carried_or_taken),
        mock.patch("deployment.wiring.replication_jobs.describer_of", described_or_empty),
    ):
        yield


@contextmanager
def deployment() -> Iterator[Deployment]:
    """A deployment with the wiring pointed at it. An address is one place in all regions, as where all are AWS."""
    remembered().clear()
    forget_compared()
    with tempfile.TemporaryDirectory() as folder:
        made = Deployment(Path(folder))
        with (
            mock.patch("deployment.wiring.region_settings.store_at", lambda endpoint: AWS),
            mock.patch("deployment.wiring.clients.lakefs", made.lakefs),
            mock.patch("deployment.wiring.clients.objects", made.objects),
            mock.patch("deployment.wiring.clients.quick_lakefs", made.quick_lakefs),
            mock.patch("deployment.wiring.clients.quick_objects", made.objects),
            mock.patch("deployment.wiring.clients.local_cache", lambda: made.local_cache),
            mock.patch("deployment.wiring.clients.bulk_objects", lambda region: BulkStandIn(made.objects(region))),
            mock.patch("deployment.wiring.clients.require_writable", made.require_writable),
            mock.patch("deployment.wiring.clients.replication", lambda region: made.replication),
            mock.patch("deployment.wiring.clients.quick_export_store", made.quick_export_store),
            empty_places_of_rules(),
            mock.patch("deployment.wiring.sweep_jobs.store", lambda region: SweptStandIn(made.objects(region))),
            mock.patch("deployment.wiring.sweep_jobs.remover", made.remover_of),
            mock.patch("deployment.wiring.check_jobs.run_check", made.run_check),
            mock.patch("deployment.wiring.check_jobs.check_small", made.check_small),
            mock.patch("spark_jobs.check.job.mover_of", made.mover),
            mock.patch("jobs.duties.async_task"),
            mock.patch("jobs.duties.wake", made.wake),
        ):
            try:
                yield made
            finally:
                forget_installations()


def forget_installations() -> None:
    """This process knows those of its configuration, and no others."""
    config.put_together(None)
    refresh._last_read = None


@contextmanager
def told_from_cache(lakefs: FakeLakeFS, answer: Callable[[str], RepositoryInfo]) -> Iterator[None]:
    """Our key may not list repositories there: who asks for one is told what a server's cache knows of it."""
    unlisted = mock.patch.object(lakefs, "list_repositories", return_value=Page([]))
    with unlisted, mock.patch.object(lakefs, "get_repository", answer):
        yield


@contextmanager
def untold(lakefs: FakeLakeFS) -> Iterator[None]:
    """Nobody is told whose repositories there are."""
    away = Unreachable("no answer")
    unlisted = mock.patch.object(lakefs, "list_repositories", side_effect=away)
    with unlisted, mock.patch.object(lakefs, "get_repository", side_effect=away):
        yield


def age_roots(**ago: float) -> None:
    """The roots that share no commit with what is known were seen so long ago."""
    for repository in Repository.objects.exclude(unrelated_roots={}):
        since = (clock.now() - timedelta(**ago)).isoformat()
        Repository.objects.filter(pk=repository.pk).update(
            unrelated_roots=dict.fromkeys(repository.unrelated_roots, since)
        )


def state_of(commit: str) -> MirrorCommit:
    """What the mirror knows of a commit."""
    return MirrorCommit.objects.get(commit__sha=commit)
