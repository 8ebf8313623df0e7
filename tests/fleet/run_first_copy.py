"""`scripts/soak first-copy`: a first copy between real servers under kill -9, watched; see tests/fleet/first_copy.py.

Needs a lakeFS and a MinIO of the user's: LAKEMIRROR_SANDBOX_LAKEFS and LAKEMIRROR_TEST_MINIO name the binaries.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.fleet.real_sites import missing_binaries


def main(arguments: list[str]) -> int:
    """Exit code 1 when a promise was broken, 2 when a binary is missing."""
    parser = argparse.ArgumentParser(prog="scripts/soak first-copy", description=__doc__)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill-every", type=float, default=40.0, metavar="SECONDS", help="on the average")
    parser.add_argument("--minutes", type=float, default=45.0, help="the longest that the copy may take")
    told = parser.parse_args(arguments)
    if missing := missing_binaries():
        print(f"scripts/soak: set {' and '.join(missing)} to the path of a binary", file=sys.stderr)
        return 2
    return _run(told)


def _run(told: argparse.Namespace) -> int:
    from tests.fleet.first_copy import Plan, first_copy

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that nothing stays behind
    tell = functools.partial(print, flush=True)
    with tempfile.TemporaryDirectory(prefix="lakemirror-first-copy-") as folder:
        try:
            report = first_copy(Path(folder), Plan(**vars(told)), tell)
        finally:
            if kept := os.environ.get("LAKEMIRROR_SOAK_LOGS"):
                for log in Path(folder).glob("*.log"):
                    shutil.copy(log, kept)
    print(*report.lines(), sep="\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
