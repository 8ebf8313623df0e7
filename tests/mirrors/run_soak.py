"""`scripts/soak`: long runs of tests/mirrors/soak.py on a database of their own."""

from __future__ import annotations

import logging
import os
import sys
import time


def main(arguments: list[str]) -> int:
    """Runs of 500 steps each, every one on an empty database; exit code 1 when a promise was broken."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakemirror_site.settings_test")
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    steps = int(arguments[0]) if arguments else 5000
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    return _soak(steps, seed)


def _soak(steps: int, seed: int, length: int = 500) -> int:
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
