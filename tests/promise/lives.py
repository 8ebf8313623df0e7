"""Lives by their seeds: which actions a life prefers, what was broken in it, and the fewest steps that break it."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

from django.db import connection

from graveler.ranges import write_ranges
from graveler.splitting import SplitRule
from tests.mirrors.harness import deployment
from tests.promise.books import tables_of_mirrors
from tests.promise.world import ACTIONS, World, in_one_thread

STEPS = 80
ALWAYS = frozenset({"commit", "arrive", "work"})
"""What no life goes without."""

Steps = Sequence[tuple[str, int]]
"""Names of actions, each with the seed of what is left to chance in it."""


@dataclass(frozen=True, slots=True)
class Life:
    """What came of a seed. `steps`: up to the first problem; `kind` is its kind, "" if there was none."""

    seed: int
    steps: Steps
    moves: int
    problems: Sequence[str]

    @property
    def kind(self) -> str:
        return self.problems[0].split(":")[0] if self.problems else ""

    def __str__(self) -> str:
        last = ", ".join(name for name, _ in self.steps[-12:])
        return f"seed {self.seed}, step {len(self.steps)}: {self.problems[:1]} after {last}"


def live(owner: Any, seed: int, length: int = STEPS, passing: Collection[str] = ()) -> Life:
    """One life until its first problem, or its end. Those of the kinds in `passing` are left out."""
    return replay(owner, seed, plan(seed, length), passing)


def plan(seed: int, length: int = STEPS) -> Steps:
    """The steps of a life. It does some things often and others never: what depends on few things meets sooner so."""
    chance = random.Random(seed)
    weights = {
        name: one.weight * (1 if name in ALWAYS else chance.choice([0, 1, 1, 3])) for name, one in ACTIONS.items()
    }
    names = chance.choices(list(weights), list(weights.values()), k=length)
    return [*((name, chance.getrandbits(32)) for name in names), ("settle", 0)]


def replay(owner: Any, seed: int, steps: Steps, passing: Collection[str] = ()) -> Life:
    """The life that begins by this seed and takes these steps."""
    with world(owner, seed) as one:
        for name, chance in steps:
            one.step(name, chance)
            if _left(one, passing):
                break
        return Life(seed, one.steps, one.reader.moves, _left(one, passing))


def shrink(owner: Any, life: Life, passing: Collection[str] = ()) -> Life:
    """Some of the fewest steps that end in a problem of the same kind."""
    best, size = life, len(life.steps) // 2
    while size:
        at = 0
        while at < len(best.steps):
            tried = replay(owner, life.seed, [*best.steps[:at], *best.steps[at + size :]], passing)
            if tried.kind == life.kind:
                best = tried
            else:
                at += size
        size //= 2
    return best


def _left(one: World, passing: Collection[str]) -> list[str]:
    return [problem for problem in one.problems if problem.split(":")[0] not in passing]


@contextmanager
def world(owner: Any, seed: int) -> Iterator[World]:
    """A world on empty tables, with ranges so short that commits have several."""
    empty_tables()
    short = partial(write_ranges, rule=SplitRule(raggedness=6))
    with in_one_thread(), mock.patch("tests.fakes.write_ranges", short), deployment() as lm:
        one = World(lm, owner, seed)
        with mock.patch("deployment.wiring.check_jobs.run_check", one.run_check):
            yield one


def empty_tables() -> None:
    """Of mirrors; the people stay. Keys begin anew, so that they say nothing of earlier lives."""
    tables = [model._meta.db_table for model in tables_of_mirrors()]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY CASCADE")
            return
        cursor.execute("PRAGMA foreign_keys = OFF")
        for table in tables:
            cursor.execute(f"DELETE FROM {table}")
        marks = ", ".join(["%s"] * len(tables))
        cursor.execute(f"DELETE FROM sqlite_sequence WHERE name IN ({marks})", tables)
        cursor.execute("PRAGMA foreign_keys = ON")
