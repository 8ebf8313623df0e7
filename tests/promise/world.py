"""A random life of a mirror: its source, its destination, operators and workers, and a reader who knows everything.

The loops and tables are the real ones; installations and stores are stand-ins. A worker may end before or after any
call and any statement; calls may fail, before or after their work; somebody may act in the middle of a round.
"""

from __future__ import annotations

import random
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from core.errors import Conflict, Invalid, LakeMirrorError, NotFound, RemoteFailure, Throttled, Unreachable
from core.mirroring.branch_selection import OnUnselect
from core.mirroring.object_check import Depth
from core.types import RepositoryInfo
from jobs.models import Duty
from mirrors.models import (
    Blocker,
    Coverage,
    MetarangeCoverage,
    Mirror,
    Repository,
    SourceBranch,
    SourceTag,
    Validation,
    Waiver,
)
from mirrors.queries.certificates import certificate_uri
from mirrors.queries.metaranges import remembered
from mirrors.services.mirrors import mirror_create, mirror_delete
from mirrors.services.priority import mirror_prioritise
from mirrors.services.rebuild import Result, rebuild
from mirrors.services.settings import mirror_update
from mirrors.services.validations import validation_ask
from mirrors.services.waivers import waiver_give, waiver_withdraw
from spark_jobs.check import job
from spark_jobs.check.job import check_batch
from spark_jobs.check.ranges import KeptRanges
from spark_jobs.check.settings import Bring, CheckSettings, StoreLocation
from tests.fakes import BulkStandIn, FakeRepository, id_of
from tests.mirrors.harness import NAMESPACE, Deployment, age_roots, told_from_cache
from tests.promise.brings import bring_all, bring_some, replace_some, stop_bringing
from tests.promise.carrier import Carrier
from tests.promise.holds import ask_for_merge, set_policy
from tests.promise.hours import HOURS
from tests.promise.looks import ERRORS, Looks
from tests.promise.reader import Reader
from tests.promise.source import Source
from tests.promise.stores import WatchedStore
from tests.promise.sweeps import WatchedRemover, follow, sweep
from tests.promise.troubles import Troubles
from tests.promise.truth import Truth
from tests.promise.workers import Worker

KINDS = ("manage", "sense", "copy", "validate", "promote")
KEPT_ENTRIES = 10_000
ROUNDS = 12
"""Within so many rounds everything that is whole has to be reached once the faults have ended."""
WINDOW = 2
"""So many of the newest records are asked for where some may be lost: as with thousands of commits, not all of them."""
FORCED = {"create_branch", "hard_reset_branch", "create_tag", "delete_branch", "delete_tag", "delete_repository"}
LONG_AGO = "2020-01-01T00:00:00Z"
FAULTS: tuple[Callable[[], LakeMirrorError], ...] = (
    lambda: Unreachable("no answer"),
    lambda: RemoteFailure("500"),
    lambda: Throttled("429"),
)
_OF_TRANSACTIONS = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK")


class Crash(BaseException):
    """kill -9, as far as the code can tell: nothing after it runs."""


