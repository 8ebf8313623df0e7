"""`scripts/test [FOLDERS, PYTEST ARGUMENTS]`: install what the tests need, check style, types and imports, run them.

With arguments only pytest runs, with those; `core mirroring` are the tests of these folders. Without, the tests
that start few servers run beside the others, in two processes, and what they say follows at the end. In CI (CI=true)
nothing that a test needs may be missing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from launcher import PYTHON, ROOT, VENV, environment, java, kernel
from launcher.console import Problem, console
from launcher.processes import Supervisor

_STAGES = {"web": 400, "sandbox": 100, "build": 50, "spark": 1500, "cli": 100, "test": 600}
_BESIDE = (
    ("mirroring", "promise", "site"),
    [
        "audit",
        "cli",
        "console",
        "core",
        "db",
        "deployment",
        "graveler",
        "installations",
        "jobs",
        "mirrors",
        "notifications",
        "rbac",
        "web",
        "test_postgres.py",
    ],
)
"""Groups of folders and files whose tests start few servers. Each has a process of its own, beside the one that runs
all others, and takes about as long."""
_CHECKS = {
    "ruff": ["-m", "ruff", "check", "--quiet", "."],
    "mypy": ["-m", "mypy"],
    "lint-imports": [str(VENV / "bin" / "lint-imports"), "--no-logo", "--no-cache"],
}


def main(arguments: list[str]) -> int:
    run = Supervisor().once
    environment.make_venv(run)
    environment.install_missing(run, _STAGES)
    env = _environment(java.home(run), _chromium(run))
    failed = [] if arguments else [name for name, check in _CHECKS.items() if _run(check, env) != 0]
    status = _run(["-m", "pytest", *map(_place, arguments)], env) if arguments else _run_all(env)
    if failed:
        raise Problem(f"{' and '.join(failed)} found something: see above")
    return status


def _place(argument: str) -> str:
    """Where the tests of a folder lie; any other argument as it is."""
    place = Path("tests", argument)
    return str(place) if argument.strip("./") and (ROOT / place).is_dir() else argument


def _environment(java_home: Path, chromium: str) -> dict[str, str]:
    """Nothing of a running LakeMirror or of the developer's own Spark may reach the tests. What was compiled is kept,
    whatever the shell says: each of the many processes that tests start would compile everything anew."""
    foreign = ("LAKEMIRROR_", "REPLICATION_", "SPARK_", "DJANGO_", "PYTHONDONTWRITEBYTECODE")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    own = {k: v for k, v in os.environ.items() if k.startswith("LAKEMIRROR_SANDBOX_")}
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    made = {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": str(PYTHON), "PATH": path, "LAKEMIRROR_CHROMIUM": chromium}
    return inherited | own | made


def _chromium(run: environment.Run) -> str:
    """The browser's path, installed where we may; "" where there is none, which in CI is an error."""
    missing = [] if _browser() else ["chromium"]
    missing += [] if _has_libatomic() else ["libatomic1"]
    if missing and not environment.apt_install(run, *missing):
        hint = f"the browser tests need {' and '.join(missing)}: run 'apt-get install {' '.join(missing)}' as root"
        if os.environ.get("CI"):
            raise Problem(hint)
        console.say(f"{hint}; they are skipped now")
        return ""
    return _browser() or ""


def _browser() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _has_libatomic() -> bool:
    """The browser's driver loads it."""
    try:
        ctypes.CDLL("libatomic.so.1")
    except OSError:
        return False
    return True


def _run_all(env: dict[str, str]) -> int:
    """Every test, in processes that share nothing: the sum of what they end with."""
    groups = [[f"tests/{name}" for name in names] for names in _BESIDE]
    others = [f"--ignore={folder}" for group in groups for folder in group]
    with ExitStack() as kept:
        beside = [kept.enter_context(_beside(group, env)) for group in groups]
        status = _run(["-m", "pytest", *others], env)
        return status + sum(child.wait() for child in beside)


@contextmanager
def _beside(folders: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The tests of these folders; what they say follows at the end."""
    with tempfile.TemporaryFile() as output:
        child = _start(["-m", "pytest", "--color=no", *folders], env, output)
        try:
            yield child
        finally:
            _end(child)
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.flush()


def _run(arguments: list[str], env: dict[str, str]) -> int:
    """A tool of the environment, its output straight through; interrupted with us."""
    child = _start(arguments, env)
    try:
        return child.wait()
    finally:
        _end(child)


def _start(arguments: list[str], env: dict[str, str], output: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    errors = None if output is None else subprocess.STDOUT
    command = [PYTHON, *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)


def _end(child: subprocess.Popen[bytes]) -> None:
    kernel.end(lambda: [child.pid] if child.poll() is None else [], grace=10)
