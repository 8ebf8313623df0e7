"""`scripts/soak`: long runs of tests/mirrors/soak.py, or of real processes (tests/fleet), on databases of their own."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.fleet import SABOTAGE


def main(arguments: list[str]) -> int:
    """Exit code 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("steps", nargs="?", type=int, default=5000, help="in one process, on stand-ins of everything")
    parser.add_argument("first_seed", nargs="?", type=int, default=1)
    parser.add_argument("--processes", type=int, metavar="PROMOTIONS", help="by real processes, on PostgreSQL")
    parser.add_argument("--seed", type=int, help="the same as the second argument")
    parser.add_argument(
        "--sabotage", metavar="NAME", help="of real processes: break what tests/fleet/sabotage.py names"
    )
    told = parser.parse_args(arguments)
    if told.sabotage:
        os.environ[SABOTAGE] = told.sabotage
    seed = told.first_seed if told.seed is None else told.seed
    return _soak_processes(told.processes, seed) if told.processes else _soak(told.steps, seed)


def _soak_processes(promotions: int, seed: int) -> int:
    from tests.fleet.soak import soak
    from tests.postgres import quick_server

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that nothing stays behind
    with quick_server() as database, tempfile.TemporaryDirectory(prefix="lakemirror-soak-") as folder:
        try:
            report = soak(
                Path(folder), database, promotions=promotions, seed=seed, tell=functools.partial(print, flush=True)
            )
        finally:
            if kept := os.environ.get("LAKEMIRROR_SOAK_LOGS"):
                shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))
    print(*report.lines(), sep="\n")
    return 1 if report.problems else 0


def _soak(steps: int, seed: int, length: int = 500) -> int:
    """Runs of 500 steps each, every one on an empty database."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakemirror_site.settings_test")
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    from django.test.utils import setup_databases, teardown_databases

    databases = setup_databases(verbosity=0, interactive=False)
    started, promotions, problems = time.monotonic(), 0, []
    try:
        for number in range(0, steps, length):
            done, found = _run(min(length, steps - number), seed + number // length)
            promotions, problems = promotions + done, problems + found
            print(
                f"{number + min(length, steps - number)} steps, {promotions} moves of heads, {len(problems)} problems"
            )
    finally:
        teardown_databases(databases, verbosity=0)
    for problem in problems[:20]:
        print(f"PROBLEM {problem}")
    print(f"{steps} steps from seed {seed} in {time.monotonic() - started:.0f} s: {len(problems)} problems")
    return 1 if problems else 0


def _run(steps: int, seed: int) -> tuple[int, list[str]]:
    from django.core.management import call_command

    from tests.mirrors.harness import deployment, one_by_one
    from tests.mirrors.soak import Soak

    call_command("flush", verbosity=0, interactive=False)
    with one_by_one(), deployment() as lm:
        lm.add_mirror()
        soak = Soak(lm, seed)
        for _ in range(steps):
            soak.step()
        return soak.promotions, [f"seed {seed}: {p}" for p in (*soak.problems, *soak.settle(), *soak.blamed())]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
