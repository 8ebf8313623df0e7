"""Random histories with faults and crashes, and a reader that opens every mirror head after each step.

The loops and tables are the real ones; installations, stores and the `check` job are the fakes of tests/fakes.py, whose
every call may fail or end the process. Now and then the database is lost and made again from the destination. The
promise that is checked: no head is ever torn, every head is a commit that the source branch pointed to, none goes back
to what the source branch left for good before, and once the faults end every branch catches up.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest import mock

from django.db.models import F
from django.db.models.functions import Now

from core.errors import Conflict, LakeMirrorError, NotFound, RemoteFailure, Throttled, Unreachable
from core.mirroring.object_check import Depth
from core.mirroring.promotion import Why
from jobs.models import Duty
from mirrors.models import Blocker, Mirror, Promotion, Repository, SourceBranch, Validation
from mirrors.queries.certificates import certificate_uri
from mirrors.services.priority import mirror_prioritise
from mirrors.services.rebuild import Result, rebuild
from mirrors.services.validations import validation_ask
from tests.company import Company
from tests.mirrors.harness import NAMESPACE, Deployment

KINDS = ("manage", "sense", "copy", "validate", "promote")
FAULTS: tuple[Callable[[], LakeMirrorError], ...] = (
    lambda: Unreachable("no answer"),
    lambda: RemoteFailure("500"),
    lambda: Throttled("429"),
)


class Crash(BaseException):
    """kill -9, as far as the code can tell: nothing after it runs."""


class Soak:
    """One seeded run. `step()` does something at random; `problems` lists what must never be."""

    def __init__(self, lm: Deployment, seed: int) -> None:
        self.lm, self.random = lm, random.Random(seed)
        self.company = Company(lm.lake, self.random)
        self.unproven: set[str] = set()
        self.stages: list[str] = []
        self.problems: list[str] = []
        self.promotions = 0
        self.faulty = True
        self.moving = False
        lm.small_checks = True
        # Long ago: a repository that a broken-off creation leaves is no ghost of one that was just deleted.
        Mirror.objects.update(created_at="2020-01-01T00:00:00Z")
        self._arm()

    # Faults: any call of an installation or store may fail, before or after its work, or end the process

    def _arm(self) -> None:
        for lakefs in (self.lm.us, self.lm.eu):
            lakefs._call = self._faulty_call(lakefs._call)  # type: ignore[method-assign]
            lakefs._answer = self._faulty_answer  # type: ignore[method-assign]
        for store in (self.lm.us_store, self.lm.eu_store):
            store._check = self._faulty_check(store._check)  # type: ignore[method-assign]
        self._watch_moves()

    def _faulty_call(self, inner: Callable[[str], None]) -> Callable[[str], None]:
        def call(name: str) -> None:
            self._maybe_fail(0.01)
            inner(name)

        return call

    def _faulty_answer(self, name: str) -> None:
        self._maybe_fail(0.05)

    def _faulty_check(self, inner: Callable[[], None]) -> Callable[[], None]:
        def check() -> None:
            if self.moving:
                self._maybe_fail(0.003)
            inner()

        return check

    def _maybe_fail(self, chance: float) -> None:
        if not (self.faulty and self.moving):
            return
        if self.random.random() < chance / 3:
            raise Crash
        if self.random.random() < chance:
            raise self.random.choice(FAULTS)()

    def _watch_moves(self) -> None:
        """A reader may come at any instant: heads are examined inside of the very call that moves them."""
        move = self.lm.eu._move

        def watched(there: Any, branch: str, commit_id: str) -> None:
            self.problems += self.company.misled(branch, there.branches.get(branch, ""), commit_id)
            move(there, branch, commit_id)
            self.promotions += 1
            self.read_heads()

        self.lm.eu._move = watched  # type: ignore[method-assign]

    # What the company does

    def step(self) -> None:
        """Something happens at the source, on the way, or to our workers."""
        action = self.random.choices(
            [
                self.company.commit,
                self.company.commit_many,
                self.company.merge,
                self.company.branch,
                self.company.unbranch,
                self.company.rewind,
                self.arrive,
                self.arrive_partly,
                self.corrupt,
                self.work,
                self.lose_database,
                self.validate,
                self.prioritise,
            ],
            [160, 40, 60, 40, 30, 30, 140, 140, 40, 400, 6, 30, 30],
        )[0]
        self.stages.append(action.__name__)
        action()
        self.company.note_heads()
        self.read_heads()

    def arrive(self) -> None:
        self.lm.arrive()
        self._repair()

    def arrive_partly(self) -> None:
        """Some of what the source wrote is there, in any order."""
        keys = [uri.removeprefix("s3://src/lake/") for uri in self.lm.us_store.objects]
        new = [key for key in keys if f"{NAMESPACE}/{key}" not in self.lm.eu_store.objects]
        held = self.random.sample(new, k=len(new) // 2)
        still = {uri for uri in sorted(self.lm.eu_store.hidden) if self.random.random() < 0.7}
        self.lm.arrive(*held)
        self.lm.eu_store.hidden |= still & set(self.lm.eu_store.objects) - self._needed()

    def corrupt(self) -> None:
        """A byte flips on the way of something that no head needs yet."""
        needed = self._needed()
        open_ = [
            uri
            for uri in self.lm.eu_store.objects
            if uri.startswith(NAMESPACE) and uri not in needed and "_lakemirror" not in uri
        ]
        if open_ and self._unchecked(open_):
            uri = self.random.choice(self._unchecked(open_))
            data = self.lm.eu_store.objects[uri]
            self.lm.eu_store.objects[uri] = bytes([data[0] ^ 1]) + data[1:]

    def _unchecked(self, uris: list[str]) -> list[str]:
        """What a store damages after it was checked is another story (re-verification)."""
        return [uri for uri in uris if uri in self.lm.eu_store.hidden]

    def _repair(self) -> None:
        for uri, data in list(self.lm.eu_store.objects.items()):
            whole = self.lm.us_store.objects.get(uri.replace(NAMESPACE, "s3://src/lake"))
            if whole is not None and whole != data:
                self.lm.eu_store.objects[uri] = whole

    def _needed(self) -> set[str]:
        """Everything that was ever visible at the destination has been checked, and the store keeps it."""
        return {uri for uri in self.lm.eu_store.objects if uri not in self.lm.eu_store.hidden}

    def work(self) -> None:
        """A worker takes some duties; it may die in the middle, with its leases held until they run out."""
        Blocker.objects.update(look_at=Now())
        SourceBranch.objects.filter(missing_since__isnull=False).update(missing_since="2020-01-01T00:00:00Z")
        for kind in self.random.sample(KINDS, k=self.random.randrange(1, 6)):
            for duty in Duty.objects.filter(kind=kind):
                self._run(duty.pk)

    def validate(self) -> None:
        """Somebody wants what a commit, a branch or all branches name looked at again."""
        mirror = Mirror.objects.filter(state=Mirror.State.ACTIVE).first()
        heads = list(mirror.branches.values_list("name", "head")) if mirror else []
        if mirror is None or not heads:
            return
        branch, head = self.random.choice(heads)
        what = self.random.choice([{"branch": branch}, {"commit": head}, {}])
        depth = self.random.choice([None, *Depth])
        with (
            mock.patch("mirrors.services.validations.require_operation", return_value=("fs:OperateMirror", "*")),
            suppress(NotFound, Conflict),
        ):
            validation_ask(actor="system:soak", mirror=mirror, depth=depth, **what)

    def prioritise(self) -> None:
        """Somebody wants a branch's head, or a commit of any age, before all else."""
        mirror = Mirror.objects.filter(state=Mirror.State.ACTIVE).first()
        if mirror is None:
            return
        branches = [("branch", name) for name in mirror.source.branches.values_list("name", flat=True)]
        commits = [("commit", sha) for sha in mirror.commits.values_list("commit__sha", flat=True)]
        field, value = self.random.choice(self.random.choice([branches or commits, commits or branches]) or [("", "")])
        if field:
            with (
                mock.patch("mirrors.services.priority.require_operation", return_value=("fs:OperateMirror", "*")),
                suppress(NotFound),
            ):
                mirror_prioritise(actor="system:soak", mirror=mirror, **{field: value})

    def lose_database(self) -> None:
        """Every row goes, and what the destination says of itself makes them again."""
        if not Mirror.objects.filter(state=Mirror.State.ACTIVE).exists():
            return
        for model in (Duty, Mirror, Repository):
            model.objects.all().delete()
        there, written = self.lm.eu.repositories["lake-eu"].branches, self.lm.eu_store.objects
        self.unproven |= {name for name in there if certificate_uri(NAMESPACE, name) not in written}
        lines = list(rebuild(actor="system:tests", regions=["us-east-1", "eu-west-1"]))
        if [line.name for line in lines if line.result is Result.MADE] != ["lake-eu"]:
            self.problems.append(f"the mirror was not made again: {lines}")

    def _run(self, duty_id: int) -> None:
        self.moving = True
        try:
            self.lm.run(duty_id, holder=f"w{self.random.randrange(1000)}")
        except Crash:
            Duty.objects.filter(pk=duty_id).update(until=None, failures=F("failures"))
        finally:
            self.moving = False

    # What the books say

    def blamed(self) -> list[str]:
        """Nobody but us touches the mirror here: whatever crashes leave behind, it is not somebody else's doing.

        A branch that was not certified yet when the database was lost is nobody's: it is left alone.
        """
        blamed = Promotion.objects.filter(why=Why.FOREIGN).values_list("branch", flat=True)
        return [f"somebody else is said to have moved {name}" for name in blamed if name not in self.unproven]

    # What the reader sees

    def read_heads(self) -> None:
        """Every head at the destination is whole, and one that the source branch pointed to."""
        was, self.moving = self.moving, False
        repository = self.lm.eu.repositories.get("lake-eu")
        if repository is not None:
            self.problems += self.lm.torn()
            for branch, head in repository.branches.items():
                if head not in self.company.pointed[branch]:
                    self.problems.append(f"{branch} shows {head[:8]}, which the source branch never pointed to")
        self.moving = was

    def settle(self) -> list[str]:
        """The faults end: every branch must catch up. Gives the branches that did not."""
        self.faulty = False
        self.arrive()
        self.lm.work(6)
        self.read_heads()
        there = self.lm.eu.repositories["lake-eu"].branches
        return [
            f"{name}: {there.get(name, 'nothing')[:8]} instead of {head[:8]}"
            for name, head in self.company.heads.items()
            if there.get(name) != head
        ] + [f"validation {row.pk} is {row.state}: {row.error}" for row in Validation.objects.open()]
