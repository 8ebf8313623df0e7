"""`scripts/soak promise STEPS`: lives of tests/promise, each with the next seed, on a database of their own."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STEPS = 80


def main(arguments: list[str]) -> int:
    """Exit code 1 when a promise was broken, or a mutant was not found."""
    parser = argparse.ArgumentParser(prog="scripts/soak promise", description=__doc__)
    parser.add_argument("steps", nargs="?", type=int, default=5000, help="in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first life")
    parser.add_argument("--length", type=int, default=STEPS, help="steps of a life, before what was broken returns")
    parser.add_argument("--passing", default="", metavar="KINDS", help="kinds of problems not to stop at, with commas")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server of its own")
    parser.add_argument("--shrink", action="store_true", help="the first life alone, in as few steps as break it")
    parser.add_argument("--sabotage", action="store_true", help="does it find each mutant of the engine?")
    parser.add_argument("--lives", type=int, default=100, help="so many are lived at most to find a mutant")
    parser.add_argument("--mutant", default="", help="those alone whose name has this in it")
    told = parser.parse_args(arguments)
    _begin_alike(arguments)
    with _database(told.postgres), _people() as owner:
        return (_sabotage if told.sabotage else _shrink if told.shrink else _soak)(owner, told)


def _begin_alike(arguments: list[str]) -> None:
    """Sets of text are gone through in the same order by each process with this in its environment."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.promise.run_soak", *arguments])


@contextmanager
def _database(postgres: bool) -> Iterator[None]:
    from tests.postgres import DATABASE, quick_server

    if not postgres:
        yield
        return
    with quick_server() as url:
        os.environ[f"{DATABASE}TYPE"] = "postgres"
        os.environ[f"{DATABASE}POSTGRES_CONNECTION_STRING"] = url
        yield


@contextmanager
def _people() -> Iterator[Any]:
    """Django on empty databases, and somebody who may do everything."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakemirror_site.settings_test")
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    databases = setup_databases(verbosity=0, interactive=False)
    try:
        from tests.cast import person

        if connection.vendor == "sqlite":
            connection.cursor().execute("PRAGMA synchronous = OFF")
        yield person("olga", "Admins")
    finally:
        teardown_databases(databases, verbosity=0)


def _soak(owner: Any, told: argparse.Namespace) -> int:
    from tests.promise.lives import live

    began, steps, moves, seed, failed = time.monotonic(), 0, 0, told.seed, Counter[str]()
    while steps < told.steps:
        life = live(owner, seed, told.length, told.passing.split(","))
        steps, moves = steps + len(life.steps), moves + life.moves
        if life.problems:
            failed[life.kind] += 1
            print(f"PROBLEM {life}", flush=True)
        seed += 1
        if (seed - told.seed) % 50 == 0:
            print(f"{steps} steps, {moves} moves, {failed.total()} problems", flush=True)
    took = time.monotonic() - began
    print(f"{steps} steps of {seed - told.seed} lives from seed {told.seed}, {moves} moves of branches and tags,")
    print(f"in {took:.0f} s ({steps / took:.0f} a second): {failed.total()} problems {dict(failed) or ''}")
    return 1 if failed else 0


def _shrink(owner: Any, told: argparse.Namespace) -> int:
    """The life of one seed, in as few steps as break the same promise."""
    from tests.promise.lives import live, shrink

    life = live(owner, told.seed, told.length, told.passing.split(","))
    print(life, flush=True)
    if not life.problems:
        return 0
    life = shrink(owner, life, told.passing.split(","))
    print(*life.problems, f"{len(life.steps)} steps: {list(life.steps)}", sep="\n")
    return 1


def _sabotage(owner: Any, told: argparse.Namespace) -> int:
    from tests.promise.sabotage import MUTANTS, hunt

    missed, seeds = 0, range(told.seed, told.seed + told.lives)
    mutants = [mutant for mutant in MUTANTS if told.mutant in mutant.name]
    for mutant in mutants:
        found = hunt(owner, mutant, seeds, told.length, told.passing.split(","))
        missed += found is None
        print(f"{mutant}: {found or f'NOT FOUND in {told.lives} lives'}", flush=True)
    print(f"{len(mutants)} mutants, {missed} not found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
