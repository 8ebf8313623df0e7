"""`scripts/soak exports LIVES`: long runs of tests/exports/soak.py, each life on empty tables."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time

STEPS = 25


def main(arguments: list[str]) -> int:
    """Exit code 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="scripts/soak exports", description=__doc__)
    parser.add_argument("lives", nargs="?", type=int, default=500, help="how many, each with the next seed")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each life, before what was broken is repaired")
    told = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakemirror_site.settings_test")
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    from django.test.utils import setup_databases, teardown_databases

    databases = setup_databases(verbosity=0, interactive=False)
    try:
        return _soak(told.lives, told.seed, told.steps)
    finally:
        teardown_databases(databases, verbosity=0)


def _soak(lives: int, first: int, steps: int) -> int:
    began, failed = time.monotonic(), 0
    for number, seed in enumerate(range(first, first + lives), start=1):
        problems = _live(seed, steps)
        failed += bool(problems)
        for problem in problems[:5]:
            print(f"PROBLEM seed {seed}: {problem}", flush=True)
        if problems:
            print(f"  again: ./scripts/soak exports 1 --seed {seed} --steps {steps}", flush=True)
        if number % 50 == 0:
            print(f"{number} lives, {failed} failed", flush=True)
    print(f"{lives} lives from seed {first} in {time.monotonic() - began:.0f} s: {failed} failed")
    return 1 if failed else 0


def _live(seed: int, steps: int) -> list[str]:
    """What is wrong with one life; nothing of it stays. What the engine did not expect is wrong too."""
    from django.db import transaction

    from tests.cast import person
    from tests.exports.soak import soaking
    from tests.mirrors.harness import deployment

    with transaction.atomic():
        try:
            with deployment() as lm, soaking(lm, person("olga", "Admins"), seed) as life:
                return life.live(steps)
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
        finally:
            transaction.set_rollback(True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