class World:
    """One life; the same seed and the same steps give the same one. `step` carries out an action by its name."""

    def __init__(self, lm: Deployment, owner: Any, seed: int) -> None:
        self.lm, self.owner, self.random = lm, owner, random.Random(seed)
        chance = self.random
        lm.us_store, lm.eu_store = WatchedStore(), WatchedStore()
        lm.make_mover = lambda source, store: Carrier(source, store, chance)
        lm.us_store.objects, lm.lake.store = dict(lm.lake.store.objects), lm.us_store
        lm.small_checks = True
        self.truth = Truth(lm.lake, lm.us_store, lm.eu_store)
        self.source = Source(lm.lake, chance)
        self.troubles = Troubles(chance, self.truth, self.source)
        self.looks = Looks(lm.us, chance)
        self.reader = Reader(self.truth, self.source, self.looks, lm.eu)
        lm.remover = WatchedRemover(self)
        self.deleted: list[str] = []
        """The keys of what sweeps have deleted, in their order."""
        self.refs_at_start: set[str] = set()
        """Where the source's refs stood when the last round of a duty began."""
        self.worker, self.steps = Worker(), list[tuple[str, int]]()
        self.refused: dict[str, LakeMirrorError] = {}
        """Commits whose records the destination does not take."""
        self.snapshots: list[FakeRepository] = []
        self._arm()
        history = chance.choice(["full", "full", "full", "head"])
        self._create({"history": history, "tags": chance.random() < 0.6})

    @property
    def problems(self) -> list[str]:
        return [str(problem) for problem in self.reader.problems]

    @property
    def there(self) -> FakeRepository | None:
        return self.lm.eu.repositories.get("lake-eu")

    # --- what goes wrong with calls, and who sees them ----------------------------------------------------------------

    def _arm(self) -> None:
        for lakefs in (self.lm.us, self.lm.eu):
            lakefs._call = self._before_call(lakefs._call, lakefs is self.lm.eu)  # type: ignore[method-assign]
            lakefs._answer = self._after_call  # type: ignore[method-assign]
        self.lm.us_store.called = self.lm.eu_store.called = lambda when: self._point()
        self.lm.eu_store.looked = self._look
        self.lm.eu_store.written = lambda uri, data: self.reader.on_write(uri, data)
        self.lm.eu_store.changed = self.truth.note_change
        move, tag, put = self.lm.eu._move, self.lm.eu.create_tag, self.lm.eu.put_commit_record

        def put_commit_record(repository: str, commit: Any) -> Any:
            if commit.id in self.refused:
                raise self.refused[commit.id]
            return put(repository, commit)

        self.lm.eu.put_commit_record = put_commit_record  # type: ignore[method-assign]

        def moved(there: FakeRepository, branch: str, commit: str) -> None:
            if commit in there.commits:
                with self._unseen():
                    self.reader.on_move(there, branch, there.branches.get(branch, ""), commit)
            move(there, branch, commit)

        def tagged(repository: str, name: str, commit: str) -> None:
            there = self.lm.eu.repositories[repository]
            if commit in there.commits and name not in {*there.tags, *there.branches}:
                with self._unseen():
                    self.reader.on_move(there, name, "", commit, tag=True)
            tag(repository, name, commit)

        delete_branch, delete_tag = self.lm.eu.delete_branch, self.lm.eu.delete_tag

        def branch_deleted(repository: str, name: str) -> None:
            with self._unseen():
                self.reader.on_delete(name, tag=False, certified=self._certified(name))
            delete_branch(repository, name)

        def tag_deleted(repository: str, name: str) -> None:
            with self._unseen():
                self.reader.on_delete(name, tag=True)
            delete_tag(repository, name)

        self.lm.eu.delete_branch = branch_deleted  # type: ignore[method-assign]
        self.lm.eu.delete_tag = tag_deleted  # type: ignore[method-assign]
        self.lm.eu._move = moved  # type: ignore[method-assign]
        self.lm.eu.create_tag = tagged  # type: ignore[method-assign]

    def _before_call(self, inner: Callable[[str], None], here: bool) -> Callable[[str], None]:
        def call(name: str) -> None:
            if name not in FORCED:
                self._meddle_now()
            self._point()
            inner(name)
            if here and name == "list_branches" and self.worker.at_work:
                self.reader.lost_records.clear()

        return call

    def _after_call(self, name: str) -> None:
        worker = self.worker
        if name in FORCED and worker.at_work and worker.fatal and self.random.random() < worker.fatal:
            worker.dead = True
        self._point(weather=5)

    def _look(self, uri: str, read: bool) -> None:
        if self.worker.at_work:
            self.truth.note_look(uri, read)

    def _point(self, weather: float = 1) -> None:
        """Here a worker may end, or a call get no answer."""
        worker = self.worker
        if not worker.at_work:
            return
        self._end_perhaps()
        if worker.weather and self.random.random() < worker.weather * weather:
            raise self.random.choice(FAULTS)()

    def _end_perhaps(self) -> None:
        worker = self.worker
        if worker.left:
            worker.left -= 1
            worker.dead = worker.dead or not worker.left
        if worker.dead:
            raise Crash

    def _statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """A worker may end before or after any statement, but for those that begin and end transactions: of these, what
        is not done is undone."""
        if not self.worker.at_work or sql.startswith(_OF_TRANSACTIONS):
            return execute(sql, params, many, context)
        self._end_perhaps()
        result = execute(sql, params, many, context)
        self._end_perhaps()
        return result

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        """The reader's own looks and statements are no worker's."""
        was, self.worker = self.worker, Worker()
        try:
            yield
        finally:
            self.worker = was

    def _meddle_now(self) -> None:
        """Somebody acts in the middle of a round."""
        worker = self.worker
        if not worker.at_work or self.random.random() >= worker.meddling or connection.in_atomic_block:
            return
        others = [
            self.pause,
            self.set_depth,
            self.give_waiver,
            self.waive_object,
            self.withdraw_waiver,
            self.source.commit,
            self.source.reset,
            self.validate,
        ]
        others += [self.troubles.arrive, *[lambda: self._lose_and_find(but=worker.at_work)] * 5]
        with self._unseen():
            self.random.choice(others)()
            self._note_source()

    def _lose_and_find(self, but: str) -> None:
        """Something is lost, and another worker finds what is missing or wrong now."""
        self.troubles.lose()
        self._age()
        if but != "validate":
            self._run_all("validate")

    def run_check(self, mirror: Mirror, work: Any, on_rows: Any) -> None:
        """The real check, range by range, as Spark's tasks would: what one can't do doesn't hold up the others."""
        settings = CheckSettings(
            namespace=mirror.storage_namespace,
            depth=mirror.depth,
            imported=mirror.imported,
            source=StoreLocation("s3://src/lake"),
            sample=mirror.content_sample,
            threads=1,
            bring=Bring(0.0, workers=1) if mirror.brings else None,
        )
        failed: LakeMirrorError | None = None
        for one in work:
            try:
                with mock.patch("spark_jobs.check.job.source_of", lambda settings: BulkStandIn(self.lm.us_store)):
                    batches = list(check_batch([one], settings, BulkStandIn(self.lm.eu_store)))  # type: ignore[arg-type]
            except LakeMirrorError as error:
                failed = failed or error
                continue
            for batch in batches:
                on_rows(batch.to_pylist())
        if failed is not None:
            raise failed

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, name: str, seed: int) -> None:
        """One action, and a look at what came of it; all that is left to chance in it follows from `seed`."""
        self.steps.append((name, seed))
        self.random.seed(seed)
        ACTIONS[name].act(self)
        self._note_source()
        self.truth.note_change()
        if not ACTIONS[name].outside:
            self.look()

    def look(self) -> None:
        """The page is read, and somebody asks for a commit."""
        heads = sorted(self.source.heads.values())
        known = list(self.source.lake.repository.commits)
        self.reader.read_along(self.random.choice([self.random.choice(heads), self.random.choice(known)]))

    def _note_source(self) -> None:
        self.source.note_heads()
        self.truth.note_originals()

    # --- workers ------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """A worker takes some duties. It may end in the middle, calls may fail, and somebody may act meanwhile."""
        left = self.random.randrange(1, 120) if self.random.random() < 0.25 else 0
        weather, meddling = self.random.choice([(0.0, 0.0), (0.0, 0.2), (0.01, 0.0), (0.01, 0.2)])
        few = self.random.sample(KINDS, k=self.random.choice([1, 1, 2]))
        fatal = self.random.choice([0.0, 0.0, 0.5])
        self._run_some(self.random.choice([few, list(KINDS[1:])]), Worker(left, weather, meddling, fatal))

    def round(self) -> None:
        """All duties in their order, and nothing goes wrong."""
        self._run_some(list(KINDS))

    def _run_some(self, kinds: list[str], worker: Worker | None = None, *, at_once: bool = False) -> None:
        """As if every wait were over, but `at_once` that between two looks that miss a branch, which lasts longer than
        any cache."""
        Blocker.objects.update(look_at=Now())
        for model in () if at_once else (SourceBranch, SourceTag):
            model.objects.filter(missing_since__isnull=False).update(missing_since=LONG_AGO)
        self.worker = worker or Worker()
        try:
            for kind in kinds:
                self._run_all(kind)
        finally:
            self.worker = Worker()

    def _run_all(self, kind: str) -> None:
        for duty in list(Duty.objects.filter(kind=kind).values_list("pk", flat=True)):
            self._run(duty, kind)

    def _run(self, duty: int, kind: str) -> None:
        self.worker.at_work = kind
        self.refs_at_start = {*self.source.heads.values(), *self.source.tags.values()}
        if kind == "sense":  # others may run within it
            self.looks.begins()
        looked_at = Repository.objects.values_list("looked_at", flat=True).first()
        try:
            with connection.execute_wrapper(self._statement), mock.patch("jobs.duties.log.exception", self._broke):
                self.lm.run(duty, holder="w1")
            if kind == "sense" and looked_at != Repository.objects.values_list("looked_at", flat=True).first():
                self._note_look(duty)
        except Crash:
            self.forget()
            self.worker = Worker(0, self.worker.weather, self.worker.meddling)
            Duty.objects.filter(pk=duty).update(until=None, failures=F("failures"))
        finally:
            self.worker.at_work = ""

    def forget(self) -> None:
        """The workers begin anew, and remember nothing that they have read; now and then on another machine."""
        remembered().clear()
        job._KEPT = KeptRanges(KEPT_ENTRIES)
        if self.random.random() < 0.5:
            shutil.rmtree(self.lm.local_cache.folder, ignore_errors=True)

    def _note_look(self, duty: int) -> None:
        self.looks.ended("list_branches")
        if " tags, " in Duty.objects.get(pk=duty).outcome:
            self.looks.ended("list_tags")

    def _broke(self, *_: Any) -> None:
        """The engine met an error that it did not expect."""
        error = sys.exc_info()[1]
        frames = traceback.extract_tb(error.__traceback__ if error else None)
        ours = [f"{frame.name}:{frame.lineno}" for frame in frames if "/mirrors/" in frame.filename]
        self.reader.tell("broke", f"{type(error).__name__}: {error} in {' > '.join(ours[-4:])}")

    def refuse_records(self) -> None:
        """The destination does not take the records of some commits: 500, silence, 403."""
        commits = sorted(self.lm.us.repositories["lake"].commits)
        for commit in self.random.sample(commits, min(len(commits), self.random.choice([1, 2, 8]))):
            self.refused[commit] = ERRORS[int(commit[:8], 16) % len(ERRORS)]

    # --- operators ----------------------------------------------------------------------------------------------------

    def _mirror(self) -> Mirror | None:
        return Mirror.objects.select_related("source").filter(state=Mirror.State.ACTIVE).first()

    def _update(self, **changes: Any) -> None:
        if mirror := self._mirror():
            on_unselect = self.random.choice(list(OnUnselect)) if "selected" in changes else OnUnselect.KEEP
            with suppress(NotFound, Invalid):
                mirror_update(actor=self.owner, mirror=mirror, changes=changes, on_unselect=on_unselect)

    def pause(self) -> None:
        """Or resume."""
        if mirror := self._mirror():
            self._update(paused=not mirror.paused and self.random.random() < 0.5)

    def set_depth(self) -> None:
        """Any depth. What is found at the mirror's own is forgiven when it looks less deep."""
        self.truth.read_wrong.clear()
        self._update(depth=self.random.choice(list(Depth)).value)

    def set_replication(self) -> None:
        """The stores copy objects, or we do; for a while nobody may."""
        who = self.random.choice(["managed", "managed", "native"])
        self._update(object_replication=who, copying_paused=self.random.random() < 0.2)

    def set_imported(self) -> None:
        """What becomes of imported objects; there are none, but what was proven otherwise counts anew."""
        self._update(imported=self.random.choice(["block", "allow"]))

    def set_tags(self) -> None:
        """Whether tags are followed."""
        if mirror := self._mirror():
            self._update(tags=not mirror.tags)

    def leave_rotten(self) -> None:
        """Of a commit that has not arrived yet something rots, and somebody has it read; then its branch is left out,
        and the default branch takes over some of it."""
        mirror, others = self._mirror(), sorted(self.source.heads.keys() - {"main"})
        if mirror is None or not others:
            return
        name = self.random.choice(others)
        self._update(selected={"include": ["*"], "exclude": []}, paused=False)
        commit = self.source.lake.commit(name, {f"{name}-{n}": self.random.randbytes(9) for n in range(2)})
        self._note_source()
        late, rotten = self.random.sample(self._new_of(commit), 2)
        self.troubles.arrive(but=late)
        self.troubles.rot_of(rotten)
        self.round()
        with suppress(NotFound, Conflict):
            validation_ask(actor=self.owner, mirror=mirror, depth=Depth.CONTENT, commit=commit)
        self._run_all("validate")
        self.look()
        self._update(selected={"include": ["*"], "exclude": [name]})
        self.round()
        self.source.pick(commit, "main")
        self._note_source()
        self.troubles.arrive()

    def _new_of(self, commit: str) -> list[str]:
        """The keys of the objects that a commit names and its first parent doesn't."""
        tree, before = (self.source.lake.trees[one] for one in (commit, self.truth.records[commit].parents[0]))
        return [entry.address for path, entry in sorted(tree.items()) if before.get(path) != entry]

    def select(self) -> None:
        """All branches, or all but some."""
        names = self.random.sample(self.source.names, k=self.random.choice([0, 0, 1, 3]))
        self._update(selected={"include": ["*"], "exclude": sorted(names)})

    def give_waiver(self) -> None:
        """For a commit that lacks something."""
        mirror = self._mirror()
        rows = mirror.commits.filter(data__in=["waiting", "gone"], waiver=None) if mirror else Mirror.objects.none()
        shas = list(rows.values_list("commit__sha", flat=True)) if mirror else []
        if mirror and shas:
            with suppress(Conflict, NotFound):
                waiver_give(actor=self.owner, mirror=mirror, commits=[self.random.choice(shas)], reason="never there")

    def waive_object(self) -> None:
        """Something that is not there, for all commits that hold it, now or later."""
        mirror = self._mirror()
        rows = mirror.blockers.filter(kind=Blocker.Kind.OBJECT).order_by("address") if mirror else None
        addresses = list(rows.values_list("address", flat=True).distinct()) if rows is not None else []
        if mirror and addresses:
            with suppress(Conflict, NotFound):
                waiver_give(actor=self.owner, mirror=mirror, objects=[self.random.choice(addresses)], reason="lost")

    def withdraw_waiver(self) -> None:
        """Any."""
        waivers = list(Waiver.objects.select_related("mirror__source").order_by("pk"))
        if waivers:
            waiver_withdraw(actor=self.owner, waiver=self.random.choice(waivers))

    def validate(self) -> None:
        """Somebody wants what a commit, a branch or all branches name looked at again, to any depth."""
        mirror = self._mirror()
        if mirror is None:
            return
        heads = list(mirror.branches.filter(stray=False).exclude(head="").values_list("name", "head"))
        shas = list(mirror.commits.values_list("commit__sha", flat=True))
        choices: list[dict[str, Any]] = [{}]
        choices += [{"branch": self.random.choice(heads)[0]}] if heads else []
        choices += [{"commit": self.random.choice(shas)}] if shas else []
        with suppress(NotFound, Conflict):
            depth = self.random.choice([None, *Depth])
            validation_ask(actor=self.owner, mirror=mirror, depth=depth, **self.random.choice(choices))

    def prioritise(self) -> None:
        """Somebody wants a commit of any age before all else."""
        mirror = self._mirror()
        shas = list(mirror.commits.values_list("commit__sha", flat=True)) if mirror else []
        if mirror and shas:
            with suppress(NotFound):
                mirror_prioritise(actor=self.owner, mirror=mirror, commit=self.random.choice(shas))

    def age(self) -> None:
        """A week passes for some of what was checked."""
        self._age(share=0.5)

    def _age(self, share: float = 1.0) -> None:
        for rows in (Coverage.objects.filter(state="complete"), MetarangeCoverage.objects.filter(state="complete")):
            keys = list(rows.order_by("pk").values_list("pk", flat=True))
            chosen = [key for key in keys if self.random.random() < share]
            rows.filter(pk__in=chosen).update(verify_at=LONG_AGO)
        Coverage.objects.filter(state="waiting").update(checked_at=LONG_AGO)

    def check_all(self) -> None:
        """A week passes for everything, and the workers do their work: then what heads lack is known."""
        if self._mirror() is None:
            return
        self._age()
        for _ in range(4):
            self.round()
        for _ in range(2):  # nothing missing is looked for yet: what it keeps from its turn has one now
            self._run_all("validate")
        for told in self.reader.unfound():
            self.reader.tell("loss-not-found", told)

    # --- what becomes of the destination's lakeFS and of the books ----------------------------------------------------

    def snapshot(self) -> None:
        """The destination's lakeFS is backed up, once it has its default branch: without, it counts as one that is just
        being deleted."""
        if self.there is not None and "main" in self.there.branches:
            self.snapshots = [*self.snapshots[-2:], deepcopy(self.there)]

    def restore(self) -> None:
        """It comes back from a backup: moves and records since then are gone."""
        mirror, there = self._mirror(), self.there
        same = [one for one in self.snapshots if there and one.info == there.info]
        if mirror is None or there is None or not same:
            return
        then = deepcopy(self.random.choice(same))
        self.reader.lost_records |= there.commits.keys() - then.commits.keys()
        self.reader.strays = {n: c for n, c in self.reader.strays.items() if then.branches.get(n) == c}
        self.lm.eu.repositories["lake-eu"] = then

    def stray(self) -> None:
        """Somebody makes a branch at the destination, of a name that is free at both sides."""
        there, mirror = self.there, self._mirror()
        if there is None or mirror is None or not there.commits:
            return
        name = self.random.choice([*self.source.names, "theirs"])
        taken = {*there.branches, *there.tags, *self.source.heads, *self.reader.strays}
        taken.update(mirror.source.branches.filter(gone_at=None).values_list("name", flat=True))
        taken.update(mirror.branches.values_list("name", flat=True))
        if name in taken:
            return
        commit = self.random.choice(list(there.commits))
        there.branches[name] = commit
        self.reader.strays[name] = commit
        self.reader.blamable.add((name, commit))

    def unstray(self) -> None:
        """Somebody deletes a branch of theirs at the destination; they may make it anew later, at any commit."""
        there = self.there
        if there is not None and self.reader.strays:
            name = self.random.choice(sorted(self.reader.strays))
            del self.reader.strays[name], there.branches[name]

    def meddle(self) -> None:
        """Somebody moves one of the mirror's branches by force."""
        there = self.there
        ours = sorted(there.branches.keys() - self.reader.strays.keys()) if there else []
        if there is None or not ours:
            return
        name, commit = self.random.choice(ours), self.random.choice(list(there.commits))
        there.branches[name] = commit
        self.reader.blamable.add((name, commit))

    def make_anew(self) -> None:
        """Somebody deletes the mirror's repository with all of its files, and makes it anew."""
        if self.there is None or self._mirror() is None:
            return
        old = self.lm.eu.repositories.pop("lake-eu")
        self.troubles.wipe()
        made = self.lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
        made.info = replace(made.info, creation_date=old.info.creation_date + 10)
        self._begin_again()
        self.reader.strays.clear()
        self.reader.wiped = True
        with self._still_told_of(old) if self.random.random() < 0.5 else nullcontext():
            for _ in range(2):
                self._run_some(self.random.choice([["manage"], list(KINDS)]))
        for _ in range(2):
            self._run_some(["manage"])
        self.reader.wiped = False

    @contextmanager
    def _still_told_of(self, old: FakeRepository) -> Iterator[None]:
        """A server remembers a repository that is not there any more: calls by its name go there, and find it empty."""
        old.branches.clear()
        old.tags.clear()
        old.commits.clear()
        plain = self.lm.eu._repository
        with mock.patch.object(self.lm.eu, "_repository", lambda name: old if name == "lake-eu" else plain(name)):
            yield

    def lose_database(self) -> None:
        """Every row goes, and what the destination says of itself makes them again."""
        there = self.there
        if there is None or self._mirror() is None or not self._has_descriptor():
            return
        unproven = {name for name, head in there.branches.items() if self._certified(name) != head}
        self.reader.unclaimed |= unproven | there.tags.keys()
        self._drop_rows()
        lines = list(rebuild(actor="system:tests", regions=["us-east-1", "eu-west-1"]))
        if [line.name for line in lines if line.result is Result.MADE] != ["lake-eu"]:
            self.reader.tell("not-rebuilt", str(lines))

    def _has_descriptor(self) -> bool:
        return f"{NAMESPACE}/_lakemirror/mirror.json" in self.lm.eu_store.objects

    def _certified(self, branch: str) -> str:
        data = self.lm.eu_store.objects.get(certificate_uri(NAMESPACE, branch), b"")
        return next((sha for sha in self.truth.records if f'"commit": "{sha}"'.encode() in data), "")

    def _drop_rows(self) -> None:
        for model in (Duty, Mirror, Repository):
            model.objects.all().delete()
        self._begin_again()

    def _begin_again(self) -> None:
        """What was ever proven counts no more."""
        self.truth.forget()
        self.reader.lost_records.clear()
        self.snapshots.clear()

    def remake(self) -> None:
        """The mirror is deleted, and one of its name is made over the same namespace."""
        mirror = self._mirror()
        if mirror is None:
            return
        history, tags = mirror.history, mirror.tags
        mirror_delete(actor=self.owner, mirror=mirror)
        for _ in range(3):
            self._run_some(["manage"])
        if not Mirror.objects.exists():
            self._begin_again()
            self.reader.strays.clear()
            self._create({"history": history, "tags": tags})

    def adopt(self) -> None:
        """The books are lost, and an operator takes the repository over as one that was made by hand."""
        there = self.there
        if there is None or self._mirror() is None or self.reader.strays:
            return
        if any(head not in self.truth.records for head in there.branches.values()) or "main" not in there.branches:
            return
        self.reader.unclaimed |= there.branches.keys() | there.tags.keys()
        self._drop_rows()
        self._create({"tags": self.random.random() < 0.5}, adopt=True)

    def _create(self, settings: dict[str, Any], *, adopt: bool = False) -> None:
        mirror_create(
            actor=self.owner,
            source_repository="lake",
            name="lake-eu",
            region="eu-west-1",
            storage_namespace=NAMESPACE,
            adopt=adopt,
            settings=settings,
        )
        # Long ago: a repository that a broken-off creation leaves is no ghost of one that was just deleted.
        Mirror.objects.update(created_at=LONG_AGO)

    def recreate_source(self) -> None:
        """For a while a new repository stands at the source under the name of the old one. It may happen within a look,
        and if our key may not list repositories, a server's cache may tell of the old one."""
        mirror = self._mirror()
        if mirror is None or mirror.source.frozen_reason:
            return
        if not mirror.source.branches.exclude(head="", unread_head="").exists():
            return  # nothing is known of the old one: what was unread is forgotten when a source freezes
        repositories, old = self.lm.us.repositories, self.lm.us.repositories["lake"]
        listed, pages, within = self.random.random() < 0.5, self.looks.pages, self.random.random() < 0.3
        self.looks.pages = self.random.choice([0, pages])
        # Where nothing but a cache tells of the source, and main can't be read, nobody could know whose tags these are.
        made = self._made_anew(old, tags=listed or self.looks.pages is None)
        asked, list_tags, cached = self.lm.us.get_repository, self.lm.us.list_tags, self.random.choice([0, 1, 2, 4])

        def from_cache(name: str) -> RepositoryInfo:
            nonlocal cached
            cached -= 1
            return replace(asked(name), creation_date=old.info.creation_date) if cached >= 0 else asked(name)

        def tags_of_the_new(*which: Any, **page: Any) -> Any:
            repositories["lake"] = made
            return list_tags(*which, **page)

        repositories["lake"] = old if within else made
        with nullcontext() if listed else told_from_cache(self.lm.us, from_cache):
            with mock.patch.object(self.lm.us, "list_tags", tags_of_the_new):
                self._run_some(["sense"], at_once=True)
            repositories["lake"] = made
            self.looks.pages = pages
            self._run_some(["sense", "copy", "validate", "promote"], at_once=True)
            cached = 0  # some seconds later
            age_roots(days=1)
            self._run_some(["sense", "copy", "validate", "promote"])
        repositories["lake"] = old
        Repository.objects.update(frozen_reason="")  # an operator's word: it is the old one again

    def _made_anew(self, old: FakeRepository, *, tags: bool) -> FakeRepository:
        """With a root of its own on main. Somebody may have pushed branches of the old one into it, and `tags`."""
        root = replace(next(iter(old.commits.values())), message="Repository created anew", parents=())
        root = replace(root, id=id_of(root))
        made = FakeRepository(replace(old.info, creation_date=old.info.creation_date + 100))
        if self.random.random() < 0.4:
            made.commits.update(old.commits)
            pushed = self.random.sample(sorted(old.branches), self.random.randint(1, len(old.branches)))
            made.branches.update({name: old.branches[name] for name in pushed})
            if tags:
                made.tags.update({f"t{n}": self.random.choice(sorted(old.commits)) for n in range(3)})
        made.commits[root.id], made.branches["main"] = root, root.id
        return made

    # --- the end ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """What was lost returns, and the faults end: everything that is whole is reached, and the page says so. As long
        as the destination does not take a record, that is what is not built on its commit."""
        self.troubles.mend()
        self.looks.mend()
        for waiver in Waiver.objects.select_related("mirror__source"):
            waiver_withdraw(actor=self.owner, waiver=waiver)
        self._update(paused=False)
        self._update(selected={"include": ["*"], "exclude": []})
        self._refuse_one_branchs()
        if self.refused:
            self._rounds()
            for told in self.reader.held_up(self.refused):
                self.reader.tell("held-up", told)
            self.refused.clear()
        self._rounds()
        for told in self.reader.unreached():
            self.reader.tell("never-reached", told)
        for row in Validation.objects.open():
            self.reader.tell("never-reached", f"the check on demand {row.pk} is {row.state}: {row.error}")
        for go in HOURS:
            go(self)

    def _refuse_one_branchs(self) -> None:
        """The one record that is not taken now is of a commit that not all branches are built on."""
        self.refused.clear()
        below = [self.truth.ancestry(head) for _, head in sorted(self.source.heads.items())]
        some = sorted(set[str]().union(*below) - below[0].intersection(*below))
        if some:
            self.refused[self.random.choice(some)] = self.random.choice(ERRORS)

    def _rounds(self) -> None:
        for _ in range(ROUNDS):
            self.round()
            age_roots(minutes=1)


@dataclass(frozen=True, slots=True)
class Action:
    """Something that may happen; `weight`: how often, beside the others. `outside`: the books are as they were."""

    weight: int
    act: Callable[[World], None]
    outside: bool = False


ACTIONS: dict[str, Action] = {
    "commit": Action(120, lambda world: world.source.commit(), outside=True),
    "commit_many": Action(20, lambda world: world.source.commit_many(), outside=True),
    "merge": Action(40, lambda world: world.source.merge(), outside=True),
    "revert": Action(40, lambda world: world.source.revert(), outside=True),
    "reset": Action(30, lambda world: world.source.reset(), outside=True),
    "branch": Action(20, lambda world: world.source.branch(), outside=True),
    "branch_at": Action(30, lambda world: world.source.branch_at(), outside=True),
    "unbranch": Action(20, lambda world: world.source.unbranch(), outside=True),
    "tag": Action(30, lambda world: world.source.tag(), outside=True),
    "untag": Action(10, lambda world: world.source.untag(), outside=True),
    "arrive": Action(100, lambda world: world.troubles.arrive(), outside=True),
    "arrive_partly": Action(80, lambda world: world.troubles.arrive_partly(), outside=True),
    "lose": Action(40, lambda world: world.troubles.lose(), outside=True),
    "damage": Action(20, lambda world: world.troubles.damage(), outside=True),
    "rot": Action(20, lambda world: world.troubles.rot(), outside=True),
    "archive": Action(10, lambda world: world.troubles.archive(), outside=True),
    "forbid": Action(10, lambda world: world.troubles.forbid(), outside=True),
    "fail": Action(10, lambda world: world.troubles.fail(), outside=True),
    "come_back": Action(40, lambda world: world.troubles.come_back(), outside=True),
    "hide_history": Action(12, lambda world: world.looks.hide(), outside=True),
    "limit_history": Action(8, lambda world: world.looks.limit(), outside=True),
    "show_history": Action(20, lambda world: world.looks.mend(), outside=True),
    "refuse_records": Action(8, World.refuse_records, outside=True),
    "take_records": Action(20, lambda world: world.refused.clear(), outside=True),
    "collect": Action(15, lambda world: world.troubles.collect(), outside=True),
    "work": Action(350, World.work),
    "round": Action(60, World.round),
    "forget": Action(30, World.forget, outside=True),
    "age": Action(40, World.age, outside=True),
    "check_all": Action(20, World.check_all),
    "validate": Action(30, World.validate),
    "prioritise": Action(10, World.prioritise),
    "pause": Action(15, World.pause),
    "set_depth": Action(15, World.set_depth),
    "leave_rotten": Action(15, World.leave_rotten),
    "set_imported": Action(6, World.set_imported),
    "set_replication": Action(25, World.set_replication),
    "bring_some": Action(25, bring_some),
    "bring_all": Action(10, bring_all),
    "stop_bringing": Action(5, stop_bringing),
    "replace_some": Action(25, replace_some),
    "set_tags": Action(8, World.set_tags),
    "select": Action(15, World.select),
    "give_waiver": Action(15, World.give_waiver),
    "waive_object": Action(25, World.waive_object),
    "withdraw_waiver": Action(10, World.withdraw_waiver),
    "snapshot": Action(25, World.snapshot, outside=True),
    "restore": Action(25, World.restore, outside=True),
    "follow_gc": Action(20, follow),
    "sweep": Action(40, sweep),
    "set_hold": Action(15, set_policy),
    "ask_for_merge": Action(30, ask_for_merge),
    "stray": Action(8, World.stray),
    "unstray": Action(8, World.unstray),
    "meddle": Action(8, World.meddle),
    "make_anew": Action(4, World.make_anew),
    "lose_database": Action(5, World.lose_database),
    "remake": Action(4, World.remake),
    "adopt": Action(4, World.adopt),
    "recreate_source": Action(8, World.recreate_source),
    "settle": Action(0, World.settle),
}


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Wherever the engine would make threads, calls follow each other, so that a seed always gives the same run."""
    from tests.promise.serial import Serial, users_of_threads

    with ExitStack() as stack:
        for module in users_of_threads():
            stack.enter_context(mock.patch.object(module, "ThreadPoolExecutor", Serial))
        stack.enter_context(mock.patch("spark_jobs.check.job._KEPT", KeptRanges(KEPT_ENTRIES)))
        stack.enter_context(mock.patch("mirroring.promote.resend_records.WINDOW", WINDOW))
        yield
