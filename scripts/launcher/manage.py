"""`scripts/manage COMMAND`: a management command with the settings of the run in this folder."""

from __future__ import annotations

import json
import os

from launcher import PYTHON, ROOT, VAR
from launcher.console import Problem
from launcher.processes import inherited


def main(arguments: list[str]) -> int:
    """Becomes the command; Problem when nothing ran here yet."""
    settings = VAR / "run" / "environment.json"
    if not settings.exists() or not PYTHON.exists():
        raise Problem("nothing has run from this folder yet: start scripts/run first")
    env = inherited(**json.loads(settings.read_text()))
    env.pop("LAKEMIRROR_SUPERVISED", None)
    os.execve(PYTHON, [str(PYTHON), str(ROOT / "manage.py"), *arguments], env)
