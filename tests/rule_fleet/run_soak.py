"""`scripts/soak rules`: replication rules by real processes under kill -9 of everything; see tests/rule_fleet/soak.py.

Stores are MinIO servers where LAKEMIRROR_TEST_MINIO names the program, else those of the sandbox, which are cut off and
not killed, and between which all versions are not copied.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.rule_fleet import SABOTAGE


def main(arguments: list[str]) -> int:
    """Exit code 1 when something was wrong."""
    parser = argparse.ArgumentParser(prog="scripts/soak rules", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="so long things go wrong")
    parser.add_argument("--quiet-minutes", type=float, default=10.0, help="then nobody may write for so long")
    parser.add_argument("--settle-minutes", type=float, default=25.0, help="all has to be up to date by then")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=4.0, metavar="DEEDS", help="of people, a second")
    parser.add_argument("--kill-every", type=float, default=10.0, metavar="SECONDS", help="on the average")
    parser.add_argument("--sqlite", action="store_true", help="instead of a PostgreSQL of its own")
    parser.add_argument("--sabotage", metavar="NAME", help="break what tests/rule_fleet/sabotage.py names")
    told = parser.parse_args(arguments)
    if told.sabotage:
        os.environ[SABOTAGE] = told.sabotage
    return _run(told)


def _run(told: argparse.Namespace) -> int:
    from tests.postgres import quick_server
    from tests.rule_fleet.soak import Plan, soak

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that nothing stays behind
    plan = Plan(told.minutes, told.quiet_minutes, told.seed, told.settle_minutes, told.rate, told.kill_every)
    began = time.monotonic()
    server = contextlib.nullcontext("") if told.sqlite else quick_server()
    with server as database, tempfile.TemporaryDirectory(prefix="lakemirror-rules-") as folder:
        try:
            report = soak(Path(folder), database, plan, functools.partial(_tell, began))
        finally:
            if kept := os.environ.get("LAKEMIRROR_SOAK_LOGS"):
                Path(kept).mkdir(parents=True, exist_ok=True)
                for log in (*Path(folder).glob("*.log"), *Path(folder).glob("*.jsonl")):
                    shutil.copy(log, kept)
    print(*report.lines(), sep="\n", flush=True)
    return 1 if report.problems else 0


def _tell(began: float, line: str) -> None:
    print(f"{time.monotonic() - began:6.0f} s  {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
