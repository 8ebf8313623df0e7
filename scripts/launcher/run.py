"""`scripts/run`: prepare what is missing, start everything, say where it answers, stop everything.

The page comes first: it answers when the first requirements are in, while Spark is still being installed. All that
changes while it runs lies in var/.
"""

from __future__ import annotations

import argparse
import fcntl
import os
from typing import TextIO

from launcher import VAR, environment
from launcher.console import Problem
from launcher.demo import Demo
from launcher.own import Own

_LEAST_MEGABYTES = 200


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    VAR.mkdir(parents=True, exist_ok=True)
    environment.need_disk(VAR, _LEAST_MEGABYTES)
    with _only_one():
        kind = Own if options.config else Demo
        return kind(options).go()


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/run", description="Start LakeMirror; Ctrl-C stops it.")
    parser.add_argument("--config", metavar="FILE", help="your own lakeFS installations and stores; default: the demo")
    parser.add_argument("--seed", type=int, help="the demo's company does the same again for the same number")
    return parser.parse_args(arguments)


def _only_one() -> TextIO:
    """The lock on var/, held as long as the file is open; Problem when another run has it."""
    (VAR / "run").mkdir(exist_ok=True)
    lock = (VAR / "run" / "lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        raise Problem(f"LakeMirror runs from this folder already (process {lock.read().strip()})") from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
