"""`scripts/lakemirror`: the command `lakemirror` out of this checkout's environment."""

from __future__ import annotations

import contextlib
import os
import sys

from launcher import PYTHON, ROOT, environment
from launcher.console import console
from launcher.processes import Supervisor, inherited


def main(arguments: list[str]) -> int:
    """Becomes the command, after installing what it needs. What is said of that goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        run = Supervisor().once
        environment.make_venv(run)
        if not environment.installed("cli"):
            console.say("installing requirements/cli.txt")
            environment.install(run, "cli", megabytes=100)
    env = inherited(PYTHONPATH=str(ROOT))
    os.execve(PYTHON, [str(PYTHON), "-P", "-m", "lakemirror", *arguments], env)
