"""Lives by their seeds: which actions a life prefers, how long it is, and what was broken in it."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

from django.apps import apps
from django.db import connection

from graveler.ranges import write_ranges
from graveler.splitting import SplitRule
from tests.mirrors.harness import deployment
from tests.promise.world import ACTIONS, World, in_one_thread

STEPS = 80
NEVER = frozenset({"commit", "arrive", "work"})
"""What no life goes without."""


@dataclass(frozen=True, slots=True)
class Life:
    """What came of a seed. `last`: the steps that led to its first problem."""

    seed: int
    steps: int
    moves: int
    problems: list[str]
    last: list[str]


def weights_of(chance: random.Random) -> dict[str, int]:
    """A life does some things often and others never: what depends on few things meets sooner so."""
    return {
        name: action.weight * (1 if name in NEVER else chance.choice([0, 1, 1, 3])) for name, action in ACTIONS.items()
    }


def live(owner: Any, seed: int, steps: int = STEPS, passing: Collection[str] = ()) -> Life:
    """One life until its first problem, or its end. Those of the kinds in `passing` are left out."""
    chance = random.Random(seed)
    with world(owner, chance) as one:
        weights = weights_of(chance)
        for _ in range(steps):
            one.step(chance.choices(list(weights), list(weights.values()))[0])
            if _left(one, passing):
                break
        else:
            one.settle()
        return Life(seed, len(one.steps), one.reader.moves, _left(one, passing), one.steps[-12:])


def _left(one: World, passing: Collection[str]) -> list[str]:
    return [problem for problem in one.problems if problem.split(":")[0] not in passing]


@contextmanager
def world(owner: Any, chance: random.Random) -> Iterator[World]:
    """A world on empty tables, with ranges so short that commits have several."""
    empty_tables()
    short = partial(write_ranges, rule=SplitRule(raggedness=6))
    with in_one_thread(), mock.patch("tests.fakes.write_ranges", short), deployment() as lm:
        one = World(lm, owner, chance)
        with mock.patch("lakemirror_site.wiring.run_check", one.run_check):
            yield one


def empty_tables() -> None:
    """Of mirrors; the people stay."""
    tables = [model._meta.db_table for model in apps.get_app_config("mirrors").get_models()]
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
